package commitstatus

import (
	"context"
	"net/http"
	"net/url"
)

// gitea uses the API of Gitea and Forgejo, version 1.
type gitea struct{ *restClient }

// giteaProvider describes Gitea, which does not limit requests. The operator limits its requests itself, so that
// many of them at once do not look like an attack.
func giteaProvider() provider {
	return provider{
		open:       func(_ Config, c *restClient) Forge { return &gitea{c} },
		address:    addressing{commits: "commit", locate: ownerAndName(func(root *url.URL) string { return root.String() + "/api/v1" })},
		authorize:  func(token string) string { return "token " + token },
		requests:   giteaRequests,
		comments:   giteaComments,
		proposals:  giteaProposals,
		permission: "write:repository",
		pace:       20, burst: 100,
		webhook: giteaWebhook(SignedHeader{"X-Gitea-Signature", ""}),
	}
}

// forgejoProvider describes Forgejo, whose API is Gitea's.
func forgejoProvider() provider {
	p := giteaProvider()
	p.webhook = giteaWebhook(SignedHeader{"X-Forgejo-Signature", ""}, SignedHeader{"X-Gitea-Signature", ""})
	return p
}

// giteaWebhook is a webhook with one of the headers. Of a form, Gitea signs other bytes than it sends.
func giteaWebhook(signed ...SignedHeader) *Webhook {
	return &Webhook{Signed: signed, Form: []FormEntry{
		{formPlace, "Settings > Webhooks > Add webhook"}, {"HTTP method", "POST"}, {"Content type", "application/json"}, {"Secret", WebhookToken}, {"Trigger on", "Push events"},
	}}
}

// Post implements Forge.
func (g *gitea) Post(ctx context.Context, status Status) error {
	return g.post(ctx, g.endpoint("statuses", status.SHA), status, func(a, b string) bool { return a == b })
}

// Shown implements Forge. It reads the combined status, which has the newest status of each context. In Gitea's plain
// list, two statuses of one second have no defined order.
func (g *gitea) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	return g.combined(ctx, g.endpoint("commits", sha, "status"), sha, contexts, func(a, b string) bool { return a == b })
}

// giteaChange is a change of a file in Gitea's API.
type giteaChange struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Content   string `json:"content,omitempty"`
	SHA       string `json:"sha,omitempty"`
}

// giteaProposals opens pull requests. The new branch begins at the current head of the other branch. The call
// has the hash of each file, so Gitea refuses the change if a file was changed meanwhile.
func giteaProposals(c *restClient) Proposals {
	return &inOneCall{client: c, forge: proposing{
		permission: "write:repository, of a user who may push branches",
		commits:    c.endpoint("contents"), requests: c.endpoint("pulls"),
		// If there is no request, the answer is 404. It is also 404 if the token cannot see the repository; then
		// the call that creates the branch reports the error.
		find: func(ctx context.Context, p Proposal) (w wireOpened, err error) {
			at := c.endpoint("pulls", p.Into) + "/" + (&url.URL{Path: p.Branch}).EscapedPath()
			err = c.propose(ctx, http.MethodGet, at, nil, &w, http.StatusOK, http.StatusNotFound)
			return w, err
		},
		commit: func(p Proposal) any {
			return map[string]any{
				"branch": p.Into, "new_branch": p.Branch, "message": p.Title,
				"files": changes(p, func(f ProposedFile, operation, content string) giteaChange {
					return giteaChange{Operation: operation, Path: f.Path, Content: content, SHA: f.Before}
				}),
			}
		},
		request: func(p Proposal) any {
			return map[string]string{"title": p.Title, "head": p.Branch, "base": p.Into, "body": p.Body}
		},
	}}
}
