package forge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/test/forge"
)

const sha = "6dcb09b5b57875f334f61aebed695e2e4193db5e"

// fixed returns a forge with a fixed clock.
func fixed(repositories ...string) *forge.Forge {
	f := forge.New(repositories...)
	f.SetClock(func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) })
	return f
}

// ask sends one request to the handler and returns code and body.
func ask(f http.Handler, method, path, body string, headers ...string) (int, string) {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://forge.test"+path, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

// sameJSON fails unless both texts are the same JSON value.
func sameJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("cannot decode %q: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("cannot decode %q: %v", want, err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestGiteaShapes(t *testing.T) {
	f := fixed("fleet/addons")
	code, got := ask(f, http.MethodPost, "/api/v1/repos/fleet/addons/statuses/"+sha,
		`{"state":"pending","target_url":"https://ci.example/1","description":"canary 0/2","context":"addonflow/hello"}`)
	if code != http.StatusCreated {
		t.Fatalf("post: %d %s", code, got)
	}
	one := `{"id":1,"status":"pending","target_url":"https://ci.example/1","description":"canary 0/2",
		"url":"http://forge.test/api/v1/repos/fleet/addons/statuses/` + sha + `","context":"addonflow/hello",
		"creator":{"id":1,"login":"addonflow","full_name":""},
		"created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z"}`
	sameJSON(t, got, one)
	_, got = ask(f, http.MethodGet, "/api/v1/repos/fleet/addons/statuses/"+sha, "")
	sameJSON(t, got, "["+one+"]")
	_, got = ask(f, http.MethodGet, "/api/v1/repos/fleet/addons/commits/"+sha+"/status", "")
	sameJSON(t, got, `{"state":"pending","sha":"`+sha+`","total_count":1,"statuses":[`+one+`],
		"commit_url":"http://forge.test/api/v1/repos/fleet/addons/commits/`+sha+`",
		"url":"http://forge.test/api/v1/repos/fleet/addons/commits/`+sha+`/status"}`)
}

func TestGitHubShapes(t *testing.T) {
	f := fixed("fleet/addons")
	code, got := ask(f, http.MethodPost, "/api/v3/repos/fleet/addons/statuses/"+sha,
		`{"state":"success","description":"24 of 24","context":"addonflow/hello"}`)
	if code != http.StatusCreated {
		t.Fatalf("post: %d %s", code, got)
	}
	one := `{"url":"http://forge.test/api/v3/repos/fleet/addons/statuses/` + sha + `","id":1,"node_id":"SC_1",
		"state":"success","description":"24 of 24","target_url":null,"context":"addonflow/hello",
		"created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z",
		"creator":{"id":1,"login":"addonflow[bot]","type":"Bot"}}`
	sameJSON(t, got, one)
	_, got = ask(f, http.MethodGet, "/api/v3/repos/fleet/addons/commits/"+sha+"/statuses", "")
	sameJSON(t, got, "["+one+"]")
}

func TestRefusals(t *testing.T) {
	long := strings.Repeat("ä", 141)
	fits := strings.Repeat("ä", 140)
	cases := map[string]struct {
		reason string
		path   string
		body   string
		header []string
		code   int
		says   string
	}{
		"UnknownRepository": {
			reason: "A repository that does not exist is 404 in both APIs.",
			path:   "/api/v1/repos/fleet/other/statuses/" + sha, code: 404, says: "Not Found",
		},
		"GiteaNoToken": {
			reason: "Without the token Gitea answers 401.",
			path:   "/api/v1/repos/fleet/addons/statuses/" + sha, header: []string{"Authorization", "token wrong"},
			code: 401, says: "user does not exist",
		},
		"GitHubNoToken": {
			reason: "Without the token GitHub answers 401.",
			path:   "/repos/fleet/addons/statuses/" + sha, header: []string{"Authorization", ""},
			code: 401, says: "Bad credentials",
		},
		"GiteaShortSHA": {
			reason: "Gitea answers 500 for a commit that it does not have.",
			path:   "/api/v1/repos/fleet/addons/statuses/6dcb09b5", body: `{"state":"success","context":"a"}`, code: 500,
		},
		"GitHubShortSHA": {
			reason: "GitHub answers 422 for a commit that it does not have.",
			path:   "/repos/fleet/addons/statuses/6dcb09b5", body: `{"state":"success","context":"a"}`,
			code: 422, says: "No commit found for SHA: 6dcb09b5",
		},
		"GiteaEmptyContext": {
			reason: "A status without a context is refused.",
			path:   "/api/v1/repos/fleet/addons/statuses/" + sha, body: `{"state":"success"}`, code: 422, says: "Required",
		},
		"GitHubLongDescription": {
			reason: "GitHub counts characters, not bytes, and refuses the 141st.",
			path:   "/repos/fleet/addons/statuses/" + sha, body: `{"state":"success","context":"a","description":"` + long + `"}`,
			code: 422, says: "too long",
		},
		"GitHubFullDescription": {
			reason: "140 characters of two bytes are fine.",
			path:   "/repos/fleet/addons/statuses/" + sha, body: `{"state":"success","context":"a","description":"` + fits + `"}`,
			code: 201,
		},
		"GiteaLongDescription": {
			reason: "Gitea stores texts of any length.",
			path:   "/api/v1/repos/fleet/addons/statuses/" + sha, body: `{"state":"success","context":"a","description":"` + long + `"}`,
			code: 201,
		},
		"UnknownState": {
			reason: "GitHub knows four states.",
			path:   "/repos/fleet/addons/statuses/" + sha, body: `{"state":"running","context":"a"}`,
			code: 422, says: "State is not included",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixed("fleet/addons")
			f.RequireToken("opensesame")
			header := c.header
			if header == nil {
				header = []string{"Authorization", "Bearer opensesame"}
			}
			code, body := ask(f, http.MethodPost, c.path, c.body, header...)
			if code != c.code || !strings.Contains(body, c.says) {
				t.Errorf("%s\ngot %d %s, want %d %q", c.reason, code, body, c.code, c.says)
			}
		})
	}
}

