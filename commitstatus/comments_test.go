package commitstatus_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
)

// The exchanges of this file were written by hand from the documentation of each API. Gitea's are held to a real
// server by test/gitea.

// TestComments_OfAMergedRequest: the comments are those on the merged request of the commit, made after the merge,
// without reviews. Edited comments are marked.
func TestComments_OfAMergedRequest(t *testing.T) {
	const hub = "/api/v3/repos/team/fleet"
	const project = "/api/v4/projects/team%2Finfra%2Ffleet"
	merged := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	const since = "?page=1&per_page=40&since=2026-11-23T09%3A00%3A00Z"
	request := `{"number":7,"state":"closed","merged_at":"2026-11-23T09:00:00Z","merge_commit_sha":"` + testSHA + `","user":{"id":3,"login":"carol"},"base":{"ref":"main"}}`
	notes := `[{"id":11,"body":"before","user":{"id":4,"login":"bob"},"created_at":"2026-11-23T08:59:59Z","updated_at":"2026-11-23T09:00:01Z"},
		{"id":12,"body":"good","user":{"id":4,"login":"bob"},"created_at":"2026-11-23T09:00:01Z","updated_at":"2026-11-23T09:00:01Z"},
		{"id":13,"body":"changed","user":{"id":4,"login":"bob"},"created_at":"2026-11-23T09:00:02Z","updated_at":"2026-11-23T09:00:03Z"}]`
	cases := map[string]struct {
		provider, path, authorization string
		// another is a request that did not leave the commit.
		another, merged, notes exchange
		levels                 []exchange
		want                   []commitstatus.Level
	}{
		"GitHub": {
			"github", "/team/fleet", bearerHeader,
			exchange{request: "GET " + hub + "/commits/" + testSHA + "/pulls", code: http.StatusOK, answer: `[` + strings.Replace(request, testSHA, blobAfter, 1) + `,` +
				strings.Replace(request, `"2026-11-23T09:00:00Z"`, "null", 1) + `,` + strings.Replace(request, `"main"`, `"other"`, 1) + `]`},
			exchange{request: "GET " + hub + "/commits/" + testSHA + "/pulls", code: http.StatusOK, answer: `[` + request + `]`},
			exchange{request: "GET " + hub + "/issues/7/comments" + since, code: http.StatusOK, answer: notes},
			[]exchange{
				{request: "GET " + hub + "/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"write","role_name":"maintain"}`},
				{request: "GET " + hub + "/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"write","role_name":"our-own-role"}`},
				{request: "GET " + hub + "/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"admin","role_name":"admin","user":{"id":4,"login":"bob"}}`},
				{request: "GET " + hub + "/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"admin","role_name":"admin","user":{"id":5,"login":"bob"}}`},
				{request: "GET " + hub + "/collaborators/bob/permission", code: http.StatusNotFound, answer: `{"message":"Not Found"}`},
			},
			[]commitstatus.Level{commitstatus.LevelMaintain, commitstatus.LevelWrite, commitstatus.LevelAdmin, commitstatus.LevelNone, commitstatus.LevelNone},
		},
		"Gitea": {
			"gitea", "/team/fleet", "token " + testToken,
			exchange{request: "GET /api/v1/repos/team/fleet/commits/" + testSHA + "/pull", code: http.StatusNotFound, answer: `{"message":"pull request does not exist"}`},
			exchange{request: "GET /api/v1/repos/team/fleet/commits/" + testSHA + "/pull", code: http.StatusOK, answer: request},
			exchange{request: "GET /api/v1/repos/team/fleet/issues/7/comments" + since, code: http.StatusOK, answer: notes},
			[]exchange{
				{request: "GET /api/v1/repos/team/fleet/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"owner","role_name":"owner"}`},
				{request: "GET /api/v1/repos/team/fleet/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"read","role_name":"read","user":{"id":4,"login":"bob"}}`},
				{request: "GET /api/v1/repos/team/fleet/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"owner","role_name":"owner","user":{"id":5,"login":"bob"}}`},
				{request: "GET /api/v1/repos/team/fleet/collaborators/bob/permission", code: http.StatusOK, answer: `{"permission":"none","role_name":"none"}`},
			},
			[]commitstatus.Level{commitstatus.LevelAdmin, commitstatus.LevelRead, commitstatus.LevelNone, commitstatus.LevelNone},
		},
		"GitLab": {
			"gitlab", "/team/infra/fleet", bearerHeader,
			exchange{request: "GET " + project + "/repository/commits/" + testSHA + "/merge_requests", code: http.StatusOK, answer: `[{"iid":6,"merged_at":"2026-11-23T09:00:00Z","merge_commit_sha":"` + blobAfter + `","squash_commit_sha":"` + testSHA + `","sha":"` + testSHA + `","target_branch":"main","author":{"id":3,"username":"carol"}}]`},
			exchange{request: "GET " + project + "/repository/commits/" + testSHA + "/merge_requests", code: http.StatusOK, answer: `[{"iid":7,"merged_at":"2026-11-23T09:00:00Z","merge_commit_sha":null,"squash_commit_sha":null,"sha":"` + testSHA + `","target_branch":"main","author":{"id":3,"username":"carol"}}]`},
			exchange{request: "GET " + project + "/merge_requests/7/notes?order_by=created_at&page=1&per_page=40&sort=desc", code: http.StatusOK, answer: `[
				{"id":15,"type":"DiffNote","body":"review","system":false,"author":{"id":4,"username":"bob"},"created_at":"2026-11-23T09:00:05.000Z","updated_at":"2026-11-23T09:00:05.000Z"},
				{"id":14,"type":null,"body":"merged","system":true,"author":{"id":4,"username":"bob"},"created_at":"2026-11-23T09:00:04.000Z","updated_at":"2026-11-23T09:00:04.000Z"},
				{"id":13,"type":null,"body":"changed","system":false,"author":{"id":4,"username":"bob"},"created_at":"2026-11-23T09:00:02.000Z","updated_at":"2026-11-23T09:00:03.000Z"},
				{"id":12,"type":null,"body":"good","system":false,"author":{"id":4,"username":"bob"},"created_at":"2026-11-23T09:00:01.000Z","updated_at":"2026-11-23T09:00:01.000Z"},
				{"id":11,"type":null,"body":"before","system":false,"author":{"id":4,"username":"bob"},"created_at":"2026-11-23T08:59:59.000Z","updated_at":"2026-11-23T08:59:59.000Z"}]`},
			[]exchange{
				{request: "GET " + project + "/members/all/4", code: http.StatusOK, answer: `{"id":4,"username":"bob","state":"active","access_level":40}`},
				{request: "GET " + project + "/members/all/4", code: http.StatusOK, answer: `{"id":4,"username":"bob","state":"blocked","access_level":50}`},
				{request: "GET " + project + "/members/all/4", code: http.StatusOK, answer: `{"id":4,"username":"bob","state":"active","access_level":30}`},
				{request: "GET " + project + "/members/all/4", code: http.StatusNotFound, answer: `{"message":"404 Not found"}`},
			},
			[]commitstatus.Level{commitstatus.LevelMaintain, commitstatus.LevelNone, commitstatus.LevelWrite, commitstatus.LevelNone},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := append([]exchange{c.another, c.merged, c.notes}, c.levels...)
			for i := range all {
				all[i].authorization = c.authorization
			}
			comments, err := commitstatus.NewComments(commitstatus.Config{Provider: c.provider, Address: scripted(t, all...) + c.path, Token: testToken})
			if err != nil {
				t.Fatal(err)
			}
			if _, found, err := comments.Merged(t.Context(), testSHA, "main"); found || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			request, found, err := comments.Merged(t.Context(), testSHA, "main")
			if diff := cmp.Diff(commitstatus.MergedRequest{Number: 7, Author: commitstatus.Account{ID: 3, Login: "carol"}, At: merged}, request); diff != "" || !found || err != nil {
				t.Fatalf("%v, %v: %s", found, err, diff)
			}
			got, err := comments.After(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			bob := commitstatus.Account{ID: 4, Login: "bob"}
			want := []commitstatus.Comment{
				{ID: 12, By: bob, Body: "good", Created: merged.Add(time.Second)},
				{ID: 13, By: bob, Body: "changed", Created: merged.Add(2 * time.Second), Edited: true},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			for _, want := range c.want {
				if level, err := comments.Level(t.Context(), bob); level != want || err != nil {
					t.Errorf("level %v, %v, want %v", level, err, want)
				}
			}
		})
	}
}

// TestComments_APageInHTMLIsNoAnswer: a proxy that says "not found" does not say that there is no pull request.
func TestComments_APageInHTMLIsNoAnswer(t *testing.T) {
	address := scripted(t, exchange{
		request: "GET /api/v1/repos/team/fleet/commits/" + testSHA + "/pull", authorization: "token " + testToken, code: http.StatusNotFound, answer: "<html>not found</html>",
	})
	comments, err := commitstatus.NewComments(commitstatus.Config{Provider: "gitea", Address: address + "/team/fleet", Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, err := comments.Merged(t.Context(), testSHA, "main"); err == nil || !strings.Contains(err.Error(), "did not answer like a forge") {
		t.Errorf("found %v, %v", found, err)
	}
}

// TestComments_AuthorsOfARequest: the authors and committers of all commits. The empty account is one that the forge does
// not name.
func TestComments_AuthorsOfARequest(t *testing.T) {
	shown := func(a commitstatus.Account) string {
		if a.ID == 0 {
			return "null"
		}
		return fmt.Sprintf(`{"id":%d,"login":%q}`, a.ID, a.Login)
	}
	commit := func(author, committer commitstatus.Account) string {
		return `{"sha":"` + testSHA + `","commit":{"author":{"name":"x","email":"x@example.com"}},"author":` + shown(author) + `,"committer":` + shown(committer) + `}`
	}
	bob, carol, flow := commitstatus.Account{ID: 4, Login: "bob"}, commitstatus.Account{ID: 3, Login: "carol"}, commitstatus.Account{ID: 9, Login: "web-flow"}
	none := commitstatus.Account{}
	const hub, tea = "GET /api/v3/repos/team/fleet/pulls/7/commits?page=%d&per_page=50", "GET /api/v1/repos/team/fleet/pulls/7/commits?files=false&limit=50&page=%d&stat=false&verification=false"
	full := "[" + strings.Repeat(commit(bob, bob)+",", 49) + commit(bob, bob) + "]"
	for name, c := range map[string]struct {
		provider, request string
		pages             []string
		want              []commitstatus.Account
	}{
		"GitHub":                  {"github", hub, []string{"[" + commit(bob, flow) + "," + commit(carol, carol) + "]"}, []commitstatus.Account{carol, bob, flow}},
		"GitHub, an unknown mail": {"github", hub, []string{"[" + commit(bob, bob) + "," + commit(none, bob) + "]"}, []commitstatus.Account{none, bob}},
		"GitHub, two pages":       {"github", hub, []string{full, "[" + commit(carol, carol) + "]"}, []commitstatus.Account{carol, bob}},
		"GitHub, many commits":    {"github", hub, []string{full, full, full, full}, []commitstatus.Account{none}},
		"Gitea":                   {"gitea", tea, []string{"[" + commit(bob, carol) + "]", "[" + commit(carol, carol) + "]", "[]"}, []commitstatus.Account{carol, bob}},
		"Gitea, no commit":        {"gitea", tea, []string{"[]", "[]", "[]", "[]"}, []commitstatus.Account{none}},
		"GitLab":                  {"gitlab", "", nil, []commitstatus.Account{none}},
	} {
		t.Run(name, func(t *testing.T) {
			var all []exchange
			for i, page := range c.pages {
				authorization := bearerHeader
				if c.provider == "gitea" {
					authorization = "token " + testToken
				}
				all = append(all, exchange{request: fmt.Sprintf(c.request, i+1), authorization: authorization, code: http.StatusOK, answer: page})
			}
			comments, err := commitstatus.NewComments(commitstatus.Config{Provider: c.provider, Address: scripted(t, all...) + "/team/fleet", Token: testToken})
			if err != nil {
				t.Fatal(err)
			}
			got, err := comments.Authors(t.Context(), commitstatus.MergedRequest{Number: 7})
			if err != nil {
				t.Fatal(err)
			}
			if len(c.pages) == 4 { // not all commits were read
				got = got[len(got)-1:]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
