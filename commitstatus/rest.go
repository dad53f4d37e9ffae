package commitstatus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/addonflow/addonflow/dial"
)

// perPage is the parameter of GitHub and GitLab for the length of a page.
const perPage = "per_page"

// ofState is the parameter of GitHub, Gitea and GitLab for the state of pull requests.
const ofState = "state"

// bodyLimit is the most bytes that are read of an answer, unless the call has its own limit.
const bodyLimit = 1 << 20

// errTooLong is the cause of an error about an answer over its limit.
var errTooLong = errors.New("the answer is too long")

// NewHTTPClient returns a client for forges. It connects only to addresses that the policy allows, because tenants
// name the address of a forge. If the environment has a proxy, the policy applies to the address of the proxy. The
// client refuses a forge whose host is localhost, or an address that the policy refuses. It looks up no other name,
// because the proxy resolves names.
func NewHTTPClient(policy dial.Policy) *http.Client {
	proxy := func(r *http.Request) (*url.URL, error) {
		if err := policy.CheckHost(r.URL.Hostname()); err != nil {
			return nil, err
		}
		return http.ProxyFromEnvironment(r)
	}
	return &http.Client{Timeout: requestTimeout, Transport: &http.Transport{
		Proxy: proxy, DialContext: policy.Dialer(requestTimeout).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: requestTimeout, IdleConnTimeout: time.Minute, MaxIdleConns: workersAtOnce,
	}}
}

// restClient sends JSON requests about one repository and converts every failure into a DeliveryError.
type restClient struct {
	repository
	http    *http.Client
	login   *login
	limiter *rate.Limiter
	clock   func() time.Time
}

// call is one request.
type call struct {
	method, url string
	body        any
	// expect are the codes of success.
	expect []int
	// doing and refused complete the error of a failed call: the action that the token may not do, and the object
	// that the forge refused. If empty: "write statuses" and "the status".
	doing, refused string
	// limit is the most bytes that are read of the answer; 0: bodyLimit.
	limit int64
}

// wireStatus is a status in the requests and answers of Gitea and GitHub. Texts that were not set are null.
type wireStatus struct {
	ID          int64  `json:"id,omitempty"`
	State       State  `json:"state,omitempty"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description,omitempty"`
	Context     string `json:"context"`
	// Status is Gitea's name of the state in its answers.
	Status State `json:"status,omitempty"`
}

// found returns a status that the forge has. Another client may have written it: its text is bounded, and an unknown
// state (Gitea has warning) becomes Error.
func (c *restClient) found(s Status) *Status {
	if !s.State.Known() {
		s.State = Error
	}
	s.Description, s.TargetURL = oneLine(c.redact(s.Description)), c.redact(s.TargetURL)
	return &s
}

// endpoint returns the URL of a path in the repository.
func (r repository) endpoint(parts ...string) string {
	segments := []string{r.api}
	for _, part := range parts {
		segments = append(segments, url.PathEscape(part))
	}
	return strings.Join(segments, "/")
}

// send makes the call and decodes the answer into out. If an App's token is refused, a new token is requested once.
// If the token lacks the permission, a new token is requested for the next call, because a token has the permissions
// of the time when it was issued.
func (c *restClient) send(ctx context.Context, request call, out any) error {
	err := c.attempt(ctx, request, out)
	refused, ok := errors.AsType[*DeliveryError](err)
	if !ok || refused.Denied == "" || !c.login.renew() || refused.Denied == PermissionMissing {
		return err
	}
	return c.attempt(ctx, request, out)
}

