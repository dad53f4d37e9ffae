package secret

import (
	"regexp/syntax"
	"slices"
	"testing"
)

// TestEscape_IsOfBoundedLength: a server may answer with what looks like the beginning of one escape after another. As
// long as no escape can be longer than a few characters, the search for the next one ends soon.
func TestEscape_IsOfBoundedLength(t *testing.T) {
	expression, err := syntax.Parse(escape.String(), syntax.Perl)
	if err != nil {
		t.Fatal(err)
	}
	var bounded func(*syntax.Regexp) bool
	bounded = func(r *syntax.Regexp) bool {
		endless := r.Op == syntax.OpStar || r.Op == syntax.OpPlus || r.Op == syntax.OpRepeat && (r.Max < 0 || r.Max > 100)
		return !endless && !slices.ContainsFunc(r.Sub, func(sub *syntax.Regexp) bool { return !bounded(sub) })
	}
	if !bounded(expression) {
		t.Errorf("%s has a part without end", escape)
	}
}
