package commitstatus

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// bitbucket uses the API of Bitbucket Cloud, version 2.0.
type bitbucket struct{ *restClient }

// bitbucketKeyLimit is how long the key of a status may be.
const bitbucketKeyLimit = 40

// bitbucketProvider is the row of Bitbucket Cloud, which allows 1,000 requests an hour.
func bitbucketProvider() provider {
	return provider{
		open:      func(_ Config, c *restClient) Forge { return &bitbucket{c} },
		address:   addressing{commits: "commits", locate: locateBitbucket},
		authorize: bitbucketAuthorization,
		// The API needs the scope repository. An API token has another name for it.
		permission: "the scope repository (an API token: read:repository:bitbucket)",
		pace:       rate.Every(4 * time.Second), burst: 60,
		webhook: &Webhook{Signed: []SignedHeader{bitbucketSignature()}, Form: []FormEntry{
			{formPlace, "Repository settings > Webhooks > Add webhook"}, {"Secret", WebhookToken}, {"Triggers", "Repository push"},
		}},
	}
}

// bitbucketSignature is the header of both Bitbuckets.
func bitbucketSignature() SignedHeader { return SignedHeader{"X-Hub-Signature", sha256Prefix} }

// bitbucketAuthorization returns the header of an access token of a repository, project or workspace, and of
// <email>:<API token>.
func bitbucketAuthorization(token string) string {
	if strings.Contains(token, ":") {
		return basic(token)
	}
	return bearer(token)
}

// locateBitbucket reads https://bitbucket.org/workspace/repository, and the address of its API.
func locateBitbucket(p place) (repository, error) {
	path := p.segments
	if len(path) > 2 && path[0] == "2.0" && path[1] == "repositories" {
		path = path[2:]
	}
	if len(path) != 2 {
		return repository{}, errNoRepository
	}
	web := p
	if host := p.root.Host; host == "bitbucket.org" || host == "www.bitbucket.org" || host == "api.bitbucket.org" {
		p, web = p.over("api.bitbucket.org"), p.over("bitbucket.org")
	}
	return repository{
		api: p.at("2.0", "repositories", path[0], path[1]), host: web.root.Host, name: web.named(path...), web: web.at(path...),
	}, nil
}

// bitbucketStatus is a status in requests and answers of both Bitbuckets.
type bitbucketStatus struct {
	Key         string `json:"key"`
	State       string `json:"state"`
	Name        string `json:"name"`
	URL         string `json:"url"`
	Description string `json:"description"`
}

// bitbucketStates are the names of the states. A superseded commit did not fail itself.
func bitbucketStates() map[State]string {
	return map[State]string{Pending: "INPROGRESS", Success: "SUCCESSFUL", Failure: "FAILED", Error: "STOPPED"}
}

// bitbucketKey identifies a context. The context cannot be the key: it may be longer, and has slashes, which a proxy
// may unescape in a path.
func bitbucketKey(context string) string {
	sum := sha256.Sum256([]byte(context))
	return hex.EncodeToString(sum[:])[:bitbucketKeyLimit]
}

// link returns the link of a status, which both Bitbuckets require. Without a link, it is the page of the commit.
func (r repository) link(status Status) string {
	return cmp.Or(status.TargetURL, r.commitPage(status.SHA))
}

// Post implements Forge. A status with the same key is replaced.
func (b *bitbucket) Post(ctx context.Context, status Status) error {
	body := bitbucketStatus{
		Key: bitbucketKey(status.Context), State: bitbucketStates()[status.State], Name: status.Context,
		URL: b.link(status), Description: status.Description,
	}
	var stored bitbucketStatus
	err := b.send(ctx, call{
		method: http.MethodPost, url: b.endpoint("commit", status.SHA, "statuses", "build"), body: body,
		expect: []int{http.StatusCreated, http.StatusOK},
	}, &stored)
	if err == nil && (stored.State != body.State || stored.Key != body.Key) {
		return unconfirmed()
	}
	return err
}

// Shown implements Forge.
func (b *bitbucket) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	at := b.endpoint("commit", sha, "statuses", "build", bitbucketKey(contexts[0]))
	return b.bitbucketShown(ctx, at, Status{SHA: sha, Context: contexts[0]}, bitbucketStates())
}

// bitbucketShown reads the status with one key. If there is no such status, the answer is 404, as for an
// unknown commit or repository. The answer to the post that follows tells these cases apart.
func (c *restClient) bitbucketShown(ctx context.Context, at string, of Status, states map[State]string) (map[string]*Status, error) {
	var stored bitbucketStatus
	err := c.send(ctx, call{method: http.MethodGet, url: at, expect: []int{http.StatusOK, http.StatusNotFound}}, &stored)
	if err != nil {
		return nil, err
	}
	if stored.Key == "" {
		return map[string]*Status{of.Context: nil}, nil
	}
	of.State, of.Description, of.TargetURL = stateNamed(states, stored.State), stored.Description, stored.URL
	return map[string]*Status{of.Context: c.found(of)}, nil
}
