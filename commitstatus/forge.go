package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Forge posts and reads the commit statuses of one repository. Every error is a
// *DeliveryError. Implementations are safe for concurrent use.
type Forge interface {
	// Post adds a status. It returns nil only when the forge confirmed that it stored
	// exactly this one. A forge appends; posting twice shows twice.
	Post(ctx context.Context, status Status) error
	// Latest returns the newest status of a context, and false if the forge has none
	// of it for that commit.
	Latest(ctx context.Context, sha, context string) (Status, bool, error)
}

// provider is the part that differs between kinds of forge. The rest of the package is the same for
// all of them.
type provider struct {
	open func(Config, *restClient) (Forge, error)
	// pace is how many requests a second a token may make, and burst how many at once.
	pace  rate.Limit
	burst int
	// foldsCase: contexts that differ only in case are one.
	foldsCase bool
}

// providers are the kinds of forges, by the value of commitStatus.provider. A new one is a file
// with its Forge, a row here, and its name in the enum of the API.
func providers() map[string]provider {
	// These have no limit. Theirs only keeps a burst from looking like an attack.
	gitea := provider{open: newGitea, pace: 20, burst: 100}
	return map[string]provider{
		"gitea":   gitea,
		"forgejo": gitea, // its API is Gitea's
		// GitHub and GitHub Enterprise Server allow 80 requests that create content a minute.
		"github": {open: newGitHub, pace: rate.Every(time.Second), burst: 20, foldsCase: true},
	}
}

// Providers returns the kinds of forges that New knows, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(providers())) }

// NewLimiter returns the limiter of one token for a kind of forge.
func NewLimiter(kind string) *rate.Limiter {
	p := providers()[kind]
	return rate.NewLimiter(p.pace, p.burst)
}

// SameContext reports whether two names of contexts are one context for a kind of forge.
func SameContext(kind, one, other string) bool {
	return one == other || providers()[kind].foldsCase && strings.EqualFold(one, other)
}

// requestTimeout bounds one request when the caller's client sets no limit.
const requestTimeout = 15 * time.Second

// Config says where a repository's statuses are posted.
type Config struct {
	// Provider is one of Providers.
	Provider string
	// Address is the repository's web address, or that of its API endpoint.
	Address string
	// Token is sent to the address's forge only. It needs the right to write statuses (Gitea:
	// write:repository; GitHub: Commit statuses, write).
	Token Secret
	// HTTPClient carries the transport: proxy, CA certificates, timeout. Redirects
	// are never followed, whatever it says. Nil: the default transport.
	HTTPClient *http.Client
	// Limiter paces the requests of every Forge with the same token. Nil: only the forge's own
	// answers do.
	Limiter *rate.Limiter
	// Clock returns the time, for forges that name an absolute time to come back. Nil: the
	// system's.
	Clock func() time.Time
}

// New returns the forge that the configuration names. It does not connect. The error is for the
// author of the configuration and contains no secret.
func New(config Config) (Forge, error) {
	client, err := newRESTClient(config)
	if err != nil {
		return nil, err
	}
	p, known := providers()[config.Provider]
	if !known {
		return nil, fmt.Errorf("cannot report commit statuses: provider %q is not one of %s", config.Provider, strings.Join(Providers(), ", "))
	}
	return p.open(config, client)
}

// newRESTClient returns the client that both forges share.
func newRESTClient(config Config) (*restClient, error) {
	token := strings.TrimSpace(string(config.Token))
	if token == "" {
		return nil, errors.New("cannot report commit statuses: the token is empty")
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("cannot report commit statuses: the token is not one printable word")
	}
	transport := http.Client{}
	if config.HTTPClient != nil {
		transport = *config.HTTPClient
	}
	if transport.Timeout == 0 {
		transport.Timeout = requestTimeout
	}
	// A redirect would turn a POST into a GET, whose success proves nothing, or send the token
	// to another host.
	transport.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	transport.Jar = nil
	clock := config.Clock
	if clock == nil {
		clock = time.Now
	}
	return &restClient{http: &transport, token: Secret(token), limiter: config.Limiter, clock: clock}, nil
}
