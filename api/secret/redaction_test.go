package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/secret"
)

func TestRedaction_TakesOutEveryForm(t *testing.T) {
	const password = `p&s/w"ö+1`
	r := secret.NewRedaction(password, "", secret.Text("ana:"+password))
	for name, text := range map[string]string{
		"plain":      password,
		"basic":      base64.StdEncoding.EncodeToString([]byte("ana:" + password)),
		"unpadded":   base64.RawStdEncoding.EncodeToString([]byte(password)),
		"URL base64": base64.URLEncoding.EncodeToString([]byte(password)),
		"query":      "p%26s%2Fw%22%C3%B6%2B1",
		"path":       "p&s%2Fw%22%C3%B6+1",
		"HTML":       "p&amp;s/w&#34;ö+1",
		"JSON":       `p\u0026s/w\"ö+1`,
		"Go":         `p&s/w\"ö+1`,
		"hex":        hex.EncodeToString([]byte("ana:" + password)),
		"upper hex":  strings.ToUpper(hex.EncodeToString([]byte(password))),
		"base64 URL": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte("ana:" + password))),
	} {
		if got, want := r.Text("before "+text+" after"), "before [redacted] after"; got != want {
			t.Errorf("%s: %q becomes %q", name, text, got)
		}
	}
	for name, text := range map[string]string{
		"lower case":  "p%26s%2fw%22%c3%b6%2b1",
		"all bytes":   "%70%26%73%2f%77%22%C3%b6%2B%31",
		"all JSON":    `\u0070\u0026\u0073\/\u0077\"\u00F6\u002b\u0031`,
		"all HTML":    "&#112;&#x26;&#x73;&sol;w&quot;&ouml;&plus;&#49;",
		"C":           `p\x26s\057w\"\303\266+1`,
		"twice":       "p%2526s%252Fw%2522%25C3%25B6%252B1",
		"URL in Go":   `p%26s/w\"ö\x2b1`,
		"two lines":   "p&s/w\"\r\n ö+1",
		"spaced":      "p & s / w \" ö + 1",
		"NUL":         "p&s/w\x00\"ö+1",
		"no width":    "p&s/w\u200b\"ö+1",
		"break in Go": `p&s/w\"\nö+1`,
		"MIME":        base64.StdEncoding.EncodeToString([]byte("ana:" + password))[:9] + "\n" + base64.StdEncoding.EncodeToString([]byte("ana:" + password))[9:],
	} {
		if got := r.Text("before " + text + " after"); got != secret.Redacted {
			t.Errorf("%s: %q becomes %q", name, text, got)
		}
	}
	const ended = `p%41\`
	if got, want := secret.NewRedaction(ended).Text(`{"password":"p%41\\","user":"p%2541%5C"}`), `{"password":"[redacted]","user":"[redacted]"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := secret.NewRedaction("git:x", "s3cret").Text("git: x509: s3 cret"), "git: x509: s3 cret"; got != want {
		t.Errorf("a short credential in two words: got %q, want %q", got, want)
	}
	if got, want := secret.NewRedaction("12345678").Text("1234[redacted]5678"), "1234[redacted]5678"; got != want {
		t.Errorf("texts on the two sides of what was taken out: got %q, want %q", got, want)
	}
	if got := r.Text("nothing to hide"); got != "nothing to hide" {
		t.Errorf("got %q", got)
	}
	if got := (secret.Redaction{}).Text(password); got != password {
		t.Errorf("the zero value changes %q to %q", password, got)
	}
}

func TestRedaction_ErrorsStayWhatTheyAre(t *testing.T) {
	cause := errors.New("refused")
	err := fmt.Errorf("you sent s3cret: %w", cause)
	got := secret.NewRedaction("s3cret").Error(err)
	if !errors.Is(got, cause) || strings.Contains(fmt.Sprintf("%v %+v", got, got), "s3cret") {
		t.Errorf("got %v", got)
	}
	if got := secret.NewRedaction("other").Error(err); !errors.Is(got, err) || got.Error() != err.Error() {
		t.Errorf("an error without the secret becomes %v", got)
	}
	if got := secret.NewRedaction("s3cret").Error(nil); got != nil {
		t.Errorf("no error becomes %v", got)
	}
}

