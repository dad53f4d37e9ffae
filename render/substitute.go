package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// Booleans as text.
const (
	trueText  = "true"
	falseText = "false"
)

// numberText is a number as JSON writes it.
var numberText = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// substitution replaces variables in the string scalars of a parsed document. A value is inserted into one string
// only, so it cannot change the shape of the document. For the same reason map keys are not substituted. A variable
// in a map key is an error, because it would stay in the text.
type substitution struct {
	template string
	values   map[string]string
	typed    map[string]string
	found    *findings
	// unassigned are the variables for which only the cluster's ManagedClusterAddOn can name a configuration, with
	// the kind of the configuration.
	unassigned map[string]string
	// brought is how many bytes the values have added so far.
	brought int
}

// maxBrought is the most bytes that values may add to a template, because a megabyte of variables can expand to a
// gigabyte.
const maxBrought = 32 << 20

// value returns a copy of v with its strings substituted; v is not changed.
func (s *substitution) value(v any, at flaw.Path) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			below := at.Child(key)
			s.key(key, below)
			out[key] = s.value(v[key], below)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = s.value(v[i], at.Index(i))
		}
		return out
	case string:
		return s.scalar(v, at)
	default:
		return v
	}
}

func (s *substitution) key(key string, at flaw.Path) {
	s.characters(key, at)
	for name := range variable.References(key) {
		s.found.add(Finding{
			Template: s.template, Field: string(at), Reason: flaw.ReasonInvalidTemplate,
			Message: fmt.Sprintf("variable %q in the name of a field is not substituted", name),
			Hint:    "use variables in values only",
		})
	}
}

// scalar substitutes one string. If the string is exactly one variable with a declared type, the result has that
// type.
func (s *substitution) scalar(text string, at flaw.Path) any {
	s.characters(text, at)
	if name, ok := variable.Whole(text); ok && s.typed[name] != "" {
		if value, ok := s.values[name]; ok {
			return s.convert(name, value, at)
		}
	}
	return s.text(text, at)
}

// text substitutes one string to a string.
func (s *substitution) text(text string, at flaw.Path) string {
	if s.brought > maxBrought {
		return text // the text is not delivered
	}
	out, missing := variable.Expand(text, s.values, len(text)+maxBrought-s.brought)
	if s.brought += max(0, len(out)-len(text)); s.brought > maxBrought {
		s.found.add(Finding{
			Template: s.template, Field: string(at), Reason: flaw.ReasonLimitExceeded,
			Message: fmt.Sprintf("variables make the template more than %d MiB larger", maxBrought>>20),
		})
	}
	if len(missing) > 0 {
		s.found.add(Finding{
			Template: s.template, Field: string(at), Reason: flaw.ReasonUnresolvedVariable,
			Message: "no value for " + strings.Join(missing, ", "),
			Hint:    s.hint(missing[0]),
		})
	}
	return out
}

// hint says how to give a value to a variable without one.
func (s *substitution) hint(name string) string {
	if kind := s.unassigned[name]; kind != "" {
		return "name one of " + kind + " in spec.configs of the ManagedClusterAddOn, or as a default of the add-on"
	}
	return "set it in customizedVariables of the AddOnDeploymentConfig"
}

func (s *substitution) characters(text string, at flaw.Path) {
	if HasNUL(text) {
		s.found.add(Finding{
			Template: s.template, Field: string(at), Reason: flaw.ReasonInvalidTemplate,
			Message: "character NUL cannot be used",
		})
	}
}

func (s *substitution) convert(name, value string, at flaw.Path) any {
	switch s.typed[name] {
	case variable.TypeInteger:
		if n, err := strconv.ParseInt(value, 10, 64); err == nil && strconv.FormatInt(n, 10) == value {
			return n
		}
	case variable.TypeBoolean:
		if value == trueText || value == falseText {
			return value == trueText
		}
	case variable.TypeNumber:
		if number, ok := parseNumber(value); ok {
			return number
		}
	}
	s.found.add(Finding{
		Template: s.template, Field: string(at), Reason: flaw.ReasonInvalidVariable,
		Message: fmt.Sprintf("the value of %q is not a valid %s", name, s.typed[name]),
		Hint:    "change the value, or its type in the annotation " + variable.TypedAnnotation,
	})
	return value
}

// parseNumber reads a number in the form of a stored object. A whole number becomes an integer, so that it is encoded
// without an exponent.
func parseNumber(value string) (any, bool) {
	if !numberText.MatchString(value) {
		return nil, false
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return n, true
	}
	var f float64
	if err := json.Unmarshal([]byte(value), &f); err != nil {
		return nil, false
	}
	return f, true
}

// HasNUL reports whether text contains the character NUL. No manifest may contain it: as the value of an environment
// variable or an argument, it would prevent the container from starting.
func HasNUL(text string) bool { return strings.Contains(text, "\x00") }
