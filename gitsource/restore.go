package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Restoration is a commit and an earlier commit whose files can be restored. The trees are readable until it is
// closed.
type Restoration struct {
	// Head is the newest commit, and Then the earlier one. Began is the commit at which the branch with the given name
	// began; without such a branch, it is Head.
	Head, Then, Began *Tree
	// Changes are the files that differ between Began and Then, sorted by path, with the change that restores them.
	Changes []FileChange
	// Proposed are the changes of the branch with the given name; nil if there is no such branch.
	Proposed *[]FileChange

	claim *Claim
}

// FileChange is a file that changes as a whole.
type FileChange struct {
	Path string
	// Before and After are the hashes of its content; "": the file does not exist.
	Before, After string
	// Content is the content after the change, if Read has read it.
	Content []byte
	// Odd says why the file is not a plain file, such as a symbolic link; "": it is a plain file.
	Odd string
}

// Close releases the trees' share of the Room. The trees must not be read afterwards.
func (r *Restoration) Close() { r.claim.Release() }

// ErrManyChanges means that more files, or larger files, are to be restored than one request can have.
var ErrManyChanges = errors.New("too much differs")

// Limits of the files that are restored.
const (
	restoredFiles = 1000
	restoredBytes = 4 << 20
)

// Restore fetches the commit of the repository's reference and the earlier commit, in one pack. If the repository has
// a branch of the given name, Restore also reads where that branch began and what it changes. The error is one of
// Fetch's. The caller closes the Restoration.
//
// No signature is checked, because nothing of the Restoration is applied.
func (r *Repository) Restore(ctx context.Context, commit, branch string) (*Restoration, error) {
	if err := checkReference(v1alpha1.GitReference{Commit: commit}); err != nil {
		return nil, err
	}
	return converse(ctx, r, func(s *session) (*Restoration, error) { return s.restore(plumbing.NewHash(commit), branch) })
}

// restore fetches the present commits of the references, and the earlier commit with them or from their history.
func (s *session) restore(then plumbing.Hash, branch string) (*Restoration, error) {
	refs, err := s.references()
	if err != nil {
		return nil, err
	}
	head, err := s.selectRef(refs, s.repository.options.Reference)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	wants, proposed := []plumbing.Hash{head.want}, plumbing.ZeroHash
	if found, err := lookup(refs, branchPrefix+branch, branchPrefix); err == nil {
		wants, proposed = append(wants, found.want), found.commit
	}
	p, err := s.pack(len(wants), append(slices.Clone(wants), then)...) // including the commit at which the branch began
	if errors.Is(err, errRefused) {
		p, err = s.deepen(then, head, wants)
	}
	if err != nil {
		return nil, err
	}
	return s.restoration(p, head, then, proposed)
}

// deepen fetches history in bounded steps until it contains a commit.
func (s *session) deepen(then plumbing.Hash, head target, wants []plumbing.Hash) (*pack, error) {
	for _, depth := range deepenings {
		p, err := s.pack(depth, wants...)
		if err != nil || p.has(then) {
			return p, err
		}
	}
	return nil, fmt.Errorf("cannot fetch %s: %w: the server does not hand out commit %s, and it is not among the newest %d of %s",
		s.repository.options.URL, ErrRefNotFound, then, deepenings[len(deepenings)-1], head.short)
}

// restoration compares the commits of a pack.
func (s *session) restoration(p *pack, head target, then, proposed plumbing.Hash) (*Restoration, error) {
	began, err := s.beganAt(p, head, proposed)
	if err != nil {
		return nil, err
	}
	var roots [4]plumbing.Hash
	for i, hash := range []plumbing.Hash{head.commit, then, began, proposed} {
		if hash.IsZero() {
			continue
		}
		c, err := p.commit(hash)
		if err == nil {
			err = p.complete(c.TreeHash)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot fetch %s: commit %s: %w", s.repository.options.URL, hash, err)
		}
		roots[i] = c.TreeHash
	}
	changes, err := changesOf(s.ctx, p, s.repository.options.Limits, roots[2], roots[1])
	if err != nil {
		return nil, fmt.Errorf("cannot compare commits %s and %s of %s: %w", began, then, s.repository.options.URL, err)
	}
	r := &Restoration{
		Head: s.files(newGitFiles(p, roots[0])), Then: s.files(newGitFiles(p, roots[1])),
		Changes: changes,
	}
	r.Head.revision = Revision{Ref: head.short, Commit: head.commit.String()}
	r.Then.revision = Revision{Commit: then.String()}
	if r.Began = r.Head; began != head.commit {
		r.Began = s.files(newGitFiles(p, roots[2]))
		r.Began.revision = Revision{Commit: began.String()}
	}
	if !proposed.IsZero() {
		changes, err := changesOf(s.ctx, p, s.repository.options.Limits, roots[2], roots[3])
		if err != nil {
			return nil, fmt.Errorf("cannot read what commit %s of %s changes: %w", proposed, s.repository.options.URL, err)
		}
		r.Proposed = &changes
	}
	r.claim, s.claim = s.claim, nil
	return r, nil
}

// beganAt is the commit at which a branch of one commit began. It is the commit's parent, if that was once the newest
// commit of the reference; otherwise the newest commit.
func (s *session) beganAt(p *pack, head target, proposed plumbing.Hash) (plumbing.Hash, error) {
	if proposed.IsZero() {
		return head.commit, nil
	}
	c, err := p.commit(proposed)
	if err == nil && len(c.ParentHashes) == 1 && c.ParentHashes[0] != head.commit && p.has(c.ParentHashes[0]) {
		contained, failed := s.contains(head.commit, c.ParentHashes[0])
		if err = failed; contained {
			return c.ParentHashes[0], err
		}
	}
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("cannot read where the branch of commit %s of %s began: %w", proposed, s.repository.options.URL, err)
	}
	return head.commit, nil
}

