package commitstatus

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
)

// bitbucketServer uses the REST API of Bitbucket Data Center. Builds have the state CANCELLED since 8.0.
type bitbucketServer struct{ *restClient }

// bitbucketServerProvider describes Bitbucket Data Center. Its administrator sets the limit of requests; the
// default is 60 at once, and 5 a second after that.
func bitbucketServerProvider() provider {
	return provider{
		open:       func(_ Config, c *restClient) Forge { return &bitbucketServer{c} },
		address:    addressing{extra: "~", commits: "commits", locate: locateBitbucketServer},
		authorize:  bitbucketAuthorization, // an HTTP access token, or <user>:<password>
		permission: "Repository read (REPO_READ)",
		pace:       5, burst: 50,
		webhook: &Webhook{Signed: []SignedHeader{bitbucketSignature()}, Form: []FormEntry{
			{formPlace, "Repository settings > Webhooks > Create webhook"}, {"Secret", WebhookToken}, {"Events", "Repository: Push"},
		}},
	}
}

// locateBitbucketServer reads the three forms of an address, with or without a path before them: a page
// (projects/KEY/repos/name; users/name/repos/name, whose project is ~name), a clone (scm/key/name.git), and the
// address of the API.
func locateBitbucketServer(p place) (repository, error) {
	segments := p.segments
	if i := slices.Index(segments, "repos"); i >= 2 && i+1 < len(segments) {
		below, project := segments[:i-2], segments[i-1]
		switch segments[i-2] {
		case "users":
			project = "~" + project
		case "projects":
		default:
			return repository{}, errNoProject
		}
		if n := len(below); n >= 3 && below[n-3] == "rest" && below[n-2] == "api" {
			below = below[:n-3]
		}
		return bitbucketServerAt(p, below, project, segments[i+1]), nil
	}
	if n := len(segments); n >= 3 && segments[n-3] == "scm" {
		return bitbucketServerAt(p, segments[:n-3], segments[n-2], segments[n-1]), nil
	}
	return repository{}, errNoProject
}

var errNoProject = errors.New("cannot use the address: its path does not end in projects/KEY/repos/NAME or scm/KEY/NAME")

func bitbucketServerAt(p place, below []string, project, name string) repository {
	path := []string{"projects", project, "repos", name}
	return repository{
		api: p.at(slices.Concat(below, []string{"rest", "api", "latest"}, path)...), host: p.root.Host,
		name: p.named(slices.Concat(below, path)...), web: p.at(slices.Concat(below, path)...),
	}
}

// bitbucketServerStates are the names of the states.
func bitbucketServerStates() map[State]string {
	return map[State]string{Pending: "INPROGRESS", Success: "SUCCESSFUL", Failure: "FAILED", Error: "CANCELLED"}
}

// Post implements Forge. A status with the same key is replaced. The answer is 204, without a body.
func (b *bitbucketServer) Post(ctx context.Context, status Status) error {
	return b.send(ctx, call{
		method: http.MethodPost, url: b.builds(status.SHA), expect: []int{http.StatusNoContent},
		body: bitbucketStatus{
			Key: bitbucketKey(status.Context), State: bitbucketServerStates()[status.State], Name: status.Context,
			URL: b.link(status), Description: status.Description,
		},
	}, nil)
}

// Shown implements Forge.
func (b *bitbucketServer) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	at := b.builds(sha) + "?" + url.Values{"key": {bitbucketKey(contexts[0])}}.Encode()
	return b.bitbucketShown(ctx, at, Status{SHA: sha, Context: contexts[0]}, bitbucketServerStates())
}

// builds returns the URL of the builds of a commit.
func (b *bitbucketServer) builds(sha string) string {
	return b.endpoint("commits", sha, "builds")
}
