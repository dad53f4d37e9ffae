package commitstatus

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// azure uses the REST API of Azure DevOps Services and Server.
type azure struct{ *restClient }

// azureVersion is the version of Azure DevOps Server 2022. Services accepts it, too.
const azureVersion = "7.0"

// azureProvider describes Azure DevOps, which limits the consumption of resources instead of the number of
// requests. A pull request shows the statuses of its commits, but a branch policy reads only the statuses of the
// pull request.
func azureProvider() provider {
	return provider{
		open:       func(_ Config, c *restClient) Forge { return &azure{c} },
		address:    addressing{extra: " ", commits: "commit", locate: locateAzure},
		authorize:  func(token string) string { return basic(":" + token) },
		permission: "the scope Code (status)",
		pace:       5, burst: 50,
		webhook: &Webhook{Password: true, Form: []FormEntry{
			{formPlace, "Project settings > Service hooks > Web Hooks"}, {"Trigger", "Code pushed"}, {"Basic auth", "any user name; the password is " + WebhookToken},
		}},
	}
}

// locateAzure reads https://dev.azure.com/organization/project/_git/repository, the older
// https://organization.visualstudio.com/project/_git/repository, https://host/tfs/collection/project/_git/repository
// of a Server, and the address of the API. If a repository has the name of its project, the project may be omitted.
func locateAzure(p place) (repository, error) {
	segments := p.segments
	if i := slices.Index(segments, "_apis"); i >= 1 && i+3 < len(segments) && segments[i+1] == "git" && segments[i+2] == "repositories" {
		segments = slices.Concat(segments[:i], []string{"_git", segments[i+3]})
	}
	if organization, ok := strings.CutSuffix(p.root.Host, ".visualstudio.com"); ok && !strings.Contains(organization, ".") {
		segments = slices.Concat([]string{organization}, slices.DeleteFunc(slices.Clone(segments), func(s string) bool { return s == "DefaultCollection" }))
		p = p.over(azureHost)
	}
	i := slices.Index(segments, "_git")
	if i < 1 || i+2 != len(segments) {
		return repository{}, errors.New("cannot use the address: its path does not end in PROJECT/_git/REPOSITORY")
	}
	collection, name := segments[:i], segments[i+1]
	if p.root.Host == azureHost {
		p = p.over(azureHost)
		if len(collection) == 1 {
			collection = append(slices.Clone(collection), name)
		}
	}
	path := slices.Concat(collection, []string{"_git", name})
	return repository{
		api: p.at(slices.Concat(collection, []string{"_apis", "git", "repositories", name})...), host: p.root.Host,
		name: p.named(path...), web: p.at(path...),
	}, nil
}

// azureHost is the host of Azure DevOps Services.
const azureHost = "dev.azure.com"

// azureStatus is a status in requests and answers.
type azureStatus struct {
	ID          int64        `json:"id,omitempty"`
	State       string       `json:"state"`
	Description string       `json:"description"`
	TargetURL   string       `json:"targetUrl,omitempty"`
	Context     azureContext `json:"context"`
}

// azureContext is shown as genre/name.
type azureContext struct {
	Genre string `json:"genre,omitempty"`
	Name  string `json:"name"`
}

// azureContextOf splits a context at its last slash.
func azureContextOf(context string) azureContext {
	i := strings.LastIndex(context, "/")
	return azureContext{Genre: context[:max(i, 0)], Name: context[i+1:]}
}

// azureStates are the names of the states.
func azureStates() map[State]string {
	return map[State]string{Pending: "pending", Success: "succeeded", Failure: "failed", Error: "error"}
}

// Post implements Forge. Azure DevOps keeps all statuses; the newest one of a context counts.
func (a *azure) Post(ctx context.Context, status Status) error {
	body := azureStatus{
		State: azureStates()[status.State], Description: status.Description, TargetURL: status.TargetURL, Context: azureContextOf(status.Context),
	}
	var stored azureStatus
	err := a.send(ctx, call{
		method: http.MethodPost, url: a.statuses(status.SHA, url.Values{}), body: body, expect: []int{http.StatusCreated, http.StatusOK},
	}, &stored)
	if err == nil && (stored.State != body.State || stored.Context != body.Context) {
		return unconfirmed()
	}
	return err
}

// Shown implements Forge. Azure DevOps returns up to 1,000 contexts.
func (a *azure) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	var list struct {
		Value []azureStatus `json:"value"`
	}
	at := a.statuses(sha, url.Values{"latestOnly": {"true"}})
	if err := a.send(ctx, call{method: http.MethodGet, url: at, expect: []int{http.StatusOK}}, &list); err != nil {
		return nil, err
	}
	shown := make(map[string]*Status, len(contexts))
	for _, name := range contexts {
		shown[name] = nil
		var newest azureStatus
		for _, s := range list.Value {
			if s.Context == azureContextOf(name) && s.ID > newest.ID {
				newest = s
			}
		}
		if newest.ID > 0 {
			shown[name] = a.found(Status{
				SHA: sha, Context: name, State: stateNamed(azureStates(), newest.State, "notSet"),
				Description: newest.Description, TargetURL: newest.TargetURL,
			})
		}
	}
	return shown, nil
}

// statuses returns the URL of the statuses of a commit.
func (a *azure) statuses(sha string, query url.Values) string {
	query.Set("api-version", azureVersion)
	return a.endpoint("commits", sha, "statuses") + "?" + query.Encode()
}
