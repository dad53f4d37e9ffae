package flaw

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/problem"
)

// DidYouMean returns a hint for an unknown word: the closest known word if it is close, else
// all known words if they are few.
func DidYouMean(word string, known []string) string {
	if match := Closest(word, known); match != "" {
		return "did you mean " + match + "?"
	}
	const few = 12
	if len(known) == 0 || len(known) > few {
		return ""
	}
	known = slices.Sorted(slices.Values(known))
	return "known fields: " + strings.Join(known, ", ")
}

// Closest returns the known word that differs from word in case only, else the
// one with the smallest edit distance, if that is at most a third of its length.
// Of equals it is the first in alphabetical order.
func Closest(word string, known []string) string {
	best, distance := "", len(word)+1
	for _, candidate := range slices.Sorted(slices.Values(known)) {
		if strings.EqualFold(word, candidate) {
			return candidate
		}
		if d := problem.Distance(word, candidate); d < distance {
			best, distance = candidate, d
		}
	}
	if distance > max(1, len(best)/3) {
		return ""
	}
	return best
}

// Shown returns a value as a message quotes it.
func Shown(value any) string {
	const most = 40
	text := fmt.Sprint(value)
	switch value.(type) {
	case map[string]any, []any:
		if written, err := json.Marshal(value); err == nil {
			text = string(written)
		}
	}
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// RemoveIt is the hint for a field that is not allowed.
const RemoveIt = "remove it"

// IsRequired is the message about a missing field.
const IsRequired = "is required"
