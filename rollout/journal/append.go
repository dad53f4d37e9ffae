package journal

import (
	"encoding/json"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Append returns the journal with the decisions at its end. It drops the oldest entries until
// at most JournalEntries remain, in at most JournalBytes of JSON. It does not change the
// journal that is passed.
//
// The repairs of one stage at one commit are one entry with their number, the newest time and the newest reason.
// Otherwise a writer that changes a work again and again would push every other decision out.
func Append(journal []v1alpha1.JournalEntry, at metav1.Time, decisions []Decision) []v1alpha1.JournalEntry {
	if len(decisions) == 0 {
		return journal
	}
	out := slices.Clone(journal)
	for _, d := range decisions {
		entry := v1alpha1.JournalEntry{At: at, Decision: string(d.Kind), Commit: shortCommit(d.Commit), Stage: d.Stage, Reason: shortened(d.Reason, reasonLimit)}
		count := d.Count
		if d.Kind == Repaired {
			out = slices.DeleteFunc(out, func(e v1alpha1.JournalEntry) bool {
				same := e.Decision == entry.Decision && e.Commit == entry.Commit && e.Stage == entry.Stage
				if same {
					count += int(e.Clusters)
				}
				return same
			})
		}
		entry.Clusters = int32(min(count, math.MaxInt32)) //nolint:gosec // it fits
		out = append(out, entry)
	}
	return bounded(out)
}

// bounded drops the oldest entries of a journal that is too long.
func bounded(journal []v1alpha1.JournalEntry) []v1alpha1.JournalEntry {
	size, kept := len("[]"), 0
	for i := len(journal) - 1; i >= 0 && kept < v1alpha1.JournalEntries; i-- {
		text, err := json.Marshal(journal[i])
		if err != nil || size+len(text)+len(",") > v1alpha1.JournalBytes {
			break // an entry is plain text and always marshals
		}
		size += len(text) + len(",")
		kept++
	}
	return journal[len(journal)-kept:]
}
