package commitstatus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/test/forge"
)

// TestCheckPassesOnAForgeThatDoesAsDocumented: the check that a user runs finds nothing, and leaves successes only.
func TestCheckPassesOnAForgeThatDoesAsDocumented(t *testing.T) {
	for _, provider := range []string{"gitea", "forgejo", "github"} {
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

// documentedServer is a forge that keeps statuses as its documentation says. GitLab does not change a pending job to
// pending, and begins a new job after a verdict. Both Bitbuckets keep one status of a key. Azure DevOps keeps all. Each
// shows the newest status of a context.
type documentedServer struct {
	documentedForge
	stored []map[string]any
	// refused counts the pending statuses that GitLab refused.
	refused int
}

// subject is what two statuses of one context have in common.
func (d *documentedServer) subject(status map[string]any) string {
	return fmt.Sprint(status[map[string]string{
		"gitlab": "name", "bitbucket": "key", "bitbucketserver": "key", "azuredevops": "context",
	}[d.provider]])
}

func (d *documentedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.RequestURI {
	case d.post.request:
		var sent map[string]any
		_ = json.NewDecoder(r.Body).Decode(&sent)
		d.keep(w, sent)
	default:
		d.show(w, r)
	}
}

// keep stores a status, or refuses it.
func (d *documentedServer) keep(w http.ResponseWriter, sent map[string]any) {
	last := len(d.stored) - 1
	for last >= 0 && d.subject(d.stored[last]) != d.subject(sent) {
		last--
	}
	pending := d.provider == "gitlab" && last >= 0 && d.stored[last]["state"] == "pending"
	if pending && sent["state"] == "pending" {
		d.refused++
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`)
		return
	}
	if last < 0 || !pending && sent["key"] == nil {
		last, d.stored = len(d.stored), append(d.stored, nil)
	}
	sent["id"], sent["status"] = last+1, sent["state"]
	d.stored[last] = sent
	w.WriteHeader(d.post.code)
	if d.post.answer != "" {
		_ = json.NewEncoder(w).Encode(sent)
	}
}

// show answers with the newest status of the request's context, or, at Azure DevOps, of each context.
func (d *documentedServer) show(w http.ResponseWriter, r *http.Request) {
	newest := map[string]any{}
	for _, s := range d.stored {
		subject := d.subject(s)
		if d.provider == "azuredevops" || r.URL.Query().Get("name") == subject || strings.HasSuffix(r.RequestURI, subject) {
			newest[subject] = s
		}
	}
	list := slices.Collect(maps.Values(newest))
	switch {
	case len(list) == 0:
		w.WriteHeader(d.none.code)
		_, _ = io.WriteString(w, d.none.answer)
	case d.provider == "gitlab":
		_ = json.NewEncoder(w).Encode(list)
	case d.provider == "azuredevops":
		_ = json.NewEncoder(w).Encode(map[string]any{"value": list})
	default:
		_ = json.NewEncoder(w).Encode(list[0])
	}
}

// TestCheckPassesOnEveryDocumentedForge: at GitLab, too, which refuses the second pending status of each context. As many
// statuses stay as the documentation of the forge says, and the last ones are successes.
func TestCheckPassesOnEveryDocumentedForge(t *testing.T) {
	stay := map[string]int{"GitLab": 8, "BitbucketCloud": 2, "BitbucketDataCenter": 2, "AzureDevOps": 14}
	for name, c := range forges() {
		t.Run(name, func(t *testing.T) {
			served := &documentedServer{documentedForge: c}
			server := httptest.NewServer(served)
			t.Cleanup(server.Close)
			steps := 0
			for finding := range commitstatus.Check(t.Context(), c.provider, c.dial(t, server.URL), testSHA) {
				if steps++; finding.Err != nil {
					t.Errorf("%s: %v", finding.Step, finding.Err)
				}
			}
			refused := map[string]int{"GitLab": 2}
			if steps != 15 || len(served.stored) != stay[name] || served.refused != refused[name] {
				t.Errorf("%d steps, %d statuses, %d refused", steps, len(served.stored), served.refused)
			}
			last := map[string]any{}
			for _, s := range served.stored {
				last[served.subject(s)] = s["state"]
			}
			for context, state := range last {
				if !slices.Contains([]any{"success", "SUCCESSFUL", "succeeded"}, state) {
					t.Errorf("%s is left as %v", context, state)
				}
			}
			if len(last) != 2 {
				t.Errorf("contexts %v", last)
			}
		})
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
