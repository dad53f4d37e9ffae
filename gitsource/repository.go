package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/githubapp"
)

// DefaultTimeout limits one Resolve or Fetch if Options has no timeout.
const DefaultTimeout = 60 * time.Second

// Options say which repository to read and how.
type Options struct {
	// URL is https, http or ssh, or user@host:path. It contains no credentials.
	URL string
	// Reference to follow; the branch master if it is empty.
	Reference v1alpha1.GitReference
	// Credentials of the repository; the zero value is anonymous.
	Credentials Credentials
	// Proxy through which the server is reached; nil: directly.
	Proxy *Proxy
	// Tokens of GitHub Apps, shared by the repositories of a process; nil: not shared.
	Tokens *githubapp.Tokens
	// Access has the permissions of the operator's flags.
	Access Access
	// Verification has the signatures that a fetched commit needs.
	Verification Verification
	// Follows is the commit that a fetched branch must contain; "": any. Tags and other references may move.
	Follows string
	// Timeout of one Resolve or Fetch, DefaultTimeout if zero.
	Timeout time.Duration
	// Limits of what is read; zero fields take their defaults.
	Limits Limits
	// Room is shared by the repositories of a process; nil: this is the only repository.
	Room *Room
}

// Repository reads one remote repository. It is safe for concurrent use and has no open connections between calls.
type Repository struct {
	// options with their defaults, and the URL without credentials.
	options   Options
	endpoint  transport.Endpoint
	redaction secret.Redaction
}

// Open checks the options; it does not connect. The error is ErrInvalidURL,
// ErrInvalidCredentials or ErrInvalidReference.
func Open(o Options) (*Repository, error) {
	endpoint, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if err := o.Credentials.validate(*endpoint, o.Access); err != nil {
		return nil, err
	}
	if err := checkReference(o.Reference); err != nil {
		return nil, err
	}
	if err := o.Verification.checkMode(o.Reference); err != nil {
		return nil, err
	}
	if o.Tokens == nil {
		o.Tokens = githubapp.New(nil)
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	o.URL, o.Limits = redactURL(o.URL), o.Limits.withDefaults()
	return &Repository{options: o, endpoint: *endpoint, redaction: o.Credentials.redaction(o.Proxy.secrets()...)}, nil
}

// Host returns the name of the server, with its port.
func (r *Repository) Host() string { return hostOf(&r.endpoint) }

// HostOf returns the name of the server of a URL, with its port. The error is ErrInvalidURL.
func HostOf(url string) (string, error) {
	endpoint, err := parseURL(url)
	if err != nil {
		return "", err
	}
	return hostOf(endpoint), nil
}

func hostOf(endpoint *transport.Endpoint) string {
	return net.JoinHostPort(endpoint.Host, strconv.Itoa(endpoint.Port))
}

// Resolve returns the present revision of the reference, with one ls-remote. If the reference is a commit, no request
// is needed. The error is ErrRefNotFound, ErrAuthentication, ErrHostKey, ErrRepositoryNotFound, ErrNotGit,
// ErrObjectFormat, ErrRedirected, ErrAddressDenied, ErrLimitExceeded, or a connection error, which may be retried.
// Errors and Trees never contain the repository's credentials, even if the server repeats them.
func (r *Repository) Resolve(ctx context.Context) (Revision, error) {
	if r.options.Reference.Commit != "" {
		return Revision{Commit: r.options.Reference.Commit}, nil
	}
	return converse(ctx, r, func(s *session) (Revision, error) {
		refs, err := s.references()
		if err != nil {
			return Revision{}, err
		}
		found, err := s.selectRef(refs, r.options.Reference)
		if err != nil {
			return Revision{}, fmt.Errorf("cannot resolve %s: %w", r.options.URL, err)
		}
		return Revision{Ref: found.short, Commit: found.commit.String()}, nil
	})
}

// attempts is how often a reference is fetched if it moves between two requests. Over HTTP, the server does not store
// the list that it sent.
const attempts = 3

// converse runs a conversation with the present credentials. If the server refuses an App's token, the token may have
// been revoked, and the conversation is repeated once with another token.
func converse[T any](ctx context.Context, r *Repository, talk func(*session) (T, error)) (T, error) {
	result, err := converseOnce(ctx, r, talk)
	if r.forgetToken(err) {
		result, err = converseOnce(ctx, r, talk)
		r.forgetToken(err)
	}
	return result, err
}

// converseOnce opens a session, and repeats talk while the server refuses a commit.
func converseOnce[T any](ctx context.Context, r *Repository, talk func(*session) (T, error)) (result T, err error) {
	with, err := r.authenticated(ctx)
	if err != nil {
		return result, r.redaction.Error(err)
	}
	s, err := with.connect(ctx)
	if err == nil {
		defer s.close()
		for attempt := 1; ; attempt++ {
			if result, err = talk(s); attempt == attempts || !errors.Is(err, errRefused) {
				break
			}
		}
	}
	return result, with.redaction.Error(err)
}

// session is one conversation with the server, bounded by the timeout.
type session struct {
	*exchange
	repository *Repository
	git        git
	advertised *packp.AdvRefs
	claim      *Claim
	ctx        context.Context //nolint:containedctx // lives exactly as long as the call that made it
	cancel     context.CancelFunc
}

// git is one transport's side of a session.
type git interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	io.Closer
}

