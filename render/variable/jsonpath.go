package variable

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// jsonPath is a JSONPath that names one value: {.spec.list[0].name} or {.data['log.level']}.
// Paths that can select several values are not supported.
type jsonPath []any // of string, a field, and int, a position

var errNotOneValue = errors.New("names no single value")

// parseJSONPath reads a path in braces that begins with a dot or a bracket.
func parseJSONPath(text string) (jsonPath, error) {
	rest, opened := strings.CutPrefix(text, "{")
	rest, closed := strings.CutSuffix(rest, "}")
	if !opened || !closed || rest == "" || rest == "." {
		return nil, fmt.Errorf("%.80q is not a JSONPath in braces such as {.data.level}", text)
	}
	var path jsonPath
	for rest != "" {
		step, after, err := nextStep(rest)
		if err != nil {
			return nil, fmt.Errorf("%.80q %w: %w", text, errNotOneValue, err)
		}
		path, rest = append(path, step), after
	}
	return path, nil
}

// nextStep reads one step of a path and returns what follows it.
func nextStep(text string) (step any, rest string, err error) {
	switch {
	case strings.HasPrefix(text, "['"):
		name, after, found := strings.Cut(text[2:], "']")
		if !found || name == "" {
			return nil, "", fmt.Errorf("no end of %.40q", text)
		}
		return name, after, nil
	case strings.HasPrefix(text, "["):
		index, after, found := strings.Cut(text[1:], "]")
		n, err := strconv.Atoi(index)
		if !found || err != nil || n < 0 || strconv.Itoa(n) != index {
			return nil, "", fmt.Errorf("%.40q is neither a position nor a quoted name", text)
		}
		return n, after, nil
	case strings.HasPrefix(text, "."):
		return plainStep(text[1:])
	}
	return nil, "", fmt.Errorf("%.40q begins with neither . nor [", text)
}

// plainStep reads a name up to the next dot or bracket; a dot in a name is written \.
func plainStep(text string) (step any, rest string, err error) {
	var name strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text) && text[i+1] == '.':
			name.WriteByte('.')
			i++
		case c == '.' || c == '[':
			if name.Len() == 0 {
				return nil, "", errors.New("a name is empty")
			}
			return name.String(), text[i:], nil
		case strings.ContainsRune(`*?@()'"]{}\ `, rune(c)):
			return nil, "", fmt.Errorf("%q cannot be used", c)
		default:
			name.WriteByte(c)
		}
	}
	if name.Len() == 0 {
		return nil, "", errors.New("a name is empty")
	}
	return name.String(), "", nil
}

// text returns the value at the path as the text of a variable.
func (p jsonPath) text(object map[string]any) (string, error) {
	value := any(object)
	for _, step := range p {
		switch step := step.(type) {
		case string:
			fields, isObject := value.(map[string]any)
			if value, isObject = fields[step], isObject && fields[step] != nil; !isObject {
				return "", fmt.Errorf("has no value at %q", step)
			}
		case int:
			list, isList := value.([]any)
			if !isList || step >= len(list) {
				return "", fmt.Errorf("has no value at [%d]", step)
			}
			value = list[step]
		}
	}
	return ScalarText(value)
}

// ScalarText is a string, number or boolean as the text of a variable.
func ScalarText(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case bool, float64, int64, json.Number:
		text, err := json.Marshal(value)
		return string(text), err
	}
	return "", errors.New("is neither a string nor a number nor a boolean")
}
