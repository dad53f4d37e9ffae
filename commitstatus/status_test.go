package commitstatus_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/commitstatus"
)

func TestValidate(t *testing.T) {
	sha := strings.Repeat("0f", 20)
	cases := map[string]struct {
		reason string
		change func(*commitstatus.Status)
		want   string
	}{
		"Good":        {"A plain status passes.", func(*commitstatus.Status) {}, ""},
		"SHA256":      {"Longer object names exist.", func(s *commitstatus.Status) { s.SHA = strings.Repeat("0f", 32) }, ""},
		"ShortSHA":    {"Short names mean nothing to an API.", func(s *commitstatus.Status) { s.SHA = sha[:10] }, "the commit is not a full lower-case object name"},
		"EmptySHA":    {"An empty one would be another endpoint.", func(s *commitstatus.Status) { s.SHA = "" }, "the commit is not a full lower-case object name"},
		"SHAPath":     {"Nor is it a path.", func(s *commitstatus.Status) { s.SHA = "../" + sha[3:] }, "the commit is not a full lower-case object name"},
		"Context":     {"Nameless statuses cannot be found again.", func(s *commitstatus.Status) { s.Context = "" }, "the context is empty"},
		"ContextLine": {"One line.", func(s *commitstatus.Status) { s.Context = "a\nb" }, "the context has unprintable characters"},
		"ContextLong": {"Within limits.", func(s *commitstatus.Status) { s.Context = strings.Repeat("a", 101) }, "the context is longer than 100 characters"},
		"State":       {"Four states.", func(s *commitstatus.Status) { s.State = "running" }, `the state "running" is unknown`},
		"Text":        {"140 characters.", func(s *commitstatus.Status) { s.Description = strings.Repeat("ä", 141) }, "the description is longer than 140 characters"},
		"TextLine":    {"One line.", func(s *commitstatus.Status) { s.Description = "a\tb" }, "the description has unprintable characters"},
		"Script":      {"A link must not run.", func(s *commitstatus.Status) { s.TargetURL = "javascript:alert(1)" }, "the target URL is neither http nor https"},
		"LinkUser":    {"A link must not carry credentials.", func(s *commitstatus.Status) { s.TargetURL = "https://u:p@ci.example/" }, "the target URL needs a host and no user information"},
		"LinkBad":     {"A link must be one, and is not repeated.", func(s *commitstatus.Status) { s.TargetURL = "https://u:hunter2@ci.example:x/" }, "the target URL cannot be parsed"},
		"LinkLong":    {"GitLab's limit.", func(s *commitstatus.Status) { s.TargetURL = "https://ci.example/" + strings.Repeat("a", 250) }, "the target URL is longer than 255 bytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status := commitstatus.Status{SHA: sha, Context: "addonflow/hello", State: commitstatus.Pending, Description: "canary 0/2", TargetURL: "https://ci.example/1"}
			c.change(&status)
			got := ""
			if err := status.Validate(); err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%s\ngot %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestSecretNeverShows(t *testing.T) {
	const value = "hunter2"
	config := commitstatus.Config{Token: value}
	encoded, err := json.Marshal(map[string]any{"config": config.Token, "nested": []commitstatus.Secret{value}})
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{string(encoded)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown = append(shown, fmt.Sprintf(verb, config.Token), fmt.Sprintf(verb, config), fmt.Sprintf(verb, &config))
	}
	for _, s := range shown {
		if strings.Contains(s, value) || strings.Contains(s, fmt.Sprintf("%x", value)) {
			t.Errorf("the secret shows in %s", s)
		}
	}
}
