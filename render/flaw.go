package render

import (
	"github.com/addonflow/addonflow/api/problem"
)

// flaw is one thing wrong with one object: a problem that does not know yet which
// object it is about.
type flaw struct {
	field   fieldPath
	reason  problem.Reason
	message string
	hint    string
	// meant is the field that an unknown one was probably meant to be.
	meant fieldPath
	// missing: the field is not there, or has nothing in it.
	missing bool
	// file and line are where it stands, when that is not where the field does.
	file string
	line int
	// untemplated: an add-on lists no templates, which one with a package must not.
	untemplated bool
}

// firstPerField drops flaws of a field that already has one. The checks run from
// the most to the least specific, so the first has the better words.
func firstPerField(flaws []flaw) []flaw {
	seen := make(map[fieldPath]bool, len(flaws))
	var kept []flaw
	for _, f := range flaws {
		if !seen[f.field] {
			seen[f.field] = true
			kept = append(kept, f)
		}
	}
	return kept
}