func TestGitHubStatusLimit(t *testing.T) {
	f := fixed()
	path := "/repos/fleet/addons/statuses/" + sha
	for range 1000 {
		if code, body := ask(f, http.MethodPost, path, `{"state":"pending","context":"a"}`); code != http.StatusCreated {
			t.Fatalf("post: %d %s", code, body)
		}
	}
	code, body := ask(f, http.MethodPost, path, `{"state":"success","context":"A"}`)
	if code != http.StatusUnprocessableEntity || !strings.Contains(body, "maximum number of statuses") {
		t.Errorf("the 1001st of a context (in any case): %d %s", code, body)
	}
	if code, _ := ask(f, http.MethodPost, path, `{"state":"success","context":"b"}`); code != http.StatusCreated {
		t.Errorf("another context: %d", code)
	}
}

func TestFaults(t *testing.T) {
	cases := map[string]struct {
		reason string
		fault  forge.Fault
		code   int
		header string
		value  string
		stored int
	}{
		"InternalError":   {"500, and nothing stored.", forge.Fault{Kind: forge.InternalError}, 500, "", "", 0},
		"AcceptedThen500": {"500 after the fact.", forge.Fault{Kind: forge.AcceptedThenError}, 500, "", "", 1},
		"TooMany":         {"429 names the wait.", forge.Fault{Kind: forge.TooManyRequests, RetryAfter: 7 * time.Second}, 429, "Retry-After", "7", 0},
		"Secondary":       {"GitHub's secondary limit is a 403.", forge.Fault{Kind: forge.SecondaryLimit, RetryAfter: time.Minute}, 403, "Retry-After", "60", 0},
		"Primary":         {"GitHub's hourly limit is a 403.", forge.Fault{Kind: forge.PrimaryLimit, RetryAfter: time.Minute}, 403, "X-Ratelimit-Remaining", "0", 0},
		"Moved":           {"A renamed repository redirects.", forge.Fault{Kind: forge.Moved}, 301, "", "", 0},
		"PostsOnly":       {"Reads can be spared.", forge.Fault{Kind: forge.InternalError, PostsOnly: true}, 500, "", "", 0},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			f := fixed()
			c.fault.Times = 1
			f.Set(c.fault)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/repos/fleet/addons/statuses/"+sha, strings.NewReader(`{"state":"pending","context":"a"}`))
			w := httptest.NewRecorder()
			f.ServeHTTP(w, r)
			if w.Code != c.code || w.Header().Get(c.header) != c.value {
				t.Errorf("%s: got %d, %s %q", c.reason, w.Code, c.header, w.Header().Get(c.header))
			}
			if got := len(f.Statuses(sha)); got != c.stored {
				t.Errorf("%s: %d stored, want %d", c.reason, got, c.stored)
			}
			if code, _ := ask(f, http.MethodPost, "/repos/fleet/addons/statuses/"+sha, `{"state":"success","context":"a"}`); code != http.StatusCreated {
				t.Errorf("used up, but still %d", code)
			}
		})
	}
}

