package brief

import (
	"fmt"
	"strings"
)

// Shown is how many are named.
const Shown = 3

// Names is "a, b, c and 4 more", of all.
func Names(all []string) string {
	return NamesOf(len(all), all)
}

// NamesOf is Names for n, of whom first holds at least those that are shown and may be
// fewer than n.
func NamesOf(n int, first []string) string {
	return cut(n, first, ", ", " and %d more")
}

// ReasonsOf is NamesOf for parts longer than a name: "a: x; b: y; c: z; and 4 more".
func ReasonsOf(n int, first []string) string {
	return cut(n, first, "; ", "; and %d more")
}

func cut(n int, first []string, separator, rest string) string {
	first = first[:min(len(first), Shown)]
	text := strings.Join(first, separator)
	if more := n - len(first); more > 0 {
		text += fmt.Sprintf(rest, more)
	}
	return text
}
