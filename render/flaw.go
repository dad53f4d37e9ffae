package render

import (
	"github.com/addonflow/addonflow/api/problem"
)

// removeIt is the hint for what must not be there at all.
const removeIt = "remove it"

// isRequired is what is wrong with a field that is not there.
const isRequired = "is required"

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

// about makes a flaw a problem of an object and looks up its line.
func (f flaw) about(object Located) problem.Problem {
	declared := object.GetUnstructured()
	path, line := object.Position(string(f.field))
	if f.file != "" {
		path, line = f.file, f.line
	}
	return problem.Problem{
		Reason: f.reason, Path: path, Line: line,
		Kind: declared.GetKind(), Name: declared.GetName(), Field: string(f.field),
		Message: f.message, Hint: f.hint,
	}
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

// notAString is the flaw of metadata that is a number or boolean where a string belongs.
func notAString(at fieldPath) flaw {
	return flaw{field: at, reason: ReasonInvalidManifest, message: "must be a string", hint: "quote it"}
}
