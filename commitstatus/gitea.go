package commitstatus

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// gitea speaks the API of Gitea and Forgejo, version 1.
type gitea struct {
	client *restClient
	repo   repository
}

// giteaPage is how many contexts are asked for at once; a server may give fewer.
// giteaPages bounds the search.
const (
	giteaPage  = 50
	giteaPages = 20
)

// giteaStatus is a status as Gitea returns it. The state is called status there, but
// state where it is posted.
type giteaStatus struct {
	ID          int64  `json:"id"`
	State       State  `json:"status"`
	TargetURL   string `json:"target_url"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// newGitea returns the Gitea or Forgejo behind the address.
func newGitea(config Config, client *restClient) (Forge, error) {
	repo, err := parseAddress(config.Address, func(root *url.URL) string {
		return root.String() + "/api/v1"
	})
	if err != nil {
		return nil, err
	}
	client.host, client.scheme = repo.host, "token"
	return &gitea{client: client, repo: repo}, nil
}

// Post implements Forge.
func (g *gitea) Post(ctx context.Context, status Status) error {
	return post(ctx, g.client, g.repo.endpoint("statuses", status.SHA), status, func(stored giteaStatus) bool {
		return stored.State == status.State && stored.Context == status.Context
	})
}

// Latest implements Forge. It reads the combined status, which has the newest status
// of each context: Gitea sorts the plain list by seconds, so that two statuses of one
// second come in any order.
func (g *gitea) Latest(ctx context.Context, sha, context string) (Status, bool, error) {
	for page := 1; page <= giteaPages; page++ {
		var combined struct {
			Statuses []giteaStatus `json:"statuses"`
		}
		query := url.Values{"page": {strconv.Itoa(page)}, "limit": {strconv.Itoa(giteaPage)}}
		err := g.client.send(ctx, call{
			method: http.MethodGet,
			url:    g.repo.endpoint("commits", sha, "status") + "?" + query.Encode(),
			expect: http.StatusOK,
		}, &combined)
		if err != nil {
			return Status{}, false, err
		}
		if found, ok := newestGitea(combined.Statuses, context); ok {
			return found.status(sha), true, nil
		}
		// The server decides how long a page is, so only an empty one is the last.
		if len(combined.Statuses) == 0 {
			break
		}
	}
	return Status{}, false, nil
}

// newestGitea returns the newest status of the context.
func newestGitea(statuses []giteaStatus, context string) (giteaStatus, bool) {
	var newest giteaStatus
	for _, s := range statuses {
		if s.Context == context && s.ID > newest.ID {
			newest = s
		}
	}
	return newest, newest.ID > 0
}

// status returns the status in the package's own form.
func (s giteaStatus) status(sha string) Status {
	return Status{SHA: sha, Context: s.Context, State: s.State, Description: s.Description, TargetURL: s.TargetURL}
}
