package commitstatus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// requestLimit is how many open requests of a repository are read, the newest first.
const requestLimit = 20

// CommentLimit is how many bytes a comment may have: GitHub stores 65,536 characters.
const CommentLimit = 65_000

// Bounds of a search in lists of a forge. A page must fit into an answer: GitHub sends 25 KB per request, and a
// comment can have 64 KB.
const (
	requestPage  = 20
	requestPages = 4
	commentPage  = 10
	commentPages = 100
)

// Request is an open pull request, or merge request at GitLab.
type Request struct {
	// Number identifies the request at the forge.
	Number int64
	// SHA is the commit at the head of the request. Ref is the forge's reference for it in the repository into which
	// it is merged.
	SHA, Ref string
	// Fork: the head is in another repository.
	Fork bool
}

// Requests reads and answers the pull requests of one repository. Every error is a *DeliveryError.
type Requests interface {
	// Open returns the wanted open requests into a branch, at most requestLimit: first those of the repository itself,
	// and then those of forks, each the newest first. A request of a fork is left out if one of the repository has the
	// same head: the status of a plan is on the head, and the plan of a fork reads less.
	Open(ctx context.Context, branch string, wanted func(Request) bool) ([]Request, error)
	// Say writes the text into the one comment that begins with the marker and whose author is the account, or the
	// GitHub App, of the token. It creates the comment, or changes it in place. Comments of other accounts stay
	// unchanged, even with the marker. Say reports whether it wrote.
	Say(ctx context.Context, request int64, marker, text string) (wrote bool, err error)
}

// NewRequests returns the requests of the repository that the configuration names. The error is for the author of the
// configuration, for example if the forge supports no plans.
func NewRequests(config Config) (Requests, error) {
	p, client, err := config.parts()
	if err != nil {
		return nil, err
	}
	if p.requests == nil {
		return nil, fmt.Errorf("cannot answer pull requests: provider %q is not one of %s", config.Provider, named(func(p provider) bool { return p.requests != nil }))
	}
	return &requests{client: client, dialect: p.requests(client.repository)}, nil
}

// dialect is the part that differs between the forges.
type dialect struct {
	// list is the URL of a page of the open requests into a branch, the newest first.
	list func(branch string, page int) string
	// ragged: the server decides the length of pages, so a page that is not full may not be the last.
	ragged bool
	// ref is the reference of a request.
	ref string
	// comments is the URL of the comments of a request, comment the URL of one comment.
	comments     func(request int64) string
	commentPages int
	comment      func(request, id int64) string
	// edit is the method that changes a comment.
	edit string
	// user is the URL of the token's account.
	user string
	// needs is the permission that the token needs for plans, in addition to that for statuses.
	needs string
}

// apiRoot is the URL of the API that precedes the repository.
func (r repository) apiRoot(marker string) string {
	root, _, _ := strings.Cut(r.api, marker)
	return root
}

// githubRequests: https://docs.github.com/en/rest/pulls/pulls and .../issues/comments.
func githubRequests(repo repository) dialect {
	return dialect{
		list: func(branch string, page int) string {
			query := url.Values{ofState: {"open"}, "base": {branch}, "sort": {"created"}, "direction": {"desc"}, perPage: {strconv.Itoa(requestPage)}}
			return repo.endpoint("pulls") + atPage(page, query)
		},
		ref: "refs/pull/%d/head",
		comments: func(request int64) string {
			return repo.endpoint("issues", strconv.FormatInt(request, 10), "comments")
		},
		commentPages: commentPages,
		comment: func(_, id int64) string {
			return repo.endpoint("issues", "comments", strconv.FormatInt(id, 10))
		},
		edit:  http.MethodPatch,
		user:  repo.apiRoot("/repos/") + "/user",
		needs: "Pull requests: write (a classic token: repo)",
	}
}

