package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
)

var (
	// unquoted matches every plain scalar that may not be a string. It also matches some strings; the library
	// decides.
	unquoted = regexp.MustCompile(`^(?:[-+.]{0,2}[0-9_][0-9A-Za-z_.+-]*|[-+]?\.[0-9A-Za-z]+|~|(?i:y|n|yes|no|on|off|true|false|null))$`)
	// decimal matches the most common numbers; parsing them by the library costs a thousand
	// times as much.
	decimal = regexp.MustCompile(`^(?:0|-?[1-9][0-9]{0,17})$`)
	integer = regexp.MustCompile(`^[-+]?[0-9_]+$`)
)

var (
	errNotJSON  = errors.New("the number has no JSON form")
	errTooLarge = errors.New("the number does not fit into 64 bits and would be rounded")
)

// scalarValue returns a scalar as the API server reads it: YAML 1.1 as in sigs.k8s.io/yaml, so an unquoted no is
// false and 010 is 8. The value keeps that type, so that a schema that requires a string reports the line. To convert
// it back would hide the mistake.
//
// For typed nodes, an explicit tag counts instead: kustomize marks its strings by a tag, and its encoder adds the
// quotes.
func scalarValue(n *yaml.Node, typed bool) (any, error) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	tagged := n.Style&yaml.TaggedStyle != 0
	switch {
	case n.Style&quoted != 0 && !tagged:
		return n.Value, nil
	case typed && n.Tag == "!!str", tagged && n.ShortTag() == "!!str":
		return n.Value, nil
	}
	v, err := plainValue(n.Value)
	if errors.Is(err, errTooLarge) && typed && n.ShortTag() == "!!float" {
		return strconv.ParseFloat(n.Value, 64) // kustomize rounded it, which is reported with its cause
	}
	if err == nil && tagged && tagOf(v) != n.ShortTag() {
		return nil, fmt.Errorf("the tag %s does not fit the value %s", brief.Printable(n.Tag), brief.Printable(n.Value))
	}
	return v, err
}

// plainValue resolves an unquoted scalar.
func plainValue(text string) (any, error) {
	if text == "" {
		return nil, nil
	}
	if !unquoted.MatchString(text) {
		return text, nil
	}
	if decimal.MatchString(text) {
		return strconv.ParseInt(text, 10, 64)
	}
	encoded, err := sigsyaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, errNotJSON
	}
	encoded = []byte(strings.TrimSpace(string(encoded)))
	if len(encoded) == 0 {
		return nil, errNotJSON
	}
	switch c := encoded[0]; {
	case c == '"':
		return text, nil
	case c == '-' || c >= '0' && c <= '9':
		return number(text, string(encoded))
	}
	var v any
	if err := json.Unmarshal(encoded, &v); err != nil {
		return nil, errNotJSON
	}
	return v, nil
}

// number returns an int64 if the number fits, otherwise a float64, as apimachinery does. A number that is written as
// an integer, or that JSON writes as an integer (1e19), must fit.
func number(text, encoded string) (any, error) {
	if i, err := strconv.ParseInt(encoded, 10, 64); err == nil {
		return i, nil
	}
	if integer.MatchString(text) || integer.MatchString(encoded) {
		return nil, errTooLarge
	}
	f, err := strconv.ParseFloat(encoded, 64)
	if err != nil {
		return nil, errNotJSON
	}
	return f, nil
}

func tagOf(v any) string {
	switch v.(type) {
	case nil:
		return "!!null"
	case bool:
		return "!!bool"
	case int64:
		return "!!int"
	case float64:
		return "!!float"
	}
	return "!!str"
}

// describe names the type of a value in words that users know from schemas.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "the boolean " + strconv.FormatBool(v)
	case int64, float64:
		return "the number " + jsonText(v)
	case string:
		return "a string"
	case []any:
		return "a list"
	}
	return "an object"
}

func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}
