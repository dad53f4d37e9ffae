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
	"time"
)

// Level is the permission of an account in a repository.
type Level int

// The levels that the forges distinguish. Gitea and Forgejo have no Maintain.
const (
	LevelNone Level = iota
	LevelRead
	LevelWrite
	LevelMaintain
	LevelAdmin
)

// MergedRequest is the pull request with which a commit was merged into its branch.
type MergedRequest struct {
	Number int64
	// Author opened the request.
	Author Account
	// At is the time of the merge, by the forge's clock. Only later comments are read.
	At time.Time
}

// lineLimit is how many commits of a branch are read.
const lineLimit = 50

// linePages is how many pages of commits are read. The list has the commits of the branch and those of all merged
// branches.
const linePages = 4

// LineCommit is a commit that was once at the head of a branch.
type LineCommit struct {
	SHA string
	// Author is the author according to the forge.
	Author Account
}

// Account is a user of a forge. Two accounts are the same if they have the same ID, because users may change their
// login. The forge names no account if the ID is 0.
type Account struct {
	ID    int64
	Login string
}

// Comment is a comment on a pull request that is not part of a review.
type Comment struct {
	ID   int64
	By   Account
	Body string
	// Created is the time of the comment, by the forge's clock. Edited: it was changed later.
	Created time.Time
	Edited  bool
}

// Comments reads the comments of users on merged pull requests. Every error is a *DeliveryError.
type Comments interface {
	// Merged returns the request with which a commit was merged into a branch; false: there is none.
	Merged(ctx context.Context, sha, branch string) (MergedRequest, bool, error)
	// Line returns a commit and the earlier heads of its branch, the newest first, without the commit earlier. whole:
	// earlier is among the newest lineLimit commits.
	Line(ctx context.Context, sha, earlier string) (line []LineCommit, whole bool, err error)
	// Authors returns the authors and committers of a request's commits. One of them has the ID 0 if the forge names no
	// account, or if the request has too many commits.
	Authors(ctx context.Context, request MergedRequest) ([]Account, error)
	// After returns the comments of known accounts after the merge of a request, the oldest first.
	After(ctx context.Context, request MergedRequest) ([]Comment, error)
	// Level returns the present permission of an account.
	Level(ctx context.Context, by Account) (Level, error)
	// Host is the name of the forge.
	Host() string
	// Permission is the forge's name of the permission that the token needs to read comments.
	Permission() string
}

// NewComments returns the comments in the repository that the configuration names. The error is for
// the author of the configuration, such as that the forge's comments are not read.
func NewComments(config Config) (Comments, error) {
	p, client, err := config.parts()
	if err != nil {
		return nil, err
	}
	if p.comments == nil {
		return nil, fmt.Errorf("cannot read comments of provider %q", config.Provider)
	}
	return &comments{&requests{client: client, dialect: p.requests(client.repository)}, p.comments(client.repository)}, nil
}

// comments is the client of every dialect.
type comments struct {
	*requests
	commentDialect
}

// commentDialect is the part that differs between the forges.
type commentDialect struct {
	// merged is the URL of the request of a commit. one: the answer is one request, not a list.
	merged func(sha string) string
	one    bool
	// commits is the URL of a page of the list of a commit and its predecessors.
	commits func(sha string, page int) string
	// contained is the URL of a page of the list of a request's commits; nil: the forge names no account in it.
	contained func(request int64, page int) string
	// newestFirst: the list of comments begins with the newest. Its query has no time.
	newestFirst bool
	// member is the URL of the permission of an account.
	member     func(by Account) string
	permission string
}

// githubComments: https://docs.github.com/en/rest/commits/commits and .../collaborators/collaborators.
func githubComments(repo repository) commentDialect {
	return commentDialect{
		merged: func(sha string) string { return repo.endpoint("commits", sha, "pulls") },
		commits: func(sha string, page int) string {
			return repo.endpoint("commits") + atPage(page, url.Values{"sha": {sha}, perPage: {strconv.Itoa(lineLimit)}})
		},
		contained: func(request int64, page int) string {
			return repo.endpoint("pulls", strconv.FormatInt(request, 10), "commits") + atPage(page, url.Values{perPage: {strconv.Itoa(lineLimit)}})
		},
		member:     func(by Account) string { return repo.endpoint("collaborators", by.Login, "permission") },
		permission: "Pull requests: read, Contents: read and Metadata: read (a classic token: repo)",
	}
}

// giteaComments: only an administrator of the repository may read the permissions of other users.
func giteaComments(repo repository) commentDialect {
	d := githubComments(repo)
	d.merged, d.one = func(sha string) string { return repo.endpoint("commits", sha, "pull") }, true
	brief := func() url.Values {
		return url.Values{"limit": {strconv.Itoa(lineLimit)}, "stat": {"false"}, "verification": {"false"}, "files": {"false"}}
	}
	d.commits = func(sha string, page int) string {
		query := brief()
		query.Set("sha", sha)
		return repo.endpoint("commits") + atPage(page, query)
	}
	d.contained = func(request int64, page int) string {
		return repo.endpoint("pulls", strconv.FormatInt(request, 10), "commits") + atPage(page, brief())
	}
	d.permission = "read:repository and read:issue, of a user who administers the repository"
	return d
}

