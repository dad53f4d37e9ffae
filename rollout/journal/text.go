package journal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
)

// reasonLimit bounds the reason of a journal entry, in bytes.
const reasonLimit = 240

// reason returns the text for decisions of one kind. It names the first clusters. If the kind is
// exceptional, it adds the reason of each; otherwise it adds the number of clusters.
func (s step) reason(all []Decision) string {
	parts := make([]string, 0, brief.Shown)
	for _, d := range all[:min(len(all), brief.Shown)] {
		text := d.Cluster
		if s.kind.exceptional() && d.Reason != "" {
			text += ": " + d.Reason
		}
		parts = append(parts, text)
	}
	if s.kind.exceptional() {
		return brief.ReasonsOf(len(all), parts)
	}
	return fmt.Sprintf("+%d: %s", len(all), brief.NamesOf(len(all), parts))
}

// shortened cuts a text to one line of at most limit bytes.
func shortened(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= limit {
		return text
	}
	const dots = "..."
	cut := limit - len(dots)
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + dots
}

// commitDigits is how much of a commit's name a journal entry has.
const commitDigits = 12

// shortCommit is the beginning of the name of a commit, of main@sha1:<name>.
func shortCommit(revision string) string {
	name := revision[strings.LastIndexAny(revision, ":@")+1:]
	return name[:min(len(name), commitDigits)]
}
