package commitstatus_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/githubapp"
)

// The exchanges of this file were written by hand from the documentation of each API. No real server took part.

const (
	requestSHA = "2222222222222222222222222222222222222222"
	marker     = "<!-- addonflow-plan/fleet -->"
)

// requestCase is one forge with the exchanges of its requests.
type requestCase struct {
	provider, path, authorization string
	// list and its answer: request 9 of a fork, 7 of the repository itself.
	list, answer, ref string
	// user is the path of the token's account, comments the path of the comments, own the comment with id 31, and edit how it is changed.
	user, comments, page, own, edit string
	// comment is a comment in an answer.
	comment func(id, author int, body string) string
}

func requestCases() map[string]requestCase {
	quoted := func(s string) string { text, _ := json.Marshal(s); return string(text) }
	byUser := func(id, author int, body string) string {
		return `{"id":` + quoted2(id) + `,"user":{"id":` + quoted2(author) + `,"login":"someone"},"body":` + quoted(body) + `,"created_at":"2026-03-01T12:00:00Z"}`
	}
	pulls := `[
	{"number":9,"state":"open","head":{"label":"mallory:evil","ref":"evil","sha":"1111111111111111111111111111111111111111","repo":{"id":2,"full_name":"mallory/fleet"}},"base":{"ref":"main","repo":{"id":1,"full_name":"team/fleet"}}},
	{"number":8,"state":"open","head":{"ref":"gone","sha":"3333333333333333333333333333333333333333","repo":null},"base":{"ref":"main","repo":{"id":1}}},
	{"number":7,"state":"open","head":{"ref":"change","sha":"` + requestSHA + `","repo":{"id":1,"full_name":"team/fleet"}},"base":{"ref":"main","repo":{"id":1,"full_name":"team/fleet"}}}]`
	github := requestCase{
		provider: "github", path: "/team/fleet", authorization: bearerHeader,
		list:   "GET /api/v3/repos/team/fleet/pulls?base=main&direction=desc&page=1&per_page=20&sort=created&state=open",
		answer: pulls, ref: "refs/pull/7/head",
		user: "GET /api/v3/user", comments: "/api/v3/repos/team/fleet/issues/7/comments", page: "?page=1&per_page=10&sort=asc",
		own: "/api/v3/repos/team/fleet/issues/comments/31", edit: "PATCH", comment: byUser,
	}
	gitea := github
	gitea.provider, gitea.authorization = "gitea", "token "+testToken
	gitea.list = "GET /api/v1/repos/team/fleet/pulls?base_branch=main&limit=20&page=1&state=open"
	gitea.user, gitea.comments, gitea.own = "GET /api/v1/user", "/api/v1/repos/team/fleet/issues/7/comments", "/api/v1/repos/team/fleet/issues/comments/31"
	gitlab := requestCase{
		provider: "gitlab", path: "/team/infra/fleet", authorization: bearerHeader,
		list: "GET /api/v4/projects/team%2Finfra%2Ffleet/merge_requests?order_by=created_at&page=1&per_page=20&sort=desc&state=opened&target_branch=main",
		answer: `[
		{"id":90,"iid":9,"project_id":1,"state":"opened","target_branch":"main","source_branch":"evil","source_project_id":2,"target_project_id":1,"sha":"1111111111111111111111111111111111111111"},
		{"id":80,"iid":8,"project_id":1,"state":"opened","target_branch":"main","source_branch":"gone","source_project_id":null,"target_project_id":1,"sha":"3333333333333333333333333333333333333333"},
		{"id":70,"iid":7,"project_id":1,"state":"opened","target_branch":"main","source_branch":"change","source_project_id":1,"target_project_id":1,"sha":"` + requestSHA + `"}]`,
		ref:  "refs/merge-requests/7/head",
		user: "GET /api/v4/user", comments: "/api/v4/projects/team%2Finfra%2Ffleet/merge_requests/7/notes", page: "?page=1&per_page=10&sort=asc",
		own: "/api/v4/projects/team%2Finfra%2Ffleet/merge_requests/7/notes/31", edit: "PUT",
		comment: func(id, author int, body string) string {
			return `{"id":` + quoted2(id) + `,"author":{"id":` + quoted2(author) + `,"username":"someone"},"body":` + quoted(body) + `,"system":false}`
		},
	}
	return map[string]requestCase{"GitHub": github, "Gitea": gitea, "GitLab": gitlab}
}

func quoted2(n int) string { text, _ := json.Marshal(n); return string(text) }

