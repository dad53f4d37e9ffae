package forge

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problem is an error answer of either API.
type problem struct {
	Message string `json:"message"`
	URL     string `json:"url,omitempty"`
	Errors  any    `json:"errors,omitempty"`
	DocURL  string `json:"documentation_url,omitempty"`
	Status  string `json:"status,omitempty"`
}

// post is a status as it is sent; both APIs take the same.
type post struct {
	State       string `json:"state"`
	TargetURL   string `json:"target_url"`
	Description string `json:"description"`
	Context     string `json:"context"`
}

// pending is the one state that is no verdict.
const pending = "pending"

// states returns the states that both APIs know.
func states() []string { return []string{pending, "success", "failure", "error"} }

// dialect is what differs between the APIs.
type dialect interface {
	// name is how entries say where they came in.
	name() API
	// unauthorised answers a request without the right token.
	unauthorised(w http.ResponseWriter)
	// check refuses a post; nil: it is fine. earlier are the context's statuses.
	check(p post, earlier int) *refusal
	// unknownCommit answers a post about a commit that does not exist.
	unknownCommit(w http.ResponseWriter, sha string)
	// created answers a post that was stored, list a list, combined the newest per context.
	created(w http.ResponseWriter, base string, e Entry)
	list(w http.ResponseWriter, base string, entries []Entry)
	combined(w http.ResponseWriter, base, sha string, entries []Entry)
	// pageSize reads the size of a page off the query.
	pageSize(r *http.Request) int
}

// refusal is an answer to an invalid request.
type refusal struct {
	code    int
	problem problem
}

// ServeHTTP serves both APIs and the log.
func (f *Forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/log" || r.URL.Path == "/log.json":
		f.servePage(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/api/v1/repos/"):
		f.serveAPI(w, r, giteaDialect{}, strings.TrimPrefix(r.URL.Path, "/api/v1/repos/"))
	case r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/api/v3/app/installations/"):
		f.issue(w)
	case strings.HasPrefix(r.URL.Path, "/api/v3/repos/"):
		f.serveAPI(w, r, githubDialect{}, strings.TrimPrefix(r.URL.Path, "/api/v3/repos/"))
	case strings.HasPrefix(r.URL.Path, "/repos/"):
		f.serveAPI(w, r, githubDialect{}, strings.TrimPrefix(r.URL.Path, "/repos/"))
	default:
		reply(w, http.StatusNotFound, problem{Message: "Not Found"})
	}
}

// serveAPI serves one request below repos/.
func (f *Forge) serveAPI(w http.ResponseWriter, r *http.Request, api dialect, path string) {
	fault, released := f.strike(r)
	if f.refuse(w, r, fault, released) {
		return
	}
	if !f.admits(r) {
		api.unauthorised(w)
		return
	}
	parts := strings.Split(path, "/")
	if len(parts) < 3 || !f.hasRepository(parts[0]+"/"+parts[1]) {
		reply(w, http.StatusNotFound, problem{Message: "Not Found"})
		return
	}
	kind, sha := route(parts[2:])
	target := resource{repository: parts[0] + "/" + parts[1], sha: sha, base: baseURL(r, path)}
	switch r.Method + " " + kind {
	case "POST statuses":
		f.create(w, r, api, target, fault)
	case "GET statuses", "GET commits/statuses":
		f.list(w, r, api, target)
	case "GET commits/status":
		f.combine(w, r, api, target)
	default:
		reply(w, http.StatusNotFound, problem{Message: "Not Found"})
	}
}

// issue gives a GitHub App the token that requests need now. The proof of its key is not checked.
func (f *Forge) issue(w http.ResponseWriter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reply(w, http.StatusCreated, map[string]any{"token": f.token, "expires_at": f.clock().Add(time.Hour).UTC().Format(time.RFC3339)})
}

// route takes the commit out of a path: statuses/{sha}, commits/{sha}/status and
// commits/{sha}/statuses.
func route(parts []string) (kind, sha string) {
	switch len(parts) {
	case 2:
		return parts[0], parts[1]
	case 3:
		return parts[0] + "/" + parts[2], parts[1]
	default:
		return "", ""
	}
}

// resource is what a request is about.
type resource struct{ repository, sha, base string }

// baseURL returns the URL of the API's repos/owner/name, for the links in answers.
func baseURL(r *http.Request, path string) string {
	parts := strings.SplitN(path, "/", 3)
	prefix := strings.TrimSuffix(r.URL.Path, path)
	return "http://" + r.Host + prefix + parts[0] + "/" + parts[1]
}

// create stores a status.
func (f *Forge) create(w http.ResponseWriter, r *http.Request, api dialect, target resource, fault Fault) {
	var p post
	if err := json.NewDecoder(io.LimitReader(r.Body, 1<<16)).Decode(&p); err != nil {
		reply(w, http.StatusUnprocessableEntity, problem{Message: "Problems parsing JSON"})
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.hasCommit(target.sha) {
		api.unknownCommit(w, target.sha)
		return
	}
	earlier := 0
	for _, e := range f.newest(target.repository, target.sha) {
		if strings.EqualFold(e.Context, p.Context) {
			earlier++
		}
	}
	if refused := api.check(p, earlier); refused != nil {
		reply(w, refused.code, refused.problem)
		return
	}
	stored := f.store(Entry{
		API: api.name(), Repository: target.repository, SHA: target.sha,
		Context: p.Context, State: p.State, Description: p.Description, TargetURL: p.TargetURL,
	})
	if !spoil(w, fault) {
		api.created(w, target.base, stored)
	}
}

// list answers with a commit's statuses, newest first.
func (f *Forge) list(w http.ResponseWriter, r *http.Request, api dialect, target resource) {
	f.mu.Lock()
	entries := f.newest(target.repository, target.sha)
	f.mu.Unlock()
	w.Header().Set("X-Total-Count", strconv.Itoa(len(entries)))
	api.list(w, target.base, page(r, api.pageSize(r), entries))
}

// combine answers with the newest status of each context.
func (f *Forge) combine(w http.ResponseWriter, r *http.Request, api dialect, target resource) {
	f.mu.Lock()
	entries := f.newest(target.repository, target.sha)
	f.mu.Unlock()
	var newest []Entry
	for _, e := range entries {
		if !slices.ContainsFunc(newest, func(n Entry) bool { return n.Context == e.Context }) {
			newest = append(newest, e)
		}
	}
	api.combined(w, target.base, target.sha, page(r, api.pageSize(r), newest))
}

// page returns the part of the entries that the query asks for.
func page(r *http.Request, size int, entries []Entry) []Entry {
	number, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil || number < 1 {
		number = 1
	}
	from := min((number-1)*size, len(entries))
	return entries[from:min(from+size, len(entries))]
}

// size reads a page size off the query, within the API's limits.
func size(r *http.Request, parameter string, otherwise, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(parameter))
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, most)
}

// admits reports whether the request carries the token, in either API's scheme.
func (f *Forge) admits(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return token == f.token && (strings.EqualFold(scheme, "token") || strings.EqualFold(scheme, "bearer"))
}

// hasRepository reports whether the repository exists.
func (f *Forge) hasRepository(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.repositories) == 0 || slices.Contains(f.repositories, name)
}

// hasCommit reports whether the commit exists. The lock is held.
func (f *Forge) hasCommit(sha string) bool {
	full := len(sha) == 40 && strings.Trim(sha, "0123456789abcdef") == ""
	return full && (len(f.commits) == 0 || slices.Contains(f.commits, sha))
}

// reply answers with JSON.
func reply(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