// giteaRequests follows the Swagger document of Gitea and Forgejo. Their lists begin with the newest request. A
// server before 1.23 ignores base_branch and returns the requests of all branches.
func giteaRequests(repo repository) dialect {
	d := githubRequests(repo)
	d.list = func(branch string, page int) string {
		query := url.Values{ofState: {"open"}, "base_branch": {branch}, "limit": {strconv.Itoa(requestPage)}}
		return repo.endpoint("pulls") + atPage(page, query)
	}
	d.ragged = true
	d.commentPages = 1 // the list of comments has no pages
	d.needs = "write:issue and read:user"
	return d
}

// gitlabRequests: https://docs.gitlab.com/api/merge_requests/ and .../notes/.
func gitlabRequests(repo repository) dialect {
	return dialect{
		list: func(branch string, page int) string {
			query := url.Values{ofState: {"opened"}, "target_branch": {branch}, "order_by": {"created_at"}, "sort": {"desc"}, perPage: {strconv.Itoa(requestPage)}}
			return repo.endpoint("merge_requests") + atPage(page, query)
		},
		ref: "refs/merge-requests/%d/head",
		comments: func(request int64) string {
			return repo.endpoint("merge_requests", strconv.FormatInt(request, 10), "notes")
		},
		commentPages: commentPages,
		comment: func(request, id int64) string {
			return repo.endpoint("merge_requests", strconv.FormatInt(request, 10), "notes", strconv.FormatInt(id, 10))
		},
		edit:  http.MethodPut,
		user:  repo.apiRoot("/projects/") + "/user",
		needs: "the scope api",
	}
}

// atPage is the query for one page of a list.
func atPage(page int, query url.Values) string {
	query.Set("page", strconv.Itoa(page))
	return "?" + query.Encode()
}

// requests is the client of every dialect.
type requests struct {
	client *restClient
	dialect
}

// wireRequest is a request in the answers of GitHub and Gitea (number, head, base) and of GitLab (the other fields).
type wireRequest struct {
	Number int64 `json:"number"`
	Head   struct {
		SHA  string    `json:"sha"`
		Repo *wireRepo `json:"repo"`
	} `json:"head"`
	Base struct {
		Ref  string    `json:"ref"`
		Repo *wireRepo `json:"repo"`
	} `json:"base"`

	IID           int64  `json:"iid"`
	SHA           string `json:"sha"`
	TargetBranch  string `json:"target_branch"`
	SourceProject int64  `json:"source_project_id"`
	TargetProject int64  `json:"target_project_id"`
}

// wireRepo is a repository in the answers of GitHub and Gitea; null if it was deleted.
type wireRepo struct {
	ID int64 `json:"id"`
}

// request returns the request, and the branch into which it is merged.
func (w wireRequest) request(ref string) (Request, string) {
	if w.IID > 0 {
		return Request{Number: w.IID, SHA: w.SHA, Ref: fmt.Sprintf(ref, w.IID), Fork: w.SourceProject != w.TargetProject}, w.TargetBranch
	}
	inside := w.Head.Repo != nil && w.Base.Repo != nil && w.Head.Repo.ID == w.Base.Repo.ID
	return Request{Number: w.Number, SHA: w.Head.SHA, Ref: fmt.Sprintf(ref, w.Number), Fork: !inside}, w.Base.Ref
}

// send makes a call for a plan.
func (r *requests) send(ctx context.Context, request call, out any) error {
	request.doing, request.refused = "comment on pull requests, which needs "+r.needs, "comment"
	return r.client.send(ctx, request, out)
}

// Open implements Requests. A commit that is not a full sha means that the answer is broken.
func (r *requests) Open(ctx context.Context, branch string, wanted func(Request) bool) ([]Request, error) {
	var own, forks []Request
	for page := 1; page <= requestPages; page++ {
		var list []wireRequest
		if err := r.send(ctx, call{method: http.MethodGet, url: r.list(branch, page), expect: []int{http.StatusOK}}, &list); err != nil {
			return nil, err
		}
		for _, w := range list {
			request, into := w.request(r.ref)
			switch {
			case into != branch || request.Number <= 0 || !isSHA(request.SHA) || !wanted(request):
			case request.Fork:
				forks = append(forks, request)
			default:
				own = append(own, request)
			}
		}
		if len(list) == 0 || len(list) < requestPage && !r.ragged || len(own) >= requestLimit {
			break
		}
	}
	forks = slices.DeleteFunc(forks, func(fork Request) bool {
		return slices.ContainsFunc(own, func(r Request) bool { return r.SHA == fork.SHA })
	})
	for _, list := range [][]Request{own, forks} { // some forges ignore the requested order
		slices.SortStableFunc(list, func(a, b Request) int { return cmp.Compare(b.Number, a.Number) })
	}
	open := slices.Concat(own, forks)
	return open[:min(len(open), requestLimit)], nil
}

