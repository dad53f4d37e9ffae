package commitstatus

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Proposal is a branch with one commit, and the pull request that asks to merge it.
type Proposal struct {
	// Branch is the name of the new branch, and Into that of the branch that it begins at and is
	// merged into. Head is the commit of the latter.
	Branch, Into, Head string
	// Title is also the commit's message.
	Title string
	// Body of the request, in Markdown.
	Body string
	// Files that the commit changes.
	Files []ProposedFile
}

// ProposedFile is a file that a commit changes as a whole.
type ProposedFile struct {
	Path string
	// Before and After are the hashes of its content in Git; "": there is no such file. The
	// repository has the content of both.
	Before, After string
	// Content is the content after the change.
	Content []byte
}

// Opened is a pull request that exists, open or not.
type Opened struct {
	Number int64
	// URL is its page.
	URL string
}

// Proposals makes pull requests in one repository. Every error is a *DeliveryError. No method repeats
// what is there already: a branch is created once, and each branch has one request.
type Proposals interface {
	// Opened returns the request of a branch, whatever its state; false: there is none.
	Opened(ctx context.Context, p Proposal) (Opened, bool, error)
	// Branch creates the branch with its commit. It fails if there is a branch of that name.
	Branch(ctx context.Context, p Proposal) error
	// Open opens the request of a branch that exists.
	Open(ctx context.Context, p Proposal) (Opened, error)
	// Permission is what the token needs for this, as the forge calls it.
	Permission() string
}

// NewProposals returns the proposals to the repository that the configuration names. The error is for
// the author of the configuration, such as that the forge has none.
func NewProposals(config Config) (Proposals, error) {
	p, repo, client, err := config.parts()
	if err != nil {
		return nil, err
	}
	if p.proposals == nil {
		return nil, fmt.Errorf("cannot open pull requests: provider %q is not one of %s", config.Provider, named(func(p provider) bool { return p.proposals != nil }))
	}
	return p.proposals(client, repo), nil
}

// wireOpened is a request in the answers of GitHub and Gitea (number, html_url) and GitLab.
type wireOpened struct {
	Number int64  `json:"number"`
	HTML   string `json:"html_url"`

	IID           int64  `json:"iid"`
	Web           string `json:"web_url"`
	SourceProject int64  `json:"source_project_id"`
	TargetProject int64  `json:"target_project_id"`
}

// propose makes a call about a proposal.
func (c *restClient) propose(ctx context.Context, method, url string, body, out any, expect ...int) error {
	return c.send(ctx, call{method: method, url: url, body: body, expect: expect, doing: "push branches and open pull requests", refused: "proposal"}, out)
}

// confirmed returns the request of an answer.
func (c *restClient) confirmed(w wireOpened) (Opened, error) {
	o := Opened{Number: max(w.Number, w.IID), URL: c.redact(w.HTML + w.Web)}
	if o.Number <= 0 {
		return o, &DeliveryError{Reason: "the forge did not confirm the pull request", Uncertain: true}
	}
	return o, nil
}

// again finds a request that the forge says is there already.
func again(ctx context.Context, from Proposals, p Proposal) (Opened, error) {
	o, found, err := from.Opened(ctx, p)
	if err == nil && !found {
		err = &DeliveryError{Reason: "the forge says that the pull request is there already, and does not show it", Uncertain: true}
	}
	return o, err
}

// githubProposals uses GitHub's REST API: https://docs.github.com/en/rest/git and .../rest/pulls/pulls.
type githubProposals struct {
	client *restClient
	repo   repository
}

// Permission implements Proposals.
func (g *githubProposals) Permission() string {
	return "Contents: write and Pull requests: write (a classic token: repo)"
}

// Opened implements Proposals.
func (g *githubProposals) Opened(ctx context.Context, p Proposal) (Opened, bool, error) {
	_, at, _ := strings.Cut(g.repo.api, "/repos/")
	owner, _, _ := strings.Cut(at, "/")
	query := url.Values{"head": {owner + ":" + p.Branch}, "base": {p.Into}, ofState: {"all"}, perPage: {"1"}}
	var list []wireOpened
	err := g.client.propose(ctx, http.MethodGet, g.repo.endpoint("pulls")+"?"+query.Encode(), nil, &list, http.StatusOK)
	if err != nil || len(list) == 0 {
		return Opened{}, false, err
	}
	o, err := g.client.confirmed(list[0])
	return o, err == nil, err
}

