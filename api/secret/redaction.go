package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// layers is how many times a credential may be escaped, each time in any of the known ways.
const layers = 3

// Redaction removes credentials from text that a server wrote. A server may repeat the request that it got, with the
// Authorization header. The zero value changes nothing.
type Redaction struct {
	written *strings.Replacer
	// forms are the credentials, unescaped 0 to layers times.
	forms []string
	// joined are the longer forms without the characters that may break them.
	joined []string
}

// joinedLength is the length from which a broken credential is found. A shorter credential could be the end of one
// word and the beginning of the next.
const joinedLength = 8

// NewRedaction returns the redaction of credentials: as they are, in base64, in hexadecimal digits, and each of these
// escaped. Empty credentials are omitted. For basic authentication, pass user, password and user:password.
func NewRedaction(secrets ...Text) Redaction {
	var written, forms, joined []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range append(encodedForms(string(s)), string(s)) {
			written = append(written, escapedForms(form)...)
			for range layers + 1 {
				forms = append(forms, form, bare(form))
				if whole := unbroken(form); len(whole) >= joinedLength {
					joined = append(joined, whole)
				}
				form = escape.ReplaceAllStringFunc(form, unescape)
			}
		}
	}
	if len(forms) == 0 {
		return Redaction{}
	}
	forms = slices.DeleteFunc(forms, func(form string) bool { return form == "" })
	written = append(written, forms...)
	slices.SortFunc(written, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // user:password before password
	pairs := make([]string, 0, 2*len(written))
	for _, form := range written {
		pairs = append(pairs, form, Redacted)
	}
	return Redaction{written: strings.NewReplacer(pairs...), forms: forms, joined: joined}
}

// encodedForms returns a text in every alphabet of base64, padded or not, and in hexadecimal digits.
func encodedForms(s string) []string {
	digits := hex.EncodeToString([]byte(s))
	return []string{
		digits, strings.ToUpper(digits),
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
	}
}

// escapedForms returns a text as URLs, JSON, Go and HTML have it.
func escapedForms(s string) []string {
	inJSON, _ := json.Marshal(s) //nolint:errchkjson // a string
	inGo := strconv.Quote(s)
	return []string{url.QueryEscape(s), url.PathEscape(s), html.EscapeString(s), string(inJSON[1 : len(inJSON)-1]), inGo[1 : len(inGo)-1]}
}

// Text returns the text without the credentials. If the text contains a credential in another form, the whole text is
// replaced. Examples are a credential that was escaped twice, escaped by character in several ways, or broken by
// white space or control characters. To find these forms, Text unescapes the text and the credentials alike, and
// compares them after each round, with and without backslashes. In a text that was escaped in parts, it is not known
// which of several backslashes escapes the next one.
func (r Redaction) Text(s string) string {
	if r.written == nil {
		return s
	}
	s = r.written.Replace(s)
	rest := strings.ReplaceAll(s, Redacted, mark)
	for range layers + 1 {
		if containsAny(rest, r.forms) || containsAny(bare(rest), r.forms) || containsAny(unbroken(rest), r.joined) {
			return Redacted
		}
		rest = escape.ReplaceAllStringFunc(rest, unescape)
	}
	return s
}

// mark stands for the removed credentials, so that the texts on its two sides do not become one. It is no part of a
// usual credential, and unbroken keeps it.
const mark = "█"

// containsAny reports whether one of the forms is in a text.
func containsAny(s string, forms []string) bool {
	return slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(s, form) })
}

// breaks are the characters that a server may put between the parts of a credential.
var breaks = regexp.MustCompile(`[\\\s\pZ\pC]+`)

// unbroken returns a text without backslashes, white space and control characters.
func unbroken(s string) string { return breaks.ReplaceAllString(s, "") }

// bare returns a text without backslashes.
func bare(s string) string { return strings.ReplaceAll(s, `\`, "") }

// escape is one escaped character: of a URL, of JSON, of Go or C, of HTML. Its length is bounded, so that the time for
// a text grows with its length only, whatever a server sends.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\+` +
	`|\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}|\\x[0-9A-Fa-f]{2}|\\[0-7]{3}|\\["'\\/abfnrtv]` +
	`|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,31});`)

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

// Error returns an error with the same text without the credentials. errors.Is and errors.As
// see the original error.
func (r Redaction) Error(err error) error {
	if err == nil {
		return nil
	}
	text := r.Text(err.Error())
	if text == err.Error() {
		return err
	}
	return redactedError{text: text, cause: err}
}

type redactedError struct {
	text  string
	cause error
}

// Error returns the redacted text.
func (e redactedError) Error() string { return e.text }

// Unwrap returns the error that was redacted.
func (e redactedError) Unwrap() error { return e.cause }