// gitlabComments: https://docs.gitlab.com/api/commits/ and .../members/.
func gitlabComments(repo repository) commentDialect {
	return commentDialect{
		merged: func(sha string) string { return repo.endpoint("repository", "commits", sha, "merge_requests") },
		commits: func(sha string, page int) string {
			return repo.endpoint("repository", "commits") + atPage(page, url.Values{"ref_name": {sha}, perPage: {strconv.Itoa(lineLimit)}})
		},
		newestFirst: true,
		member:      func(by Account) string { return repo.endpoint("members", "all", strconv.FormatInt(by.ID, 10)) },
		permission:  "the scope api and the role Reporter",
	}
}

// wireMerged is a merged request in the answers of GitHub and Gitea, and of GitLab.
type wireMerged struct {
	Number   int64      `json:"number"`
	MergedAt *time.Time `json:"merged_at"`
	Commit   string     `json:"merge_commit_sha"`
	User     *wireLogin `json:"user"`
	Base     struct {
		Ref string `json:"ref"`
	} `json:"base"`

	IID    int64      `json:"iid"`
	Author *wireLogin `json:"author"`
	Target string     `json:"target_branch"`
	Squash string     `json:"squash_commit_sha"`
	SHA    string     `json:"sha"`
}

// wireLogin is an account; GitLab calls the login username.
type wireLogin struct {
	ID       int64  `json:"id"`
	Login    string `json:"login"`
	Username string `json:"username"`
}

func (l *wireLogin) account() Account {
	if l == nil {
		return Account{}
	}
	return Account{ID: l.ID, Login: cmp.Or(l.Login, l.Username)}
}

// Bounds of a list of comments. Every user who sees a request can write comments. So the limit of an answer is a page
// of the largest comments, with every character escaped. Gitea's list has no pages; hundreds of usual comments fit.
const (
	notePage  = 40
	noteLimit = notePage * 6 * (64 << 10)
)

// tooManyComments is the error if not all comments of a request can be read.
func tooManyComments(request int64) *DeliveryError {
	return &DeliveryError{Reason: fmt.Sprintf("request %d has too many comments to read; delete some", request), Permanent: true}
}

// read makes a read-only call.
func (c *comments) read(ctx context.Context, at string, out any, expect ...int) error {
	return c.client.send(ctx, call{method: http.MethodGet, url: at, expect: expect, limit: noteLimit, doing: "read comments and permissions", refused: "request"}, out)
}

// Host implements Comments.
func (c *comments) Host() string { return c.client.host }

// Permission implements Comments.
func (c *comments) Permission() string { return c.permission }

// Merged implements Comments. The commit must be the head of the branch right after the merge. So it contains no
// later push.
func (c *comments) Merged(ctx context.Context, sha, branch string) (MergedRequest, bool, error) {
	var list []wireMerged
	if c.one {
		var w wireMerged
		if err := c.read(ctx, c.merged(sha), &w, http.StatusOK, http.StatusNotFound); err != nil {
			return MergedRequest{}, false, err
		}
		list = append(list, w)
	} else if err := c.read(ctx, c.merged(sha), &list, http.StatusOK); err != nil {
		return MergedRequest{}, false, err
	}
	for _, w := range list {
		last := w.Commit == sha
		if w.IID > 0 { // GitLab names the commit that it made; after a fast-forward it names none
			last = last || w.Squash == sha && w.Commit == "" || w.SHA == sha && w.Commit == "" && w.Squash == ""
		}
		number := max(w.Number, w.IID)
		if !last || w.MergedAt == nil || number <= 0 || cmp.Or(w.Base.Ref, w.Target) != branch {
			continue
		}
		return MergedRequest{Number: number, Author: cmp.Or(w.User.account(), w.Author.account()), At: *w.MergedAt}, true, nil
	}
	return MergedRequest{}, false, nil
}

// wireCommit is a commit in the answers of GitHub and Gitea, and of GitLab (id, parent_ids), which names no account.
type wireCommit struct {
	SHA       string     `json:"sha"`
	Author    *wireLogin `json:"author"`
	Committer *wireLogin `json:"committer"`
	Parents   []struct {
		SHA string `json:"sha"`
	} `json:"parents"`

	ID        string   `json:"id"`
	ParentIDs []string `json:"parent_ids"`
}

// before is the previous head of the branch; "": none.
func (w wireCommit) before() string {
	if len(w.Parents) > 0 {
		return w.Parents[0].SHA
	}
	if len(w.ParentIDs) > 0 {
		return w.ParentIDs[0]
	}
	return ""
}

