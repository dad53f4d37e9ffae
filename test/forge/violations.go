package forge

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// attemptMark is how a later attempt shows in a description.
var attemptMark = regexp.MustCompile(`\(attempt ([0-9]+)\)$`)

// Violations returns what in the log breaks the promises of commit statuses, in words.
// For every repository, commit and context:
//   - no two neighbours are equal;
//   - after success, failure or error comes only a later attempt;
//   - the number of an attempt never falls;
//   - progress posts (pending after anything else) come at least 30 s after what was
//     told before, and at most 60 times.
//
// The times are those of the forge's clock. The rules are written down here once more,
// on purpose without the product's code.
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
	if attempt(next) < attempt(last) {
		out = append(out, fmt.Sprintf("attempt %d after attempt %d", attempt(next), attempt(last)))
	}
	if last.State != pending && attempt(next) <= attempt(last) {
		out = append(out, fmt.Sprintf("%s after %s within attempt %d", next.State, last.State, attempt(last)))
	}
	if isProgress(next) && next.Time.Sub(last.Time) < 30*time.Second {
		out = append(out, fmt.Sprintf("progress after %s", next.Time.Sub(last.Time)))
	}
	return out
}

// isProgress tells whether an entry that follows another says no more than that it is
// not over yet.
func isProgress(next Entry) bool { return next.State == pending }

// attempt returns the number in the description; 1 without one.
func attempt(e Entry) int {
	match := attemptMark.FindStringSubmatch(e.Description)
	if match == nil {
		return 1
	}
	n, err := strconv.Atoi(match[1])
	if err != nil {
		return 1
	}
	return n
}
