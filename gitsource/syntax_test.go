package gitsource

import (
	"fmt"
	"strings"
	"testing"
)

func TestSyntaxLine(t *testing.T) {
	deep := "kind: K\nspec:\n  rules:\n" // 3 lines
	for name, c := range map[string]struct {
		in   string
		want int
	}{
		"one space too few, far down":  {deep + strings.Repeat("    a: {}\n", 16) + "   b: 1\n    c: 2\n", 20},
		"one space too many":           {"a: 1\nb:\n  c: 1\n   d: 2\n", 4},
		"text after a quote in a list": {deep + "  -\n" + strings.Repeat("  - x\n", 37) + "  - \"a\" b\n  - y\n", 42},
		"the second document":          {"a: 1\n---\nb: 1\nc:\n  d: 1\n  e:\n    - 1\n   f: 2\n  g: 3\n", 8},
		"an unknown anchor":            {"a: &x 1\nb: *x\nc: *foo\nd: 1\n", 3},
		"an open brace":                {"a: 1\nb: 2\nc: {d: 1\ne: 2\n", 3},
		"an open brace at the end":     {"a: 1\nb: 2\nc: {d: 1\n", 3},
		"an open quote":                {"a: 1\nb: \"c\nd: 2\ne: 3\n", 2},
		"no colon":                     {"a: 1\nfoo\nb: 2\n", 2},
		"two values":                   {"a: 1\nb: c: d\n", 2},
		"the only line":                {"a: ]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, mistakes := decodeYAML([]byte(c.in))
			if len(mistakes) != 1 || mistakes[0].line != c.want {
				t.Errorf("got %+v, want line %d of\n%s", mistakes, c.want, c.in)
			}
		})
	}
}

func TestSyntaxLineIsThatOfTheOnlyBadLine(t *testing.T) {
	const lines = 60
	for bad := 2; bad <= lines; bad++ {
		var b strings.Builder
		b.WriteString("root:\n")
		for i := 2; i <= lines; i++ {
			if i == bad {
				b.WriteString("  - \"a\" b\n")
				continue
			}
			fmt.Fprintf(&b, "  - k%d: v\n", i)
		}
		_, mistakes := decodeYAML([]byte(b.String()))
		if len(mistakes) != 1 || mistakes[0].line != bad {
			t.Errorf("got %+v, want line %d", mistakes, bad)
		}
	}
}
