package problem_test

import (
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/problem"
)

func TestDistance(t *testing.T) {
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"main", "main", 0},
		{"mian", "main", 2},
		{"", "abc", 3},
		{"kitten", "sitting", 3},
		{long + "a", long + "b", 0},
		{strings.Repeat(long, 1000), "x", 63},
	} {
		if got := problem.Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := problem.Distance(c.b, c.a); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

// TestDistanceEqualsItsDefinition compares with the definition, word for word.
func TestDistanceEqualsItsDefinition(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		switch {
		case a == "" || b == "":
			return len(a) + len(b)
		case a[0] == b[0]:
			return slow(a[1:], b[1:])
		default:
			return 1 + min(slow(a[1:], b), slow(a, b[1:]), slow(a[1:], b[1:]))
		}
	}
	words := []string{""}
	for i := 0; len(words) < 63; i++ { // every word of up to five letters a and b
		words = append(words, words[i]+"a", words[i]+"b")
	}
	for _, a := range words {
		for _, b := range words {
			if got, want := problem.Distance(a, b), slow(a, b); got != want {
				t.Fatalf("Distance(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}
