package main

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/forge"
)

func TestCheckForge(t *testing.T) {
	const sha = "2222222222222222222222222222222222222222"
	f := forge.New("team/fleet")
	f.RequireToken("right")
	if _, err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	for name, c := range map[string]struct {
		token string
		code  int
		want  []string
	}{
		"Works":      {"right", 0, []string{"✔ the first pending status\n", "✔ a success with the longest text, in the longest context\n", "delete its branch"}},
		"WrongToken": {"wrong", exitFailed, []string{"✗ a context without a status: ", "does not accept the token (401)", "Next: the token needs write:repository"}},
		"NoToken":    {"", exitFailed, []string{`secret "forge" has no key "token"`}},
	} {
		t.Run(name, func(t *testing.T) {
			source := fleetSource("True", "applied")
			source.Spec.CommitStatus = &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: f.Address("team/fleet"), SecretRef: &meta.LocalObjectReference{Name: "forge"}}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forge"}, Data: map[string][]byte{"token": []byte(c.token)}}
			s := newStage(t, source, secret)
			code := s.run(t.Context(), "check", "forge", "fleet", "--commit", sha)
			said := s.out.String() + s.err.String()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("said %q, want %q", said, want)
				}
			}
		})
	}
}
