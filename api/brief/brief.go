package brief

import (
	"fmt"
	"strings"
)

// Shown is the number of names that are shown.
const Shown = 3

// Names returns all names as "a, b, c and 4 more".
func Names(all []string) string {
	return NamesOf(len(all), all)
}

// NamesOf is Names for a list of n names of which first holds at least the first Shown.
func NamesOf(n int, first []string) string {
	return cut(n, first, ", ", " and %d more")
}

// ReasonsOf is NamesOf for longer parts: "a: x; b: y; c: z; and 4 more".
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
