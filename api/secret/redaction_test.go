package secret_test

import (
	"encoding/base64"
	"errors"
	"fmt"
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
		"lower case": "p%26s%2fw%22%c3%b6%2b1",
		"path":       "p&s%2Fw%22%C3%B6+1",
		"HTML":       "p&amp;s/w&#34;ö+1",
		"JSON":       `p\u0026s/w\"ö+1`,
		"Go":         `p&s/w\"ö+1`,
	} {
		if got, want := r.Text("before "+text+" after"), "before [redacted] after"; got != want {
			t.Errorf("%s: %q becomes %q", name, text, got)
		}
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

func FuzzRedaction(f *testing.F) {
	f.Add("s3cret", "you sent ", " to us")
	f.Add("[", "[", "]")
	f.Fuzz(func(t *testing.T, credential, before, after string) {
		if credential == "" || strings.Contains(secret.Redacted, credential) { //nolint:gocritic // the mark may hold a short credential
			return
		}
		got := secret.NewRedaction(secret.Text(credential)).Text(before + " " + credential + " " + after)
		if got == before+" "+credential+" "+after {
			t.Errorf("%q shows %q", got, credential)
		}
	})
}