// Line implements Comments.
func (c *comments) Line(ctx context.Context, sha, earlier string) (line []LineCommit, whole bool, err error) {
	known := map[string]wireCommit{}
	for page := 1; page <= linePages && len(line) < lineLimit; page++ {
		var list []wireCommit
		if err := c.read(ctx, c.commits(sha, page), &list, http.StatusOK); err != nil {
			return nil, false, err
		}
		for _, w := range list {
			known[cmp.Or(w.SHA, w.ID)] = w
		}
		at := sha
		if len(line) > 0 {
			at = known[line[len(line)-1].SHA].before()
		}
		for ; at != earlier && len(line) < lineLimit; at = known[at].before() {
			w, ok := known[at]
			if !ok {
				break
			}
			author := Account{}
			if w.ID == "" {
				author = w.Author.account()
			}
			line = append(line, LineCommit{SHA: at, Author: author})
		}
		if at == earlier {
			return line, true, nil
		}
		if len(list) < lineLimit {
			return line, false, nil
		}
	}
	return line, false, nil
}

// Authors implements Comments.
func (c *comments) Authors(ctx context.Context, request MergedRequest) (authors []Account, err error) {
	for page := 1; page <= linePages && c.contained != nil; page++ {
		var list []wireCommit
		if err := c.read(ctx, c.contained(request.Number, page), &list, http.StatusOK); err != nil {
			return nil, err
		}
		for _, w := range list {
			authors = append(authors, w.Author.account(), w.Committer.account())
		}
		if len(authors) > 0 && (len(list) == 0 || len(list) < lineLimit && !c.ragged) {
			slices.SortFunc(authors, func(x, y Account) int { return cmp.Compare(x.ID, y.ID) })
			return slices.Compact(authors), nil
		}
	}
	return append(authors, Account{}), nil
}

// wireNote is a comment in the answers of GitHub and Gitea (user), and of GitLab (author, type, system).
type wireNote struct {
	ID      int64      `json:"id"`
	Body    string     `json:"body"`
	User    *wireLogin `json:"user"`
	Author  *wireLogin `json:"author"`
	Created time.Time  `json:"created_at"`
	Updated time.Time  `json:"updated_at"`
	// System notes are written by GitLab itself; notes with a Type belong to a review or a thread.
	System bool    `json:"system"`
	Type   *string `json:"type"`
}

// After implements Comments.
func (c *comments) After(ctx context.Context, request MergedRequest) ([]Comment, error) {
	var all []Comment
	for page := 1; page <= c.commentPages; page++ {
		query := url.Values{perPage: {strconv.Itoa(notePage)}, "since": {request.At.UTC().Format(time.RFC3339)}}
		if c.newestFirst {
			query = url.Values{perPage: {strconv.Itoa(notePage)}, "sort": {"desc"}, "order_by": {"created_at"}}
		}
		var list []wireNote
		if err := c.read(ctx, c.comments(request.Number)+atPage(page, query), &list, http.StatusOK); errors.Is(err, errTooLong) {
			break
		} else if err != nil {
			return nil, err
		}
		older := false
		for _, n := range list {
			if !n.Created.After(request.At) {
				older = true
				continue
			}
			by := cmp.Or(n.User.account(), n.Author.account())
			if n.System || n.Type != nil || by.ID == 0 {
				continue
			}
			all = append(all, Comment{ID: n.ID, By: by, Body: n.Body, Created: n.Created, Edited: !n.Updated.Equal(n.Created)})
		}
		if len(list) < notePage || c.commentPages == 1 || older && c.newestFirst {
			slices.SortFunc(all, func(a, b Comment) int { return cmp.Compare(a.ID, b.ID) })
			return all, nil
		}
	}
	return nil, tooManyComments(request.Number)
}

// wireMember is the permission of an account: GitHub and Gitea name permission and account, GitLab has a number and a
// state.
type wireMember struct {
	User       *wireLogin `json:"user"`
	Permission string     `json:"permission"`
	Role       string     `json:"role_name"`
	Level      int        `json:"access_level"`
	State      string     `json:"state"`
}

// Level implements Comments. An unknown role counts as the lowest role that it includes.
func (c *comments) Level(ctx context.Context, by Account) (Level, error) {
	var m wireMember
	if err := c.read(ctx, c.member(by), &m, http.StatusOK, http.StatusNotFound); err != nil {
		return LevelNone, err
	}
	switch {
	case m.User != nil && m.User.ID != by.ID: // another account has this login now
		return LevelNone, nil
	case m.Level > 0 && m.State != "active":
		return LevelNone, nil
	case m.Permission == "admin", m.Permission == "owner", m.Level >= 50:
		return LevelAdmin, nil
	case m.Permission == "write" && strings.EqualFold(m.Role, "maintain"), m.Permission == "maintain", m.Level >= 40:
		return LevelMaintain, nil
	case m.Permission == "write", m.Level >= 30:
		return LevelWrite, nil
	case m.Permission == "read", m.Level > 0:
		return LevelRead, nil
	}
	return LevelNone, nil
}
