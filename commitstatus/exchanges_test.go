package commitstatus_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/commitstatus"
)

// The exchanges of this file were written by hand from the documentation of each API. No real server took part.

// exchange is a request as the documentation asks for it, and the answer that it describes.
type exchange struct {
	request, authorization, body string
	code                         int
	header                       map[string]string
	answer                       string
}

// scripted serves exchanges in their order, and compares each request.
func scripted(t *testing.T, exchanges ...exchange) string {
	t.Helper()
	next := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if next == len(exchanges) {
			t.Errorf("unexpected %s %s", r.Method, r.RequestURI)
			w.WriteHeader(http.StatusTeapot)
			return
		}
		e := exchanges[next]
		next++
		sent, _ := io.ReadAll(r.Body)
		var want, got any
		_ = json.Unmarshal([]byte(e.body), &want)
		_ = json.Unmarshal(sent, &got)
		if diff := cmp.Diff([]any{e.request, e.authorization, want}, []any{r.Method + " " + r.RequestURI, authorizationOf(r), got}); diff != "" {
			t.Errorf("exchange %d\n-want +got:\n%s", next, diff)
		}
		for key, value := range e.header {
			w.Header().Set(key, value)
		}
		w.WriteHeader(e.code)
		_, _ = io.WriteString(w, e.answer)
	}))
	t.Cleanup(func() {
		server.Close()
		if next < len(exchanges) {
			t.Errorf("%d exchanges did not take place", len(exchanges)-next)
		}
	})
	return server.URL
}

// authorizationOf is the Authorization header of a request, or the name and value of the forge's own header.
func authorizationOf(r *http.Request) string {
	for _, provider := range commitstatus.Providers() {
		if field, _ := commitstatus.Header(provider, ""); field != "Authorization" && r.Header.Get(field) != "" {
			return field + ": " + r.Header.Get(field)
		}
	}
	return r.Header.Get("Authorization")
}

// forgeCase is one forge with its exchanges.
type forgeCase struct {
	provider, path, token string
	// base of the commit in the API, and header of the token.
	statuses, authorization string
}

// documentedForge is a forge with post and latest, and the answer to latest if there is none, as documented.
type documentedForge struct {
	forgeCase
	post, latest, none exchange
}

const (
	bearerHeader = "Bearer " + testToken
	basicHeader  = "Basic Om9wZW5zZXNhbWUtaHVudGVyMg==" // ":opensesame-hunter2"
)

