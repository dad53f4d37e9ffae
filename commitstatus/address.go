package commitstatus

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// repository is where statuses go: a forge's API and one repository behind it.
type repository struct {
	// api is the base URL of the API, without a slash at the end.
	api string
	// host is the forge's name and port, for error texts.
	host string
	// owner and name are plain path segments that need no escaping.
	owner, name string
}

// apiBase returns the API's base URL for a forge whose repositories live below root.
type apiBase func(root *url.URL) string

// parseAddress reads the address of a repository in any of the forms that a user may copy: its
// web page (https://forge.example/prefix/owner/name, with or without .git), or its API endpoint
// (<api>/repos/owner/name). Everything else is refused, because the token must not be sent to
// an unintended place. The error does not repeat the address, as it may contain a password.
func parseAddress(raw string, base apiBase) (repository, error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return repository{}, errors.New("cannot use the address: it is not a URL")
	}
	if err := checkOrigin(parsed); err != nil {
		return repository{}, fmt.Errorf("cannot use the address: %w", err)
	}
	segments := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	for _, segment := range segments {
		if !isSegment(segment) {
			return repository{}, errors.New("cannot use the address: its path must be made of letters, digits, '.', '_' and '-' and end in owner and repository")
		}
	}
	last := len(segments) - 1
	if last < 1 {
		return repository{}, errors.New("cannot use the address: it names no owner and repository")
	}
	name := strings.TrimSuffix(segments[last], ".git")
	if !isSegment(name) {
		return repository{}, errors.New("cannot use the address: it names no repository")
	}
	root := &url.URL{Scheme: parsed.Scheme, Host: strings.ToLower(parsed.Host), Path: rootPath(segments[:last-1])}
	return repository{api: base(root), host: root.Host, owner: segments[last-1], name: name}, nil
}

// Repository returns one name for a repository, whichever form of its address is given:
// web page or API endpoint, http or https, in any case, with or without .git. Forges take
// owner and repository in any case. The error is that of New.
func Repository(address string) (string, error) {
	repo, err := parseAddress(address, func(root *url.URL) string { return forgeHost(root) + root.Path })
	if err != nil {
		return "", err
	}
	return repo.api + "/" + strings.ToLower(repo.owner+"/"+repo.name), nil
}

// forgeHost returns the host of a forge, one for all that are github.com, without the
// port that its scheme has anyway.
func forgeHost(root *url.URL) string {
	host := root.Host
	switch root.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	host = strings.TrimSuffix(host, ".")
	if host == "www.github.com" || host == "api.github.com" {
		return "github.com"
	}
	return host
}

// checkOrigin refuses everything but scheme, host and path.
func checkOrigin(u *url.URL) error {
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return errors.New("it is neither https nor http")
	case u.User != nil:
		return errors.New("it contains user information; the token belongs into the Secret")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return errors.New("it has a query or a fragment")
	case u.RawPath != "":
		return errors.New("its path is escaped")
	case u.Opaque != "" || !isHost(u.Hostname()):
		return errors.New("it names no host")
	}
	return checkPort(u)
}

// checkPort refuses a port that no server can have, and a colon without one.
func checkPort(u *url.URL) error {
	if u.Port() == "" {
		if strings.HasSuffix(u.Host, ":") {
			return errors.New("its port is empty")
		}
		return nil
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
		return errors.New("its port is out of range")
	}
	return nil
}

// isHost reports whether s can be a DNS name or an IP address.
func isHost(s string) bool {
	return s != "" && only(s, ".-_:") && strings.Trim(s, ".-:_") != ""
}

// isSegment reports whether s is a path segment without escapes or relative steps.
func isSegment(s string) bool {
	return strings.Trim(s, ".") != "" && only(s, "._-")
}

// only reports whether s has nothing but ASCII letters, digits and the extra characters.
func only(s, extra string) bool {
	for _, r := range s {
		alphanumeric := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		if !alphanumeric && !strings.ContainsRune(extra, r) {
			return false
		}
	}
	return true
}

// rootPath returns the path below which the forge lives; an API endpoint's own part
// (/api/v1/repos, /api/v3/repos, /repos) is not part of it.
func rootPath(prefix []string) string {
	path := ""
	if len(prefix) > 0 {
		path = "/" + strings.Join(prefix, "/")
	}
	for _, endpoint := range []string{"/api/v1/repos", "/api/v3/repos", "/repos"} {
		if root, ok := strings.CutSuffix(path, endpoint); ok {
			return root
		}
	}
	return path
}