// githubTree and githubEntry are a tree as GitHub takes it. An entry without a hash is deleted.
type githubTree struct {
	Base    string        `json:"base_tree"`
	Entries []githubEntry `json:"tree"`
}

type githubEntry struct {
	Path string  `json:"path"`
	Mode string  `json:"mode"`
	Type string  `json:"type"`
	SHA  *string `json:"sha"`
}

// githubCommit is a commit as GitHub takes it.
type githubCommit struct {
	Message string   `json:"message"`
	Tree    string   `json:"tree"`
	Parents []string `json:"parents"`
}

// Branch implements Proposals. The commit is made first: a branch that exists has it.
func (g *githubProposals) Branch(ctx context.Context, p Proposal) error {
	var head struct {
		Tree struct {
			SHA string `json:"sha"`
		} `json:"tree"`
	}
	if err := g.client.propose(ctx, http.MethodGet, g.repo.endpoint("git", "commits", p.Head), nil, &head, http.StatusOK); err != nil {
		return err
	}
	tree := githubTree{Base: head.Tree.SHA}
	for _, f := range p.Files {
		e := githubEntry{Path: f.Path, Mode: "100644", Type: "blob"}
		if f.After != "" {
			e.SHA = &f.After
		}
		tree.Entries = append(tree.Entries, e)
	}
	var made struct {
		SHA string `json:"sha"`
	}
	if err := g.client.propose(ctx, http.MethodPost, g.repo.endpoint("git", "trees"), tree, &made, http.StatusCreated); err != nil {
		return err
	}
	commit := githubCommit{Message: p.Title, Tree: made.SHA, Parents: []string{p.Head}}
	if err := g.client.propose(ctx, http.MethodPost, g.repo.endpoint("git", "commits"), commit, &made, http.StatusCreated); err != nil {
		return err
	}
	ref := map[string]string{"ref": "refs/heads/" + p.Branch, "sha": made.SHA}
	return g.client.propose(ctx, http.MethodPost, g.repo.endpoint("git", "refs"), ref, &struct{}{}, http.StatusCreated)
}

// Open implements Proposals.
func (g *githubProposals) Open(ctx context.Context, p Proposal) (Opened, error) {
	var w wireOpened
	body := map[string]string{"title": p.Title, "head": p.Branch, "base": p.Into, "body": p.Body}
	if err := g.client.propose(ctx, http.MethodPost, g.repo.endpoint("pulls"), body, &w, http.StatusCreated); err != nil {
		return Opened{}, err
	}
	return g.client.confirmed(w)
}

// giteaProposals uses the API of Gitea and Forgejo.
type giteaProposals struct {
	client *restClient
	repo   repository
}

// Permission implements Proposals.
func (g *giteaProposals) Permission() string {
	return "write:repository, of a user who may push branches"
}

// Opened implements Proposals. An absent request is not found, and so is a repository that the token
// does not see; Branch reports the latter.
func (g *giteaProposals) Opened(ctx context.Context, p Proposal) (Opened, bool, error) {
	var w wireOpened
	at := g.repo.endpoint("pulls", p.Into) + "/" + (&url.URL{Path: p.Branch}).EscapedPath()
	if err := g.client.propose(ctx, http.MethodGet, at, nil, &w, http.StatusOK, http.StatusNotFound); err != nil || w.Number == 0 {
		return Opened{}, false, err
	}
	o, err := g.client.confirmed(w)
	return o, err == nil, err
}

// giteaChange is a file as Gitea changes it.
type giteaChange struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Content   string `json:"content,omitempty"`
	SHA       string `json:"sha,omitempty"`
}

// Branch implements Proposals. The branch begins at the head of the other one, whichever that is by
// now; a file that changed meanwhile is refused by its hash.
func (g *giteaProposals) Branch(ctx context.Context, p Proposal) error {
	body := struct {
		Branch  string        `json:"branch"`
		New     string        `json:"new_branch"`
		Message string        `json:"message"`
		Files   []giteaChange `json:"files"`
	}{Branch: p.Into, New: p.Branch, Message: p.Title, Files: changes(p, func(f ProposedFile, operation, content string) giteaChange {
		return giteaChange{Operation: operation, Path: f.Path, Content: content, SHA: f.Before}
	})}
	return g.client.propose(ctx, http.MethodPost, g.repo.endpoint("contents"), body, &struct{}{}, http.StatusCreated)
}

