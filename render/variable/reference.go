package variable

import (
	"maps"
	"slices"
	"strings"
)

// maxMissing bounds the names that Expand returns.
const maxMissing = 1000

// Expand replaces every {{NAME}} of text, in one pass: variables in values are not replaced.
// Other text in braces is kept. It stops once the result is longer than most bytes. missing are
// the names without a value, each once, in their order; at most 1000.
func Expand(text string, values map[string]string, most int) (out string, missing []string) {
	if !strings.Contains(text, "{{") {
		return text, nil
	}
	var b strings.Builder
	for text != "" && b.Len() <= most {
		name, length := referenceAt(text)
		if length == 0 {
			next := strings.Index(text[1:], "{{") + 1
			if next == 0 {
				next = len(text)
			}
			b.WriteString(text[:next])
			text = text[next:]
			continue
		}
		value, ok := values[name]
		switch {
		case ok:
			b.WriteString(value)
		case len(missing) < maxMissing && !slices.Contains(missing, name):
			missing = append(missing, name)
		}
		text = text[length:]
	}
	return b.String(), missing
}

// References yields the names of the variables in text.
func References(text string) map[string]bool {
	names := map[string]bool{}
	for i := strings.Index(text, "{{"); i >= 0 && i < len(text); i++ {
		if name, length := referenceAt(text[i:]); length > 0 {
			names[name] = true
		}
	}
	return names
}

// Whole returns the variable if text consists of exactly one.
func Whole(text string) (string, bool) {
	name, length := referenceAt(text)
	return name, length > 0 && length == len(text)
}

// referenceAt returns the variable at the beginning of text and the length of its reference, 0
// if there is none.
func referenceAt(text string) (name string, length int) {
	if !strings.HasPrefix(text, "{{") {
		return "", 0
	}
	end := 2
	for end < len(text) && identifierByte(text[end], end == 2) {
		end++
	}
	if end == 2 || !strings.HasPrefix(text[end:], "}}") {
		return "", 0
	}
	return text[2:end], end + 2
}

func identifierByte(c byte, first bool) bool {
	letter := c == '_' || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z')
	return letter || (!first && '0' <= c && c <= '9')
}

// In reports whether a value contains a variable; keys of maps are not searched.
func In(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), In)
	case []any:
		return slices.ContainsFunc(v, In)
	case string:
		return len(References(v)) > 0
	default:
		return false
	}
}
