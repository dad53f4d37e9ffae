package gitsource

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// remotePattern matches every spelling that kustomize, in any version, treats as remote: a scheme, user@host,
// host:path, and the forges that it knows by name. Kustomize checks this before it looks for a directory. So it would
// clone a local directory of that name from the network.
var remotePattern = regexp.MustCompile(`(?i)^[^/]*[@:]|^github\.com/|://|[^/]\.git/|_git/|\?(ref|version|timeout|submodules)=`)

// remote reports whether a string names an object outside of the repository.
func remote(s string) bool { return remotePattern.MatchString(strings.TrimSpace(s)) }

// failure is why a path cannot be read. It becomes a problem when the file that names the path is known.
type failure struct {
	reason  problem.Reason
	message string
	hint    string
}

func fail(reason problem.Reason, format string, args ...any) *failure {
	return &failure{reason: reason, message: fmt.Sprintf(format, args...)}
}

func (f *failure) at(place problem.Problem) problem.Problem {
	place.Reason, place.Message, place.Hint = f.reason, f.message, f.hint
	return place
}

// join returns the path of name relative to dir, both below the root of the repository. It refuses names that could
// lead outside of the root.
func join(dir, name string) (string, *failure) {
	switch {
	case name == "":
		return "", fail(PathDenied, "the path is empty")
	case remote(name):
		return "", fail(RemoteResourceDenied, "%s is outside of the repository; everything must be in the commit", redactURL(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || r == utf8.RuneError }):
		return "", fail(PathDenied, "the path %q has characters that cannot be printed", name)
	case strings.TrimSpace(name) != name:
		return "", fail(PathDenied, "the path %q starts or ends with a space", name)
	case strings.Contains(name, `\`):
		return "", fail(PathDenied, "the path %q has a backslash; write /", name)
	case path.IsAbs(name):
		return "", fail(PathDenied, "the path %s is absolute", name)
	}
	joined := path.Join(dir, name)
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return "", fail(PathDenied, "the path %s leaves the repository", name)
	}
	if joined == "." {
		return "", nil
	}
	if slices.ContainsFunc(strings.Split(joined, "/"), func(s string) bool { return strings.EqualFold(s, ".git") }) {
		return "", fail(PathDenied, "the path %s leads into .git", name)
	}
	return joined, nil
}

// find returns the entry at a joined path. Each segment is checked, so that a link in the middle is refused like a
// link at the end.
func (b *builder) find(name string) (entry, *failure) {
	found := entry{kind: directory}
	if name == "" {
		return found, nil
	}
	segments := strings.Split(name, "/")
	if len(segments) > b.tree.limits.Depth {
		return entry{}, fail(LimitExceeded, "%d directories deep, at most %d are read", len(segments), b.tree.limits.Depth)
	}
	for i, segment := range segments {
		dir, here := strings.Join(segments[:i], "/"), strings.Join(segments[:i+1], "/")
		list, f := b.list(dir)
		if f != nil {
			return entry{}, f
		}
		j := slices.IndexFunc(list, func(e entry) bool { return e.name == segment })
		switch {
		case j < 0:
			return entry{}, missing(name, here, list)
		case list[j].kind != directory && list[j].kind != regular:
			return entry{}, fail(PathDenied, "%s is %s", here, list[j].kind)
		case list[j].kind == regular && i < len(segments)-1:
			return entry{}, fail(PathNotFound, "%s does not exist: %s is a file", name, here)
		}
		found = list[j]
		if b.ignored(here, found.kind) {
			return entry{}, fail(PathNotFound, "%s is left out by spec.ignore", here)
		}
	}
	return found, nil
}

func missing(name, here string, list []entry) *failure {
	f := fail(PathNotFound, "%s does not exist", name)
	if name != here {
		f = fail(PathNotFound, "%s does not exist: there is no %s", name, here)
	}
	for _, e := range list {
		if strings.EqualFold(e.name, path.Base(here)) {
			f.hint = fmt.Sprintf("did you mean %s", path.Join(path.Dir(here), e.name))
		}
	}
	return f
}

// list returns the entries of a directory. Each directory is read once.
func (b *builder) list(dir string) ([]entry, *failure) {
	if list, ok := b.dirs[dir]; ok {
		return list, nil
	}
	list, err := b.tree.files.entries(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fail(PathNotFound, "%s does not exist", dir)
	case errors.Is(err, errConflict):
		return nil, conflict()
	case err != nil:
		return nil, fail(FetchFailed, "cannot read directory %s: %s", dir, brief.Printable(err.Error()))
	}
	if b.seen += len(list); b.seen > b.tree.limits.Files {
		b.stopped = true
		return nil, fail(LimitExceeded, "more than %d files and directories", b.tree.limits.Files)
	}
	b.dirs[dir] = list
	return list, nil
}

// read returns a file's bytes, within the limits. Each file is read once.
func (b *builder) read(name string, e entry) ([]byte, *failure) {
	if content, ok := b.contents[name]; ok {
		return content, nil
	}
	size, err := b.tree.files.size(name, e)
	if errors.Is(err, errConflict) {
		return nil, conflict()
	}
	if err != nil {
		return nil, fail(FetchFailed, "cannot read it: %s", brief.Printable(err.Error()))
	}
	if limit := b.tree.limits.FileBytes; size > limit {
		return nil, fail(LimitExceeded, "the file has %d bytes, at most %d are read", size, limit)
	}
	if b.bytes += size; b.bytes > b.tree.limits.TotalBytes {
		b.stopped = true
		return nil, fail(LimitExceeded, "all files together have more than %d bytes", b.tree.limits.TotalBytes)
	}
	content, err := b.tree.files.content(name, e)
	if err != nil {
		return nil, fail(FetchFailed, "cannot read it: %s", brief.Printable(err.Error()))
	}
	b.contents[name] = content
	return content, nil
}
