package gitsource

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/addonflow/addonflow/api/brief"
)

const maxURLLength = 2048

// Schemes of URLs.
const (
	schemeHTTPS = "https"
	schemeHTTP  = "http"
	schemeSSH   = "ssh"
)

// scpPattern is the short form of SSH addresses: user@host:path, without a port. Of IPv6 addresses, only ssh:// URLs are
// accepted.
var scpPattern = regexp.MustCompile(`^([^@:/]+)@([^@:/[]+):(.+)$`)

// parseURL accepts https, http and ssh URLs without a password, query or fragment, and user@host:path. Errors are
// ErrInvalidURL and safe to show.
func parseURL(raw string) (*transport.Endpoint, error) {
	if len(raw) > maxURLLength {
		return nil, fmt.Errorf("%w: longer than %d characters", ErrInvalidURL, maxURLLength)
	}
	for i := range len(raw) {
		if raw[i] <= ' ' || raw[i] >= 0x7f {
			return nil, fmt.Errorf("%w: only printable ASCII is allowed, found another character at position %d; "+
				"write an international host name in its xn-- form", ErrInvalidURL, i+1)
		}
	}
	scheme, _, found := strings.Cut(raw, "://")
	if !found {
		return parseSCP(raw)
	}
	if s := strings.ToLower(scheme); s != schemeHTTPS && s != schemeHTTP && s != schemeSSH {
		return nil, fmt.Errorf("%w: scheme %q is not supported; use https, http or ssh", ErrInvalidURL, scheme)
	}
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's text repeats the whole URL, credentials included.
		return nil, fmt.Errorf("%w: cannot be parsed", ErrInvalidURL)
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	endpoint, err := transport.NewEndpoint(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %s cannot be used", ErrInvalidURL, redactURL(raw))
	}
	if endpoint.Protocol == schemeSSH && strings.HasPrefix(endpoint.Path, "/~") {
		endpoint.Path = endpoint.Path[1:] // below a home directory, as in git
	}
	return endpoint, nil
}

// parseSCP reads user@host:path. The path is relative to the user's home directory, unless it
// begins with a slash.
func parseSCP(raw string) (*transport.Endpoint, error) {
	parts := scpPattern.FindStringSubmatch(raw)
	if parts == nil {
		return nil, fmt.Errorf("%w: want https://host/path, ssh://user@host/path or user@host:path", ErrInvalidURL)
	}
	e := &transport.Endpoint{Protocol: schemeSSH, User: parts[1], Host: parts[2], Port: defaultPort, Path: parts[3]}
	if strings.HasPrefix(e.Path, "-") {
		return nil, fmt.Errorf("%w: the path of %s begins with -, as an option does", ErrInvalidURL, redactURL(raw))
	}
	return e, checkURL(&url.URL{Scheme: schemeSSH, User: url.User(e.User), Host: e.Host, Path: e.Path})
}

func checkURL(u *url.URL) error {
	_, secret := u.User.Password()
	switch {
	case u.User != nil && (secret || !strings.EqualFold(u.Scheme, schemeSSH)):
		return fmt.Errorf("%w: %s has credentials in it; put them in a Secret", ErrInvalidURL, redactURL(u.String()))
	case u.Hostname() == "" || strings.HasPrefix(u.Host, "-"):
		return fmt.Errorf("%w: %s has no usable host", ErrInvalidURL, redactURL(u.String()))
	case strings.Contains(u.Hostname(), "%"):
		return fmt.Errorf("%w: %s has an address with a zone; use a host name", ErrInvalidURL, redactURL(u.String()))
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("%w: %s has a query or fragment", ErrInvalidURL, redactURL(u.String()))
	case strings.Trim(u.Path, "/") == "":
		return fmt.Errorf("%w: %s names a host but no repository", ErrInvalidURL, redactURL(u.String()))
	case strings.Contains("/"+u.Path+"/", "/../"):
		return fmt.Errorf("%w: %s has .. in its path", ErrInvalidURL, redactURL(u.String()))
	}
	return nil
}

// redactURL returns a URL without user, password, query and fragment, for messages. Of a URL that cannot be parsed,
// only the scheme remains.
func redactURL(raw string) string {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found {
		scheme, rest = "", raw
	}
	rest, _, _ = strings.Cut(rest, "?")
	rest, _, _ = strings.Cut(rest, "#")
	host, path, hasPath := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		host = host[at+1:]
	}
	// A later @ may still end credentials that contain a slash.
	if strings.Contains(path, "@") {
		path = path[strings.LastIndexByte(path, '@')+1:]
		host = redacted
	}
	out := brief.Printable(host)
	if hasPath {
		out += "/" + brief.Printable(path)
	}
	if found {
		out = brief.Printable(scheme) + "://" + out
	}
	return out
}
