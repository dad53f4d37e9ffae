package leaks

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestShown_FindsEveryForm: a value of a Secret in a text, a status or an object, and a planted one in what is said.
func TestShown_FindsEveryForm(t *testing.T) {
	const value = `a+"b/ c`
	hub := func() *Hub {
		return &Hub{
			said: map[string][]byte{"statuses of AddOnSource": []byte("{}")}, stored: map[string][]byte{"AddOnSource": []byte(`"url":"planted-1"`)},
			secrets: []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{"token": []byte(value + "\n"), "ca.crt": []byte("public")}}},
		}
	}
	if found, err := hub().Shown(map[string][]byte{"the log": []byte("public")}, "planted-"); err != nil || len(found) > 0 {
		t.Errorf("got %q, %v", found, err)
	}
	for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), "?key=" + url.QueryEscape(value), `{"a":"a+\"b/ c"}`, "planted-2"} {
		h := hub()
		h.said["statuses of AddOnSource"] = []byte(form)
		if found, err := h.Shown(nil, "planted-"); err != nil || len(found) == 0 {
			t.Errorf("a status: %q is not found: %v", form, err)
		}
		if found, err := hub().Shown(map[string][]byte{"the log": []byte("x" + form)}, "planted-"); err != nil || len(found) == 0 || !strings.Contains(found[0], "the log") {
			t.Errorf("a text: %q: got %q, %v", form, found, err)
		}
	}
	h := hub()
	h.stored["AddOnRevision"] = []byte(value)
	if found, err := h.Shown(nil, "planted-"); err != nil || len(found) == 0 {
		t.Errorf("an object: not found: %v", err)
	}
	h.secrets = nil
	if _, err := h.Shown(nil, "planted-"); err == nil {
		t.Error("nothing to look for is no error")
	}
}
