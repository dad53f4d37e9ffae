package oracle

import (
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/test/forge"
)

// Latest are the newest statuses of a commit, one for each context.
func Latest(log []forge.Entry, sha string) map[string]forge.Entry {
	latest := map[string]forge.Entry{}
	for _, e := range log {
		if e.SHA == sha {
			latest[e.Context] = e
		}
	}
	return latest
}

// Statuses judges a forge's log: every commit has a final status in every context at last, and
// none is repeated more often than the faults explain, which lost that many answers.
func Statuses(log []forge.Entry, shas []string, lost int) (terminal int, broken []string) {
	for _, sha := range shas {
		latest := Latest(log, sha)
		final := len(latest) > 0
		for context, e := range latest {
			if e.State == "pending" {
				final = false
				broken = append(broken, fmt.Sprintf("commit %s: %s stays pending: %s", sha[:7], context, e.Description))
			}
		}
		if len(latest) == 0 {
			broken = append(broken, fmt.Sprintf("commit %s has no status", sha[:7]))
		}
		if final {
			terminal++
		}
	}
	repeats := 0
	before := map[string]forge.Entry{}
	for _, e := range log {
		key := e.SHA + " " + e.Context
		last, known := before[key]
		if known && last.State == e.State && last.Description == e.Description && last.TargetURL == e.TargetURL {
			repeats++
			if repeats > lost {
				broken = append(broken, fmt.Sprintf("status #%d repeats the one before: %s %s: %s", e.Sequence, e.SHA[:7], e.Context, e.Description))
			}
		}
		before[key] = e
	}
	return terminal, broken
}

// Reported are the statuses in the order of the log, by commit and context, without what differs
// from run to run.
func Reported(log []forge.Entry, shas []string, names *strings.Replacer) map[string][]string {
	reported := map[string][]string{}
	for _, e := range log {
		key := fmt.Sprintf("commit %d %s", slices.Index(shas, e.SHA), e.Context)
		reported[key] = append(reported[key], plain(e.State+": "+e.Description, names))
	}
	return reported
}
