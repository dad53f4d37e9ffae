package commitstatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// The providers that New knows.
const (
	// ProviderGitea is Gitea.
	ProviderGitea = "gitea"
	// ProviderForgejo is Forgejo; its API is Gitea's.
	ProviderForgejo = "forgejo"
	// ProviderGitHub is GitHub and GitHub Enterprise Server.
	ProviderGitHub = "github"
)

// requestTimeout bounds one request when the caller's client sets no limit.
const requestTimeout = 15 * time.Second

// Config says where a repository's statuses are posted.
type Config struct {
	// Provider is one of the Provider constants.
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
	switch config.Provider {
	case ProviderGitea, ProviderForgejo:
		return newGitea(config, client)
	case ProviderGitHub:
		return newGitHub(config, client)
	default:
		return nil, fmt.Errorf("cannot report commit statuses: provider %q is not one of %s, %s, %s",
			config.Provider, ProviderGitea, ProviderForgejo, ProviderGitHub)
	}
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
