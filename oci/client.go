package oci

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/dial"
)

// Access has the permissions that the operator's flags give to all registries. The zero value is the strict one.
type Access struct {
	// AllowLoopback permits loopback and link-local addresses, and the metadata services of clouds.
	AllowLoopback bool
	// AllowHTTP permits registries that are read over http, in plain text.
	AllowHTTP bool
	// AllowTokenHosts sends credentials to the server of tokens that the registry names, as
	// Docker does: for a user who names the registry, never for the operator.
	AllowTokenHosts bool
}

// client is the HTTP side of one registry. It is not shared: credentials and authorities belong to
// this registry. It ignores proxies in the environment, so that the servers that a source can reach
// do not depend on the pod.
type client struct {
	// origin is the registry: scheme, host and port.
	origin    string
	proxy     *url.URL
	plain     bool
	tokens    bool
	transport *http.Transport
	// withheld is the server of tokens on another host that was asked without the credentials; nil: none.
	withheld atomic.Pointer[string]
}

func newClient(o Options, host string) (*client, error) {
	pool, err := o.Credentials.authorities()
	if err != nil {
		return nil, err
	}
	c := &client{proxy: o.Proxy, plain: o.Insecure, tokens: o.Access.AllowTokenHosts}
	c.origin = originOf(&url.URL{Scheme: c.scheme(), Host: host})
	c.transport = &http.Transport{
		Proxy:                  http.ProxyURL(o.Proxy),
		DialContext:            dial.Policy{AllowLoopback: o.Access.AllowLoopback}.Dialer(connectTimeout).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // an archive is compressed already, and its size is declared
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headerBytes,
		OnProxyConnectResponse: dial.CheckProxy,
	}
	return c, nil
}

func (c *client) scheme() string {
	if c.plain {
		return "http"
	}
	return "https"
}

// authorized returns the client that asks for tokens as the registry demands.
func (c *client) authorized(credentials func(repository string) auth.Credential) *auth.Client {
	out := &auth.Client{
		Client: &http.Client{Transport: c, CheckRedirect: c.checkRedirect},
		Cache:  auth.NewCache(),
		// Every address is checked when it is dialled instead.
		BlockedRealmPrefixes: []netip.Prefix{},
		Credential: func(ctx context.Context, host string) (auth.Credential, error) {
			if originOf(&url.URL{Scheme: c.scheme(), Host: host}) != c.origin {
				return auth.EmptyCredential, nil
			}
			repository, _ := ctx.Value(repositoryKey{}).(string)
			return credentials(repository), nil
		},
	}
	out.SetUserAgent("addonflow")
	return out
}

// repositoryKey is the key of the repository in the context of a request.
type repositoryKey struct{}

// RoundTrip sends credentials to the registry alone. A server of tokens or a store on another host
// gets none, even if the registry names it, because a registry can name any host.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	redirected := r.Response != nil
	if originOf(r.URL) != c.origin && (redirected || !c.tokens) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = r.Body.Close()
			return nil, final{fmt.Errorf("%w: the registry asks for its credentials to be sent to %s", ErrRedirected, brief.Printable(r.URL.Host))}
		}
		if !redirected && r.Header.Get("Authorization") != "" {
			c.withheld.Store(&r.URL.Host)
		}
		r = r.Clone(r.Context())
		r.Header.Del("Authorization")
	}
	if r.URL.Scheme != "https" && !c.plain {
		return nil, final{fmt.Errorf("%w: the registry leads to http://%s, without encryption", ErrRedirected, brief.Printable(r.URL.Host))}
	}
	res, err := c.transport.RoundTrip(r)
	if errors.Is(err, dial.ErrLocal) {
		host := r.URL.Host
		if c.proxy != nil {
			host = "the proxy " + c.proxy.Host
		}
		return nil, final{fmt.Errorf("%w: %s %w; the operator's flag --git-allow-loopback allows it", ErrAddressDenied, brief.Printable(host), dial.ErrLocal)}
	}
	if errors.Is(err, dial.ErrProxyCredentials) || err == nil && c.proxy != nil && res.StatusCode == http.StatusProxyAuthRequired {
		if res != nil {
			_ = res.Body.Close()
		}
		return nil, final{fmt.Errorf("%w: the proxy %s answered 407; check the Secret of spec.proxySecretRef", ErrAuthentication, brief.Printable(c.proxy.Host))}
	}
	return res, err
}

// checkRedirect bounds redirects; RoundTrip judges each address.
func (c *client) checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > redirects {
		return final{fmt.Errorf("%w: more than %d redirects", ErrRedirected, redirects)}
	}
	return nil
}

func originOf(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case strings.EqualFold(u.Scheme, "http"):
		port = "80"
	default:
		port = "443"
	}
	return strings.ToLower(u.Scheme + "://" + u.Hostname() + ":" + port)
}
