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
	// Branch is the name of the new branch. Into is the branch at which it begins and into which it is merged; Head
	// is the commit of Into.
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
	// Before and After are the hashes of its content in Git; "": the file does not exist. The repository has the
	// content of both.
	Before, After string
	// Content is the content after the change.
	Content []byte
}

// Opened is a pull request that exists, even if it is closed.
type Opened struct {
	Number int64
	// URL is its page; "": the forge names none.
	URL string
}

// Proposals makes pull requests in one repository. Every error is a *DeliveryError. No method repeats its work: a
// branch is created once, and each branch has one request.
type Proposals interface {
	// Opened returns the request of a branch, whatever its state; false: there is none.
	Opened(ctx context.Context, p Proposal) (Opened, bool, error)
	// Branch creates the branch with its commit. It fails if there is a branch of that name.
	Branch(ctx context.Context, p Proposal) error
	// Open opens the request of an existing branch.
	Open(ctx context.Context, p Proposal) (Opened, error)
	// Permission is the forge's name of the permission that the token needs to open requests.
	Permission() string
}

// NewProposals returns the proposals to the repository that the configuration names. The error is for the author of
// the configuration, for example if the forge supports no proposals.
func NewProposals(config Config) (Proposals, error) {
	p, client, err := config.parts()
	if err != nil {
		return nil, err
	}
	if p.proposals == nil {
		return nil, fmt.Errorf("cannot open pull requests: provider %q is not one of %s", config.Provider, named(func(p provider) bool { return p.proposals != nil }))
	}
	return p.proposals(client), nil
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

// confirmed returns the request of an answer. An address that is no short link is left out: texts show it.
func (c *restClient) confirmed(w wireOpened) (Opened, error) {
	o := Opened{Number: max(w.Number, w.IID), URL: c.redact(w.HTML + w.Web)}
	if o.Number <= 0 {
		return Opened{}, &DeliveryError{Reason: "the forge did not confirm the pull request", Uncertain: true}
	}
	if validateTargetURL(o.URL) != nil {
		o.URL = ""
	}
	return o, nil
}

// githubProposals uses GitHub's REST API: https://docs.github.com/en/rest/git and .../rest/pulls/pulls.
type githubProposals struct{ *restClient }

// Permission implements Proposals.
func (g *githubProposals) Permission() string {
	return "Contents: write and Pull requests: write (a classic token: repo)"
}

// Opened implements Proposals.
func (g *githubProposals) Opened(ctx context.Context, p Proposal) (Opened, bool, error) {
	_, at, _ := strings.Cut(g.api, "/repos/")
	owner, _, _ := strings.Cut(at, "/")
	query := url.Values{"head": {owner + ":" + p.Branch}, "base": {p.Into}, ofState: {"all"}, perPage: {"1"}}
	var list []wireOpened
	err := g.propose(ctx, http.MethodGet, g.endpoint("pulls")+"?"+query.Encode(), nil, &list, http.StatusOK)
	if err != nil || len(list) == 0 {
		return Opened{}, false, err
	}
	o, err := g.confirmed(list[0])
	return o, err == nil, err
}

// githubTree and githubEntry are a tree in GitHub's requests. An entry without a hash is deleted.
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

// githubCommit is a commit in GitHub's requests.
type githubCommit struct {
	Message string   `json:"message"`
	Tree    string   `json:"tree"`
	Parents []string `json:"parents"`
}

// Branch implements Proposals. The commit is created before the branch, so that an existing branch always has it.
func (g *githubProposals) Branch(ctx context.Context, p Proposal) error {
	var head struct {
		Tree struct {
			SHA string `json:"sha"`
		} `json:"tree"`
	}
	if err := g.propose(ctx, http.MethodGet, g.endpoint("git", "commits", p.Head), nil, &head, http.StatusOK); err != nil {
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
	if err := g.propose(ctx, http.MethodPost, g.endpoint("git", "trees"), tree, &made, http.StatusCreated); err != nil {
		return err
	}
	commit := githubCommit{Message: p.Title, Tree: made.SHA, Parents: []string{p.Head}}
	if err := g.propose(ctx, http.MethodPost, g.endpoint("git", "commits"), commit, &made, http.StatusCreated); err != nil {
		return err
	}
	ref := map[string]string{"ref": "refs/heads/" + p.Branch, "sha": made.SHA}
	return g.propose(ctx, http.MethodPost, g.endpoint("git", "refs"), ref, &struct{}{}, http.StatusCreated)
}

// Open implements Proposals.
func (g *githubProposals) Open(ctx context.Context, p Proposal) (Opened, error) {
	var w wireOpened
	body := map[string]string{"title": p.Title, "head": p.Branch, "base": p.Into, "body": p.Body}
	if err := g.propose(ctx, http.MethodPost, g.endpoint("pulls"), body, &w, http.StatusCreated); err != nil {
		return Opened{}, err
	}
	return g.confirmed(w)
}

// inOneCall makes proposals at forges that create a branch and its commit in one call.
type inOneCall struct {
	client *restClient
	forge  proposing
}

// proposing is the part that differs between these forges.
type proposing struct {
	permission string
	// commits and requests are the URLs for new commits and new requests.
	commits, requests string
	// find returns the request of a branch; the zero value: there is none.
	find func(context.Context, Proposal) (wireOpened, error)
	// commit and request are the bodies of these calls.
	commit, request func(Proposal) any
}

// Permission implements Proposals.
func (o *inOneCall) Permission() string { return o.forge.permission }

// Opened implements Proposals.
func (o *inOneCall) Opened(ctx context.Context, p Proposal) (Opened, bool, error) {
	w, err := o.forge.find(ctx, p)
	if err != nil || w == (wireOpened{}) {
		return Opened{}, false, err
	}
	opened, err := o.client.confirmed(w)
	return opened, err == nil, err
}

// Branch implements Proposals.
func (o *inOneCall) Branch(ctx context.Context, p Proposal) error {
	return o.client.propose(ctx, http.MethodPost, o.forge.commits, o.forge.commit(p), &struct{}{}, http.StatusCreated)
}

// Open implements Proposals. If the request exists already, it is found.
func (o *inOneCall) Open(ctx context.Context, p Proposal) (Opened, error) {
	var w wireOpened
	err := o.client.propose(ctx, http.MethodPost, o.forge.requests, o.forge.request(p), &w, http.StatusCreated, http.StatusConflict)
	switch {
	case err != nil:
		return Opened{}, err
	case w.Number != 0 || w.IID != 0:
		return o.client.confirmed(w)
	}
	opened, found, err := o.Opened(ctx, p)
	if err == nil && !found {
		err = &DeliveryError{Reason: "the forge says that the pull request is there already, and does not show it", Uncertain: true}
	}
	return opened, err
}

// changes are the files of a proposal in the form of a forge: with the word for the operation, and with the content
// in base64 unless the file is deleted.
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
