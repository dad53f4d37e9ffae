package commitstatus

import (
	"cmp"
	"context"
	"encoding/base64"
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
	// Post adds a status. It returns nil only if the forge confirmed that it stored exactly this status. A forge
	// appends: a status that is posted twice is shown twice.
	Post(ctx context.Context, status Status) error
	// Shown returns the newest statuses of one commit, by context. The value nil means that the forge has no status
	// of the context. A context without an entry was not read. Shown reads at least the first of the contexts, and
	// all of them if the forge lists them in one request.
	Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error)
}

// Latest returns the newest status of a context; false: the forge has none for that commit.
func Latest(ctx context.Context, forge Forge, sha, context string) (Status, bool, error) {
	shown, err := forge.Shown(ctx, sha, []string{context})
	if err != nil || shown[context] == nil {
		return Status{}, false, err
	}
	return *shown[context], true, nil
}

// provider is the part that differs between kinds of forge. The fields up to burst are required; the others have
// useful zero values.
type provider struct {
	open func(Config, *restClient) Forge
	// address reads addresses of repositories, and names the pages of commits.
	address addressing
	// authorize returns the value of the header for a token.
	authorize func(token string) string
	// permission is the forge's name of the permission that the token needs.
	permission string
	// pace is how many requests a second a token may make, and burst how many at once; 0: no request is made.
	pace  rate.Limit
	burst int

	// header has what authorize returns; "": Authorization.
	header string
	// descriptions and contexts are how many characters of a description and of a context the forge stores; 0: no fewer
	// than DescriptionLimit and ContextLimit.
	descriptions, contexts int
	// webhook proves that the forge sent a webhook; nil: it sends none.
	webhook *Webhook
	// apps: a GitHub App can post statuses. needsApp: only a GitHub App can.
	apps, needsApp bool
	// foldsCase: contexts that differ only in case are the same.
	foldsCase bool
	// requests reads and answers pull requests; nil: not supported.
	requests func(repository) dialect
	// comments reads approvals by comment, which needs requests, too; nil: not supported.
	comments func(repository) commentDialect
	// proposals opens pull requests; nil: not supported.
	proposals func(*restClient) Proposals
	// keepsPendingText: the text of a pending status cannot be replaced while it is pending.
	keepsPendingText bool
}

// providers are the kinds of forges, by the value of commitStatus.provider. A new kind needs a file with its Forge, a
// row here, and its name in the enum of CommitStatusSpec.Provider.
func providers() map[string]provider {
	return map[string]provider{
		"azuredevops":     azureProvider(),
		"bitbucket":       bitbucketProvider(),
		"bitbucketserver": bitbucketServerProvider(),
		"forgejo":         forgejoProvider(),
		"gitea":           giteaProvider(),
		"github":          githubProvider(),
		"githubchecks":    githubChecksProvider(),
		"gitlab":          gitlabProvider(),
	}
}

// providerNamed returns a kind of forge.
func providerNamed(name string) (provider, error) {
	p, known := providers()[name]
	if !known {
		return provider{}, fmt.Errorf("cannot report commit statuses: provider %q is not one of %s", name, named(func(provider) bool { return true }))
	}
	return p, nil
}

// named lists the kinds of forges with a property, for a text.
func named(has func(provider) bool) string {
	all := providers()
	maps.DeleteFunc(all, func(_ string, p provider) bool { return !has(p) })
	return strings.Join(slices.Sorted(maps.Keys(all)), ", ")
}

// Permission returns the forge's name of the permission that a token needs on a kind of forge.
func Permission(kind string) string { return providers()[kind].permission }

// bearer returns the value for a bearer token.
func bearer(token string) string { return "Bearer " + token }

// basic returns the value for basic authentication, for user:password.
func basic(credentials string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
}

// NewLimiter returns the limiter of one token for a kind of forge.
func NewLimiter(kind string) *rate.Limiter {
	p := providers()[kind]
	return rate.NewLimiter(p.pace, p.burst)
}

