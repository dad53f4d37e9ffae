package gitsource

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
)

type kind int

const (
	regular kind = iota
	directory
	symlink
	submodule
	special // a device, socket or pipe of a local directory
)

func (k kind) String() string {
	switch k {
	case directory:
		return "a directory"
	case symlink:
		return "a symbolic link"
	case submodule:
		return "a submodule"
	case special:
		return "not a regular file"
	case regular:
	}
	return "a file"
}

func kindOf(m filemode.FileMode) kind {
	switch m {
	case filemode.Dir:
		return directory
	case filemode.Symlink:
		return symlink
	case filemode.Submodule:
		return submodule
	case filemode.Regular, filemode.Deprecated, filemode.Executable:
		return regular
	case filemode.Empty:
	}
	return special
}

// entry is one name in a directory. Object is its hash in Git.
type entry struct {
	name   string
	kind   kind
	object plumbing.Hash
}

// files is the content of a repository, from Git objects or from a local directory. Paths are slash-separated below
// the root, which is "". Implementations return entries sorted by name and never follow a link.
type files interface {
	entries(dir string) ([]entry, error)
	size(path string, e entry) (int64, error)
	content(path string, e entry) ([]byte, error)
}

// Tree is the content of one commit, or of a local directory. It is safe for
// concurrent use.
type Tree struct {
	revision        Revision
	subject, author string
	files           files
	limits          Limits
	// base is the directory to which BuildOptions.Path is relative: the position of a local directory in its Git work
	// tree.
	base string
	// alone: a local directory outside of any Git work tree.
	alone bool
	// redaction removes the repository's credentials; claim holds a place in its room.
	redaction secret.Redaction
	claim     *Claim
	// done is called by Close; nil: no call.
	done func()
}

// Close releases the tree's share of the Room. The tree must not be read afterwards.
func (t *Tree) Close() {
	t.claim.Release()
	if t.done != nil {
		t.done()
	}
}

// Revision returns the commit and its reference; zero for a local directory.
func (t *Tree) Revision() Revision { return t.revision }

// Subject returns the first line of the commit message.
func (t *Tree) Subject() string { return t.subject }

// Author returns the name of the commit's author.
func (t *Tree) Author() string { return t.author }

// headline returns the first line of a commit message or of an author's name, cut to the length
// that a commit status can show.
func headline(message string) string {
	const most = 200
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = brief.Printable(strings.TrimSpace(line))
	for len(line) > most {
		_, size := utf8.DecodeLastRuneInString(line)
		line = line[:len(line)-size]
	}
	return line
}

// store has the objects of a repository, from a pack or from disk.
type store interface {
	has(h plumbing.Hash) bool
	commit(h plumbing.Hash) (*object.Commit, error)
	tree(h plumbing.Hash) (*object.Tree, error)
	size(h plumbing.Hash) (int64, error)
	object(h plumbing.Hash) (plumbing.EncodedObject, error)
}

// gitFiles reads from the objects of a commit.
type gitFiles struct {
	objects store
	root    plumbing.Hash
	// merged are the directories of a merge that exist on neither side.
	merged map[string][]entry

	mu    sync.Mutex
	trees map[plumbing.Hash][]entry
	// read are the files whose content was read.
	read map[string]bool
}

func newGitFiles(from store, root plumbing.Hash) *gitFiles {
	return &gitFiles{objects: from, root: root, trees: map[plumbing.Hash][]entry{}, read: map[string]bool{}}
}

func (g *gitFiles) entries(dir string) ([]entry, error) {
	list, err := g.directory("", g.root)
	if dir == "" || err != nil {
		return list, err
	}
	segments := strings.Split(dir, "/")
	for n, segment := range segments {
		i := slices.IndexFunc(list, func(e entry) bool { return e.name == segment })
		if i < 0 || list[i].kind != directory {
			return nil, fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
		}
		if list, err = g.directory(strings.Join(segments[:n+1], "/"), list[i].object); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// directory returns the entries of a directory that is at a path.
func (g *gitFiles) directory(path string, hash plumbing.Hash) ([]entry, error) {
	if list, merged := g.merged[path]; merged {
		return list, nil
	}
	if hash.IsZero() {
		return nil, errConflict
	}
	return g.list(hash)
}

func (g *gitFiles) list(hash plumbing.Hash) ([]entry, error) {
	g.mu.Lock()
	known, ok := g.trees[hash]
	g.mu.Unlock()
	if ok {
		return known, nil
	}
	t, err := g.objects.tree(hash)
	if err != nil {
		return nil, err
	}
	list := make([]entry, 0, len(t.Entries))
	for _, e := range t.Entries {
		list = append(list, entry{name: e.Name, kind: kindOf(e.Mode), object: e.Hash})
	}
	sortEntries(list)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trees[hash] = list
	return list, nil
}

func (g *gitFiles) size(_ string, e entry) (int64, error) {
	if e.object.IsZero() {
		return 0, errConflict
	}
	return g.objects.size(e.object)
}

func (g *gitFiles) content(path string, e entry) (content []byte, err error) {
	g.mu.Lock()
	g.read[path] = true
	g.mu.Unlock()
	o, err := g.objects.object(e.object)
	if err != nil {
		return nil, err
	}
	r, err := o.Reader()
	if err != nil {
		return nil, corrupt(err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(r)
}

func sortEntries(list []entry) {
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
}