func (c requestCase) dial(t *testing.T, url string) commitstatus.Requests {
	t.Helper()
	requests, err := commitstatus.NewRequests(commitstatus.Config{Provider: c.provider, Address: url + c.path, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestRequests_OpenTellsForksApart(t *testing.T) {
	for name, c := range requestCases() {
		t.Run(name, func(t *testing.T) {
			exchanges := []exchange{{c.list, c.authorization, "", http.StatusOK, nil, c.answer}}
			if c.provider == "gitea" { // the server decides the length of a page
				exchanges = append(exchanges, exchange{strings.Replace(c.list, "page=1", "page=2", 1), c.authorization, "", http.StatusOK, nil, "[]"})
			}
			got, err := c.dial(t, scripted(t, exchanges...)).Open(t.Context(), "main", func(commitstatus.Request) bool { return true })
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 3 || !got[1].Fork || !got[2].Fork {
				t.Fatalf("got %+v", got)
			}
			if diff := cmp.Diff(commitstatus.Request{Number: 7, SHA: requestSHA, Ref: c.ref}, got[0]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRequests_OpenIsNotCrowdedOut: a stranger can open requests from a fork, and they take no place of those of the
// repository, even if forks are wanted.
func TestRequests_OpenIsNotCrowdedOut(t *testing.T) {
	for name, c := range requestCases() {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(c.answer), &list); err != nil {
			t.Fatal(err)
		}
		forks, err := json.Marshal(slices.Repeat(list[:1], 20))
		if err != nil {
			t.Fatal(err)
		}
		exchanges := []exchange{
			{c.list, c.authorization, "", http.StatusOK, nil, string(forks)},
			{strings.Replace(c.list, "page=1", "page=2", 1), c.authorization, "", http.StatusOK, nil, c.answer},
		}
		if name == "Gitea" {
			exchanges = append(exchanges, exchange{strings.Replace(c.list, "page=1", "page=3", 1), c.authorization, "", http.StatusOK, nil, "[]"})
		}
		got, err := c.dial(t, scripted(t, exchanges...)).Open(t.Context(), "main", func(r commitstatus.Request) bool { return !r.Fork })
		if err != nil || len(got) != 1 || got[0].Number != 7 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		got, err = c.dial(t, scripted(t, exchanges...)).Open(t.Context(), "main", func(commitstatus.Request) bool { return true })
		if err != nil || len(got) != 20 || got[0].Number != 7 || !got[1].Fork {
			t.Errorf("%s: with forks: got %+v, %v", name, got, err)
		}
	}
}

// TestRequests_AForkDoesNotAnswerForARequestOfTheRepository: a stranger opens a request from a fork with the same head,
// and the status of its plan would replace that of the other plan.
func TestRequests_AForkDoesNotAnswerForARequestOfTheRepository(t *testing.T) {
	for name, c := range requestCases() {
		same := strings.Replace(c.answer, strings.Repeat("1", 40), requestSHA, 1)
		exchanges := []exchange{{c.list, c.authorization, "", http.StatusOK, nil, same}}
		if name == "Gitea" {
			exchanges = append(exchanges, exchange{strings.Replace(c.list, "page=1", "page=2", 1), c.authorization, "", http.StatusOK, nil, "[]"})
		}
		got, err := c.dial(t, scripted(t, exchanges...)).Open(t.Context(), "main", func(commitstatus.Request) bool { return true })
		if err != nil || len(got) != 2 || got[0].Number != 7 || got[1].Number != 8 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestRequests_NameWhatTheTokenLacks: a refusal is about plans, not about statuses.
func TestRequests_NameWhatTheTokenLacks(t *testing.T) {
	for name, needs := range map[string]string{"GitHub": "Pull requests: write", "Gitea": "write:issue and read:user", "GitLab": "the scope api"} {
		c := requestCases()[name]
		requests := c.dial(t, scripted(t, exchange{c.user, c.authorization, "", http.StatusForbidden, nil, `{"message":"required=[read:user]"}`}))
		_, err := requests.Say(t.Context(), 7, marker, "a plan")
		if want := "does not let the token comment on pull requests, which needs " + needs; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// TestRequests_SayKeepsOneComment: the first text creates the comment, another text changes it, the same
// text writes nothing, and a comment of another account with our marker is left alone.
func TestRequests_SayKeepsOneComment(t *testing.T) {
	for name, c := range requestCases() {
		t.Run(name, func(t *testing.T) {
			body := func(text string) string { b, _ := json.Marshal(map[string]string{"body": text}); return string(b) }
			user := exchange{c.user, c.authorization, "", http.StatusOK, nil, `{"id":5,"login":"addonflow","username":"addonflow"}`}
			list := func(comments ...string) exchange {
				return exchange{"GET " + c.comments + c.page, c.authorization, "", http.StatusOK, nil, "[" + strings.Join(comments, ",") + "]"}
			}
			forged, first, second := c.comment(30, 6, marker+"\nforged"), marker+"\nfirst", marker+"\nsecond"
			requests := c.dial(t, scripted(t,
				user, list(forged), exchange{"POST " + c.comments, c.authorization, body(first), http.StatusCreated, nil, c.comment(31, 5, first)},
				user, list(forged, c.comment(31, 5, first)), exchange{c.edit + " " + c.own, c.authorization, body(second), http.StatusOK, nil, c.comment(31, 5, second)},
				user, list(forged, c.comment(31, 5, second)),
			))
			for i, step := range []struct {
				text  string
				wrote bool
			}{{"first", true}, {"second", true}, {"second", false}} {
				wrote, err := requests.Say(t.Context(), 7, marker, step.text)
				if err != nil || wrote != step.wrote {
					t.Errorf("step %d: wrote %v, %v", i, wrote, err)
				}
			}
		})
	}
}

// TestRequests_SayFindsItsCommentAmongMegabytesOfOthers: Gitea sends all comments in one answer. If they are too many to
// be read, nothing is written: a second comment would follow at each pass.
func TestRequests_SayFindsItsCommentAmongMegabytesOfOthers(t *testing.T) {
	c := requestCases()["Gitea"]
	other := c.comment(30, 6, strings.Repeat("<", 60_000))
	for name, others := range map[string]int{"Read": 20, "TooMany": 60} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent = append(sent, r.Method)
				switch {
				case r.URL.Path == "/api/v1/user":
					_, _ = w.Write([]byte(`{"id":5}`))
				case r.Method == http.MethodGet:
					_, _ = w.Write([]byte("[" + strings.Repeat(other+",", others) + c.comment(31, 5, marker+"\nfirst") + "]"))
				default:
					_, _ = w.Write([]byte(c.comment(31, 5, marker+"\nsecond")))
				}
			}))
			t.Cleanup(server.Close)
			wrote, err := c.dial(t, server.URL).Say(t.Context(), 7, marker, "second")
			if name == "TooMany" {
				if err == nil || wrote || !strings.Contains(err.Error(), "request 7 has too many comments") || slices.Contains(sent, http.MethodPost) {
					t.Errorf("wrote %v, %v, sent %v", wrote, err, sent)
				}
				return
			}
			if err != nil || !wrote || sent[len(sent)-1] != http.MethodPatch {
				t.Errorf("wrote %v, %v, sent %v", wrote, err, sent)
			}
		})
	}
}

// TestRequests_SayPostsNothingWithoutKnowingItsAccount: without its own id, the operator could not tell its
// comment from that of another account.
func TestRequests_SayPostsNothingWithoutKnowingItsAccount(t *testing.T) {
	c := requestCases()["GitHub"]
	for code, answer := range map[int]string{http.StatusForbidden: `{"message":"Resource not accessible by integration"}`, http.StatusOK: `{}`} {
		requests := c.dial(t, scripted(t, exchange{c.user, c.authorization, "", code, nil, answer}))
		if wrote, err := requests.Say(t.Context(), 7, marker, "text"); err == nil || wrote {
			t.Errorf("%d: wrote %v, %v", code, wrote, err)
		}
	}
	if _, err := c.dial(t, "http://127.0.0.1:1").Say(t.Context(), 7, marker, strings.Repeat("x", commitstatus.CommentLimit)); err == nil {
		t.Error("a comment over the limit was not refused")
	}
}

func TestNewRequests_NamesTheForgesThatHavePlans(t *testing.T) {
	_, err := commitstatus.NewRequests(commitstatus.Config{Provider: "bitbucket", Address: "https://bitbucket.org/team/fleet", Token: testToken})
	if err == nil || !strings.Contains(err.Error(), "not one of forgejo, gitea, github, githubchecks, gitlab") {
		t.Errorf("got %v", err)
	}
}

// TestRequests_SayAsAGitHubApp: a token of an App has no account to ask for; the comment is found by the App. That of
// another App, and of a user who writes through this one, is left alone.
func TestRequests_SayAsAGitHubApp(t *testing.T) {
	for _, provider := range []string{"github", "githubchecks"} {
		t.Run(provider, func(t *testing.T) {
			var sent []string
			comments := `[{"id":30,"body":"` + marker + `","user":{"id":8,"type":"Bot"},"performed_via_github_app":{"id":13}},
				{"id":31,"body":"` + marker + `","user":{"id":9,"type":"User"},"performed_via_github_app":{"id":12}},
				{"id":32,"body":"` + marker + `","user":{"id":9,"type":"User"},"performed_via_github_app":null}`
			forge, keys := newAppForge(t)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/access_tokens"):
					forge.ServeHTTP(w, r)
					return
				case r.Method == http.MethodPost:
					comments += `,{"id":33,"body":"` + marker + `\nfirst","user":{"id":8,"type":"Bot"},"performed_via_github_app":{"id":12}}`
					w.WriteHeader(http.StatusCreated)
				}
				sent = append(sent, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v3/repos/team/fleet"))
				_, _ = w.Write([]byte(map[string]string{http.MethodGet: comments + "]"}[r.Method]))
			}))
			t.Cleanup(server.Close)
			keys[githubapp.BaseURLKey] = []byte(server.URL + "/api/v3")
			credentials, err := githubapp.Parse(keys)
			if err != nil {
				t.Fatal(err)
			}
			requests, err := commitstatus.NewRequests(commitstatus.Config{
				Provider: provider, Address: server.URL + "/team/fleet", App: &commitstatus.App{Credentials: credentials, Tokens: githubapp.New(nil)},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"first", "first", "second"} {
				if _, err := requests.Say(t.Context(), 7, marker, text); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"GET /issues/7/comments", "POST /issues/7/comments", "GET /issues/7/comments", "GET /issues/7/comments", "PATCH /issues/comments/33"}
			if diff := cmp.Diff(want, sent); diff != "" {
				t.Error(diff)
			}
		})
	}
}
