package commitstatus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/time/rate"

	"github.com/addonflow/addonflow/commitstatus"
	dialpolicy "github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/test/forge"
)

// The answers of this file were written by hand from the documentation of each API. The statuses of Gitea are held to a
// real server by test/gitea. No other real server took part.

const (
	testSHA   = "6dcb09b5b57875f334f61aebed695e2e4193db5e"
	testToken = "opensesame-hunter2"
)

// now is the time of every test.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testStatus is what the tests post.
func testStatus() commitstatus.Status {
	return commitstatus.Status{
		SHA: testSHA, Context: "addonflow/hello", State: commitstatus.Pending,
		Description: "canary 1/2, soaking until 14:32 UTC", TargetURL: "https://ci.example/1",
	}
}

// dial returns the client for a forge at the address.
func dial(t *testing.T, provider, address string) commitstatus.Forge {
	t.Helper()
	client, err := commitstatus.New(commitstatus.Config{
		Provider: provider, Address: address, Token: testToken,
		Clock: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// oneAnswer serves one answer, and keeps the last request.
type oneAnswer struct {
	code    int
	header  map[string]string
	body    string
	request *http.Request
	sent    string
}

func (r *oneAnswer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.request, r.sent = request, string(body)
	w.Header()["Date"] = nil
	for key, value := range r.header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(r.code)
	_, _ = io.WriteString(w, r.body)
}

// giteaCreated and githubCreated are answers to testStatus, as documented.
const (
	giteaCreated = `{"id":812,"status":"pending","target_url":"https://ci.example/1",
		"description":"canary 1/2, soaking until 14:32 UTC",
		"url":"https://gitea.example/api/v1/repos/fleet/addons/statuses/` + testSHA + `",
		"context":"addonflow/hello","creator":{"id":7,"login":"addonflow","full_name":"","email":"addonflow@noreply.example",
		"avatar_url":"https://gitea.example/avatars/1","language":"","is_admin":false,"username":"addonflow"},
		"created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z"}`
	githubCreated = `{"url":"https://api.github.com/repos/fleet/addons/statuses/` + testSHA + `",
		"avatar_url":"https://avatars.example/u/1?v=4","id":31415926535,"node_id":"SC_kwDOAAAAAc8AAAAHUQ",
		"state":"pending","description":"canary 1/2, soaking until 14:32 UTC","target_url":"https://ci.example/1",
		"context":"addonflow/hello","created_at":"2026-03-01T12:00:00Z","updated_at":"2026-03-01T12:00:00Z",
		"creator":{"login":"addonflow[bot]","id":1,"type":"Bot","site_admin":false}}`
	sentStatus = `{"state":"pending","target_url":"https://ci.example/1","description":"canary 1/2, soaking until 14:32 UTC","context":"addonflow/hello"}`
)

func TestPostAsDocumented(t *testing.T) {
	cases := map[string]struct {
		reason, provider, answer, path, authorization string
	}{
		"Gitea":   {"Gitea's API.", "gitea", giteaCreated, "/api/v1/repos/fleet/addons/statuses/" + testSHA, "token " + testToken},
		"Forgejo": {"Forgejo's is the same.", "forgejo", giteaCreated, "/api/v1/repos/fleet/addons/statuses/" + testSHA, "token " + testToken},
		"GitHub":  {"Enterprise Server's API.", "github", githubCreated, "/api/v3/repos/fleet/addons/statuses/" + testSHA, "Bearer " + testToken},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			served := &oneAnswer{code: http.StatusCreated, body: c.answer}
			server := httptest.NewServer(served)
			t.Cleanup(server.Close)
			if err := dial(t, c.provider, server.URL+"/fleet/addons").Post(t.Context(), testStatus()); err != nil {
				t.Fatal(err)
			}
			got := []string{served.request.Method, served.request.URL.Path, served.request.Header.Get("Authorization"), served.sent}
			if diff := cmp.Diff([]string{http.MethodPost, c.path, c.authorization, sentStatus}, got); diff != "" {
				t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
			}
		})
	}
}

func TestRefusalsAreClassified(t *testing.T) {
	cases := map[string]struct {
		reason string
		served oneAnswer
		want   commitstatus.DeliveryError
	}{
		"Token": {
			"The token must be replaced; try again in a minute.",
			oneAnswer{code: 401, body: `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest","status":"401"}`},
			commitstatus.DeliveryError{Reason: "HOST does not accept the token (401): Bad credentials", Permanent: true, RetryAfter: time.Minute, Denied: commitstatus.TokenRefused},
		},
		"Scope": {
			"A token that may not write statuses.",
			oneAnswer{code: 403, body: `{"message":"Resource not accessible by personal access token"}`},
			commitstatus.DeliveryError{Reason: "HOST does not let the token write statuses (403): Resource not accessible by personal access token", Permanent: true, RetryAfter: time.Minute, Denied: commitstatus.PermissionMissing},
		},
		"Repository": {
			"Unknown, or hidden from the token.",
			oneAnswer{code: 404, body: `{"message":"Not Found"}`},
			commitstatus.DeliveryError{Reason: "HOST does not know the repository or the commit, or hides it from the token (404): Not Found", Permanent: true, RetryAfter: time.Minute},
		},
		"Moved": {
			"A redirect is not followed: the POST would become a GET.",
			oneAnswer{code: 301, header: map[string]string{"Location": "/elsewhere"}, body: `{"message":"Moved Permanently"}`},
			commitstatus.DeliveryError{Reason: "HOST says that the repository has moved (301), the address must be changed: Moved Permanently", Permanent: true, RetryAfter: time.Minute},
		},
		"Login": {
			"A proxy sends every request to its login page.",
			oneAnswer{code: 302, header: map[string]string{"Location": "https://sso.example/login"}},
			commitstatus.DeliveryError{Reason: "HOST redirects (302): the repository has moved, or a login page is in front of it; check the address", Permanent: true, RetryAfter: time.Minute},
		},
		"UnknownCommit": {
			"GitHub's answer for a commit that it lacks is final.",
			oneAnswer{code: 422, body: `{"message":"No commit found for SHA: ` + testSHA + `","documentation_url":"https://docs.github.com/rest","status":"422"}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (422): No commit found for SHA: " + testSHA, Permanent: true},
		},
		"TooLong": {
			"GitHub's limit of 140 characters.",
			oneAnswer{code: 422, body: `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","field":"description","message":"description is too long (maximum is 140 characters)"}],"documentation_url":"https://docs.github.com/rest/commits/statuses#create-a-commit-status"}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (422): description is too long (maximum is 140 characters)", Permanent: true},
		},
		"StatusLimitText": {
			"GitHub's limit of 1000, errors as a text.",
			oneAnswer{code: 422, body: `{"message":"Validation Failed","errors":"Validation failed: This SHA and context has reached the maximum number of statuses.","status":"422"}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (422): Validation failed: This SHA and context has reached the maximum number of statuses.", Permanent: true},
		},
		"StatusLimitList": {
			"Errors as a list of texts.",
			oneAnswer{code: 422, body: `{"message":"Validation Failed","errors":["too many"]}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (422): too many", Permanent: true},
		},
		"StatusLimitObject": {
			"Errors as a list of objects.",
			oneAnswer{code: 422, body: `{"message":"Validation Failed","errors":[{"resource":"Status","code":"custom","message":"too many"}]}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (422): too many", Permanent: true},
		},
		"TooMany": {
			"429 with seconds.",
			oneAnswer{code: 429, header: map[string]string{"Retry-After": "17"}},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: 17 * time.Second, Everyone: true},
		},
		"TooManyDate": {
			"429 with a date, read by the forge's own clock.",
			oneAnswer{code: 429, header: map[string]string{"Date": "Sun, 01 Mar 2026 13:00:00 GMT", "Retry-After": "Sun, 01 Mar 2026 13:00:45 GMT"}},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: 45 * time.Second, Everyone: true},
		},
		"TooManySilent": {
			"429 without a time: a minute.",
			oneAnswer{code: 429, body: "slow down"},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: time.Minute, Everyone: true},
		},
		"Secondary": {
			"GitHub's secondary limit is a 403 that goes away.",
			oneAnswer{code: 403, header: map[string]string{"Retry-After": "60"}, body: `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}`},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: time.Minute, Everyone: true},
		},
		"SecondaryByText": {
			"It may come without headers.",
			oneAnswer{code: 403, body: `{"message":"You have exceeded a secondary rate limit."}`},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: time.Minute, Everyone: true},
		},
		"Primary": {
			"GitHub's hourly limit names the second at which it ends.",
			oneAnswer{code: 403, header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772367000"}, body: `{"message":"API rate limit exceeded for user ID 1."}`},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: 10 * time.Minute, Everyone: true},
		},
		"Absurd": {
			"No forge keeps us away for more than an hour.",
			oneAnswer{code: 429, header: map[string]string{"Retry-After": "999999999"}},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: time.Hour, Everyone: true},
		},
		"AbsurdInMoreThan32Bits": {
			"A longer wait is no shorter one.",
			oneAnswer{code: 429, header: map[string]string{"Retry-After": "4294967296"}},
			commitstatus.DeliveryError{Reason: "HOST limits the rate of requests", RetryAfter: time.Hour, Everyone: true},
		},
		"Internal": {
			"Gitea's answer to anything, an unknown commit included.",
			oneAnswer{code: 500, body: `{"message":"","url":"https://gitea.example/api/swagger"}`},
			commitstatus.DeliveryError{Reason: "HOST has an internal error (500)", Uncertain: true},
		},
		"Unavailable": {
			"A forge under maintenance may say for how long.",
			oneAnswer{code: 503, header: map[string]string{"Retry-After": "120"}, body: "<html>maintenance</html>"},
			commitstatus.DeliveryError{Reason: "HOST has an internal error (503)", RetryAfter: 2 * time.Minute, Uncertain: true},
		},
		"Portal": {
			"A page where the forge should be.",
			oneAnswer{code: 200, body: "<html>Please sign in</html>"},
			commitstatus.DeliveryError{Reason: "HOST did not answer like a forge (200); check the address, and whether a login page is in front of the forge", Uncertain: true},
		},
		"NotJSON": {
			"The right code, and nonsense.",
			oneAnswer{code: 201, body: "<html>"},
			commitstatus.DeliveryError{Reason: "HOST did not answer like a forge; check the address, and whether a login page is in front of the forge", Uncertain: true},
		},
		"NoBody": {
			"The right code, and nothing.",
			oneAnswer{code: 201},
			commitstatus.DeliveryError{Reason: "the forge did not confirm the status", Uncertain: true},
		},
		"OtherStatus": {
			"The right code, and another status.",
			oneAnswer{code: 201, body: `{"id":1,"status":"success","state":"success","context":"addonflow/hello"}`},
			commitstatus.DeliveryError{Reason: "the forge did not confirm the status", Uncertain: true},
		},
		"Huge": {
			"Answers are read to a limit.",
			oneAnswer{code: 201, body: `{"description":"` + strings.Repeat("a", 1<<20) + `"}`},
			commitstatus.DeliveryError{Reason: "HOST sent an answer that cannot be read", Uncertain: true},
		},
		"Echo": {
			"A forge that repeats the token does not get it into a condition.",
			oneAnswer{code: 400, body: `{"message":"bad header token ` + testToken + `\nreally"}`},
			commitstatus.DeliveryError{Reason: "HOST refuses the status (400): bad header token [redacted] really", Permanent: true},
		},
	}
	for name, c := range cases {
		for _, provider := range []string{"gitea", "github"} {
			t.Run(name+"/"+provider, func(t *testing.T) {
				server := httptest.NewServer(&c.served)
				t.Cleanup(server.Close)
				err := dial(t, provider, server.URL+"/fleet/addons").Post(t.Context(), testStatus())
				var got *commitstatus.DeliveryError
				if !errors.As(err, &got) {
					t.Fatalf("%s: got %v", c.reason, err)
				}
				want := c.want
				want.Reason = strings.ReplaceAll(want.Reason, "HOST", strings.TrimPrefix(server.URL, "http://"))
				if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(commitstatus.DeliveryError{})); diff != "" {
					t.Errorf("%s\n-want +got:\n%s", c.reason, diff)
				}
			})
		}
	}
}

// TestStatusesOfTheForgeAreRedacted: a status that another client wrote may be shown in a
// condition.
func TestStatusesOfTheForgeAreRedacted(t *testing.T) {
	const stored = `{"id":1,"status":"success","state":"success","context":"a","description":"you sent token ` + testToken + `"}`
	for _, provider := range []string{"gitea", "github"} {
		server := httptest.NewServer(&oneAnswer{code: http.StatusOK, body: `{"statuses":[` + stored + `]}`})
		t.Cleanup(server.Close)
		got, ok, err := commitstatus.Latest(t.Context(), dial(t, provider, server.URL+"/fleet/addons"), testSHA, "a")
		if err != nil || !ok || got.State != commitstatus.Success || strings.Contains(got.Description, testToken) {
			t.Errorf("%s: got %+v, %v, %v", provider, got, ok, err)
		}
	}
}

// permanent reports whether the same request would fail again.
func permanent(err error) bool {
	delivery, ok := errors.AsType[*commitstatus.DeliveryError](err)
	return ok && delivery.Permanent
}

// thief counts requests that reach a host other than that of the address.
type thief struct{ hits int }

func (s *thief) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.hits++
	w.WriteHeader(http.StatusOK)
}

func TestNoRedirectIsFollowed(t *testing.T) {
	other := &thief{}
	elsewhere := httptest.NewServer(other)
	t.Cleanup(elsewhere.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		served := &oneAnswer{code: code, header: map[string]string{"Location": elsewhere.URL + "/api/v1/repos/fleet/addons"}}
		server := httptest.NewServer(served)
		t.Cleanup(server.Close)
		client := dial(t, "gitea", server.URL+"/fleet/addons")
		_, _, errLatest := commitstatus.Latest(t.Context(), client, testSHA, "a")
		for _, err := range []error{client.Post(t.Context(), testStatus()), errLatest} {
			if !permanent(err) {
				t.Errorf("%d: got %v", code, err)
			}
		}
	}
	if other.hits > 0 {
		t.Errorf("%d requests went elsewhere", other.hits)
	}
}

func TestUnreachableNamesTheHostOnly(t *testing.T) {
	f := forge.New()
	if _, err := f.Start(); err != nil {
		t.Fatal(err)
	}
	client := dial(t, "gitea", f.Address("fleet/addons"))
	if err := f.Down(); err != nil {
		t.Fatal(err)
	}
	err := client.Post(t.Context(), testStatus())
	var got *commitstatus.DeliveryError
	if !errors.As(err, &got) || got.Permanent || !got.Everyone || !got.Uncertain {
		t.Fatalf("got %#v", err)
	}
	host := strings.TrimPrefix(f.URL(), "http://")
	if !strings.HasPrefix(got.Reason, "cannot reach "+host) || strings.Contains(got.Reason, "statuses") {
		t.Errorf("got %q", got.Reason)
	}
}

func TestHangingForgeTimesOut(t *testing.T) {
	f := forge.New()
	if _, err := f.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	f.Set(forge.Fault{Kind: forge.Hang})
	client, err := commitstatus.New(commitstatus.Config{
		Provider: "github", Address: f.Address("fleet/addons"), Token: testToken,
		HTTPClient: &http.Client{Timeout: 50 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = client.Post(t.Context(), testStatus())
	if got := (*commitstatus.DeliveryError)(nil); !errors.As(err, &got) || !strings.HasSuffix(got.Reason, "no answer in time") {
		t.Errorf("got %v", err)
	}
}

func TestLatestPagesUntilFound(t *testing.T) {
	for provider, others := range map[string]int{"gitea": 120, "github": 350} {
		t.Run(provider, func(t *testing.T) {
			f := forge.New("fleet/addons")
			f.RequireToken(testToken)
			if _, err := f.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			client := dial(t, provider, f.Address("fleet/addons"))
			if _, ok, err := commitstatus.Latest(t.Context(), client, testSHA, "addonflow/hello"); ok || err != nil {
				t.Fatalf("in an empty forge: %v, %v", ok, err)
			}
			status := testStatus()
			for _, state := range []commitstatus.State{commitstatus.Pending, commitstatus.Failure} {
				status.State = state
				if err := client.Post(t.Context(), status); err != nil {
					t.Fatal(err)
				}
			}
			other := testStatus()
			for i := range others {
				other.Context = commitstatus.ContextName("ci", strings.Repeat("x", i%90+1), string(rune('a'+i/90)))
				if err := client.Post(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 900 { // more than a forge lists of one commit in ten pages
				other.Description = fmt.Sprint(i)
				if err := client.Post(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			got, ok, err := commitstatus.Latest(t.Context(), client, testSHA, "addonflow/hello")
			if err != nil || !ok {
				t.Fatalf("got %v, %v", ok, err)
			}
			if diff := cmp.Diff(status, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, ok, err := commitstatus.Latest(t.Context(), client, testSHA, "never/posted"); ok || err != nil {
				t.Errorf("unknown context: %v, %v", ok, err)
			}
		})
	}
}

// TestProviders_AreThoseOfTheAPI: a provider without a row here would be accepted and not work,
// and one without its name in the enum could not be used.
func TestProviders_AreThoseOfTheAPI(t *testing.T) {
	crd, err := os.ReadFile("../manifests/crds/addonflow.io_addonsources.yaml")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`(?s)Provider is the forge's API\.\s+enum:\s+(.*?)\s+type:`).FindSubmatch(crd)
	if enum == nil {
		t.Fatal("the CRD has no enum of providers")
	}
	names := strings.Fields(strings.ReplaceAll(string(enum[1]), "- ", ""))
	slices.Sort(names)
	if diff := cmp.Diff(commitstatus.Providers(), names); diff != "" {
		t.Errorf("(-commitstatus +CRD)\n%s", diff)
	}
}

func TestNewRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		config commitstatus.Config
		want   string
	}{
		"Provider": {"Forges that are not built are errors.", commitstatus.Config{Provider: "gerrit", Address: "https://x/a/b", Token: "t"}, `cannot report commit statuses: provider "gerrit" is not one of ` + strings.Join(commitstatus.Providers(), ", ")},
		"Checks":   {"Only Apps write check runs.", commitstatus.Config{Provider: "githubchecks", Address: "https://github.com/a/b", Token: "t"}, `cannot report commit statuses: provider "githubchecks" needs a GitHub App`},
		"NoToken":  {"Statuses cannot be written without one.", commitstatus.Config{Provider: "gitea", Address: "https://x/a/b", Token: " \n"}, "cannot report commit statuses: the token is empty"},
		"BadToken": {"A token with a line break would be another header.", commitstatus.Config{Provider: "gitea", Address: "https://x/a/b", Token: "hunter2\r\nX: y"}, "cannot report commit statuses: the token is not one printable word"},
		"Address":  {"The address is checked.", commitstatus.Config{Provider: "github", Address: "https://me:hunter2@x/a/b", Token: "t"}, "cannot use the address: it contains user information; the token belongs into the Secret"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := commitstatus.New(c.config)
			if err == nil || err.Error() != c.want {
				t.Errorf("%s\ngot  %v\nwant %s", c.reason, err, c.want)
			}
		})
	}
}

func TestLimiterPacesRequests(t *testing.T) {
	served := &oneAnswer{code: http.StatusCreated, body: giteaCreated}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	client, err := commitstatus.New(commitstatus.Config{
		Provider: "gitea", Address: server.URL + "/fleet/addons", Token: testToken,
		Limiter: rate.NewLimiter(rate.Every(time.Hour), 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Post(t.Context(), testStatus()); err != nil {
		t.Fatal(err)
	}
	// The second request would have to wait longer than it may take.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	served.request = nil
	err = client.Post(ctx, testStatus())
	var got *commitstatus.DeliveryError
	if !errors.As(err, &got) || got.Permanent || got.Uncertain || !got.Everyone || served.request != nil {
		t.Errorf("got %#v", err)
	}
}

func TestInvalidStatusIsNotSent(t *testing.T) {
	served := &oneAnswer{code: http.StatusCreated, body: giteaCreated}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	for _, provider := range []string{"gitea", "github"} {
		status := testStatus()
		status.TargetURL = "javascript:alert(1)"
		err := dial(t, provider, server.URL+"/fleet/addons").Post(t.Context(), status)
		if !permanent(err) || served.request != nil {
			t.Errorf("%s: got %v", provider, err)
		}
	}
}

// TestForgeOnThisMachineIsNotCalled: a tenant names the address, and must not reach what only the operator can reach.
func TestForgeOnThisMachineIsNotCalled(t *testing.T) {
	served := &oneAnswer{code: http.StatusCreated, body: giteaCreated}
	server := httptest.NewServer(served)
	t.Cleanup(server.Close)
	for _, allow := range []bool{false, true} {
		transport := commitstatus.NewHTTPClient(dialpolicy.Policy{AllowLoopback: allow})
		t.Cleanup(transport.CloseIdleConnections)
		client, err := commitstatus.New(commitstatus.Config{Provider: "gitea", Address: server.URL + "/fleet/addons", Token: testToken, HTTPClient: transport})
		if err != nil {
			t.Fatal(err)
		}
		err = client.Post(t.Context(), testStatus())
		if (err == nil) != allow || (served.request != nil) != allow {
			t.Errorf("allowed %t: %v", allow, err)
		}
		if err != nil && !strings.HasSuffix(err.Error(), ": it leads to a loopback or link-local address, or to a metadata service of a cloud; the operator's flag --git-allow-loopback allows it") {
			t.Errorf("got %v", err)
		}
	}
}

// TestForgeOnThisMachineIsNotCalledThroughAProxy: the proxy of the environment dials the address, so no dialler of the
// operator sees it.
func TestForgeOnThisMachineIsNotCalledThroughAProxy(t *testing.T) {
	errDialled := errors.New("not dialled in a test")
	for _, c := range []struct {
		address string
		allow   bool
		want    []string
	}{
		{address: "https://git.example.com/fleet/addons", want: []string{testProxy}},
		{address: "https://169.254.169.254/fleet/addons"},
		{address: "https://2852039166/fleet/addons"},
		{address: "https://metadata.localhost/fleet/addons"},
		{address: "https://169.254.169.254/fleet/addons", allow: true, want: []string{testProxy}},
	} {
		var dialled []string
		transport := commitstatus.NewHTTPClient(dialpolicy.Policy{AllowLoopback: c.allow})
		connections, ok := transport.Transport.(*http.Transport)
		if !ok {
			t.Fatal("the transport of the client has another type")
		}
		connections.DialContext = func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return nil, errDialled
		}
		client, err := commitstatus.New(commitstatus.Config{Provider: "gitea", Address: c.address, Token: testToken, HTTPClient: transport})
		if err != nil {
			t.Fatal(err)
		}
		err = client.Post(t.Context(), testStatus())
		if !slices.Equal(dialled, c.want) {
			t.Errorf("%s, allowed %t: dialled %v, want %v", c.address, c.allow, dialled, c.want)
		}
		if (len(c.want) == 0) != errors.Is(err, dialpolicy.ErrLocal) {
			t.Errorf("%s, allowed %t: got %v", c.address, c.allow, err)
		}
	}
}
