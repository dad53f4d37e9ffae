package pageserver

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/dashboard"
	"github.com/addonflow/addonflow/rollout"
)

// Inspection is the plan that the operator would make of a rollout now.
type Inspection struct {
	Plan rollout.Plan
	// Note says which part is missing in the plan; "": none.
	Note string
	// Change returns the change by content on a cluster that gets or got it; nil: there is no such cluster.
	Change func(ctx context.Context, by v1alpha1.Target) (*dashboard.Change, error)
}

// Options of a Server.
type Options struct {
	// Hub reads objects, from a watch cache or from the API server.
	Hub client.Reader
	// Inspector returns a function that plans a rollout now. It is called repeatedly and may keep its renderings.
	Inspector func(key client.ObjectKey) func(context.Context) (Inspection, error)
	// Door identifies the viewer.
	Door Door
	// Base is the path above all pages, such as "/" or "/addonflow/".
	Base string
	// Namespace is listed if the credentials may not list all namespaces; "": none.
	Namespace string
	// Watched is the only namespace from which Hub reads rollouts and sources; "": all.
	Watched string
	// Poll is the time between two checks whether an open page has changed.
	Poll time.Duration
}

// Server serves the pages.
type Server struct {
	Options
	pages *dashboard.Pages
	plans plans
	open  streams
	asked paces
}

const (
	// openStreams is how many pages can be kept up to date at once.
	openStreams = 200
	// requestTimeout limits the work for one page.
	requestTimeout = 30 * time.Second
	// formLimit is the most bytes in the body of a login.
	formLimit = 16 << 10
)

// New returns a Server.
func New(o Options) (*Server, error) {
	pages, err := dashboard.NewPages()
	if err != nil {
		return nil, err
	}
	return &Server{
		Options: o, pages: pages, open: streams{of: map[string]int{}}, asked: paces{now: time.Now, of: lru.New(answersKept)},
		plans: plans{of: lru.NewWithEvictionFunc(plansKept, forgotten), atOnce: make(chan struct{}, 2)},
	}, nil
}

// Handler serves the pages below Base. Every address except login and logout is read with GET.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page(s.fleet))
	mux.HandleFunc("GET /rollouts/{namespace}/{name}", s.page(s.rollout))
	mux.HandleFunc("GET /rollouts/{namespace}/{name}/{commit}", s.page(s.rollout))
	mux.HandleFunc("GET /rollouts/{namespace}/{name}/{commit}/clusters", s.page(s.clusters))
	mux.HandleFunc("GET /sources/{namespace}/{name}", s.page(s.source))
	mux.HandleFunc("GET /sources/{namespace}/{name}/{commit}", s.page(s.source))
	mux.HandleFunc("GET /clusters/{cluster}", s.page(s.cluster))
	mux.HandleFunc("GET /events/{path...}", s.events)
	mux.HandleFunc("GET /login", s.askLogin)
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	files, err := fs.Sub(dashboard.Static(), "static")
	if err == nil { // the files are embedded
		mux.Handle("GET /static/", cached(http.StripPrefix("/static/", http.FileServerFS(files))))
	}
	return secured(http.NewCrossOriginProtection().Handler(http.StripPrefix(strings.TrimSuffix(s.Base, "/"), mux)))
}

// cached lets browsers keep style and script for a while.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=300")
		next.ServeHTTP(w, r)
	})
}

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", dashboard.Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
		h.Set("Cache-Control", "no-store")
		if r.TLS != nil {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		r.Body = http.MaxBytesReader(w, r.Body, formLimit)
		next.ServeHTTP(w, r)
	})
}

// request is one request for a page, by a viewer.
type request struct {
	*http.Request
	viewer *Viewer
	frame  dashboard.Frame
}

// refusal is the reason why a page is not shown.
type refusal struct {
	code        int
	title, text string
	to          dashboard.Link
}

func (r *refusal) Error() string { return r.text }

// redirection points to another page below Base.
type redirection struct{ to string }

func (r *redirection) Error() string { return r.to }

// page serves a view to a viewer.
func (s *Server) page(view func(*request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		frame := s.frame(r)
		viewer, err := s.Door.Enter(r)
		if err != nil {
			s.refuseEntry(w, r, frame, err)
			return
		}
		frame.Viewer = viewer.Name
		if !s.asked.allow(viewer.Name) {
			s.refuse(w, frame, &refusal{code: http.StatusTooManyRequests, title: "Too many requests", text: "You asked for many pages in a short time. Try again in a few seconds."})
			return
		}
		shown, err := view(&request{r, viewer, frame})
		if to, ok := errors.AsType[*redirection](err); ok {
			http.Redirect(w, r, s.Base+to.to, http.StatusFound)
			return
		}
		if err != nil {
			s.refuse(w, frame, refusalOf(err))
			return
		}
		s.write(w, http.StatusOK, shown)
	}
}

