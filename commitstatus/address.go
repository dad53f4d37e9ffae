package commitstatus

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// repository is one repository in the API of a forge, to which statuses are posted.
type repository struct {
	// api is the URL of the repository in the API, escaped and without a slash at the end.
	api string
	// host is the forge's name and port, for error texts.
	host string
	// name is equal for all forms of the address of one repository.
	name string
	// web is the URL of the repository's page. commits is the path of the pages of commits below it.
	web, commits string
}

// commitPage returns the URL of a commit's page.
func (r repository) commitPage(sha string) string { return r.web + "/" + r.commits + "/" + sha }

// place is an address that passed the checks of all forges.
type place struct {
	// root has scheme and host, both in lower case, and no path.
	root *url.URL
	// segments of the path.
	segments []string
}

// at returns a URL on the host of the place. The segments are escaped.
func (p place) at(segments ...string) string {
	escaped := make([]string, 0, len(segments))
	for _, segment := range segments {
		escaped = append(escaped, url.PathEscape(segment))
	}
	return p.root.String() + "/" + strings.Join(escaped, "/")
}

// over returns the place on another host, over https. A forge that redirects http would do so only after the token
// was sent in plain text.
func (p place) over(host string) place {
	return place{root: &url.URL{Scheme: "https", Host: host}, segments: p.segments}
}

// named returns the name of the repository with this path, in lower case: forges ignore the case of paths.
func (p place) named(path ...string) string {
	return forgeHost(p.root) + "/" + strings.ToLower(strings.Join(path, "/"))
}

// addressing is how the addresses of a kind of forge are read.
type addressing struct {
	// extra characters that a segment of the path may have.
	extra string
	// commits is the path of the pages of commits below that of their repository.
	commits string
	// locate finds the repository. The error is complete.
	locate func(place) (repository, error)
}

// parseAddress reads the address of a repository in any form that a user may copy: its web page, with or without
// .git, or its API endpoint. Every other address is refused, because the token must not be sent to an unintended
// place. The error does not repeat the address, because the address may contain a password.
func parseAddress(raw string, how addressing) (repository, error) {
	parsed, err := url.Parse(raw)
	if err != nil {
		return repository{}, errors.New("cannot use the address: it is not a URL")
	}
	if err := checkOrigin(parsed); err != nil {
		return repository{}, fmt.Errorf("cannot use the address: %w", err)
	}
	segments := strings.Split(strings.Trim(parsed.Path, "/"), "/")
	for _, segment := range segments {
		if !isSegment(segment, how.extra) {
			return repository{}, errors.New("cannot use the address: its path must be made of letters, digits, '.', '_' and '-' and end in owner and repository")
		}
	}
	last := len(segments) - 1
	// No forge has a repository whose own name ends in .git.
	if segments[last] = strings.TrimSuffix(segments[last], ".git"); !isSegment(segments[last], how.extra) || strings.HasSuffix(segments[last], ".git") {
		return repository{}, errors.New("cannot use the address: it names no repository")
	}
	found, err := how.locate(place{root: &url.URL{Scheme: parsed.Scheme, Host: strings.ToLower(parsed.Host)}, segments: segments})
	found.commits = how.commits
	return found, err
}

// errNoRepository is the error for an address with too short a path.
var errNoRepository = errors.New("cannot use the address: it names no owner and repository")

// ownerAndName locates a repository by the last two segments of its path. api returns the URL of the API for the root
// of the forge; the repository is below it at repos/owner/name.
func ownerAndName(api func(root *url.URL) string) func(place) (repository, error) {
	return func(p place) (repository, error) {
		last := len(p.segments) - 1
		if last < 1 {
			return repository{}, errNoRepository
		}
		owner, name := p.segments[last-1], p.segments[last]
		root := *p.root
		endpoint := strings.TrimPrefix(api(&root), root.String()) + "/repos"
		root.Path = rootPath(p.segments[:last-1], endpoint)
		return repository{
			api: api(&root) + "/repos/" + owner + "/" + name, host: root.Host,
			name: forgeHost(&root) + root.Path + "/" + strings.ToLower(owner+"/"+name),
			web:  root.Scheme + "://" + forgeHost(&root) + root.Path + "/" + owner + "/" + name,
		}, nil
	}
}

// locate returns a kind of forge, and the repository on it that an address names.
func locate(kind, address string) (provider, repository, error) {
	p, err := providerNamed(kind)
	if err != nil {
		return provider{}, repository{}, err
	}
	repo, err := parseAddress(address, p.address)
	return p, repo, err
}

// Repository returns one name for a repository on a kind of forge, for every form of its address: web page or API
// endpoint, http or https, upper or lower case, with or without .git. The error is that of New.
func Repository(provider, address string) (string, error) {
	_, repo, err := locate(provider, address)
	return repo.name, err
}

// CommitPage returns the URL of a commit's page at the forge. The error is that of New.
func CommitPage(provider, address, sha string) (string, error) {
	_, repo, err := locate(provider, address)
	if err != nil {
		return "", err
	}
	return repo.commitPage(sha), nil
}

// Host returns the name of the forge of an address, as Comments does. The error is that of New.
func Host(provider, address string) (string, error) {
	_, repo, err := locate(provider, address)
	return repo.host, err
}

// forgeHost returns the host of a forge without the default port of its scheme. The web and API hosts of a GitHub have one
// name.
func forgeHost(root *url.URL) string {
	host := root.Host
	switch root.Scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	host = strings.TrimSuffix(host, ".")
	if domain, ok := strings.CutPrefix(host, "api."); ok && strings.HasSuffix(domain, gheDomain) {
		return domain
	}
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

// checkPort refuses an impossible port, and a colon without a port.
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

// isSegment reports whether s is a path segment without relative steps. Besides letters, digits, '.', '_' and '-' it
// may contain the characters in extra.
func isSegment(s, extra string) bool {
	return strings.Trim(s, ". ") != "" && only(s, "._-"+extra)
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

// rootPath returns the path at which the forge is served, without its endpoint. The suffixes of GitHub and Gitea are
// removed from the address of every forge.
func rootPath(prefix []string, endpoint string) string {
	path := ""
	if len(prefix) > 0 {
		path = "/" + strings.Join(prefix, "/")
	}
	for _, endpoint := range []string{endpoint, "/api/v1/repos", "/api/v3/repos", "/repos"} {
		if root, ok := strings.CutSuffix(path, endpoint); ok {
			return root
		}
	}
	return path
}
