package commitstatus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/test/forge"
)

// TestCheckPassesOnAForgeThatDoesAsDocumented: the check that a user runs finds nothing, and leaves successes only.
func TestCheckPassesOnAForgeThatDoesAsDocumented(t *testing.T) {
	for _, provider := range []string{"gitea", "github"} {
		f := forge.New("fleet/addons")
		if _, err := f.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		steps := 0
		for finding := range commitstatus.Check(t.Context(), provider, dial(t, provider, f.Address("fleet/addons")), testSHA) {
			if steps++; finding.Err != nil {
				t.Errorf("%s: %s: %v", provider, finding.Step, finding.Err)
			}
		}
		contexts := map[string]string{}
		for _, e := range f.Log() {
			contexts[e.Context] = e.State
		}
		if steps != 15 || len(contexts) != 2 {
			t.Errorf("%s: %d steps, contexts %v", provider, steps, contexts)
		}
		for name, state := range contexts {
			if state != "success" || !strings.HasPrefix(name, commitstatus.CheckContext) {
				t.Errorf("%s: %s is left as %s", provider, name, state)
			}
		}
	}
}

// forgetful answers every post with success, and shows the statuses that change leaves.
type forgetful struct {
	shown  []commitstatus.Status
	change func(before []commitstatus.Status, posted commitstatus.Status) []commitstatus.Status
}

func (f *forgetful) Post(_ context.Context, s commitstatus.Status) error {
	f.shown = f.change(f.shown, s)
	return nil
}

func (f *forgetful) Shown(context.Context, string, []string) (map[string]*commitstatus.Status, error) {
	shown := map[string]*commitstatus.Status{}
	for _, s := range f.shown {
		shown[s.Context] = &s
	}
	return shown, nil
}

// TestCheckFindsAForgeThatDoesNotShowWhatItAccepted: the first step that differs is named, and the check ends there.
func TestCheckFindsAForgeThatDoesNotShowWhatItAccepted(t *testing.T) {
	cases := map[string]struct {
		change func([]commitstatus.Status, commitstatus.Status) []commitstatus.Status
		step   string
	}{
		"LosesAll": {func([]commitstatus.Status, commitstatus.Status) []commitstatus.Status { return nil }, "the first pending status"},
		"KeepsTheFirst": {func(b []commitstatus.Status, s commitstatus.Status) []commitstatus.Status {
			return append([]commitstatus.Status{s}, b...)
		}, "a pending status with another text"},
		"CutsLongTexts": {func(b []commitstatus.Status, s commitstatus.Status) []commitstatus.Status {
			s.Description = s.Description[:min(len(s.Description), 100)]
			return append(b, s)
		}, "a success with the longest text"},
		"CutsLongNames": {func(b []commitstatus.Status, s commitstatus.Status) []commitstatus.Status {
			s.Context = s.Context[:min(len(s.Context), 40)]
			return append(b, s)
		}, "the first pending status, in the longest context"},
		"MergesVerdicts": {func(b []commitstatus.Status, s commitstatus.Status) []commitstatus.Status {
			if s.State == commitstatus.Error {
				s.State = commitstatus.Failure
			}
			return append(b, s)
		}, "an error"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var last commitstatus.Finding
			for finding := range commitstatus.Check(t.Context(), "github", &forgetful{change: c.change}, testSHA) {
				last = finding
			}
			if last.Err == nil || last.Step != c.step {
				t.Errorf("ended with %q: %v; want %q", last.Step, last.Err, c.step)
			}
		})
	}
}
