package commitstatus_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/githubapp"
)

// answering is a forge that gives every request the same answer. TOKEN in it is the token of the request, and SENT is
// what its header for the token has.
type answering struct {
	code        int
	after, body string
}

// documented is the code of a success; 0 in answering stands for it.
func documented(r *http.Request, provider string) int {
	if r.Method != http.MethodPost {
		return http.StatusOK
	}
	for _, c := range forges() {
		if c.provider == provider {
			return c.post.code
		}
	}
	return http.StatusCreated
}

// as is the transport to the forge. An App gets its token.
func (a answering) as(provider string) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		code, body := a.code, a.body
		switch {
		case strings.HasSuffix(r.URL.Path, "/access_tokens"):
			code, body = http.StatusCreated, `{"token":"TOKEN","expires_at":"2100-01-01T00:00:00Z"}`
		case code == 0:
			code = documented(r, provider)
		}
		_, sent := commitstatus.Header(provider, testToken)
		body = strings.NewReplacer("TOKEN", testToken, "SENT", sent).Replace(body)
		return &http.Response{
			StatusCode: code, Header: http.Header{"Retry-After": {a.after}}, Body: io.NopCloser(strings.NewReader(body)), Request: r,
		}, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip is part of http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// textsIn are the texts in an answer, wherever they are.
func textsIn(answer string) (all []string) {
	decoder := json.NewDecoder(strings.NewReader(answer))
	for {
		token, err := decoder.Token()
		if err != nil {
			return all
		}
		if text, ok := token.(string); ok {
			all = append(all, text)
		}
	}
}

// says reports whether an answer has each of the texts, in any case.
func says(answer string, texts ...string) bool {
	all := textsIn(answer)
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !slices.ContainsFunc(all, func(word string) bool { return strings.EqualFold(word, text) })
	})
}

// answerCase is what the operator makes of one answer.
type answerCase struct {
	*testing.T
	answering
	provider string
}

// hides fails if a text shows a credential.
func (a answerCase) hides(text string) {
	a.Helper()
	_, sent := commitstatus.Header(a.provider, testToken)
	for _, credential := range []string{testToken, sent} {
		if strings.Contains(text, credential) {
			a.Errorf("%q shows %q", text, credential)
		}
	}
}

// refused reports whether a call failed. Its error is fit for a condition, and names what is wrong.
func (a answerCase) refused(err error) bool {
	a.Helper()
	if err == nil {
		return false
	}
	e, ok := errors.AsType[*commitstatus.DeliveryError](err)
	if !ok {
		a.Fatalf("%T: %v", err, err)
	}
	a.hides(e.Reason)
	printable(a.T, e.Reason, commitstatus.DescriptionLimit)
	if !strings.HasPrefix(e.Reason, "forge.example ") && !strings.HasPrefix(e.Reason, "the forge ") && !strings.Contains(e.Reason, "too many comments") &&
		!strings.Contains(e.Reason, "the forge does not name the account") {
		a.Errorf("%q does not name the forge", e.Reason)
	}
	if a.code >= 300 && !strings.Contains(e.Reason, fmt.Sprintf("(%d)", a.code)) && !strings.Contains(e.Reason, "limits the rate of requests") {
		a.Errorf("%q does not name %d", e.Reason, a.code)
	}
	if e.RetryAfter < 0 || e.RetryAfter > time.Hour || e.Denied != "" && !slices.Contains([]int{203, 401, 403}, a.code) {
		a.Errorf("%+v", e)
	}
	return true
}

