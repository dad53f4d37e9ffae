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
	for place, config := range map[string]string{
		"a password": `{"auths":{"r":{"username":"ana","password":"pull-1"}}}`, "an auth": `{"auths":{"r":{"auth":"` + base64.StdEncoding.EncodeToString([]byte("ana:pull-1")) + `"}}}`,
		"a token": `{"auths":{"r":{"identitytoken":"pull-1"},"s":{"registrytoken":"pull-2"}}}`,
	} {
		registry := hub()
		registry.secrets[0].Data = map[string][]byte{corev1.DockerConfigJsonKey: []byte(config)}
		texts := []string{"it is pull-1", base64.StdEncoding.EncodeToString([]byte("pull-1"))}
		if place != "a token" {
			texts = append(texts, "Basic "+base64.StdEncoding.EncodeToString([]byte("ana:pull-1")))
		}
		for _, text := range texts {
			if found, err := registry.Shown(map[string][]byte{"the log": []byte(text)}, "planted-"); err != nil || len(found) == 0 || !strings.HasPrefix(found[0], ".dockerconfigjson of Secret n/s in the log: ") {
				t.Errorf("%s: %q: got %q, %v", place, text, found, err)
			}
		}
		if found, err := registry.Shown(map[string][]byte{"the log": []byte("ana pulls from r")}, "planted-"); err != nil || len(found) > 0 {
			t.Errorf("%s: got %q, %v", place, found, err)
		}
	}
	basic := hub()
	basic.secrets[0].Data = map[string][]byte{"username": []byte("ana"), "password": []byte("push-1"), "identity": []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blbn1\nb3Blbn2\n-----END OPENSSH PRIVATE KEY-----\n")}
	for _, text := range []string{"Basic " + base64.StdEncoding.EncodeToString([]byte("ana:push-1")), "line b3Blbn1"} {
		if found, err := basic.Shown(map[string][]byte{"the log": []byte(text)}, ""); err != nil || len(found) == 0 {
			t.Errorf("%q: got %q, %v", text, found, err)
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
