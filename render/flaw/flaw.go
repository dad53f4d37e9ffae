package flaw

import (
	"github.com/addonflow/addonflow/api/problem"
)

// Flaw is one mistake in one object. It does not name the object.
type Flaw struct {
	Field   Path
	Reason  problem.Reason
	Message string
	Hint    string
	// Missing: the field is absent or empty.
	Missing bool
	// File and Line are the position, if it is not that of the field.
	File string
	Line int
	// Untemplated: the add-on lists no templates. This is correct for an add-on with a package.
	Untemplated bool
}

// FirstPerField drops flaws of a field that already has one. The checks run from the most to
// the least specific, so the first has the best message.
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