// ShareContexts reports whether two sources with these context names would write one context on a kind of forge: the
// names are equal, or one name is below the other, like the context of an add-on.
func ShareContexts(kind, one, other string) bool {
	if providers()[kind].foldsCase {
		one, other = strings.ToLower(one), strings.ToLower(other)
	}
	return one == other || strings.HasPrefix(one, other+"/") || strings.HasPrefix(other, one+"/")
}

// requestTimeout bounds one request when the caller's client sets no limit.
const requestTimeout = 15 * time.Second

// Config says where a repository's statuses are posted.
type Config struct {
	// Provider is a key of providers.
	Provider string
	// Address is the repository's web address, or that of its API endpoint.
	Address string
	// Ref is the branch or tag of the commits; "": unknown. GitLab stores a status under it.
	Ref string
	// Token is sent only to the forge of the address. It needs the Permission of the provider.
	Token Secret
	// App is used instead of a token, if ActsAsApp.
	App *App
	// HTTPClient has the transport: proxy, CA certificates, timeout; nil: the default transport. Redirects are never
	// followed, even if the client would.
	HTTPClient *http.Client
	// Limiter paces the requests of every Forge with the same token; nil: only the forge's answers do.
	Limiter *rate.Limiter
	// Clock returns the time, for forges that answer with an absolute time to retry; nil: the system's.
	Clock func() time.Time
}

// New returns the forge that the configuration names. It does not connect. The error is for the
// author of the configuration and contains no secret.
func New(config Config) (Forge, error) {
	p, client, err := config.parts()
	if err != nil {
		return nil, err
	}
	return fitted{p.open(config, client), p}, nil
}

// fitted refuses statuses that no forge accepts, and cuts texts at the limits of the forge.
type fitted struct {
	Forge
	limits provider
}

// Post implements Forge.
func (f fitted) Post(ctx context.Context, status Status) error {
	if err := status.Validate(); err != nil {
		return invalid(err)
	}
	status.Context, status.Description = f.limits.context(status.Context), f.limits.fit(status.Description)
	return f.Forge.Post(ctx, status)
}

// Shown implements Forge. The statuses have the contexts as given.
func (f fitted) Shown(ctx context.Context, sha string, contexts []string) (map[string]*Status, error) {
	cut := make([]string, 0, len(contexts))
	for _, name := range contexts {
		cut = append(cut, f.limits.context(name))
	}
	found, err := f.Forge.Shown(ctx, sha, cut)
	shown := make(map[string]*Status, len(found))
	for i, name := range contexts {
		status, read := found[cut[i]]
		if status != nil {
			status.Context = name
		}
		if read {
			shown[name] = status
		}
	}
	return shown, err
}

// context returns a context as the forge stores it.
func (p provider) context(name string) string {
	return cutContext(cmp.Or(p.contexts, ContextLimit), name)
}

// fit returns a description as the forge stores it.
func (p provider) fit(description string) string {
	return Shorten(cmp.Or(p.descriptions, DescriptionLimit), description)
}

// Fit returns a description as a kind of forge stores it.
func Fit(kind, description string) string { return providers()[kind].fit(description) }

// parts returns the provider, and the client of the repository, that the configuration names.
func (c Config) parts() (provider, *restClient, error) {
	p, repo, err := locate(c.Provider, c.Address)
	if err != nil {
		return provider{}, nil, err
	}
	client, err := newRESTClient(c, p, repo)
	return p, client, err
}

// newRESTClient returns the client that all forges share.
func newRESTClient(config Config, p provider, repo repository) (*restClient, error) {
	token := Secret(strings.TrimSpace(string(config.Token)))
	switch {
	case config.App != nil:
		if err := config.App.validate(config.Provider, repo); err != nil {
			return nil, fmt.Errorf("cannot report commit statuses: %w", err)
		}
	case p.needsApp:
		return nil, fmt.Errorf("cannot report commit statuses: provider %q needs a GitHub App", config.Provider)
	case token == "":
		return nil, errors.New("cannot report commit statuses: the token is empty")
	case strings.ContainsFunc(string(token), func(r rune) bool { return r <= ' ' || r > '~' }):
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
	return &restClient{
		repository: repo, http: &transport, limiter: config.Limiter, clock: clock,
		login: &login{field: cmp.Or(p.header, "Authorization"), authorize: p.authorize, token: token, app: config.App},
	}, nil
}