// statuses: a status is accepted only if the answer has it, and what is read is what the operator can store.
func (a answerCase) statuses(forge commitstatus.Forge) {
	a.Helper()
	status := testStatus()
	confirming := map[string][]string{
		"azuredevops": {"pending", "addonflow", "hello"}, "bitbucket": {"INPROGRESS", commitstatus.BitbucketKey(status.Context)},
		"githubchecks": {status.Context}, "bitbucketserver": nil,
	}
	want, special := confirming[a.provider]
	if !special {
		want = []string{"pending", status.Context}
	}
	if err := forge.Post(a.Context(), status); !a.refused(err) && !says(a.body, want...) {
		a.Errorf("the status counts as stored although the answer does not have each of %q", want)
	}
	shown, err := forge.Shown(a.Context(), testSHA, []string{status.Context})
	a.refused(err)
	for context, s := range shown {
		if s == nil {
			continue
		}
		if s.SHA != testSHA || s.Context != context || !s.State.Known() || a.code >= 400 {
			a.Errorf("shows %+v", *s)
		}
		printable(a.T, s.Description, commitstatus.DescriptionLimit)
		a.hides(s.Description + s.TargetURL)
	}
}

// answers: the operator has one comment, and looks at few requests.
func (a answerCase) answers(requests commitstatus.Requests) {
	a.Helper()
	open, err := requests.Open(a.Context(), "main", func(commitstatus.Request) bool { return true })
	a.refused(err)
	for i, r := range open {
		if r.Number <= 0 || len(r.SHA) != 40 && len(r.SHA) != 64 || strings.Trim(r.SHA, "0123456789abcdef") != "" ||
			!strings.Contains(r.Ref, fmt.Sprintf("/%d/", r.Number)) || i > 0 && open[i-1].Number < r.Number || i == 20 {
			a.Errorf("request %d: %+v", i, r)
		}
	}
	const marker, text = "<!-- plan -->", "text"
	wrote, err := requests.Say(a.Context(), 7, marker, text)
	if !a.refused(err) && !wrote && !slices.ContainsFunc(textsIn(a.body), func(s string) bool { return strings.TrimSpace(s) == marker+"\n"+text }) {
		a.Errorf("the comment counts as written")
	}
}

// decides: an account has a level only if the forge knows it, and only comments after the merge count.
func (a answerCase) decides(comments commitstatus.Comments) {
	a.Helper()
	merged, found, err := comments.Merged(a.Context(), testSHA, "main")
	if a.refused(err); found && (merged.Number <= 0 || err != nil || a.code >= 400 || !says(a.body, testSHA, "main")) {
		a.Errorf("merged with %+v, %v", merged, err)
	}
	line, whole, err := comments.Line(a.Context(), testSHA, blobAfter)
	if a.refused(err); err != nil && (whole || len(line) > 0) || len(line) > 50 || len(line) > 0 && line[0].SHA != testSHA || whole && !says(a.body, blobAfter) {
		a.Errorf("line %+v, %v, %v", line, whole, err)
	}
	since := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	said, err := comments.After(a.Context(), commitstatus.MergedRequest{Number: 7, At: since})
	a.refused(err)
	for _, c := range said {
		if !c.Created.After(since) || !slices.Contains(textsIn(a.body), c.Body) && c.Body != "" {
			a.Errorf("comment %+v", c)
		}
	}
	level, err := comments.Level(a.Context(), commitstatus.Account{ID: 4, Login: "bob"})
	if a.refused(err); level != commitstatus.LevelNone && (err != nil || a.code >= 400) {
		a.Errorf("level %v, %v", level, err)
	}
}

// proposes: a pull request is one only if the forge says its number. Its address is a link, or absent.
func (a answerCase) proposes(proposals commitstatus.Proposals) {
	a.Helper()
	p := commitstatus.Proposal{
		Branch: "addonflow/revert", Into: "main", Head: testSHA, Title: "Revert", Body: "because",
		Files: []commitstatus.ProposedFile{{Path: "a.yaml", Before: blobAfter, After: testSHA, Content: []byte("a: 1\n")}},
	}
	a.refused(proposals.Branch(a.Context(), p))
	there, _, err := proposals.Opened(a.Context(), p)
	a.refused(err)
	opened, err := proposals.Open(a.Context(), p)
	if !a.refused(err) && opened.Number <= 0 {
		a.Errorf("opened %+v", opened)
	}
	for _, o := range []commitstatus.Opened{there, opened} {
		a.hides(o.URL)
		if link, err := url.Parse(o.URL); err != nil || o.URL != "" && link.Scheme != "http" && link.Scheme != "https" || len(o.URL) > commitstatus.TargetURLLimit {
			a.Errorf("the link is %q", o.URL)
		}
	}
}

