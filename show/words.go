package show

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// none is the text of an empty cell.
const none = "–"

// ShortCommit returns main@9f3c2ab for main@sha1:9f3c2ab.... It returns any other text
// unchanged.
func ShortCommit(commit string) string {
	const short = 7
	sha := v1alpha1.CommitOf(commit)
	if len(sha) < short {
		return commit
	}
	return commit[:strings.LastIndexByte(commit, '@')+1] + sha[:short]
}

// commitOf is the short commit of a target; "–": not known. It is not known if the operator found the target on the
// hub after its status was lost.
func commitOf(t *v1alpha1.Target) string {
	if t == nil {
		return none
	}
	return cmp.Or(ShortCommit(t.Commit), t.Revision)
}

// Age is how long ago something was, as kubectl prints it.
func Age(now time.Time, at *metav1.Time) string {
	if at == nil || at.IsZero() {
		return none
	}
	return duration.HumanDuration(now.Sub(at.Time))
}

// Counted lists the counts that are not zero, in words.
func Counted(c v1alpha1.Counts) string {
	var parts []string
	for _, p := range []struct {
		count int32
		word  string
	}{
		{c.InFlight, "in flight"},
		{c.Failed, "failed"},
		{c.Parked, "parked"},
		{c.Held, "held"},
		{c.Unstaged, "unstaged"},
		{c.Ignored, "ignored"},
		{c.Removing, "to remove"}, // even while the removal is held
	} {
		if p.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.count, p.word))
		}
	}
	return strings.Join(parts, ", ")
}

// share is updated/total, followed by the other counts.
func share(c v1alpha1.Counts) string {
	text := fmt.Sprintf("%d/%d", c.Updated, c.Total)
	if more := Counted(c); more != "" {
		text += "  " + more
	}
	return text
}

// StagePosition is the first stage that is not finished and the number of stages, such as "2/3 everyone"; if all
// stages are finished, "3/3".
func StagePosition(stages []v1alpha1.StageStatus) string {
	if len(stages) == 0 {
		return none
	}
	for i, s := range stages {
		if !finished(s.Phase) {
			return fmt.Sprintf("%d/%d %s", i+1, len(stages), s.Name)
		}
	}
	return fmt.Sprintf("%d/%d", len(stages), len(stages))
}

// FirstLine returns the first line of a text, without control characters for a terminal. Conditions of a refused
// commit have many lines. The text may be from a user or from a file in Git.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return brief.OneLine(line)
}

// Lines returns a text with each line in the form of FirstLine.
func Lines(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		lines = append(lines, FirstLine(line))
	}
	return strings.Join(lines, "\n")
}
