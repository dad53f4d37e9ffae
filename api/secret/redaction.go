package secret

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Redaction takes credentials out of text that a server wrote: a server may repeat the request,
// Authorization header included. The zero value changes nothing.
type Redaction struct{ replacer *strings.Replacer }

// NewRedaction returns the redaction of credentials: each as it is, in base64, and escaped as
// URLs, HTML, JSON and Go do. Empty ones are ignored. Give the parts of basic authentication
// alone and, as user:password, together.
func NewRedaction(secrets ...Text) Redaction {
	var forms []string
	for _, s := range secrets {
		forms = append(forms, formsOf(string(s))...)
	}
	if len(forms) == 0 {
		return Redaction{}
	}
	// Of two forms at the same position the longer one is replaced, such as base64 with its
	// padding.
	slices.SortFunc(forms, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, Redacted)
	}
	return Redaction{strings.NewReplacer(pairs...)}
}

// formsOf returns how a server may write a secret.
func formsOf(s string) []string {
	if s == "" {
		return nil
	}
	encoded, _ := json.Marshal(s) // a string never fails
	forms := append(base64Forms(s),
		s, html.EscapeString(s),
		strings.Trim(string(encoded), `"`), strings.Trim(strconv.Quote(s), `"`),
	)
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s), url.UserPassword("", s).String()[1:]} {
		forms = append(forms, escaped, lowerEscapes(escaped))
	}
	return forms
}

// base64Forms returns a text in every alphabet of base64, padded or not.
func base64Forms(s string) []string {
	return []string{
		base64.StdEncoding.EncodeToString([]byte(s)), base64.RawStdEncoding.EncodeToString([]byte(s)),
		base64.URLEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
	}
}

// lowerEscapes writes the hexadecimal digits of URL escapes in lower case.
func lowerEscapes(s string) string {
	out := []byte(s)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:i+3], strings.ToLower(s[i+1:i+3]))
		}
	}
	return string(out)
}

// Text returns the text without the credentials.
func (r Redaction) Text(s string) string {
	if r.replacer == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// Error returns an error with the same text without the credentials. errors.Is and errors.As
// see the original error.
func (r Redaction) Error(err error) error {
	if err == nil || r.Text(err.Error()) == err.Error() {
		return err
	}
	return redactedError{text: r.Text(err.Error()), cause: err}
}

type redactedError struct {
	text  string
	cause error
}

// Error returns the redacted text.
func (e redactedError) Error() string { return e.text }

// Unwrap returns the error that was redacted.
func (e redactedError) Unwrap() error { return e.cause }
