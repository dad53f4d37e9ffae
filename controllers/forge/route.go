package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/githubapp"
)

// tokenKey is the key of the token in the Secret of spec.commitStatus.secretRef.
const tokenKey = "token"

// defaultBranch is followed if spec.ref is absent.
const defaultBranch = "master"

type route struct {
	forge   commitstatus.Forge
	address address
}

// address identifies the connection to a forge: by digests of the repository, of the token and of the certificate
// authority, and by the link of the statuses.
type address struct{ repository, token, authority, url string }

// lineOf names the deliverer's line of a source.
func lineOf(source *v1alpha1.AddOnSource) string { return client.ObjectKeyFromObject(source).String() }

// connect connects the line of a source with its forge, with the present token of its Secret. If the token changed,
// refused statuses are due again.
func (d *Desk) connect(ctx context.Context, source *v1alpha1.AddOnSource) error {
	route, err := d.route(ctx, source)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(source)
	d.mu.Lock()
	before, known := d.routes[key]
	d.routes[key] = route.address
	d.forgetLimiters()
	d.mu.Unlock()
	if known && before == route.address {
		return nil
	}
	if known && before.repository != route.address.repository {
		d.deliverer.Disconnect(lineOf(source))
	}
	d.deliverer.Connect(lineOf(source), commitstatus.Connection{
		Provider: source.Spec.CommitStatus.Provider, Forge: route.forge, TargetURL: source.Spec.CommitStatus.TargetURL,
	})
	return nil
}

// connected reports whether this process has connected the line of a source.
func (d *Desk) connected(source *v1alpha1.AddOnSource) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, known := d.routes[client.ObjectKeyFromObject(source)]
	return known
}

// route returns the forge of a source's commit statuses. The error is fit for a condition: it names objects and keys,
// never values.
func (d *Desk) route(ctx context.Context, source *v1alpha1.AddOnSource) (route, error) {
	spec := source.Spec.CommitStatus
	by, err := loginOf(ctx, d.options.Secrets, source)
	if err != nil {
		return route{}, err
	}
	to := address{
		repository: digestOf(spec.Provider, spec.Address, refOf(source)), token: digestOf(spec.Provider, by.identity()),
		authority: digestOf(string(by.authority)), url: spec.TargetURL,
	}
	config, err := d.configOf(source, by)
	if err != nil {
		return route{}, err
	}
	config.Limiter = d.limiter(spec.Provider, to.token)
	forge, err := commitstatus.New(config)
	if err != nil {
		return route{}, err
	}
	return route{forge: d.posts.Measured(spec.Provider, forge), address: to}, nil
}

// Of returns the forge of a source with spec.commitStatus. Its Secret is read with the given reader.
func Of(ctx context.Context, secrets client.Reader, source *v1alpha1.AddOnSource) (commitstatus.Forge, error) {
	by, err := loginOf(ctx, secrets, source)
	if err != nil {
		return nil, err
	}
	config, err := configOf(source, by, githubapp.New(nil), nil)
	if err != nil {
		return nil, err
	}
	return commitstatus.New(config)
}

// configOf returns the configuration of the forge of a source, as the flags permit it.
func (d *Desk) configOf(source *v1alpha1.AddOnSource, by login) (commitstatus.Config, error) {
	if d.options.RequireTLS && strings.HasPrefix(strings.ToLower(source.Spec.CommitStatus.Address), "http:") {
		return commitstatus.Config{}, errors.New("cannot use the address: the token is not sent over http; use https, or let the operator run with --git-allow-http-credentials")
	}
	return configOf(source, by, d.options.Tokens, d.options.HTTP)
}

// configOf returns the configuration of the forge of a source. A nil client is the default one.
func configOf(source *v1alpha1.AddOnSource, by login, tokens *githubapp.Tokens, to *http.Client) (commitstatus.Config, error) {
	spec := source.Spec.CommitStatus
	to, err := by.trusting(to)
	config := commitstatus.Config{Provider: spec.Provider, Address: spec.Address, Ref: refOf(source), Token: by.token, HTTPClient: to}
	if by.app != nil {
		config.App = &commitstatus.App{Credentials: by.app, Tokens: tokens}
	}
	return config, err
}