func (c forgeCase) dial(t *testing.T, url string) commitstatus.Forge {
	t.Helper()
	forge, err := commitstatus.New(commitstatus.Config{
		Provider: c.provider, Address: url + c.path, Token: commitstatus.Secret(c.token), Ref: "main", Clock: func() time.Time { return now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return forge
}

// forges are the forges that no test runs against a real server or the simulated one.
func forges() map[string]documentedForge {
	key := commitstatus.BitbucketKey(testStatus().Context)
	gitlab := forgeCase{"gitlab", "/team/infra/fleet.git", testToken, "/api/v4/projects/team%2Finfra%2Ffleet", bearerHeader}
	cloud := forgeCase{"bitbucket", "/team/fleet", testToken, "/2.0/repositories/team/fleet/commit/" + testSHA + "/statuses/build", bearerHeader}
	server := forgeCase{"bitbucketserver", "/scm/~jane/fleet.git", testToken, "/rest/api/latest/projects/~jane/repos/fleet/commits/" + testSHA + "/builds", bearerHeader}
	azure := forgeCase{"azuredevops", "/tfs/Main/My%20Fleet/_git/fleet", testToken, "/tfs/Main/My%20Fleet/_apis/git/repositories/fleet/commits/" + testSHA + "/statuses", basicHeader}
	build := `{"key":"` + key + `","state":"INPROGRESS","name":"addonflow/hello","url":"https://ci.example/1","description":"canary 1/2, soaking until 14:32 UTC"}`
	return map[string]documentedForge{
		"GitLab": {
			gitlab,
			exchange{
				"POST " + gitlab.statuses + "/statuses/" + testSHA, bearerHeader,
				`{"state":"pending","name":"addonflow/hello","ref":"main","target_url":"https://ci.example/1","description":"canary 1/2, soaking until 14:32 UTC"}`,
				http.StatusCreated, nil,
				`{"author":{"id":19,"username":"addonflow","state":"active"},"name":"addonflow/hello","sha":"` + testSHA + `","status":"pending","coverage":null,
				"description":"canary 1/2, soaking until 14:32 UTC","id":93,"target_url":"https://ci.example/1","ref":"main","started_at":null,"created_at":"2026-03-01T12:00:00.355Z","finished_at":null,"allow_failure":false}`,
			},
			exchange{
				"GET " + gitlab.statuses + "/repository/commits/" + testSHA + "/statuses?name=addonflow%2Fhello&per_page=100&ref=main", bearerHeader, "",
				http.StatusOK, nil,
				`[{"id":90,"status":"failed","name":"addonflow/hello","ref":"main","description":"old","target_url":null},
				{"id":93,"status":"pending","name":"addonflow/hello","ref":"main","description":"canary 1/2, soaking until 14:32 UTC","target_url":"https://ci.example/1"}]`,
			},
			exchange{code: http.StatusOK, answer: `[]`},
		},
		"BitbucketCloud": {
			cloud,
			exchange{
				"POST " + cloud.statuses, bearerHeader, build, http.StatusCreated, nil,
				`{"type":"build","uuid":"{1}","key":"` + key + `","refname":null,"url":"https://ci.example/1","state":"INPROGRESS","name":"addonflow/hello",
				"description":"canary 1/2, soaking until 14:32 UTC","created_on":"2026-03-01T12:00:00+00:00","updated_on":"2026-03-01T12:00:00+00:00","links":{}}`,
			},
			exchange{"GET " + cloud.statuses + "/" + key, bearerHeader, "", http.StatusOK, nil, build},
			exchange{code: http.StatusNotFound, answer: `{"type":"error","error":{"message":"Resource not found","detail":"There is no API hosted at this URL."}}`},
		},
		"BitbucketDataCenter": {
			server,
			exchange{"POST " + server.statuses, bearerHeader, build, http.StatusNoContent, nil, ""},
			exchange{"GET " + server.statuses + "?key=" + key, bearerHeader, "", http.StatusOK, nil, build},
			exchange{code: http.StatusNotFound, answer: `{"errors":[{"context":null,"message":"The build status does not exist","exceptionName":"com.atlassian.bitbucket.build.status.NoSuchBuildStatusException"}]}`},
		},
		"AzureDevOps": {
			azure,
			exchange{
				"POST " + azure.statuses + "?api-version=7.0", basicHeader,
				`{"state":"pending","description":"canary 1/2, soaking until 14:32 UTC","targetUrl":"https://ci.example/1","context":{"genre":"addonflow","name":"hello"}}`,
				http.StatusCreated, nil,
				`{"id":1,"state":"pending","description":"canary 1/2, soaking until 14:32 UTC","context":{"name":"hello","genre":"addonflow"},"creationDate":"2026-03-01T12:00:00Z","createdBy":{"displayName":"AddonFlow"},"targetUrl":"https://ci.example/1"}`,
			},
			exchange{
				"GET " + azure.statuses + "?api-version=7.0&latestOnly=true", basicHeader, "", http.StatusOK, nil,
				`{"count":2,"value":[{"id":2,"state":"failed","context":{"name":"ci","genre":"build"}},
				{"id":1,"state":"pending","description":"canary 1/2, soaking until 14:32 UTC","targetUrl":"https://ci.example/1","context":{"name":"hello","genre":"addonflow"}}]}`,
			},
			exchange{code: http.StatusOK, answer: `{"count":0,"value":[]}`},
		},
	}
}

// TestEveryProviderHasExchanges: a new forge is tested with the requests and answers of its documentation.
func TestEveryProviderHasExchanges(t *testing.T) {
	// test/forge serves these; githubchecks has its own exchanges.
	tested := map[string]bool{"gitea": true, "forgejo": true, "github": true, "githubchecks": true}
	for _, c := range forges() {
		tested[c.provider] = true
	}
	for _, name := range commitstatus.Providers() {
		if !tested[name] {
			t.Errorf("forges() has no row of %s", name)
		}
	}
}

func TestForgesPostAndReadAsDocumented(t *testing.T) {
	for name, c := range forges() {
		t.Run(name, func(t *testing.T) {
			none := c.latest
			none.code, none.answer = c.none.code, c.none.answer
			client := c.dial(t, scripted(t, none, c.post, c.latest))
			if _, ok, err := commitstatus.Latest(t.Context(), client, testSHA, "addonflow/hello"); ok || err != nil {
				t.Fatalf("without a status: %v, %v", ok, err)
			}
			if err := client.Post(t.Context(), testStatus()); err != nil {
				t.Fatal(err)
			}
			got, ok, err := commitstatus.Latest(t.Context(), client, testSHA, "addonflow/hello")
			if err != nil || !ok {
				t.Fatalf("got %v, %v", ok, err)
			}
			if diff := cmp.Diff(testStatus(), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestEveryStateComesBackFromEveryForge: a state that a forge calls by another name would be taken for another client's.
func TestEveryStateComesBackFromEveryForge(t *testing.T) {
	for name, c := range forges() {
		for state, word := range map[commitstatus.State][]string{
			commitstatus.Pending: {"pending", "INPROGRESS"}, commitstatus.Success: {"success", "SUCCESSFUL", "succeeded"},
			commitstatus.Failure: {"failed", "FAILED", "failure"}, commitstatus.Error: {"canceled", "STOPPED", "CANCELLED", "error"},
		} {
			t.Run(name+"/"+string(state), func(t *testing.T) {
				served := &documentedServer{documentedForge: c}
				server := httptest.NewServer(served)
				t.Cleanup(server.Close)
				client, status := c.dial(t, server.URL), testStatus()
				status.State = state
				if err := client.Post(t.Context(), status); err != nil {
					t.Fatal(err)
				}
				if sent, ok := served.stored[0]["state"].(string); !ok || !slices.Contains(word, sent) {
					t.Errorf("sent %v, want one of %v", served.stored[0]["state"], word)
				}
				got, ok, err := commitstatus.Latest(t.Context(), client, testSHA, status.Context)
				if diff := cmp.Diff(status, got); diff != "" || !ok || err != nil {
					t.Errorf("%v, %v\n-want +got:\n%s", ok, err, diff)
				}
			})
		}
	}
}

func TestForgesRefuseAsDocumented(t *testing.T) {
	cases := map[string]struct {
		forge, reason string
		code          int
		header        map[string]string
		answer        string
		want          string
		denied        commitstatus.Denial
		permanent     bool
		uncertain     bool
		after         time.Duration
	}{
		"GitLabRepeatedState": {
			forge: "GitLab", reason: "A pending job does not become pending; which text it shows is read.",
			code: 400, answer: `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`,
			want: "refuses the status (400): Cannot transition status", uncertain: true,
		},
		"GitLabToken": {forge: "GitLab", reason: "Revoked or expired.", code: 401, answer: `{"message":"401 Unauthorized"}`, want: "does not accept the token (401)", denied: commitstatus.TokenRefused, permanent: true, after: time.Minute},
		"GitLabScope": {
			forge: "GitLab", reason: "A token with read_api only.", code: 403,
			answer: `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`,
			want:   "does not let the token write statuses (403): The request requires higher privileges", denied: commitstatus.PermissionMissing, permanent: true, after: time.Minute,
		},
		"GitLabRole":    {forge: "GitLab", reason: "A Reporter.", code: 403, answer: `{"message":"403 Forbidden"}`, want: "does not let the token write statuses (403): 403 Forbidden", denied: commitstatus.PermissionMissing, permanent: true, after: time.Minute},
		"GitLabCommit":  {forge: "GitLab", reason: "Unknown commit.", code: 404, answer: `{"message":"404 Commit Not Found"}`, want: "does not know the repository or the commit, or hides it from the token (404): 404 Commit Not Found", permanent: true, after: time.Minute},
		"GitLabTooLong": {forge: "GitLab", reason: "Errors by field.", code: 400, answer: `{"message":{"description":["is too long (maximum is 255 characters)"]}}`, want: "refuses the status (400): description is too long (maximum is 255 characters)", permanent: true},
		"GitLabRate":    {forge: "GitLab", reason: "Seconds.", code: 429, header: map[string]string{"Retry-After": "42"}, answer: "Retry later", want: "limits the rate of requests", after: 42 * time.Second},
		"CloudToken":    {forge: "BitbucketCloud", reason: "Revoked.", code: 401, answer: `{"type":"error","error":{"message":"Access token expired."}}`, want: "does not accept the token (401): Access token expired.", denied: commitstatus.TokenRefused, permanent: true, after: time.Minute},
		"CloudScope":    {forge: "BitbucketCloud", reason: "Without the scope.", code: 403, answer: `{"type":"error","error":{"message":"Your credentials lack one or more required privilege scopes.","detail":{"granted":["account"],"required":["repository"]}}}`, want: "does not let the token write statuses (403): Your credentials lack one or more required privilege scopes.", denied: commitstatus.PermissionMissing, permanent: true, after: time.Minute},
		"CloudKey":      {forge: "BitbucketCloud", reason: "A key of more than 40 characters.", code: 400, answer: `{"type":"error","error":{"fields":{"key":["Ensure this value has at most 40 characters (it has 41)."]},"message":"Bad request"}}`, want: "refuses the status (400): Bad request", permanent: true},
		"CloudRate":     {forge: "BitbucketCloud", reason: "No time is named.", code: 429, answer: `{"type":"error","error":{"message":"Rate limit for this resource has been exceeded"}}`, want: "limits the rate of requests", after: time.Minute},
		"CloudCommit":   {forge: "BitbucketCloud", reason: "Unknown commit.", code: 404, answer: `{"type":"error","error":{"message":"Commit not found"}}`, want: "does not know the repository or the commit, or hides it from the token (404): Commit not found", permanent: true, after: time.Minute},
		"ServerToken":   {forge: "BitbucketDataCenter", reason: "Revoked.", code: 401, answer: `{"errors":[{"context":null,"message":"Authentication failed. Please check your credentials and try again.","exceptionName":"com.atlassian.bitbucket.auth.IncorrectPasswordAuthenticationException"}]}`, want: "does not accept the token (401): Authentication failed.", denied: commitstatus.TokenRefused, permanent: true, after: time.Minute},
		"ServerPermission": {
			forge: "BitbucketDataCenter", reason: "An account that may not read the repository. The documented code is that of an unknown token.",
			code: 401, answer: `{"errors":[{"context":null,"message":"You are not permitted to access this resource","exceptionName":"com.atlassian.bitbucket.AuthorisationException"}]}`,
			want: "does not let the token write statuses (401): You are not permitted to access this resource", denied: commitstatus.PermissionMissing, permanent: true, after: time.Minute,
		},
		"ServerInvalid": {
			forge: "BitbucketDataCenter", reason: "The first problem that is named.",
			code: 400, answer: `{"errors":[{"context":"key","message":"build key was blank or longer than 255 characters","exceptionName":null}]}`,
			want: "refuses the status (400): build key was blank or longer than 255 characters", permanent: true,
		},
		"ServerRepository": {
			forge: "BitbucketDataCenter", reason: "Unknown repository.",
			code: 404, answer: `{"errors":[{"context":null,"message":"Repository ~jane/fleet does not exist.","exceptionName":"com.atlassian.bitbucket.repository.NoSuchRepositoryException"}]}`,
			want: "does not know the repository or the commit, or hides it from the token (404): Repository ~jane/fleet does not exist.", permanent: true, after: time.Minute,
		},
		"ServerCommit": {
			forge: "BitbucketDataCenter", reason: "Unknown commit.",
			code: 404, answer: `{"errors":[{"context":null,"message":"Commit '` + testSHA + `' does not exist in repository 'fleet'.","exceptionName":"com.atlassian.bitbucket.commit.NoSuchCommitException"}]}`,
			want: "does not know the repository or the commit, or hides it from the token (404): Commit '" + testSHA[:20], permanent: true, after: time.Minute,
		},
		"ServerRate":   {forge: "BitbucketDataCenter", reason: "Its bucket is empty.", code: 429, header: map[string]string{"Retry-After": "5", "X-RateLimit-Limit": "60", "X-RateLimit-Remaining": "0"}, want: "limits the rate of requests", after: 5 * time.Second},
		"AzureSignIn":  {forge: "AzureDevOps", reason: "A sign-in page for a token that it does not know.", code: 203, answer: "<html>Azure DevOps Services | Sign In</html>", want: "does not accept the token (203)", denied: commitstatus.TokenRefused, permanent: true, after: time.Minute},
		"AzureExpired": {forge: "AzureDevOps", reason: "Expired.", code: 401, answer: "", want: "does not accept the token (401)", denied: commitstatus.TokenRefused, permanent: true, after: time.Minute},
		"AzureScope":   {forge: "AzureDevOps", reason: "Read only.", code: 403, answer: `{"$id":"1","innerException":null,"message":"TF401027: You need the Git 'GenericContribute' permission to perform this action.","typeKey":"GitNeedsPermissionException","errorCode":0,"eventId":3000}`, want: "does not let the token write statuses (403): TF401027", denied: commitstatus.PermissionMissing, permanent: true, after: time.Minute},
		"AzureRepository": {
			forge: "AzureDevOps", reason: "Unknown repository, or one that the token may not read.",
			code: 404, answer: `{"$id":"1","innerException":null,"message":"TF401019: The Git repository with name or identifier fleet does not exist or you do not have permissions for the operation you are attempting.","typeName":"Microsoft.TeamFoundation.Git.Server.GitRepositoryNotFoundException, Microsoft.TeamFoundation.Git.Server","typeKey":"GitRepositoryNotFoundException","errorCode":0,"eventId":3000}`,
			want: "does not know the repository or the commit, or hides it from the token (404): TF401019", permanent: true, after: time.Minute,
		},
		"AzureCommit":    {forge: "AzureDevOps", reason: "Unknown commit. Its message is not documented.", code: 404, want: "does not know the repository or the commit, or hides it from the token (404)", permanent: true, after: time.Minute},
		"AzureThrottled": {forge: "AzureDevOps", reason: "Too much was consumed.", code: 429, header: map[string]string{"Retry-After": "30", "X-RateLimit-Delay": "1.5"}, answer: `{"message":"TF400733: The request has been canceled: Request was blocked due to exceeding usage of resource"}`, want: "limits the rate of requests", after: 30 * time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			forge := forges()[c.forge]
			post := forge.post
			post.code, post.header, post.answer = c.code, c.header, c.answer
			url := scripted(t, post)
			var got *commitstatus.DeliveryError
			if err := forge.dial(t, url).Post(t.Context(), testStatus()); !errors.As(err, &got) {
				t.Fatalf("%s: got %v", c.reason, err)
			}
			text := strings.TrimPrefix(got.Reason, strings.TrimPrefix(url, "http://")+" ")
			if !strings.HasPrefix(text, c.want) || got.Denied != c.denied || got.Permanent != c.permanent || got.Uncertain != c.uncertain || got.RetryAfter != c.after {
				t.Errorf("%s\ngot %+v", c.reason, *got)
			}
		})
	}
}

// TestKeyOfBitbucketFits: a key has at most 40 characters, and two long contexts have two keys.
func TestKeyOfBitbucketFits(t *testing.T) {
	long := strings.Repeat("x", commitstatus.ContextLimit-1)
	one, other := commitstatus.BitbucketKey(long+"a"), commitstatus.BitbucketKey(long+"b")
	if len(one) != 40 || len(other) != 40 || one == other {
		t.Errorf("got %s and %s", one, other)
	}
}

// TestBitbucketLinksToTheCommitWithoutATargetURL: both Bitbuckets require a link.
func TestBitbucketLinksToTheCommitWithoutATargetURL(t *testing.T) {
	for name, web := range map[string]string{"BitbucketCloud": "/team/fleet", "BitbucketDataCenter": "/projects/~jane/repos/fleet"} {
		var sent struct{ URL, Key, State string }
		c := forges()[name]
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = json.NewDecoder(r.Body).Decode(&sent)
			w.WriteHeader(c.post.code)
			if c.post.answer != "" {
				_, _ = io.WriteString(w, c.post.answer)
			}
		}))
		t.Cleanup(server.Close)
		status := testStatus()
		status.TargetURL = ""
		if err := c.dial(t, server.URL).Post(t.Context(), status); err != nil || sent.URL != server.URL+web+"/commits/"+testSHA {
			t.Errorf("%s: sent %q, %v", name, sent.URL, err)
		}
	}
}

// TestBasicAuthenticationOfBitbucket: an API token belongs to an account, which is sent with it.
func TestBasicAuthenticationOfBitbucket(t *testing.T) {
	c := forges()["BitbucketCloud"]
	post := c.post
	post.authorization = "Basic amFuZUBleGFtcGxlLmNvbTpodW50ZXIyMg=="
	post.code, post.answer = http.StatusBadRequest, `{"error":{"message":"hunter22 amFuZUBleGFtcGxlLmNvbTpodW50ZXIyMg=="}}`
	c.token = "jane@example.com:hunter22"
	err := c.dial(t, scripted(t, post)).Post(t.Context(), testStatus())
	if err == nil || strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), "amFuZ") {
		t.Errorf("got %v", err)
	}
}

// TestPendingTextIsNotReplacedAtGitLab: GitLab refuses a pending status while the context is pending.
func TestPendingTextIsNotReplacedAtGitLab(t *testing.T) {
	mark := commitstatus.Mark{
		SHA: testSHA, Context: "addonflow/hello",
		Accepted: &commitstatus.Statement{State: "pending", Description: "canary 0/2"},
		Owed:     &commitstatus.Statement{State: "pending", Description: "canary 1/2", Progress: 50},
	}
	for kind, want := range map[string]bool{"gitlab": false, "github": true} {
		if due, after := commitstatus.Due(kind, mark, now); due != want || after != 0 {
			t.Errorf("%s: due %v after %s", kind, due, after)
		}
	}
	mark.Owed = &commitstatus.Statement{State: "success", Description: "24/24 updated"}
	if due, _ := commitstatus.Due("gitlab", mark, now); !due {
		t.Error("the verdict is not due")
	}
}
