package commitstatus

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// exampleProvider is the row of an invented forge. It has its own header, and shorter texts than all others.
func exampleProvider() provider {
	return provider{
		open:         func(_ Config, c *restClient) Forge { return &gitea{c} },
		address:      addressing{commits: "revision", locate: ownerAndName(func(root *url.URL) string { return root.String() + "/rest/v2" })},
		authorize:    func(token string) string { return base64.StdEncoding.EncodeToString([]byte(token)) },
		permission:   "statuses",
		pace:         5,
		burst:        50,
		header:       "X-Example-Token",
		descriptions: 100, contexts: 64,
	}
}

// dialExample returns the invented forge, served by the handler.
func dialExample(t *testing.T, handler http.HandlerFunc) Forge {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	p := exampleProvider()
	repo, err := parseAddress(server.URL+"/team/fleet", p.address)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{Token: "opensesame-hunter2", Clock: time.Now}
	client, err := newRESTClient(config, p, repo)
	if err != nil {
		t.Fatal(err)
	}
	return fitted{p.open(config, client), p}
}

// TestRow_TokenIsInTheHeaderOfTheForge: no other header has it, and no text shows it, not even as the header has it.
func TestRow_TokenIsInTheHeaderOfTheForge(t *testing.T) {
	var sent http.Header
	client := dialExample(t, func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Clone()
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"message":"token %s"}`, r.Header.Get("X-Example-Token"))
	})
	status := Status{SHA: strings.Repeat("a", 40), Context: "addonflow/fleet", State: Pending, Description: "canary 1/2"}
	err := client.Post(t.Context(), status)
	if want := base64.StdEncoding.EncodeToString([]byte("opensesame-hunter2")); sent.Get("X-Example-Token") != want || sent.Get("Authorization") != "" {
		t.Errorf("sent %v", sent)
	}
	if err == nil || !strings.HasSuffix(err.Error(), "refuses the status (400): token [redacted]") {
		t.Errorf("got %v", err)
	}
}

// TestRow_TextsAreCutAtItsLimits: the forge gets what it can store. The operator reads the status under its own name of
// the context, and takes the cut text for the text that it posted.
func TestRow_TextsAreCutAtItsLimits(t *testing.T) {
	var stored []wireStatus
	client := dialExample(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var got wireStatus
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil || utf8.RuneCountInString(got.Description) > 100 || utf8.RuneCountInString(got.Context) > 64 {
				t.Errorf("sent %+v, %v", got, err)
			}
			got.ID = int64(len(stored) + 1)
			stored = append(stored, got)
			w.WriteHeader(http.StatusCreated)
			_ = json.NewEncoder(w).Encode(got)
			return
		}
		page := stored
		if r.FormValue("page") != "1" {
			page = nil
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"statuses": page})
	})
	sha := strings.Repeat("a", 40)
	contexts := []string{strings.Repeat("x", ContextLimit-1) + "1", strings.Repeat("x", ContextLimit-1) + "2", "addonflow/none"}
	texts := []string{strings.Repeat("halted ", 20)[:DescriptionLimit-1], "short"}
	for i, text := range texts {
		if err := client.Post(t.Context(), Status{SHA: sha, Context: contexts[i], State: Failure, Description: text}); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := client.Shown(t.Context(), sha, contexts)
	if none, read := shown["addonflow/none"]; err != nil || len(shown) != 3 || none != nil || !read {
		t.Fatalf("shows %v, %v", shown, err)
	}
	for i, text := range texts {
		s := shown[contexts[i]]
		known := &memory{own: []Statement{{State: "failure", Description: text}, {State: "success", Description: text}}}
		if s == nil || s.Context != contexts[i] {
			t.Fatalf("%s: shows %+v", contexts[i], s)
		}
		if got := known.words(exampleProvider(), s.statement()); got.State != "failure" || got.Description != text {
			t.Errorf("the operator takes %q for %+v", s.Description, got)
		}
		if got := (&memory{}).words(exampleProvider(), s.statement()); got.Description != s.Description {
			t.Errorf("the text of another client is %+v", got)
		}
	}
}

// TestRow_APIAddressIsThatOfThePage: a user may copy the address of the repository in the API of the forge.
func TestRow_APIAddressIsThatOfThePage(t *testing.T) {
	for _, address := range []string{"https://forge.example/git/team/fleet", "https://forge.example/git/rest/v2/repos/team/fleet"} {
		repo, err := parseAddress(address, exampleProvider().address)
		if err != nil || repo.api != "https://forge.example/git/rest/v2/repos/team/fleet" || repo.name != "forge.example/git/team/fleet" ||
			repo.commitPage("1") != "https://forge.example/git/team/fleet/revision/1" {
			t.Errorf("%s: %+v, %v", address, repo, err)
		}
	}
}

// TestRows_AreComplete: the required fields of a row have no useful zero value.
func TestRows_AreComplete(t *testing.T) {
	for kind, p := range providers() {
		if p.open == nil || p.address.locate == nil || p.address.commits == "" || p.authorize == nil || p.permission == "" || p.pace == 0 || p.burst == 0 {
			t.Errorf("the row of %s lacks a required field", kind)
		}
		if w := p.webhook; w != nil && len(w.Form) == 0 {
			t.Errorf("the webhook of %s has no form", kind)
		}
	}
}

// TestRows_PlansHaveTheirPermissionInTheDocuments: the table of pull requests has each forge with plans, and what its token
// needs for them.
func TestRows_PlansHaveTheirPermissionInTheDocuments(t *testing.T) {
	page, err := os.ReadFile("../docs/how-to/pull-requests.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, p := range providers() {
		if p.requests == nil {
			continue
		}
		needs := p.requests(repository{}).needs
		named := func(row string) bool {
			return strings.HasPrefix(row, "| ") && strings.Contains(row, "`"+kind+"`") && strings.Contains(strings.ReplaceAll(row, "`", ""), needs)
		}
		if !slices.ContainsFunc(strings.Split(string(page), "\n"), named) {
			t.Errorf("docs/how-to/pull-requests.md has no row of %s with %q", kind, needs)
		}
	}
}
