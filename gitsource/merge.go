package gitsource

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Merge previews the merge of From into Into. Both trees are readable until it is closed.
type Merge struct {
	// Into is the commit into which From is merged.
	Into, From Revision
	// Before is the tree of Into; After is the tree after the merge. In After, a file that both sides changed is a
	// MergeConflict, which Build reports if it reads the file.
	Before, After *Tree

	claim *Claim
}

// Close releases the trees' share of the Room. The trees must not be read afterwards.
func (m *Merge) Close() { m.claim.Release() }

// errConflict: both sides changed a file.
var errConflict = errors.New("both sides changed it")

// conflict is the failure of a build that reads such a file.
func conflict() *failure {
	return &failure{reason: MergeConflict, message: "conflict: both sides changed it", hint: "rebase"}
}

// mergeOf merges the files of two commits. If only one side changed a file since their merge base, the file is taken
// from that side. Contents of a file are not merged, so the result is never a guess.
func mergeOf(from store, limits Limits, into, merged, base *object.Commit) (*gitFiles, error) {
	m := merger{
		files: newGitFiles(from, plumbing.ZeroHash), budget: limits.Files, depth: limits.Depth,
	}
	m.files.merged = map[string][]entry{}
	dir := func(c *object.Commit) entry { return entry{kind: directory, object: c.TreeHash} }
	list, err := m.directory("", dir(base), dir(into), dir(merged), 0)
	if err != nil {
		return nil, err
	}
	m.files.merged[""] = list
	return m.files, nil
}

// merger merges directories. budget is how many more entries it may compare, because a few kilobytes of trees can
// name more files than can be compared in time.
type merger struct {
	files         *gitFiles
	budget, depth int
}

// directory merges a directory that differs between the sides. An entry without a name is absent.
func (m *merger) directory(dir string, base, ours, theirs entry, depth int) ([]entry, error) {
	if depth > m.depth {
		return nil, fmt.Errorf("%w: %d directories deep", ErrLimitExceeded, depth)
	}
	var sides [3]map[string]entry
	names := map[string]bool{}
	for i, side := range []entry{base, ours, theirs} {
		sides[i] = map[string]entry{}
		if side.object.IsZero() || side.kind != directory {
			continue
		}
		list, err := m.files.list(side.object)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			sides[i][e.name], names[e.name] = e, true
		}
	}
	if m.budget -= len(names); m.budget < 0 {
		return nil, fmt.Errorf("%w: more files and directories differ than are read", ErrLimitExceeded)
	}
	var out []entry
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e, err := m.entry(path.Join(dir, name), sides[0][name], sides[1][name], sides[2][name], depth)
		if err != nil {
			return nil, err
		}
		if e.name != "" {
			out = append(out, e)
		}
	}
	sortEntries(out)
	return out, nil
}

// entry merges one name. A result without a name means that the name was removed.
func (m *merger) entry(at string, base, ours, theirs entry, depth int) (entry, error) {
	switch {
	case ours == theirs, base == theirs:
		return ours, nil
	case base == ours:
		return theirs, nil
	}
	name := ours.name
	if name == "" {
		name = theirs.name
	}
	maybeDirectory := func(e entry) bool { return e.name == "" || e.kind == directory }
	if !maybeDirectory(ours) || !maybeDirectory(theirs) {
		e := entry{name: name, kind: regular}
		if ours.name != "" && ours.kind == directory || theirs.name != "" && theirs.kind == directory {
			e.kind = directory
		}
		return e, nil
	}
	if !maybeDirectory(base) {
		base = entry{}
	}
	list, err := m.directory(at, base, ours, theirs, depth+1)
	if err != nil || len(list) == 0 {
		return entry{}, err
	}
	m.files.merged[at] = list
	return entry{name: name, kind: directory}, nil
}

// mergeBase returns the last common commit of two commits. cut: history is missing, and the merge base may be there.
// If two commits were merged crosswise, they have several merge bases, and a merge of whole files would have to
// choose one.
func mergeBase(from store, ours, theirs plumbing.Hash) (base plumbing.Hash, cut bool, err error) {
	a := &ancestry{from: from, marks: map[plumbing.Hash]mark{}}
	for hash, side := range map[plumbing.Hash]mark{ours: ofOurs, theirs: ofTheirs} {
		if err := a.mark(hash, side); err != nil {
			return base, false, err
		}
	}
	if ours == theirs {
		return ours, false, nil
	}
	var found []plumbing.Hash
	for a.open > 0 {
		c, _ := heap.Pop(&a.queue).(*object.Commit)
		m := a.marks[c.Hash]
		if m&stale == 0 {
			a.open--
		}
		a.marks[c.Hash] |= visited
		if m&(ofOurs|ofTheirs|stale) == ofOurs|ofTheirs {
			found = append(found, c.Hash)
			m |= stale
		}
		for _, parent := range c.ParentHashes {
			if err := a.mark(parent, m&(ofOurs|ofTheirs|stale)); err != nil {
				return base, a.cut, err
			}
		}
	}
	found = slices.DeleteFunc(found, func(h plumbing.Hash) bool { return a.marks[h]&stale != 0 })
	switch {
	case len(found) == 1:
		return found[0], a.cut, nil
	case len(found) > 1:
		return base, a.cut, fmt.Errorf("%w: the branches were merged into each other; rebase", ErrNoMergeBase)
	}
	return base, a.cut, nil
}

// mark says of which sides a commit is an ancestor.
type mark uint8

const (
	ofOurs   mark = 1 << iota // an ancestor of ours
	ofTheirs                  // an ancestor of theirs
	stale                     // an ancestor of a merge base
	visited                   // its parents are marked
)

// ancestry visits two histories from the newest commit to the oldest, until all remaining commits are ancestors of
// merge bases.
type ancestry struct {
	from  store
	marks map[plumbing.Hash]mark
	queue byDate
	// open counts the commits in the queue that are not stale.
	open int
	// cut: a commit is missing.
	cut bool
}

// mark adds marks to a commit, and visits it again if they are new.
func (a *ancestry) mark(hash plumbing.Hash, m mark) error {
	known, seen := a.marks[hash]
	if known&m == m {
		return nil
	}
	if !a.from.has(hash) {
		a.cut = true
		return nil
	}
	a.marks[hash] = (known | m) &^ visited
	if seen && known&visited == 0 { // it is in the queue
		if known&stale == 0 && m&stale != 0 {
			a.open--
		}
		return nil
	}
	c, err := a.from.commit(hash)
	if err != nil {
		return err
	}
	heap.Push(&a.queue, c)
	if (known|m)&stale == 0 {
		a.open++
	}
	return nil
}

// byDate is a heap of commits, the newest first.
type byDate []*object.Commit

func (q byDate) Len() int           { return len(q) }
func (q byDate) Less(i, j int) bool { return q[i].Committer.When.After(q[j].Committer.When) }
func (q byDate) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *byDate) Push(x any)        { *q = append(*q, x.(*object.Commit)) } //nolint:errcheck // a heap of commits
func (q *byDate) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