// refOf returns the branch or tag that a source follows; "": it is not known.
func refOf(source *v1alpha1.AddOnSource) string {
	ref := source.Spec.Reference
	switch {
	case source.Spec.OCI != nil:
		return "" // an artifact names its commit, but no branch
	case ref == nil:
		return defaultBranch
	case ref.Commit != "" || ref.Name != "" || ref.SemVer != "":
		return ""
	default:
		return cmp.Or(ref.Tag, ref.Branch, defaultBranch)
	}
}

// noTokenError says why there is no token.
type noTokenError string

func (e noTokenError) Error() string { return "cannot report commit statuses: " + string(e) }

// login has the credentials of a Secret for a forge: a token, or a GitHub App; and the authority that signed the
// forge's certificate. If the authority is empty, the machine must trust the certificate.
type login struct {
	secret    secret.Reference
	token     commitstatus.Secret
	app       *githubapp.Credentials
	authority []byte
}

func (l login) identity() string {
	if l.app != nil {
		return l.app.Identity()
	}
	return string(l.token)
}

// loginOf reads the Secret, which is in the source's namespace. It does not call the forge: the posts request the
// tokens of an App. A token has precedence over an App, because one Secret may have the App for fetching and the
// token for statuses.
func loginOf(ctx context.Context, secrets client.Reader, source *v1alpha1.AddOnSource) (login, error) {
	spec, ref := source.Spec.CommitStatus, secretOf(source)
	if ref.Name == "" {
		return login{}, noTokenError(ref.Field + " is not set")
	}
	stored := &corev1.Secret{}
	err := secrets.Get(ctx, ref.NamespacedName, stored)
	switch {
	case apierrors.IsNotFound(err):
		return login{}, noTokenError(ref.Unread(err).Error())
	case err != nil:
		return login{}, fmt.Errorf("cannot report commit statuses: %w", ref.Unread(err))
	case commitstatus.NeedsApp(spec.Provider) && !githubapp.Has(stored.Data):
		return login{}, noTokenError(fmt.Sprintf("%s has no key %q: provider %s needs a GitHub App", ref, githubapp.AppIDKey, spec.Provider))
	}
	found := login{secret: ref, authority: stored.Data[caKey]}
	switch {
	case len(stored.Data[tokenKey]) > 0 && !commitstatus.NeedsApp(spec.Provider):
		found.token = commitstatus.Secret(stored.Data[tokenKey])
		return found, nil
	case !commitstatus.ActsAsApp(spec.Provider) || !githubapp.Has(stored.Data):
		return login{}, noTokenError(fmt.Sprintf("%s has no key %q", ref, tokenKey))
	}
	if found.app, err = githubapp.Parse(stored.Data); err != nil {
		return login{}, noTokenError(fmt.Sprintf("%s: %s", ref, err))
	}
	return found, nil
}

// secretOf returns the Secret of a source with spec.commitStatus; its name is empty if the source names none. The
// messages name the source, because a condition of an AddOnRollout shows them, too.
func secretOf(source *v1alpha1.AddOnSource) secret.Reference {
	ref := secret.Reference{Field: "spec.commitStatus.secretRef of AddOnSource " + source.Name}
	if named := source.Spec.CommitStatus.SecretRef; named != nil {
		ref.NamespacedName = types.NamespacedName{Namespace: source.Namespace, Name: named.Name}
	}
	return ref
}

// digestOf identifies an address of a forge without keeping a token in memory longer than its
// Forge.
func digestOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// limiter returns the limiter shared by every user of a token.
func (d *Desk) limiter(provider, token string) *rate.Limiter {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.limiters[token] == nil {
		d.limiters[token] = commitstatus.NewLimiter(provider)
	}
	return d.limiters[token]
}

// forgetLimiters drops the limiters of unused tokens, because some tokens change every hour. The lock is held.
func (d *Desk) forgetLimiters() {
	used := map[string]bool{}
	for _, to := range d.routes {
		used[to.token] = true
	}
	maps.DeleteFunc(d.limiters, func(token string, _ *rate.Limiter) bool { return !used[token] })
}