// wireComment is a comment. GitLab has the fields author and username instead of user and login. App is the GitHub
// App that wrote the comment.
type wireComment struct {
	ID   int64     `json:"id,omitempty"`
	Body string    `json:"body"`
	User *wireUser `json:"user,omitempty"`
	By   *wireUser `json:"author,omitempty"`
	App  *wireUser `json:"performed_via_github_app,omitempty"`
}

type wireUser struct {
	ID int64 `json:"id"`
	// Type is Bot for the account of an App.
	Type string `json:"type,omitempty"`
}

// author is the account of a token, or the number of a GitHub App.
type author struct{ account, app int64 }

// wrote reports whether the author wrote the comment. A user who writes through an App is another author.
func (a author) wrote(c wireComment) bool {
	if a.app > 0 {
		return c.App != nil && c.App.ID == a.app && c.User != nil && c.User.Type == "Bot"
	}
	for _, u := range []*wireUser{c.User, c.By} {
		if u != nil && u.ID == a.account {
			return true
		}
	}
	return false
}

// author returns the author of comments that are written with the token. For the token of an App, the forge names no
// account.
func (r *requests) author(ctx context.Context) (author, error) {
	if app := r.client.login.app; app != nil {
		number, err := strconv.ParseInt(app.Credentials.AppID(), 10, 64)
		if err != nil || number <= 0 {
			return author{}, invalid(errors.New("the number of the GitHub App is not a number"))
		}
		return author{app: number}, nil
	}
	var account wireUser
	if err := r.send(ctx, call{method: http.MethodGet, url: r.user, expect: []int{http.StatusOK}}, &account); err != nil {
		return author{}, err
	}
	if account.ID <= 0 {
		return author{}, invalid(errors.New("the forge does not name the account of the token"))
	}
	return author{account: account.ID}, nil
}

// Say implements Requests.
func (r *requests) Say(ctx context.Context, request int64, marker, text string) (bool, error) {
	body := marker + "\n" + text
	if len(body) > CommentLimit {
		return false, invalid(fmt.Errorf("the comment has %d bytes, at most %d are posted", len(body), CommentLimit))
	}
	by, err := r.author(ctx)
	if err != nil {
		return false, err
	}
	own, found, err := r.own(ctx, request, marker, by)
	if err != nil || found && strings.TrimSpace(own.Body) == strings.TrimSpace(body) {
		return false, err
	}
	written := call{method: http.MethodPost, url: r.comments(request), body: wireComment{Body: body}, expect: []int{http.StatusCreated}}
	if found {
		written.method, written.url, written.expect = r.edit, r.comment(request, own.ID), []int{http.StatusOK}
	}
	return true, r.send(ctx, written, &wireComment{})
}

// own finds the first comment of an author that begins with the marker.
func (r *requests) own(ctx context.Context, request int64, marker string, by author) (wireComment, bool, error) {
	for page := 1; page <= r.commentPages; page++ {
		query := url.Values{perPage: {strconv.Itoa(commentPage)}, "sort": {"asc"}}
		var list []wireComment
		read := call{method: http.MethodGet, url: r.comments(request) + atPage(page, query), expect: []int{http.StatusOK}, limit: noteLimit}
		if err := r.send(ctx, read, &list); errors.Is(err, errTooLong) {
			break
		} else if err != nil {
			return wireComment{}, false, err
		}
		for _, c := range list {
			if by.wrote(c) && strings.HasPrefix(c.Body, marker) {
				return c, true, nil
			}
		}
		if len(list) < commentPage || r.commentPages == 1 {
			return wireComment{}, false, nil
		}
	}
	return wireComment{}, false, tooManyComments(request)
}