func TestDownUpAndHang(t *testing.T) {
	f := fixed()
	url, err := f.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	post := func(ctx context.Context) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/repos/fleet/addons/statuses/"+sha, strings.NewReader(`{"state":"pending","context":"a"}`))
		if err != nil {
			return 0, err
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode, nil
	}
	if err := f.Down(); err != nil {
		t.Fatal(err)
	}
	if _, err := post(t.Context()); err == nil {
		t.Error("a forge that is down answered")
	}
	if err := f.Up(); err != nil {
		t.Fatal(err)
	}
	if f.URL() != url {
		t.Errorf("the address changed to %s", f.URL())
	}
	if code, err := post(t.Context()); err != nil || code != http.StatusCreated {
		t.Errorf("back again: %d, %v", code, err)
	}
	f.Set(forge.Fault{Kind: forge.Hang})
	answer := make(chan error, 1)
	go func() {
		_, err := post(t.Context())
		answer <- err
	}()
	f.Set(forge.Fault{})
	if err := <-answer; err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("a released request ended with %v", err)
	}
}

func TestWaitFor(t *testing.T) {
	f := fixed()
	done := make(chan error, 1)
	go func() {
		done <- f.WaitFor(t.Context(), func(log []forge.Entry) bool { return len(log) == 2 })
	}()
	for _, state := range []string{"pending", "success"} {
		ask(f, http.MethodPost, "/repos/fleet/addons/statuses/"+sha, `{"state":"`+state+`","context":"a"}`)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	latest, ok := f.Latest(sha, "a")
	if !ok || latest.State != "success" {
		t.Errorf("got %v %v", latest, ok)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.WaitFor(ctx, func([]forge.Entry) bool { return false }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLogPage(t *testing.T) {
	f := fixed()
	ask(f, http.MethodPost, "/repos/fleet/addons/statuses/"+sha, `{"state":"pending","context":"a","description":"<script>"}`)
	if _, body := ask(f, http.MethodGet, "/log", ""); !strings.Contains(body, "&lt;script&gt;") || strings.Contains(body, "<script>") {
		t.Errorf("the page does not escape: %s", body)
	}
	var entries []forge.Entry
	_, body := ask(f, http.MethodGet, "/log.json", "")
	if err := json.Unmarshal([]byte(body), &entries); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Log(), entries); diff != "" {
		t.Errorf("-log +page:\n%s", diff)
	}
}

func TestViolations(t *testing.T) {
	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	cases := map[string]struct {
		reason string
		log    []forge.Entry
		want   []string
	}{
		"Good": {
			reason: "Pending, progress, failure, and success after it.",
			log: []forge.Entry{
				{Time: at(0), State: "pending", Description: "0/2"},
				{Time: at(30), State: "pending", Description: "1/2"},
				{Time: at(31), State: "failure", Description: "eu-1"},
				{Time: at(31), State: "success", Description: "ok"},
			},
		},
		"EqualNeighbours": {
			reason: "Nothing is said twice.",
			log:    []forge.Entry{{Time: at(0), State: "pending"}, {Time: at(60), Sequence: 2, State: "pending"}},
			want:   []string{"#2   : equal to the one before"},
		},
		"SupersededTwice": {
			reason: "One writer supersedes a commit, once.",
			log:    []forge.Entry{{State: "error", Description: "superseded by 1"}, {Sequence: 2, State: "error", Description: "superseded by 2"}},
			want:   []string{"#2   : superseded twice"},
		},
		"TooFast": {
			reason: "Progress is paced.",
			log:    []forge.Entry{{Time: at(0), State: "pending"}, {Time: at(29), Sequence: 2, State: "pending", Description: "1/2"}},
			want:   []string{"#2   : progress after 29s"},
		},
		"Reopened": {
			reason: "A change of state is not.",
			log:    []forge.Entry{{Time: at(0), State: "success"}, {Time: at(1), Sequence: 2, State: "pending", Description: "1 to leave"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, forge.Violations(c.log)); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}