// FuzzRedaction puts a credential into a text in two forms, and expects that redaction removes both:
//
//   - Each character is escaped in its own way, and the result is escaped once more as a whole. Credentials with
//     backslashes are left out, because the same text may then stand for another credential.
//   - The whole credential is escaped up to twice, as servers do for a URL, a string of code or HTML; with backslashes,
//     once. The signs of the escape itself are always escaped, and the bits of a byte select which others are.
func FuzzRedaction(f *testing.F) {
	f.Add("s3cret", "you sent ", " to us", []byte{0})
	f.Add("[", "[", "]", []byte{1, 2})
	f.Add(`p%41\`, `{"a":"`, `"}`, []byte{3, 4, 5, 6})
	f.Add(`0\\\a`, "", "", []byte{0, 1, 255})
	f.Add(`+\\\000`, "", "", []byte{0, 1, 255})
	f.Add("p+&amp;w \"", "", "", []byte{0, 7, 1, 2, 3, 4, 5, 6})
	f.Fuzz(func(t *testing.T, credential, before, after string, ways []byte) {
		if len(credential) < 3 || len(ways) == 0 || strings.Contains(secret.Redacted, credential) { //nolint:gocritic // the mark may hold a short credential
			return
		}
		r := secret.NewRedaction(secret.Text(credential))
		if text := before + credential + after; r.Text(text) == text {
			t.Errorf("%q shows %q", text, credential)
		}
		hidden := func(form string) {
			if got := r.Text("at <" + form + "> it"); strings.Contains(got, form) {
				t.Errorf("%q of %q becomes %q", form, credential, got)
			}
		}
		times := 1
		if !strings.Contains(credential, `\`) {
			times = 2
			var mixed strings.Builder
			for i, b := range []byte(credential) {
				mixed.WriteString(escapedBy(ways[i%len(ways)], b))
			}
			hidden(mixed.String())
			hidden(url.QueryEscape(mixed.String()))
			hidden(html.EscapeString(mixed.String()))
		}
		form := credential
		for i := range times {
			form = escaped(form, ways[i%len(ways)], ways[len(ways)-1])
			hidden(form)
		}
	})
}

// escapedBy writes a byte in one of the ways of escaping.
func escapedBy(way, b byte) string {
	switch way % 8 {
	case 1:
		return fmt.Sprintf("%%%02x", b)
	case 2:
		return fmt.Sprintf("%%%02X", b)
	case 3:
		return fmt.Sprintf(`\x%02x`, b)
	case 4:
		return fmt.Sprintf(`\%03o`, b)
	case 5:
		if b < 0x80 {
			return fmt.Sprintf(`\u%04X`, b)
		}
	case 6:
		if b < 0x80 && b != 0 {
			return fmt.Sprintf("&#x%x;", b)
		}
	case 7:
		if strings.IndexByte(`\/"'`, b) >= 0 {
			return `\` + string(b)
		}
	}
	return fmt.Sprintf("%%%02X", b)
}

// escaped returns a text in one of the ways of escaping. Of the characters that need not be
// escaped, those with a bit in the selection are; a character is written alike everywhere.
func escaped(text string, way, selection byte) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		switch selected := selection&(1<<(c%8)) != 0; {
		case way%6 == 0 && (selected || c == '%' || c == '+'):
			fmt.Fprintf(&b, "%%%02X", c)
		case way%6 == 1 && (selected || c == '%' || c == '+'):
			fmt.Fprintf(&b, "%%%02x", c)
		case way%6 == 2 && (selected || c == '\\'):
			fmt.Fprintf(&b, `\x%02x`, c)
		case way%6 == 3 && (selected || c == '\\'):
			fmt.Fprintf(&b, `\%03o`, c)
		case way%6 == 4 && c < 0x80 && (selected || c == '\\'):
			fmt.Fprintf(&b, `\u%04X`, c)
		case way%6 == 5 && 0 < c && c < 0x80 && (selected || c == '&'):
			fmt.Fprintf(&b, "&#x%x;", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