func (s *Server) frame(r *http.Request) dashboard.Frame {
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/")
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	return dashboard.Frame{Base: s.Base, Path: path, CommitPage: commitPage}
}

// commitPage is the page of a commit at a forge; "": the address names no commit.
func commitPage(forge *v1alpha1.CommitStatusSpec, sha string) string {
	page, err := commitstatus.CommitPage(forge.Provider, forge.Address, sha)
	if err != nil {
		return ""
	}
	return page
}

// refuseEntry requests a login from the user, or says why a login is not possible now.
func (s *Server) refuseEntry(w http.ResponseWriter, r *http.Request, frame dashboard.Frame, err error) {
	switch {
	case errors.Is(err, ErrLogin):
		http.Redirect(w, r, s.Base+"login?to="+url.QueryEscape(frame.Path), http.StatusFound)
	case errors.Is(err, ErrBusy):
		s.refuse(w, frame, &refusal{code: http.StatusTooManyRequests, title: "Too many requests", text: err.Error()})
	default:
		s.refuse(w, frame, &refusal{code: http.StatusServiceUnavailable, title: "The hub does not answer", text: "The hub did not say who you are. Try again."})
	}
}

// refusalOf is the page of an error. The hub's text about an object is not shown, because the viewer may not have the
// right to know it.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	switch {
	case apierrors.IsNotFound(err):
		return &refusal{code: http.StatusNotFound, title: "Not found", text: "There is no such object on the hub."}
	case apierrors.IsForbidden(err):
		return &refusal{code: http.StatusForbidden, title: "Not allowed", text: "The hub does not let you get this."}
	}
	return &refusal{code: http.StatusServiceUnavailable, title: "The hub does not answer", text: "The hub did not answer in time, or with an error. Try again."}
}

func (s *Server) refuse(w http.ResponseWriter, frame dashboard.Frame, r *refusal) {
	frame.Title = r.title
	s.write(w, r.code, dashboard.Message{Frame: frame, Text: r.text, To: r.to})
}

