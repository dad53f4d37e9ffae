package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// gitlab uses GitLab's REST API, version 4.
type gitlab struct {
	*restClient
	ref string
}

// gitlabPage is how many statuses are requested at once, GitLab's maximum. A context has one status in each pipeline
// of the commit.
const gitlabPage = 100

// gitlabProvider describes GitLab. GitLab.com allows 2,000 requests a minute; a self-managed server may allow
// fewer.
//
// In GitLab, a status is a job. A pending job does not change until its state changes: a second pending status is
// refused ("Cannot transition status via :enqueue from :pending"), and its text is lost. After a verdict, the next
// status is a new job.
func gitlabProvider() provider {
	return provider{
		open:       func(config Config, c *restClient) Forge { return &gitlab{c, config.Ref} },
		address:    addressing{commits: "-/commit", locate: locateGitLab},
		authorize:  bearer, // of personal, project and group access tokens, and of OAuth
		requests:   gitlabRequests,
		comments:   gitlabComments,
		proposals:  gitlabProposals,
		permission: "the scope api and the role Developer (Maintainer for a protected branch)",
		pace:       5, burst: 50,
		keepsPendingText: true,
		webhook: &Webhook{Token: "X-Gitlab-Token", Form: []FormEntry{ //nolint:gosec // the name of a header
			{formPlace, "Settings > Webhooks > Add new webhook"}, {"Secret token", WebhookToken}, {"Trigger", "Push events; Tag push events if the source follows tags"},
		}},
	}
}

// locateGitLab reads https://gitlab.example/group/subgroup/project. If GitLab is served below a path, that path looks
// like a group. Its address must be given as https://example.com/path/api/v4/projects/group/project.
func locateGitLab(p place) (repository, error) {
	project := p.segments
	const endpoint = "api/v4/projects"
	var below []string
	for i := range p.segments {
		if strings.Join(p.segments[i:min(i+3, len(p.segments))], "/") == endpoint {
			below, project = p.segments[:i], p.segments[i+3:]
			break
		}
	}
	if len(project) < 2 {
		return repository{}, errors.New("cannot use the address: it names no group and project")
	}
	path := strings.Join(project, "/")
	return repository{
		api: p.at(slices.Concat(below, []string{"api", "v4", "projects", path})...), host: p.root.Host,
		name: p.named(slices.Concat(below, project)...), web: p.at(slices.Concat(below, project)...),
	}, nil
}

// gitlabStatus is a status in GitLab's requests and answers. In answers, ref is always set.
type gitlabStatus struct {
	ID          int64  `json:"id,omitempty"`
	State       string `json:"state,omitempty"`
	Status      string `json:"status,omitempty"`
	Name        string `json:"name"`
	Ref         string `json:"ref,omitempty"`
	TargetURL   string `json:"target_url,omitempty"`
	Description string `json:"description,omitempty"`
}

// gitlabStates are GitLab's names of the states. A superseded commit did not fail itself.
func gitlabStates() map[State]string {
	return map[State]string{Pending: "pending", Success: "success", Failure: "failed", Error: "canceled"}
}

// Post implements Forge.
func (g *gitlab) Post(ctx context.Context, status Status) error {
	body := gitlabStatus{
		State: gitlabStates()[status.State], Name: status.Context, Ref: g.ref, TargetURL: status.TargetURL, Description: status.Description,
	}
	var stored gitlabStatus
	err := g.send(ctx, call{
		method: http.MethodPost, url: g.endpoint("statuses", status.SHA), body: body, expect: []int{http.StatusCreated},
	}, &stored)
	refused, ok := errors.AsType[*DeliveryError](err)
	switch {
	case ok && strings.Contains(refused.Reason, "Cannot transition status"):
		// The job already has that state. Its text may differ, so it is read.
		return &DeliveryError{Reason: refused.Reason, Uncertain: true}
	case err != nil:
		return err
	case stored.Status != body.State || stored.Name != status.Context:
		return unconfirmed()
	}
	return nil
}

// Shown implements Forge. Ids of jobs grow.
func (g *gitlab) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	var statuses []gitlabStatus
	query := url.Values{"name": contexts[:1], perPage: {fmt.Sprint(gitlabPage)}}
	if g.ref != "" {
		query.Set("ref", g.ref)
	}
	err := g.send(ctx, call{
		method: http.MethodGet, url: g.endpoint("repository", "commits", sha, "statuses") + "?" + query.Encode(), expect: []int{http.StatusOK},
	}, &statuses)
	if err != nil {
		return nil, err
	}
	var newest gitlabStatus
	for _, s := range statuses {
		if s.Name == contexts[0] && s.ID > newest.ID {
			newest = s
		}
	}
	if newest.ID == 0 {
		return map[string]*Status{contexts[0]: nil}, nil
	}
	return map[string]*Status{contexts[0]: g.found(Status{
		SHA: sha, Context: contexts[0], State: stateNamed(gitlabStates(), newest.Status, "created", "running"),
		Description: newest.Description, TargetURL: newest.TargetURL,
	})}, nil
}

// stateNamed returns the state with the forge's name. Other names of pending are given; any other name is an Error.
func stateNamed(names map[State]string, name string, pending ...string) State {
	for state, known := range names {
		if known == name {
			return state
		}
	}
	if slices.Contains(pending, name) {
		return Pending
	}
	return Error
}

// gitlabAction is a change of a file in GitLab's API.
type gitlabAction struct {
	Action   string `json:"action"`
	Path     string `json:"file_path"`
	Content  string `json:"content,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

// gitlabProposals opens merge requests: https://docs.gitlab.com/api/commits/ and .../merge_requests/.
func gitlabProposals(c *restClient) Proposals {
	return &inOneCall{client: c, forge: proposing{
		permission: "the scope api and the role Developer",
		commits:    c.endpoint("repository", "commits"), requests: c.endpoint("merge_requests"),
		// A branch of a fork can have the same name.
		find: func(ctx context.Context, p Proposal) (wireOpened, error) {
			query := url.Values{"source_branch": {p.Branch}, "target_branch": {p.Into}, ofState: {"all"}, perPage: {"20"}}
			var list []wireOpened
			err := c.propose(ctx, http.MethodGet, c.endpoint("merge_requests")+"?"+query.Encode(), nil, &list, http.StatusOK)
			for _, w := range list {
				if w.SourceProject == w.TargetProject {
					return w, err
				}
			}
			return wireOpened{}, err
		},
		commit: func(p Proposal) any {
			return map[string]any{
				"branch": p.Branch, "start_sha": p.Head, "commit_message": p.Title,
				"actions": changes(p, func(f ProposedFile, operation, content string) gitlabAction {
					a := gitlabAction{Action: operation, Path: f.Path, Content: content}
					if content != "" {
						a.Encoding = "base64"
					}
					return a
				}),
			}
		},
		request: func(p Proposal) any {
			return map[string]any{
				"title": p.Title, "source_branch": p.Branch, "target_branch": p.Into, "description": p.Body, "remove_source_branch": true,
			}
		},
	}}
}
