package commitstatus

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// github speaks GitHub's REST API, on github.com and on Enterprise Server.
type github struct {
	client *restClient
	repo   repository
}

// githubPage is how many statuses are requested at once, GitHub's maximum. githubPages bounds
// the search.
const (
	githubPage  = 100
	githubPages = 10
)

// newGitHub returns the GitHub behind the address.
func newGitHub(config Config, client *restClient) (Forge, error) {
	repo, err := parseAddress(config.Address, githubAPI)
	if err != nil {
		return nil, err
	}
	client.host, client.scheme = repo.host, "Bearer"
	return &github{client: client, repo: repo}, nil
}

// githubAPI returns the URL of the API: github.com has it on a separate host, Enterprise Server
// below /api/v3. github.com redirects http only after the token was sent in the clear.
func githubAPI(root *url.URL) string {
	switch root.Host {
	case "github.com", "www.github.com", "api.github.com":
		return "https://api.github.com"
	default:
		return root.String() + "/api/v3"
	}
}

// Post implements Forge.
func (g *github) Post(ctx context.Context, status Status) error {
	return g.client.post(ctx, g.repo.endpoint("statuses", status.SHA), status, strings.EqualFold)
}

// Latest implements Forge. GitHub lists the newest status first, and ignores the case of
// contexts.
func (g *github) Latest(ctx context.Context, sha, context string) (Status, bool, error) {
	for page := 1; page <= githubPages; page++ {
		var statuses []wireStatus
		err := g.client.send(ctx, call{
			method: http.MethodGet,
			url:    g.repo.endpoint("commits", sha, "statuses") + fmt.Sprintf("?per_page=%d&page=%d", githubPage, page),
			expect: http.StatusOK,
		}, &statuses)
		if err != nil {
			return Status{}, false, err
		}
		for _, s := range statuses {
			if strings.EqualFold(s.Context, context) {
				return g.client.found(sha, s), true, nil
			}
		}
		if len(statuses) < githubPage {
			break
		}
	}
	return Status{}, false, nil
}
