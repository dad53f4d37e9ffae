package brief

import (
	"strings"
	"testing"
)

func TestFirstOfMany(t *testing.T) {
	for reason, c := range map[string]struct {
		n              int
		first          string
		names, reasons string
	}{
		"none":                        {0, "", "", ""},
		"one":                         {1, "a", "a", "a"},
		"all fit":                     {3, "a b c", "a, b, c", "a; b; c"},
		"those beyond are counted":    {5, "a b c d e", "a, b, c and 2 more", "a; b; c; and 2 more"},
		"the first will do":           {5, "a b c", "a, b, c and 2 more", "a; b; c; and 2 more"},
		"a name not given is counted": {2, "a", "a and 1 more", "a; and 1 more"},
		"large counts are no longer":  {10000, "a b c", "a, b, c and 9997 more", "a; b; c; and 9997 more"},
	} {
		first := strings.Fields(c.first)
		if got := NamesOf(c.n, first); got != c.names {
			t.Errorf("%s: names %q, want %q", reason, got, c.names)
		}
		if got := ReasonsOf(c.n, first); got != c.reasons {
			t.Errorf("%s: reasons %q, want %q", reason, got, c.reasons)
		}
	}
	if got, want := Names([]string{"a", "b", "c", "d"}), "a, b, c and 1 more"; got != want {
		t.Errorf("all names: %q, want %q", got, want)
	}
	if got, want := Listed([]string{"a", "b"})+" "+Listed(nil), "[a b] none"; got != want {
		t.Errorf("listed: %q, want %q", got, want)
	}
}
