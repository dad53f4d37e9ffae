package commitstatus_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/commitstatus"
)

// The exchanges of this file were written by hand from the documentation of each API. Gitea's are held to a real
// server by test/gitea.

const (
	blobBefore = "3333333333333333333333333333333333333333"
	blobAfter  = "4444444444444444444444444444444444444444"
)

func testProposal() commitstatus.Proposal {
	return commitstatus.Proposal{
		Branch: "addonflow/revert-hello-0123456789", Into: "main", Head: testSHA, Title: "Restore hello", Body: "why",
		Files: []commitstatus.ProposedFile{
			{Path: "a/changed.yaml", Before: blobBefore, After: blobAfter, Content: []byte("old")},
			{Path: "a/gone.yaml", Before: blobBefore},
			{Path: "a/new.yaml", After: blobAfter, Content: []byte("old")},
		},
	}
}

// TestProposals_OneBranchAndOneRequest: the branch has one commit on top of the head, and a request that is there,
// whatever its state, is found by the branch.
func TestProposals_OneBranchAndOneRequest(t *testing.T) {
	const base = "/api/v3/repos/team/fleet"
	const project = "/api/v4/projects/team%2Finfra%2Ffleet"
	const listed = "GET " + base + "/pulls?base=main&head=team%3Aaddonflow%2Frevert-hello-0123456789&per_page=1&state=all"
	const listedAtGitLab = "GET " + project + "/merge_requests?per_page=20&source_branch=addonflow%2Frevert-hello-0123456789&state=all&target_branch=main"
	opening := `{"title":"Restore hello","head":"addonflow/revert-hello-0123456789","base":"main","body":"why"}`
	cases := map[string]struct {
		provider, path, authorization string
		none, found                   exchange
		branch                        []exchange
		open                          exchange
	}{
		"GitHub": {
			"github", "/team/fleet", bearerHeader,
			exchange{request: listed, code: http.StatusOK, answer: `[]`},
			exchange{request: listed, code: http.StatusOK, answer: `[{"number":7,"state":"closed","html_url":"https://github.example/team/fleet/pull/7"}]`},
			[]exchange{
				{request: "GET " + base + "/git/commits/" + testSHA, code: http.StatusOK, answer: `{"sha":"` + testSHA + `","tree":{"sha":"5555555555555555555555555555555555555555"},"parents":[]}`},
				{
					request: "POST " + base + "/git/trees", code: http.StatusCreated, answer: `{"sha":"6666666666666666666666666666666666666666","truncated":false}`,
					body: `{"base_tree":"5555555555555555555555555555555555555555","tree":[
						{"path":"a/changed.yaml","mode":"100644","type":"blob","sha":"` + blobAfter + `"},
						{"path":"a/gone.yaml","mode":"100644","type":"blob","sha":null},
						{"path":"a/new.yaml","mode":"100644","type":"blob","sha":"` + blobAfter + `"}]}`,
				},
				{
					request: "POST " + base + "/git/commits", code: http.StatusCreated, answer: `{"sha":"7777777777777777777777777777777777777777","message":"Restore hello"}`,
					body: `{"message":"Restore hello","tree":"6666666666666666666666666666666666666666","parents":["` + testSHA + `"]}`,
				},
				{
					request: "POST " + base + "/git/refs", code: http.StatusCreated, answer: `{"ref":"refs/heads/addonflow/revert-hello-0123456789"}`,
					body: `{"ref":"refs/heads/addonflow/revert-hello-0123456789","sha":"7777777777777777777777777777777777777777"}`,
				},
			},
			exchange{request: "POST " + base + "/pulls", body: opening, code: http.StatusCreated, answer: `{"number":7,"html_url":"https://github.example/team/fleet/pull/7"}`},
		},
		"Gitea": {
			"gitea", "/team/fleet", "token " + testToken,
			exchange{request: "GET /api/v1/repos/team/fleet/pulls/main/addonflow/revert-hello-0123456789", code: http.StatusNotFound, answer: `{"message":"The target couldn't be found."}`},
			exchange{request: "GET /api/v1/repos/team/fleet/pulls/main/addonflow/revert-hello-0123456789", code: http.StatusOK, answer: `{"number":7,"state":"closed","html_url":"https://gitea.example/team/fleet/pulls/7"}`},
			[]exchange{{
				request: "POST /api/v1/repos/team/fleet/contents", code: http.StatusCreated, answer: `{"commit":{"sha":"7777777777777777777777777777777777777777"},"files":[]}`,
				body: `{"branch":"main","new_branch":"addonflow/revert-hello-0123456789","message":"Restore hello","files":[
					{"operation":"update","path":"a/changed.yaml","content":"b2xk","sha":"` + blobBefore + `"},
					{"operation":"delete","path":"a/gone.yaml","sha":"` + blobBefore + `"},
					{"operation":"create","path":"a/new.yaml","content":"b2xk"}]}`,
			}},
			exchange{request: "POST /api/v1/repos/team/fleet/pulls", body: opening, code: http.StatusCreated, answer: `{"number":7,"html_url":"https://gitea.example/team/fleet/pulls/7"}`},
		},
		"GitLab": {
			"gitlab", "/team/infra/fleet", bearerHeader,
			exchange{request: listedAtGitLab, code: http.StatusOK, answer: `[{"iid":6,"state":"opened","source_project_id":2,"target_project_id":1,"web_url":"https://gitlab.example/6"}]`},
			exchange{request: listedAtGitLab, code: http.StatusOK, answer: `[{"iid":7,"state":"closed","source_project_id":1,"target_project_id":1,"web_url":"https://gitlab.example/team/infra/fleet/-/merge_requests/7"}]`},
			[]exchange{{
				request: "POST " + project + "/repository/commits", code: http.StatusCreated, answer: `{"id":"7777777777777777777777777777777777777777"}`,
				body: `{"branch":"addonflow/revert-hello-0123456789","start_sha":"` + testSHA + `","commit_message":"Restore hello","actions":[
					{"action":"update","file_path":"a/changed.yaml","content":"b2xk","encoding":"base64"},
					{"action":"delete","file_path":"a/gone.yaml"},
					{"action":"create","file_path":"a/new.yaml","content":"b2xk","encoding":"base64"}]}`,
			}},
			exchange{
				request: "POST " + project + "/merge_requests", code: http.StatusCreated, answer: `{"iid":7,"web_url":"https://gitlab.example/team/infra/fleet/-/merge_requests/7"}`,
				body: `{"title":"Restore hello","source_branch":"addonflow/revert-hello-0123456789","target_branch":"main","description":"why","remove_source_branch":true}`,
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := append([]exchange{c.none}, c.branch...)
			all = append(all, c.open, c.found)
			if name != "GitHub" { // the request was opened by an operator that ended before it heard of it
				again := c.open
				again.code, again.answer = http.StatusConflict, `{"message":"it is there already"}`
				all = append(all, again, c.found)
			}
			for i := range all {
				all[i].authorization = c.authorization
			}
			proposals, err := commitstatus.NewProposals(commitstatus.Config{Provider: c.provider, Address: scripted(t, all...) + c.path, Token: testToken})
			if err != nil {
				t.Fatal(err)
			}
			p := testProposal()
			if _, found, err := proposals.Opened(t.Context(), p); found || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			if err := proposals.Branch(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			opened, err := proposals.Open(t.Context(), p)
			if err != nil || opened.Number != 7 || !strings.HasSuffix(opened.URL, "/7") {
				t.Errorf("%+v, %v", opened, err)
			}
			if opened, found, err := proposals.Opened(t.Context(), p); !found || err != nil || opened.Number != 7 {
				t.Errorf("%+v, %v, %v", opened, found, err)
			}
			if name == "GitHub" {
				return
			}
			if opened, err := proposals.Open(t.Context(), p); err != nil || opened.Number != 7 {
				t.Errorf("once more: %+v, %v", opened, err)
			}
		})
	}
}

// TestProposals_NameWhatTheTokenMayNotDo: a refusal is about proposals, not about statuses.
func TestProposals_NameWhatTheTokenMayNotDo(t *testing.T) {
	proposals, err := commitstatus.NewProposals(commitstatus.Config{Provider: "gitea", Token: testToken, Address: scripted(t, exchange{
		request: "POST /api/v1/repos/team/fleet/pulls", authorization: "token " + testToken, code: http.StatusForbidden,
		body: `{"title":"Restore hello","head":"addonflow/revert-hello-0123456789","base":"main","body":"why"}`, answer: `{"message":"token does not have at least one of required scope(s)"}`,
	}) + "/team/fleet"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = proposals.Open(t.Context(), testProposal())
	refused, ok := errors.AsType[*commitstatus.DeliveryError](err)
	if !ok || refused.Denied != commitstatus.PermissionMissing || !strings.Contains(err.Error(), "does not let the token push branches and open pull requests (403)") {
		t.Errorf("got %v", err)
	}
	if _, err := commitstatus.NewProposals(commitstatus.Config{Provider: "bitbucket", Address: "https://bitbucket.org/team/fleet", Token: testToken}); err == nil ||
		!strings.Contains(err.Error(), "not one of forgejo, gitea, github") {
		t.Errorf("got %v", err)
	}
}