// attempt makes the call once. An empty body leaves out unchanged, because older Giteas answer in this way if the
// list is empty. An expected error leaves it unchanged, too, but has to be JSON or empty: a proxy answers in HTML.
func (c *restClient) attempt(ctx context.Context, request call, out any) error {
	if c.limiter != nil {
		if err := c.limiter.Wait(ctx); err != nil {
			return &DeliveryError{Reason: "waiting for our own request limit", RetryAfter: time.Second, Everyone: true, cause: err}
		}
	}
	response, err := c.do(ctx, request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	limit := cmp.Or(request.limit, bodyLimit)
	body, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if !slices.Contains(request.expect, response.StatusCode) {
		// The part of the body that was read is enough for the reason.
		return c.refusal(request, response, body)
	}
	if int64(len(body)) > limit {
		err = errTooLong
	}
	if err != nil {
		return &DeliveryError{Reason: c.host + " sent an answer that cannot be read", Uncertain: true, cause: err}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if response.StatusCode >= http.StatusBadRequest {
		out = &json.RawMessage{}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &DeliveryError{Reason: c.host + " did not answer like a forge; " + noForge, Uncertain: true}
	}
	return nil
}

// do sends the request.
func (c *restClient) do(ctx context.Context, request call) (*http.Response, error) {
	var body io.Reader
	if request.body != nil {
		encoded, err := json.Marshal(request.body)
		if err != nil {
			return nil, invalid(err)
		}
		body = bytes.NewReader(encoded)
	}
	r, err := http.NewRequestWithContext(ctx, request.method, request.url, body)
	if err != nil {
		return nil, invalid(errors.New("the request cannot be made"))
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "addonflow")
	authorization, err := c.login.header(ctx, c.http)
	if err != nil {
		return nil, err
	}
	r.Header.Set(c.login.field, string(authorization))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return response, nil
}

// unreachable returns the error for a forge that gave no answer. The forge may have received the request.
func (c *restClient) unreachable(err error) *DeliveryError {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	reason := err.Error()
	switch {
	case errors.Is(err, dial.ErrLocal):
		reason = "it " + dial.ErrLocal.Error() + "; the operator's flag --git-allow-loopback allows it"
	case wrapped != nil && wrapped.Timeout():
		reason = "no answer in time"
	}
	return &DeliveryError{
		Reason: "cannot reach " + c.host + ": " + oneLine(c.redact(reason)), Uncertain: true, Everyone: true, cause: err,
	}
}

// redact removes the credentials from a foreign text.
func (c *restClient) redact(s string) string {
	return c.login.redact(s)
}

// post adds the status at the URL. Gitea and GitHub accept the same body and answer 201 with the stored status; same
// compares contexts.
func (c *restClient) post(ctx context.Context, url string, status Status, same func(a, b string) bool) error {
	body := wireStatus{State: status.State, TargetURL: status.TargetURL, Description: status.Description, Context: status.Context}
	var stored wireStatus
	if err := c.send(ctx, call{method: http.MethodPost, url: url, body: body, expect: []int{http.StatusCreated}}, &stored); err != nil {
		return err
	}
	if cmp.Or(stored.State, stored.Status) != status.State || !same(stored.Context, status.Context) {
		return unconfirmed()
	}
	return nil
}

// combinedPage is how many contexts are requested at once; a server may return fewer. combinedPages is the most pages
// that are read.
const (
	combinedPage  = 50
	combinedPages = 40
)

// combined reads the newest statuses of contexts from the combined status of a commit, which Gitea and GitHub have;
// same compares contexts.
func (c *restClient) combined(ctx context.Context, at, sha string, contexts []string, same func(a, b string) bool) (map[string]*Status, error) {
	newest := map[string]wireStatus{}
	for page := 1; len(newest) < len(contexts); page++ {
		if page > combinedPages {
			return nil, &DeliveryError{Reason: c.host + " has too many statuses of the commit", Permanent: true}
		}
		var answer struct {
			Statuses []wireStatus `json:"statuses"`
		}
		query := url.Values{"page": {strconv.Itoa(page)}, "limit": {strconv.Itoa(combinedPage)}, perPage: {strconv.Itoa(combinedPage)}}
		if err := c.send(ctx, call{method: http.MethodGet, url: at + "?" + query.Encode(), expect: []int{http.StatusOK}}, &answer); err != nil {
			return nil, err
		}
		for _, s := range answer.Statuses {
			for _, name := range contexts {
				if same(s.Context, name) && s.ID > newest[name].ID {
					newest[name] = s
				}
			}
		}
		// The server decides the length of a page, so only an empty page is the last.
		if len(answer.Statuses) == 0 {
			break
		}
	}
	shown := make(map[string]*Status, len(contexts))
	for _, name := range contexts {
		shown[name] = nil
		if s, ok := newest[name]; ok {
			shown[name] = c.found(Status{SHA: sha, Context: name, State: cmp.Or(s.State, s.Status), Description: s.Description, TargetURL: s.TargetURL})
		}
	}
	return shown, nil
}

// unconfirmed returns the error for an answer that is about another status.
func unconfirmed() *DeliveryError {
	return &DeliveryError{Reason: "the forge did not confirm the status", Uncertain: true}
}

// invalid returns the error for a status that must not be posted.
func invalid(err error) *DeliveryError {
	return &DeliveryError{Reason: fmt.Sprintf("cannot post the status: %s", err), Permanent: true, cause: err}
}