func (r *Repository) connect(ctx context.Context) (*session, error) {
	s := &session{repository: r, exchange: &exchange{packBytes: r.options.Limits.PackBytes}}
	git, err := r.transport(s.exchange)
	if err != nil {
		return nil, fmt.Errorf("cannot open %s: %w", r.options.URL, err)
	}
	s.git = git
	s.ctx, s.cancel = context.WithTimeout(ctx, r.options.Timeout)
	s.claim = r.options.Room.Claim(s.ctx, func(err error) { //nolint:contextcheck // the session's own context, derived from the caller's
		_ = s.stop(err)
		s.cancel()
	})
	s.large = s.claim
	return s, nil
}

// transport returns the transport for the URL's scheme. It does not connect.
func (r *Repository) transport(e *exchange) (git, error) {
	if r.endpoint.Protocol == schemeSSH {
		return &sshGit{exchange: e, endpoint: r.endpoint, keys: r.options.Credentials.ssh, access: r.options.Access, proxy: r.options.Proxy}, nil
	}
	c, err := newClient(r, e)
	if err != nil {
		return nil, err
	}
	endpoint := r.endpoint // a redirect changes the session's copy
	git, err := githttp.NewClient(c.http).NewUploadPackSession(&endpoint, authorize{r.options.Credentials})
	return httpGit{git, c.transport}, err
}

// httpGit closes its connections when it is closed, unlike go-git's session.
type httpGit struct {
	transport.UploadPackSession
	connections *http.Transport
}

func (g httpGit) Close() error {
	err := g.UploadPackSession.Close()
	g.connections.CloseIdleConnections()
	return err
}

func (s *session) close() {
	s.cancel()
	s.claim.Release()
	_ = s.git.Close()
}

func (s *session) references() (*packp.AdvRefs, error) {
	refs, err := s.git.AdvertisedReferencesContext(s.ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, fmt.Errorf("cannot resolve %s: %w: the repository is empty", s.repository.options.URL, ErrRefNotFound)
	}
	if err != nil {
		return nil, s.explain("list the references of", err)
	}
	if n, limit := len(refs.References), s.repository.options.Limits.Refs; n > limit {
		return nil, fmt.Errorf("cannot list the references of %s: %w: %d references, at most %d are read",
			s.repository.options.URL, ErrLimitExceeded, n, limit)
	}
	s.advertised = refs
	return refs, nil
}

// selectRef also checks names that the server chose, such as a tag of a range, because a name that contains the
// credentials could not be shown.
func (s *session) selectRef(refs *packp.AdvRefs, r v1alpha1.GitReference) (target, error) {
	found, err := selectRef(refs, r)
	if err == nil && s.repository.redaction.Text(found.name) != found.name {
		return target{}, fmt.Errorf("%w: its name holds the repository's credentials", ErrRefNotFound)
	}
	return found, err
}

// explain turns an error of the transport into an error of this package. It omits error pages of the server, and
// redacts its other texts, because a server may repeat the headers of the request.
func (s *session) explain(verb string, err error) error {
	fail := func(cause error) error { return fmt.Errorf("cannot %s %s: %w", verb, s.repository.options.URL, cause) }
	var status *githttp.Err
	switch {
	case s.stopped() != nil:
		return fail(s.stopped())
	case errors.Is(s.ctx.Err(), context.DeadlineExceeded):
		return fail(fmt.Errorf("no complete answer within %s: %w", s.repository.options.Timeout, context.DeadlineExceeded))
	case s.ctx.Err() != nil:
		return fail(s.ctx.Err())
	case s.lost() != nil:
		return fail(fmt.Errorf("the connection ended: %w", s.lost()))
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return fail(fmt.Errorf("%w: the server answered 401; check the Secret of spec.secretRef", ErrAuthentication))
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return fail(fmt.Errorf("%w: the server answered 403; check the Secret of spec.secretRef and its rights", ErrAuthentication))
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fail(fmt.Errorf("%w: the server answered 404", ErrRepositoryNotFound))
	case errors.As(unwrapUnexpected(err), &status):
		return fail(fmt.Errorf("the server answered %d", status.StatusCode()))
	}
	// The text is redacted before it is cut, because half a password must not be shown either.
	return fail(shown{s.repository.redaction.Error(err)})
}

// shown is an error whose text came from the server: one line, of bounded length.
type shown struct{ error }

// Error returns the text of the error without characters that could end the line.
func (s shown) Error() string {
	const most = 300
	text := brief.Printable(s.error.Error())
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

func (s shown) Unwrap() error { return s.error }
