package commitstatus

import (
	"context"
	"net/url"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// github uses GitHub's REST API, on github.com and on Enterprise Server.
type github struct{ *restClient }

// githubProvider is the row of GitHub. GitHub and GitHub Enterprise Server allow 80 requests that create content a minute.
func githubProvider() provider {
	return provider{
		open:      func(_ Config, c *restClient) Forge { return &github{c} },
		address:   addressing{commits: "commit", locate: ownerAndName(githubAPI)},
		authorize: bearer, apps: true,
		requests:   githubRequests,
		comments:   githubComments,
		proposals:  func(c *restClient) Proposals { return &githubProposals{c} },
		permission: "Commit statuses: write (a classic token: repo:status)",
		pace:       rate.Every(time.Second), burst: 20,
		foldsCase: true,
		webhook: &Webhook{Signed: []SignedHeader{{"X-Hub-Signature-256", sha256Prefix}}, Form: []FormEntry{
			{formPlace, "Settings > Webhooks > Add webhook"}, {"Content type", "application/json"}, {"Secret", WebhookToken}, {"Events", "Just the push event"},
		}},
	}
}

// githubAPI returns the URL of the API. github.com and the domains of ghe.com have it on a separate host, Enterprise
// Server below /api/v3. The first two redirect http only after the token was sent in plain text.
func githubAPI(root *url.URL) string {
	switch host := root.Host; {
	case host == "github.com", host == "www.github.com", host == "api.github.com":
		return "https://api.github.com"
	case strings.HasSuffix(host, gheDomain):
		return "https://api." + strings.TrimPrefix(host, "api.")
	default:
		return root.String() + "/api/v3"
	}
}

// gheDomain is the domain of GitHub Enterprise Cloud with data residency.
const gheDomain = ".ghe.com"

// Post implements Forge.
func (g *github) Post(ctx context.Context, status Status) error {
	return g.post(ctx, g.endpoint("statuses", status.SHA), status, strings.EqualFold)
}

// Shown implements Forge. The combined status has the newest status of each context; GitHub ignores the case of contexts.
func (g *github) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	return g.combined(ctx, g.endpoint("commits", sha, "status"), sha, contexts, strings.EqualFold)
}
