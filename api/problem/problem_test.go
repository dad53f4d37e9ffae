package problem

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestStringIsOneVisibleLine(t *testing.T) {
	for _, test := range []struct {
		reason string
		in     Problem
		want   string
	}{
		{
			"every part in its place",
			Problem{Path: "a/ü b.yaml", Line: 3, Kind: "K", Name: "n", Field: "spec.x", Message: "m", Hint: "h"},
			"a/ü b.yaml:3: K/n: spec.x: m; h",
		},
		{
			"a key forges no second problem",
			Problem{Path: "f", Line: 1, Field: "a\nfake.yaml:1: all good", Message: "unknown"},
			"f:1: a fake.yaml:1: all good: unknown",
		},
		{
			"a value does not clear the screen",
			Problem{Message: "found x\n\x1b[2Jy"},
			`found x \x1b[2Jy`,
		},
		{
			"every part is cleaned",
			Problem{Path: "a\rb", Kind: "c\x00d", Name: "e\u2028f", Field: "g\u0085h", Message: "i\u202ej", Hint: "k\u200bl"},
			`a b: c\x00d/e f: g h: i\u202ej; k\u200bl`,
		},
		{
			"what only looks like nothing",
			Problem{Message: "a\u3164b\ufe0fc\u00add\u00a0e"},
			`a\u3164b\ufe0fc\u00add e`,
		},
		{"invalid UTF-8", Problem{Message: "a\xffb"}, "a\ufffdb"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			if got := test.in.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestListHasOneLineForEachProblem(t *testing.T) {
	l := List{{Message: "a\nb"}, {Message: "c", Hint: "d\ne"}}
	if got, want := l.Error(), "a b\nc; d e"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzString(f *testing.F) {
	f.Add("f.yaml", 1, "K", "n", "a\nfake.yaml:1: all good", "x\n\x1b[2Jy", "\u202e")
	f.Fuzz(func(t *testing.T, path string, line int, kind, name, field, message, hint string) {
		p := Problem{Path: path, Line: line, Kind: kind, Name: name, Field: field, Message: message, Hint: hint}
		text := p.String()
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r != utf8.RuneError && !unicode.IsPrint(r) }) {
			t.Errorf("not one visible line: %q", text)
		}
		if visible(text) != text {
			t.Errorf("cleaning twice changes %q", text)
		}
	})
}

// TestThenDropsProblemsOfFieldsWithAnEarlierProblem: problems of a later check follow the earlier
// ones. Problems about a field with an earlier problem, its parents or its children are dropped.
func TestThenDropsProblemsOfFieldsWithAnEarlierProblem(t *testing.T) {
	earlier := List{{Path: "b.yaml", Kind: "A", Name: "a", Field: "spec.list[1].x"}}
	for field, again := range map[string]bool{
		"spec.list[1].x": true, "spec.list[1].x.y": true, "spec.list[1].x[0]": true, "spec.list[1]": true, "spec.list": true, "spec": true, "": true,
		"spec.list[1].xy": false, "spec.list[1].y": false, "spec.list[0].x": false, "spec.li": false, "metadata": false,
	} {
		later := List{{Path: "b.yaml", Kind: "A", Name: "a", Field: field, Message: "m"}, {Path: "a.yaml", Kind: "A", Name: "b", Field: field}}
		got := earlier.Then(later)
		if len(got) != 3 && !again || len(got) != 2 && again || got[0] != earlier[0] || got[len(got)-1] != later[1] {
			t.Errorf("%q: got %v", field, got)
		}
	}
	if got := List(nil).Then(earlier); len(got) != 1 || len(earlier.Then(nil)) != 1 {
		t.Errorf("got %v", got)
	}
}
