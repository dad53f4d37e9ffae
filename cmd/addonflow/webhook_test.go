package main

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestWebhook(t *testing.T) {
	const path = "/hook/0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		kind, path string
		args       []string
		code       int
		want       []string
	}{
		"GitHub":   {"github", path, []string{"--base-url", "https://hooks.example.com/"}, 0, []string{"URL:           https://hooks.example.com" + path + "\n", "Secret:        the key token of Secret default/hook\n", "Just the push event"}},
		"Gitea":    {"gitea", path, nil, 0, []string{"Content type:  application/json\n", "Push events"}},
		"Azure":    {"azuredevops", path, nil, 0, []string{"URL:           " + path + "\n", "Basic auth:    any user name; the password is the key token of Secret default/hook\n", "Next: put the address"}},
		"Generic":  {"generic-hmac", path, nil, 0, []string{"X-Signature: sha256="}},
		"Forgejo":  {"forgejo", path, nil, 0, []string{"Content type:  application/json\n", "the key token of Secret default/hook\n"}},
		"GitLab":   {"gitlab", path, nil, 0, []string{"the key token of Secret default/hook\n", "Push events"}},
		"Cloud":    {"bitbucket", path, nil, 0, []string{"the key token of Secret default/hook\n"}},
		"Server":   {"bitbucketserver", path, nil, 0, []string{"the key token of Secret default/hook\n"}},
		"NotYet":   {"github", "", nil, exitTimeout, []string{"has no path yet"}},
		"None":     {"", "", nil, exitFailed, []string{"has no spec.webhook"}},
		"WrongURL": {"github", path, []string{"--base-url", "hooks.example.com"}, exitUsage, []string{"--base-url"}},
	} {
		t.Run(name, func(t *testing.T) {
			source := fleetSource("True", "applied")
			if c.kind != "" {
				source.Spec.Webhook = &v1alpha1.WebhookSpec{Type: c.kind, SecretRef: meta.LocalObjectReference{Name: "hook"}}
			}
			source.Status.WebhookPath = c.path
			s := newStage(t, source)
			code := s.run(t.Context(), append([]string{"webhook", "fleet"}, c.args...)...)
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
