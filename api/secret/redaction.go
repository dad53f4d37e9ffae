package secret

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strings"
)

// layers is how many times a credential may be escaped, each time in any of the ways.
const layers = 3

// Redaction takes credentials out of text that a server wrote: a server may repeat the
// request that it got, Authorization header included. The zero value changes nothing.
type Redaction struct{ forms []string }

// NewRedaction returns the redaction of credentials: as they are, in base64, and both of them
// escaped as unescaped knows it, wholly or in parts, up to three times. Empty ones are left
// out. The parts of basic authentication are given alone and, as user:password, together.
//
// A text and a credential are unescaped alike and compared at each layer, with and without
// backslashes, so that it does not matter in which way the server escaped which character. Of a
// credential that has backslashes itself, some forms that were escaped more than once stay.
func NewRedaction(secrets ...Text) Redaction {
	var forms []string
	for _, s := range secrets {
		if s == "" {
			continue
		}
		for _, form := range append(base64Forms(string(s)), string(s)) {
			for range layers + 1 {
				forms = append(forms, form, verbatim(form).bare().text)
				form = verbatim(form).unescaped().text
			}
		}
	}
	slices.Sort(forms)
	return Redaction{slices.DeleteFunc(slices.Compact(forms), func(form string) bool { return form == "" })}
}

// base64Forms returns a text in every alphabet of base64, padded or not.
func base64Forms(s string) []string {
	return []string{
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
	}
}

// span is the part of a text with the bytes from, from+1, ... to-1.
type span struct{ from, to int }

// Text returns the text without the credentials.
func (r Redaction) Text(s string) string {
	if len(r.forms) == 0 {
		return s
	}
	var found []span
	layer := verbatim(s)
	for range layers + 1 {
		bare := layer.bare()
		for _, form := range r.forms {
			found = append(found, layer.occurrences(form)...)
			found = append(found, bare.occurrences(form)...)
		}
		next := layer.unescaped()
		if next.text == layer.text {
			break
		}
		layer = next
	}
	return without(s, found)
}

// without replaces parts of a text by Redacted. Parts that overlap or touch are replaced as one.
func without(s string, spans []span) string {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var b strings.Builder
	end := 0
	for i, part := range spans {
		if i == 0 || part.from > end {
			b.WriteString(s[end:part.from])
			b.WriteString(Redacted)
		}
		end = max(end, part.to)
	}
	b.WriteString(s[end:])
	return b.String()
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