// changes are the files of a proposal as Gitea and GitLab change them: with their word for the
// operation, and with the content in base64 unless the file is deleted.
func changes[C any](p Proposal, change func(f ProposedFile, operation, content string) C) []C {
	all := make([]C, 0, len(p.Files))
	for _, f := range p.Files {
		content := base64.StdEncoding.EncodeToString(f.Content)
		switch {
		case f.Before == "":
			all = append(all, change(f, "create", content))
		case f.After == "":
			all = append(all, change(f, "delete", ""))
		default:
			all = append(all, change(f, "update", content))
		}
	}
	return all
}

// Open implements Proposals.
func (g *giteaProposals) Open(ctx context.Context, p Proposal) (Opened, error) {
	var w wireOpened
	body := map[string]string{"title": p.Title, "head": p.Branch, "base": p.Into, "body": p.Body}
	err := g.client.propose(ctx, http.MethodPost, g.repo.endpoint("pulls"), body, &w, http.StatusCreated, http.StatusConflict)
	if err == nil && w.Number == 0 {
		return again(ctx, g, p)
	}
	if err != nil {
		return Opened{}, err
	}
	return g.client.confirmed(w)
}

// gitlabProposals uses GitLab's API: https://docs.gitlab.com/api/commits/ and .../merge_requests/.
type gitlabProposals struct {
	client *restClient
	repo   repository
}

// Permission implements Proposals.
func (g *gitlabProposals) Permission() string { return "the scope api and the role Developer" }

// Opened implements Proposals. A branch of a fork can have the same name.
func (g *gitlabProposals) Opened(ctx context.Context, p Proposal) (Opened, bool, error) {
	query := url.Values{"source_branch": {p.Branch}, "target_branch": {p.Into}, ofState: {"all"}, perPage: {"20"}}
	var list []wireOpened
	if err := g.client.propose(ctx, http.MethodGet, g.repo.endpoint("merge_requests")+"?"+query.Encode(), nil, &list, http.StatusOK); err != nil {
		return Opened{}, false, err
	}
	for _, w := range list {
		if w.SourceProject == w.TargetProject {
			o, err := g.client.confirmed(w)
			return o, err == nil, err
		}
	}
	return Opened{}, false, nil
}

// gitlabAction is a file as GitLab changes it.
type gitlabAction struct {
	Action   string `json:"action"`
	Path     string `json:"file_path"`
	Content  string `json:"content,omitempty"`
	Encoding string `json:"encoding,omitempty"`
}

// Branch implements Proposals.
func (g *gitlabProposals) Branch(ctx context.Context, p Proposal) error {
	body := struct {
		Branch  string         `json:"branch"`
		Start   string         `json:"start_sha"`
		Message string         `json:"commit_message"`
		Actions []gitlabAction `json:"actions"`
	}{Branch: p.Branch, Start: p.Head, Message: p.Title, Actions: changes(p, func(f ProposedFile, operation, content string) gitlabAction {
		a := gitlabAction{Action: operation, Path: f.Path, Content: content}
		if content != "" {
			a.Encoding = "base64"
		}
		return a
	})}
	return g.client.propose(ctx, http.MethodPost, g.repo.endpoint("repository", "commits"), body, &struct{}{}, http.StatusCreated)
}

// Open implements Proposals.
func (g *gitlabProposals) Open(ctx context.Context, p Proposal) (Opened, error) {
	var w wireOpened
	body := map[string]any{
		"title": p.Title, "source_branch": p.Branch, "target_branch": p.Into, "description": p.Body, "remove_source_branch": true,
	}
	err := g.client.propose(ctx, http.MethodPost, g.repo.endpoint("merge_requests"), body, &w, http.StatusCreated, http.StatusConflict)
	if err == nil && w.IID == 0 {
		return again(ctx, g, p)
	}
	if err != nil {
		return Opened{}, err
	}
	return g.client.confirmed(w)
}
