package gitsource

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/githubapp"
)

// ParseAppCredentials reads the keys of a Secret for spec.provider github: those of a GitHub App, and ca.crt, tls.crt
// and tls.key if the server needs them. Its errors are those of ParseCredentials.
func ParseAppCredentials(url string, keys map[string][]byte) (Credentials, error) {
	endpoint, err := parseURL(url)
	if err != nil {
		return Credentials{}, err
	}
	app, err := githubapp.Parse(keys)
	if err != nil {
		return Credentials{}, fmt.Errorf("%w: %w", ErrInvalidCredentials, err)
	}
	c := Credentials{CAFile: authorityOf(keys), app: app}
	if c.certificates, err = parseCertificate(keys); err != nil {
		return Credentials{}, err
	}
	// Open decides whether http is allowed.
	if err := c.validate(*endpoint, Access{AllowHTTPCredentials: true}); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

// validateApp refuses an App whose tokens would go to another forge.
func (c Credentials) validateApp(e transport.Endpoint, access Access) error {
	switch {
	case e.Protocol == schemeSSH:
		return fmt.Errorf("%w: a GitHub App needs a URL with https", ErrInvalidCredentials)
	case c.app.Scheme() != schemeHTTPS && !access.AllowHTTPCredentials:
		return fmt.Errorf("%w: key %s is http, over which no credentials are sent; use https, or let the operator run with --git-allow-http-credentials",
			ErrInvalidCredentials, githubapp.BaseURLKey)
	case !c.app.Serves(e.Host):
		return fmt.Errorf("%w: the App is not of %s, where the URL leads; correct the URL or key %s", ErrInvalidCredentials, brief.Printable(e.Host), githubapp.BaseURLKey)
	}
	return nil
}

// authenticated returns the repository with a token of its App; without an App, the repository itself. The token is
// requested with the proxy, the authorities and the policy of the repository.
func (r *Repository) authenticated(ctx context.Context) (*Repository, error) {
	app := r.options.Credentials.app
	if app == nil {
		return r, nil
	}
	c, err := newClient(r, &exchange{})
	if err != nil {
		return nil, err
	}
	defer c.transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, r.options.Timeout)
	defer cancel()
	token, err := r.options.Tokens.Token(ctx, &http.Client{Transport: c.transport}, app)
	switch {
	case errors.Is(err, githubapp.ErrRefused):
		return nil, fmt.Errorf("cannot read %s: %w: %w", r.options.URL, ErrAuthentication, err)
	case errors.Is(err, dial.ErrLocal):
		return nil, fmt.Errorf("cannot read %s: %w: %s", r.options.URL, ErrAddressDenied, denied("the API of the App", r.options.Proxy))
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", r.options.URL, err)
	}
	with := *r
	with.options.Credentials.Username, with.options.Credentials.Password = githubapp.Username, token.Text
	with.redaction = with.options.Credentials.redaction(r.options.Proxy.secrets()...)
	return &with, nil
}

// forgetToken drops the App's token if the server refused it, and reports whether there was one.
func (r *Repository) forgetToken(err error) bool {
	if r.options.Credentials.app == nil || !errors.Is(err, ErrAuthentication) || errors.Is(err, githubapp.ErrRefused) {
		return false
	}
	r.options.Tokens.Forget(r.options.Credentials.app)
	return true
}
