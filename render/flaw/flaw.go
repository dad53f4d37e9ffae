package flaw

import (
	"github.com/addonflow/addonflow/api/problem"
)

// Flaw is one thing wrong with one object: a problem that does not know yet which
// object it is about.
type Flaw struct {
	Field   Path
	Reason  problem.Reason
	Message string
	Hint    string
	// Missing: the field is not there, or has nothing in it.
	Missing bool
	// File and Line are where it stands, when that is not where the field does.
	File string
	Line int
	// Untemplated: an add-on lists no templates, which one with a package must not.
	Untemplated bool
}

// FirstPerField drops flaws of a field that already has one. The checks run from
// the most to the least specific, so the first has the better words.
func FirstPerField(flaws []Flaw) []Flaw {
	seen := make(map[Path]bool, len(flaws))
	var kept []Flaw
	for _, f := range flaws {
		if !seen[f.Field] {
			seen[f.Field] = true
			kept = append(kept, f)
		}
	}
	return kept
}
