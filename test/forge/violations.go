package forge

import (
	"fmt"
	"strings"
	"time"
)

// Violations returns every entry of the log that breaks a promise of commit statuses, as text.
// For every repository, commit and context:
//   - no two neighbours are equal;
//   - a commit is superseded at most once in a row;
//   - progress posts (pending after anything else) come at least 30 s after the post
//     before, and at most 60 times.
//
// The times are those of the forge's clock. The rules are implemented again here, on purpose
// without the product's code.
func Violations(log []Entry) []string {
	var out []string
	before := map[string]Entry{}
	progress := map[string]int{}
	for _, e := range log {
		key := e.Repository + " " + e.SHA + " " + e.Context
		if last, ok := before[key]; ok {
			for _, complaint := range compare(last, e) {
				out = append(out, fmt.Sprintf("#%d %s: %s", e.Sequence, key, complaint))
			}
			if isProgress(e) {
				progress[key]++
			}
		}
		if count := progress[key]; count > 60 {
			out = append(out, fmt.Sprintf("#%d %s: %d progress posts", e.Sequence, key, count))
		}
		before[key] = e
	}
	return out
}

// compare returns what is wrong with next as the follower of last.
func compare(last, next Entry) []string {
	var out []string
	if last.State == next.State && last.Description == next.Description && last.TargetURL == next.TargetURL {
		out = append(out, "equal to the one before")
	}
	if superseded(last) && superseded(next) {
		out = append(out, "superseded twice")
	}
	if isProgress(next) && last.State == next.State && next.Time.Sub(last.Time) < 30*time.Second {
		out = append(out, fmt.Sprintf("progress after %s", next.Time.Sub(last.Time)))
	}
	return out
}

// isProgress reports whether an entry that follows another only says that the rollout is not
// over.
func isProgress(next Entry) bool { return next.State == pending }

// superseded reports whether an entry says that another commit replaced its own.
func superseded(e Entry) bool { return strings.HasPrefix(e.Description, "superseded by ") }