// FuzzAnswers: whatever a forge answers, the operator believes only what the answer says, stores only what is bounded,
// and shows no credential that the answer repeats. An error names the forge and its code.
func FuzzAnswers(f *testing.F) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		f.Fatal(err)
	}
	credentials, err := githubapp.Parse(map[string][]byte{
		githubapp.AppIDKey: []byte("12"), githubapp.InstallationIDKey: []byte("345"), githubapp.BaseURLKey: []byte("https://forge.example/api/v3"),
		githubapp.PrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	})
	if err != nil {
		f.Fatal(err)
	}
	tokens := githubapp.New(nil)
	paths := map[string]string{}
	for _, c := range forges() {
		paths[c.provider] = c.path
	}
	seed := func(provider string, code int, after, body string) {
		f.Add(uint8(slices.Index(commitstatus.Providers(), provider)), code, after, body) //nolint:gosec // a few
	}
	for _, c := range forges() {
		for _, e := range []exchange{c.post, c.latest, c.none} {
			seed(c.provider, 0, "", e.answer)
		}
	}
	for _, provider := range commitstatus.Providers() {
		seed(provider, http.StatusForbidden, "", `{"message":"TOKEN","errors":[{"message":"Authorization: SENT"}]}`)
		seed(provider, http.StatusTooManyRequests, "3600000", `limited`)
		seed(provider, 0, "", `<html>TOKEN</html>`)
	}
	seed("gitea", 0, "", `{"statuses":[{"id":1,"context":"addonflow/hello","status":"warning","description":"TOKEN`+"\u202e"+`","target_url":"https://SENT@ci.example"}]}`)
	seed("gitea", http.StatusNotFound, "", `{"permission":"admin","number":7,"merged_at":"2026-01-01T00:00:00Z","merge_commit_sha":"`+testSHA+`","base":{"ref":"main"}}`)
	seed("gitea", 0, "", `{"number":7,"html_url":"javascript:alert(1)"}`)
	seed("gitlab", http.StatusBadRequest, "", `{"message":{"description":["is too long"]}}`)
	seed("gitlab", 0, "", `[{"iid":7,"sha":"`+testSHA+`","target_branch":"main","source_project_id":1,"target_project_id":1,"merged_at":"2026-01-01T00:00:00Z"}]`)
	seed("github", 0, "", `[{"id":12,"body":"<!-- plan -->\ntext","sha":"`+testSHA+`","parents":[{"sha":"`+blobAfter+`"}],"user":{"id":4,"login":"bob"},"created_at":"2026-11-23T09:00:01Z"}]`)
	seed("githubchecks", 0, "", runs(run(4, "completed", "success", "TOKEN")))
	f.Fuzz(func(t *testing.T, kind uint8, code int, after, body string) {
		a := answerCase{t, answering{code: code, after: after, body: body}, commitstatus.Providers()[int(kind)%len(commitstatus.Providers())]}
		if a.code < 200 || a.code > 599 {
			a.code = 0
		}
		path, special := paths[a.provider]
		if !special {
			path = "/team/fleet"
		}
		config := commitstatus.Config{
			Provider: a.provider, Address: "https://forge.example" + path, Token: testToken, Ref: "main",
			HTTPClient: &http.Client{Transport: a.as(a.provider)}, Clock: func() time.Time { return now },
		}
		if a.provider == "githubchecks" {
			config.Token, config.App = "", &commitstatus.App{Credentials: credentials, Tokens: tokens}
		}
		forge, err := commitstatus.New(config)
		if err != nil {
			t.Fatal(err)
		}
		a.statuses(forge)
		if requests, err := commitstatus.NewRequests(config); err == nil {
			a.answers(requests)
		}
		if comments, err := commitstatus.NewComments(config); err == nil {
			a.decides(comments)
		}
		if proposals, err := commitstatus.NewProposals(config); err == nil {
			a.proposes(proposals)
		}
	})
}
