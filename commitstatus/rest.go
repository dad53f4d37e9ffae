package commitstatus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/addonflow/addonflow/api/secret"
)

// bodyLimit bounds what is read of an answer.
const bodyLimit = 1 << 20

// restClient sends JSON requests to one forge and turns every trouble into a
// DeliveryError.
type restClient struct {
	http    *http.Client
	host    string
	scheme  string
	token   Secret
	limiter *rate.Limiter
	clock   func() time.Time
}

// call is one request.
type call struct {
	method, url string
	body        any
	expect      int
}

// statusBody is what both forges take.
type statusBody struct {
	State       State  `json:"state"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description,omitempty"`
	Context     string `json:"context"`
}

// newStatusBody returns the body that posts the status.
func newStatusBody(s Status) statusBody {
	return statusBody{State: s.State, TargetURL: s.TargetURL, Description: s.Description, Context: s.Context}
}

// endpoint returns the URL of something in the repository.
func (r repository) endpoint(parts ...string) string {
	segments := []string{r.api, "repos", r.owner, r.name}
	for _, part := range parts {
		segments = append(segments, url.PathEscape(part))
	}
	return strings.Join(segments, "/")
}

// send makes the call and decodes the answer into out. An empty body leaves out as
// it is: older Giteas answer so where there is nothing to list.
func (c *restClient) send(ctx context.Context, request call, out any) error {
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
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit+1))
	if response.StatusCode != request.expect {
		// What could be read of the body is enough for the reason.
		return c.refusal(response, body)
	}
	if err != nil || len(body) > bodyLimit {
		return &DeliveryError{Reason: c.host + " sent an answer that cannot be read", Uncertain: true, cause: err}
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, out); err != nil {
		return &DeliveryError{Reason: c.host + " did not answer as a forge does", Uncertain: true}
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
	r.Header.Set("Authorization", c.scheme+" "+string(c.token))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	return response, nil
}

// unreachable returns the error for a forge that gave no answer. Whether it got the
// request is not known.
func (c *restClient) unreachable(err error) *DeliveryError {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	reason := err.Error()
	if wrapped != nil && wrapped.Timeout() {
		reason = "no answer in time"
	}
	reason = Describe(DescriptionLimit, Text{Head: "cannot reach " + c.host, Reason: c.redact(reason)})
	return &DeliveryError{Reason: reason, Uncertain: true, Everyone: true, cause: err}
}

// redact takes the token out of a text that somebody else wrote.
func (c *restClient) redact(s string) string {
	return secret.NewRedaction(c.token).Text(s)
}

// post adds the status at the URL. Both forges take the same body and answer 201 with
// what they stored, of which same is asked whether it is this one.
func post[Stored any](ctx context.Context, c *restClient, url string, status Status, same func(Stored) bool) error {
	if err := status.Validate(); err != nil {
		return invalid(err)
	}
	var stored Stored
	err := c.send(ctx, call{method: http.MethodPost, url: url, body: newStatusBody(status), expect: http.StatusCreated}, &stored)
	if err != nil {
		return err
	}
	return confirm(same(stored))
}

// confirm returns the error for a forge that answered with another status than the
// one that was posted.
func confirm(same bool) error {
	if same {
		return nil
	}
	return &DeliveryError{Reason: "the forge did not confirm the status", Uncertain: true}
}

// invalid returns the error for a status that must not be posted.
func invalid(err error) *DeliveryError {
	return &DeliveryError{Reason: fmt.Sprintf("cannot post the status: %s", err), Permanent: true, cause: err}
}
