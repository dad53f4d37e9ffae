package secret

import (
	"encoding/json"
	"html"
	"regexp"
	"strconv"
	"strings"
)

// escape is one escaped character: of a URL, of JSON, of Go or C, of HTML.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\+` +
	`|\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-7]{3}|\\["'\\/abfnrtv]` +
	`|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});`)

// layer is a text after some rounds of unescaping.
type layer struct {
	text string
	// at is, for each byte, the part of the original text that it came from.
	at []span
}

// verbatim is a text as it is written.
func verbatim(text string) layer {
	l := layer{text: text, at: make([]span, len(text))}
	for i := range l.at {
		l.at[i] = span{i, i + 1}
	}
	return l
}

// unescaped returns the text with each escaped character replaced by the character. The result may
// have escaped characters again; the next layer replaces them.
func (l layer) unescaped() layer {
	next, end := layer{at: make([]span, 0, len(l.at))}, 0
	var text strings.Builder
	for _, found := range escape.FindAllStringIndex(l.text, -1) {
		character := unescape(l.text[found[0]:found[1]])
		text.WriteString(l.text[end:found[0]])
		text.WriteString(character)
		next.at = append(next.at, l.at[end:found[0]]...)
		for range len(character) {
			next.at = append(next.at, span{l.at[found[0]].from, l.at[found[1]-1].to})
		}
		end = found[1]
	}
	text.WriteString(l.text[end:])
	next.text, next.at = text.String(), append(next.at, l.at[end:]...)
	return next
}

// unescape returns the character that an escape stands for.
func unescape(escaped string) string {
	switch escaped[0] {
	case '+':
		return " "
	case '%':
		b, _ := strconv.ParseUint(escaped[1:], 16, 8)
		return string([]byte{byte(b)})
	case '&':
		return html.UnescapeString(escaped)
	}
	var text string
	if json.Unmarshal([]byte(`"`+escaped+`"`), &text) == nil {
		return text
	}
	character, multibyte, _, err := strconv.UnquoteChar(escaped, '\'')
	switch {
	case err != nil:
		return escaped
	case multibyte:
		return string(character)
	}
	return string([]byte{byte(character)}) //nolint:gosec // below 0x100, since it is not multibyte
}

// bare returns the text without backslashes: in a text that was escaped in parts, nothing says
// which of several backslashes escapes the next one.
func (l layer) bare() layer {
	b := layer{text: strings.ReplaceAll(l.text, `\`, ""), at: make([]span, 0, len(l.at))}
	for i, at := range l.at {
		if l.text[i] != '\\' {
			b.at = append(b.at, at)
		}
	}
	return b
}

// occurrences returns the parts of the original text whose decoded text in this layer is the form.
func (l layer) occurrences(form string) []span {
	var found []span
	for end := 0; ; {
		from := strings.Index(l.text[end:], form)
		if from < 0 {
			return found
		}
		from, end = end+from, end+from+len(form)
		found = append(found, span{l.at[from].from, l.at[end-1].to})
	}
}