// Read returns changes with the content of their files. The error is ErrManyChanges if they are too many or too large.
func (r *Restoration) Read(changes []FileChange) ([]FileChange, error) {
	then, ok := r.Then.files.(*gitFiles)
	if !ok {
		return nil, errors.New("cannot read a tree that is not of Git")
	}
	if len(changes) > restoredFiles {
		return nil, fmt.Errorf("%w: more than %d files", ErrManyChanges, restoredFiles)
	}
	read, remaining := slices.Clone(changes), int64(restoredBytes)
	for i := range read {
		c := &read[i]
		if c.After == "" {
			continue
		}
		hash := plumbing.NewHash(c.After)
		size, err := then.objects.size(hash)
		if err != nil {
			return nil, err
		}
		if remaining -= size; remaining < 0 {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrManyChanges, restoredBytes)
		}
		if c.Content, err = newGitFiles(then.objects, then.root).content(c.Path, entry{object: hash}); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// Reads reports whether a build of Began or Then has read the file.
func (r *Restoration) Reads(file string) bool {
	for _, t := range []*Tree{r.Began, r.Then} {
		if files, ok := t.files.(*gitFiles); ok {
			files.mu.Lock()
			read := files.read[file]
			files.mu.Unlock()
			if read {
				return true
			}
		}
	}
	return false
}

// With returns the tree of Began after some of the changes.
func (r *Restoration) With(changes []FileChange) (*Tree, error) {
	began, ok := r.Began.files.(*gitFiles)
	if !ok {
		return nil, errors.New("cannot change a tree that is not of Git")
	}
	files := newGitFiles(began.objects, began.root)
	files.merged = map[string][]entry{}
	for _, c := range changes {
		if err := files.change(c); err != nil {
			return nil, err
		}
	}
	return &Tree{files: files, limits: r.Began.limits, redaction: r.Began.redaction}, nil
}

// change makes a change in the directories of its file. A directory without files is removed.
func (g *gitFiles) change(c FileChange) error {
	at, changed := c.Path, entry{name: path.Base(c.Path), kind: regular, object: plumbing.NewHash(c.After)}
	gone := c.After == ""
	for {
		dir := path.Dir(at)
		if dir == "." {
			dir = ""
		}
		list, err := g.entries(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		list = slices.DeleteFunc(slices.Clone(list), func(e entry) bool { return e.name == changed.name })
		if !gone {
			list = append(list, changed)
			sortEntries(list)
		}
		g.merged[dir] = list
		if dir == "" {
			return nil
		}
		gone = len(list) == 0
		at, changed = dir, entry{name: path.Base(dir), kind: directory}
	}
}

// changesOf returns the files that differ between two trees, sorted by path.
func changesOf(ctx context.Context, p *pack, limits Limits, before, after plumbing.Hash) ([]FileChange, error) {
	trees, root := &boundedTrees{pack: p, remaining: int64(limits.Files)}, [2]*object.Tree{}
	for i, hash := range []plumbing.Hash{before, after} {
		var err error
		if root[i], err = object.GetTree(trees, hash); err != nil {
			return nil, err
		}
	}
	found, err := object.DiffTreeContext(ctx, root[0], root[1])
	switch {
	case trees.remaining < 0: // go-git does not wrap the error
		return nil, fmt.Errorf("%w: more files and directories than are read", ErrLimitExceeded)
	case err != nil:
		return nil, err
	}
	sort.Sort(found)
	directories := map[string]bool{}
	for _, f := range found {
		for dir := path.Dir(pathOf(f)); dir != "." && !directories[dir]; dir = path.Dir(dir) {
			directories[dir] = true
		}
	}
	changes := make([]FileChange, 0, len(found))
	for _, f := range found {
		c := FileChange{Path: pathOf(f)}
		var before string
		c.Before, before = plain(f.From.TreeEntry)
		c.After, c.Odd = plain(f.To.TreeEntry)
		c.Odd = cmp.Or(c.Odd, before)
		if directories[c.Path] {
			c.Odd = "is a directory in one of the commits"
		}
		changes = append(changes, c)
	}
	return changes, nil
}

func pathOf(c *object.Change) string { return cmp.Or(c.From.Name, c.To.Name) }

// plain returns the hash of a file, and why it is not a plain file.
func plain(e object.TreeEntry) (hash, odd string) {
	switch kind := kindOf(e.Mode); {
	case e.Mode == filemode.Empty:
		return "", ""
	case kind != regular:
		odd = "is " + kind.String()
	case e.Mode == filemode.Executable:
		odd = "is executable"
	}
	return e.Hash.String(), odd
}

// boundedTrees gives go-git the trees of a pack until it has read too many, because a few kilobytes can name more
// files than can be read in time. A directory counts like eight files, so that it cannot be nested without end.
type boundedTrees struct {
	storer.EncodedObjectStorer
	pack      *pack
	remaining int64
}

// EncodedObject implements storer.EncodedObjectStorer.
func (b *boundedTrees) EncodedObject(_ plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := b.pack.object(hash)
	if err != nil {
		return nil, err
	}
	const shortestEntry = 28
	if b.remaining -= 8 + o.Size()/shortestEntry; b.remaining < 0 {
		return nil, ErrLimitExceeded
	}
	return o, nil
}

// SameChanges reports whether two lists change the same files in the same way.
func SameChanges(a, b []FileChange) bool {
	return slices.EqualFunc(a, b, func(x, y FileChange) bool {
		return x.Path == y.Path && x.Before == y.Before && x.After == y.After && x.Odd == y.Odd
	})
}