func (s *Server) write(w http.ResponseWriter, code int, view any) {
	var page bytes.Buffer
	if err := s.pages.Write(&page, view); err != nil {
		http.Error(w, "the page cannot be drawn", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(page.Len()))
	w.WriteHeader(code)
	_, _ = w.Write(page.Bytes()) // the client has closed the connection, or has the page
}

// localTo matches the addresses below Base to which a login may redirect.
var localTo = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._~/?&=%+-]*)?$`)

// askLogin shows the form. A local user opens this address with the key in it.
func (s *Server) askLogin(w http.ResponseWriter, r *http.Request) {
	to := localOnly(r.URL.Query().Get("to"))
	if key := r.URL.Query().Get("key"); key != "" {
		if _, local := s.Door.(LocalDoor); local && s.Door.Login(w, r, key) == nil {
			http.Redirect(w, r, s.Base+to, http.StatusFound) //nolint:gosec // to is below Base, see localTo
			return
		}
	}
	s.write(w, http.StatusOK, s.form(to, ""))
}

func (s *Server) form(to, refused string) any {
	frame := dashboard.Frame{Base: s.Base, Path: "login", Title: "Log in"}
	if _, local := s.Door.(LocalDoor); local {
		frame.Title = "Open the address that the command printed"
		return dashboard.Message{Frame: frame, Text: "addonflow dashboard prints an address with a key. Open that one."}
	}
	return dashboard.Login{Frame: frame, To: to, Refused: refused}
}

// login checks the token in the form. A token in the address would be written to logs.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	r = r.WithContext(ctx)
	if err := r.ParseForm(); err != nil {
		s.write(w, http.StatusRequestEntityTooLarge, s.form("", "The form is too large."))
		return
	}
	to := localOnly(r.PostForm.Get("to"))
	err := s.Door.Login(w, r, r.PostForm.Get("token"))
	switch {
	case err == nil:
		http.Redirect(w, r, s.Base+to, http.StatusSeeOther) //nolint:gosec // to is below Base, see localTo
	case errors.Is(err, ErrLogin):
		s.write(w, http.StatusUnauthorized, s.form(to, "The hub does not know this token, or it is longer than a cookie can be."))
	case errors.Is(err, ErrBusy):
		s.write(w, http.StatusTooManyRequests, s.form(to, err.Error()))
	default:
		s.write(w, http.StatusServiceUnavailable, s.form(to, "The hub does not answer. Try again."))
	}
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	s.Door.Logout(w, r)
	http.Redirect(w, r, s.Base+"login", http.StatusSeeOther)
}

func localOnly(to string) string {
	if len(to) > 2048 || !localTo.MatchString(to) {
		return ""
	}
	return to
}

// named reads names of objects from the address.
func named(r *http.Request, parts ...string) error {
	for _, part := range parts {
		if len(validation.IsDNS1123Subdomain(r.PathValue(part))) > 0 {
			return &refusal{code: http.StatusNotFound, title: "Not found", text: "The address is not that of an object."}
		}
	}
	return nil
}

// A viewer gets pagesAtOnce pages at once, and then pagesPerSecond: a page of a large fleet takes much time of a
// processor that the operator shares.
const (
	pagesPerSecond = 5
	pagesAtOnce    = 50
)

// paces limits the pages of each viewer.
type paces struct {
	now func() time.Time

	mu sync.Mutex
	// of has a *rate.Limiter for each viewer. If it is full, the viewer whose last page is the oldest is dropped.
	of *lru.Cache
}

// allow reports whether a viewer may have another page now.
func (p *paces) allow(viewer string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, _ := p.of.Get(viewer)
	limiter, ok := found.(*rate.Limiter)
	if !ok {
		limiter = rate.NewLimiter(pagesPerSecond, pagesAtOnce)
		p.of.Add(viewer, limiter)
	}
	return limiter.AllowN(p.now(), 1)
}

// plans caches the latest plans, so that many viewers of a rollout cost one plan.
type plans struct {
	mu sync.Mutex
	// of has a *planned for each client.ObjectKey. If it is full, the plan that was not used for longest is dropped.
	of     *lru.Cache
	atOnce chan struct{}
}

// planned is the plan of one rollout. The lock is held while it is being made.
type planned struct {
	inspect func(context.Context) (Inspection, error)
	// unseen drops the plan and its renderings if it was not used for keptFor.
	unseen *time.Timer

	mu      sync.Mutex
	version string
	until   time.Time
	Inspection
	err error
}

const (
	// planFor is the least time for which a plan is shown. A plan is shown for shownTimes as long as it took to make.
	// So for each rollout that is viewed, plans take at most a tenth of one processor.
	planFor    = 2 * time.Second
	shownTimes = 10
	// plansKept and keptFor limit the plans in memory.
	plansKept = 64
	keptFor   = 10 * time.Minute
)

// get returns the plan of a rollout; it may be empty.
func (s *plans) get(key client.ObjectKey, inspector func(client.ObjectKey) func(context.Context) (Inspection, error)) *planned {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _ := s.of.Get(key)
	if p, ok := found.(*planned); ok {
		p.unseen.Reset(keptFor)
		return p
	}
	p := &planned{inspect: inspector(key)}
	p.unseen = time.AfterFunc(keptFor, func() { s.of.Remove(key) })
	s.of.Add(key, p)
	return p
}

// forgotten stops the timer of a dropped plan, because the timer would keep the plan in memory.
func forgotten(_ lru.Key, value any) {
	if p, ok := value.(*planned); ok {
		p.unseen.Stop()
	}
}

// inspect returns the plan of a rollout in one version.
func (s *Server) inspect(ctx context.Context, key client.ObjectKey, version string) (Inspection, error) {
	p := s.plans.get(key, s.Inspector)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version == version && time.Now().Before(p.until) || time.Now().Before(p.until.Add(-planFor)) {
		return p.Inspection, p.err
	}
	select {
	case s.plans.atOnce <- struct{}{}:
		defer func() { <-s.plans.atOnce }()
	case <-ctx.Done():
		return Inspection{}, ctx.Err()
	}
	begun := time.Now()
	p.Inspection, p.err = p.inspect(ctx)
	if ctx.Err() != nil {
		p.version = "" // the next viewer may have more time
		return Inspection{}, ctx.Err()
	}
	p.version, p.until = version, time.Now().Add(planFor+shownTimes*time.Since(begun))
	return p.Inspection, p.err
}
