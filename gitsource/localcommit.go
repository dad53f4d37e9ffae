package gitsource

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// MergeFromDir previews the merge of the commit from into the commit into, in the Git repository of a local
// directory. Commits are named as in Git: HEAD, a branch, a tag, a full sha, each with optional ~N and ^N.
// BuildOptions.Path starts at the directory. No program is started.
//
// The error is ErrNotGit, ErrRefNotFound, ErrNoMergeBase, which is ErrShallow, too, if the clone may lack the merge base,
// or ErrLimitExceeded.
func MergeFromDir(dir, into, from string) (*Merge, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	top, found := workTree(dir)
	if !found {
		return nil, fmt.Errorf("cannot read %s: %w: it is in no work tree", dir, ErrNotGit)
	}
	base, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", dir, err)
	}
	if base = filepath.ToSlash(base); base == "." {
		base = ""
	}
	disk, err := openDisk(top)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w: %w", top, ErrNotGit, err)
	}
	return disk.merge(base, into, from)
}

// onDisk has the objects of a local repository. go-git's storage supports only one reader at a time.
type onDisk struct {
	*filesystem.Storage
	mu *sync.Mutex
}

// openDisk opens the repository of a work tree. In a linked work tree, .git is a file.
func openDisk(top string) (onDisk, error) {
	git := filepath.Join(top, ".git")
	if stat, err := os.Stat(git); err != nil {
		return onDisk{}, err
	} else if !stat.IsDir() {
		text, err := os.ReadFile(git) //nolint:gosec // the user names the repository
		if err != nil {
			return onDisk{}, err
		}
		name, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if !ok {
			return onDisk{}, errors.New(".git names no repository")
		}
		git = below(top, name)
	}
	common := git
	if text, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil { //nolint:gosec // the user names the repository
		common = below(git, strings.TrimSpace(string(text)))
	}
	files := dotgit.NewRepositoryFilesystem(osfs.New(git), osfs.New(common))
	return onDisk{filesystem.NewStorage(files, cache.NewObjectLRUDefault()), &sync.Mutex{}}, nil
}

// below is a path that may be relative to a directory.
func below(dir, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}

// merge merges two commits.
func (d onDisk) merge(base, into, from string) (*Merge, error) {
	ours, err := d.resolve(into)
	if err != nil {
		return nil, err
	}
	theirs, err := d.resolve(from)
	if err != nil {
		return nil, err
	}
	parted, cut, err := mergeBase(d, ours.Hash, theirs.Hash)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot merge %s into %s: %w", from, into, err)
	case parted.IsZero() && cut:
		return nil, fmt.Errorf("cannot merge %s into %s: %w: %w; fetch more of the history: git fetch --unshallow", from, into, ErrNoMergeBase, ErrShallow)
	case parted.IsZero():
		return nil, fmt.Errorf("cannot merge %s into %s: %w: they have no common commit", from, into, ErrNoMergeBase)
	}
	ancestor, err := d.commit(parted)
	if err != nil {
		return nil, err
	}
	limits := DefaultLimits()
	files, err := mergeOf(d, limits, ours, theirs, ancestor)
	if err != nil {
		return nil, fmt.Errorf("cannot merge %s into %s: %w", from, into, err)
	}
	return &Merge{
		Into: Revision{Ref: into, Commit: ours.Hash.String()}, From: Revision{Ref: from, Commit: theirs.Hash.String()},
		Before: &Tree{files: newGitFiles(d, ours.TreeHash), base: base, limits: limits},
		After:  &Tree{files: files, base: base, limits: limits},
	}, nil
}

// ancestryPattern splits a revision into a name and the steps to an ancestor.
var ancestryPattern = regexp.MustCompile(`^([^~^:@{}]+|@)((?:[~^][0-9]*)*)$`)

// stepPattern is one step to an ancestor.
var stepPattern = regexp.MustCompile(`([~^])([0-9]*)`)

func (d onDisk) resolve(revision string) (*object.Commit, error) {
	parts := ancestryPattern.FindStringSubmatch(revision)
	if parts == nil {
		return nil, fmt.Errorf("cannot find commit %q: %w: want HEAD, a branch, a tag or a full sha", revision, ErrRefNotFound)
	}
	hash, err := d.named(parts[1])
	if err != nil {
		return nil, fmt.Errorf("cannot find commit %q: %w", revision, err)
	}
	c, err := d.commit(hash)
	for _, step := range stepPattern.FindAllStringSubmatch(parts[2], -1) {
		if err != nil {
			break
		}
		c, err = d.ancestor(c, step[1], step[2])
	}
	if err != nil {
		return nil, fmt.Errorf("cannot find commit %q: %w", revision, err)
	}
	return c, nil
}

// ancestor takes one step: ~N is the first parent N times, ^N is the parent N.
func (d onDisk) ancestor(c *object.Commit, step, number string) (*object.Commit, error) {
	n := 1
	if number != "" {
		var err error
		if n, err = strconv.Atoi(number); err != nil || n > 1_000_000 {
			return nil, fmt.Errorf("%w: %s%s is too far", ErrRefNotFound, step, number)
		}
	}
	times, parent := n, 0
	if step == "^" {
		times, parent = min(n, 1), n-1
	}
	for range times {
		if parent >= len(c.ParentHashes) {
			return nil, fmt.Errorf("%w: %.10s has %d parents", ErrRefNotFound, c.Hash, len(c.ParentHashes))
		}
		next, err := d.commit(c.ParentHashes[parent])
		if err != nil {
			return nil, err
		}
		c = next
	}
	return c, nil
}

// named returns the commit of a name without steps.
func (d onDisk) named(name string) (plumbing.Hash, error) {
	if name == "@" {
		name = plumbing.HEAD.String()
	}
	if commitPattern.MatchString(name) {
		return plumbing.NewHash(name), nil
	}
	for _, format := range plumbing.RefRevParseRules {
		reference, err := storer.ResolveReference(d.Storage, plumbing.ReferenceName(fmt.Sprintf(format, name)))
		if err == nil {
			return reference.Hash(), nil
		}
	}
	return plumbing.ZeroHash, fmt.Errorf("%w; a branch that only the remote has is named origin/%s, after git fetch", ErrRefNotFound, name)
}

func (d onDisk) has(h plumbing.Hash) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.HasEncodedObject(h) == nil
}

func (d onDisk) commit(h plumbing.Hash) (*object.Commit, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for range tagDepth {
		if t, err := object.GetTag(d.Storage, h); err == nil {
			h = t.Target
			continue
		}
		c, err := object.GetCommit(d.Storage, h)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrRefNotFound, h, err)
		}
		return c, nil
	}
	return nil, fmt.Errorf("%w: more than %d tags point to each other", ErrRefNotFound, tagDepth)
}

func (d onDisk) tree(h plumbing.Hash) (*object.Tree, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return object.GetTree(d.Storage, h)
}

func (d onDisk) size(h plumbing.Hash) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.EncodedObjectSize(h)
}

func (d onDisk) object(h plumbing.Hash) (plumbing.EncodedObject, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.EncodedObject(plumbing.BlobObject, h)
}
