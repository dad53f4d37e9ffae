package gitsource

import (
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// addressKey is the key of a proxy's Secret with its URL, beside username and password.
const addressKey = "address"

// Proxy is the HTTP proxy through which a repository is reached.
type Proxy struct {
	// address has the credentials of the proxy.
	address *url.URL
}

// ParseProxy reads a Secret in the form of Flux's spec.proxySecretRef: address, and username and password if the
// proxy needs them. The error is ErrInvalidCredentials and shows no value.
func ParseProxy(keys map[string][]byte) (*Proxy, error) {
	fail := func(format string, args ...any) (*Proxy, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrInvalidCredentials}, args...)...)
	}
	if len(keys[addressKey]) == 0 {
		return fail("key %s is missing", addressKey)
	}
	address, err := url.Parse(strings.TrimSpace(string(keys[addressKey])))
	switch {
	case err != nil:
		return fail("key %s is not a URL", addressKey)
	case address.Scheme != schemeHTTP && address.Scheme != schemeHTTPS:
		return fail("key %s: want http://host:port or https://host:port", addressKey)
	case address.Hostname() == "" || strings.Trim(address.Path, "/") != "" || address.RawQuery != "" || address.Fragment != "":
		return fail("key %s: want scheme, host and port only", addressKey)
	}
	for _, key := range []string{usernameKey, passwordKey} {
		if strings.ContainsFunc(string(keys[key]), unicode.IsControl) {
			return fail("key %s holds a line break or control character", key)
		}
	}
	user, password := string(keys[usernameKey]), string(keys[passwordKey])
	if user == "" && password == "" && address.User != nil { // as in Flux, the address may have them
		user = address.User.Username()
		password, _ = address.User.Password()
	}
	address.User = nil
	switch {
	case strings.ContainsFunc(user+password, unicode.IsControl):
		return fail("key %s holds a line break or control character", addressKey)
	case user == "" && password != "":
		return fail("key %s is missing", usernameKey)
	case strings.Contains(user, ":"):
		return fail("key %s holds a colon", usernameKey)
	case user != "":
		address.User = url.UserPassword(user, password)
	}
	return &Proxy{address: address}, nil
}

// URL returns the proxy's URL with its credentials; nil: there is no proxy.
func (p *Proxy) URL() *url.URL {
	if p == nil {
		return nil
	}
	return p.address
}

// secrets returns the credentials that no text may show.
func (p *Proxy) secrets() []Secret {
	if p == nil || p.address.User == nil {
		return nil
	}
	password, _ := p.address.User.Password()
	return append(words(passwordLength, Secret(password)), Secret(p.address.User.Username()+":"+password))
}
