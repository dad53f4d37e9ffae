package gitsource

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Propose reads the commit of the repository's reference, and previews the merge of another reference into it, such
// as refs/pull/7/head. History is fetched in bounded steps until it contains the merge base.
//
// No signature is checked, because a proposal is shown and never applied. The error is one of Fetch's, or
// ErrNoMergeBase. The caller closes the Merge.
func (r *Repository) Propose(ctx context.Context, ref string) (*Merge, error) {
	return converse(ctx, r, func(s *session) (*Merge, error) { return s.merge(ref) })
}

// merge fetches the present commits of both references.
func (s *session) merge(ref string) (*Merge, error) {
	refs, err := s.references()
	if err != nil {
		return nil, err
	}
	into, err := s.selectRef(refs, s.repository.options.Reference)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	from, err := lookup(refs, ref, "")
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	for i, depth := range deepenings {
		p, err := s.pack(depth, into.want, from.want)
		if err != nil {
			return nil, err
		}
		base, cut, err := mergeBase(p, into.commit, from.commit)
		if err != nil {
			return nil, fmt.Errorf("cannot merge %s of %s: %w", ref, s.repository.options.URL, err)
		}
		if !base.IsZero() {
			return s.merged(p, into, from, base)
		}
		if !cut || i == len(deepenings)-1 {
			break
		}
	}
	return nil, fmt.Errorf("cannot merge %s of %s: %w: no common commit among the newest %d; rebase",
		ref, s.repository.options.URL, ErrNoMergeBase, deepenings[len(deepenings)-1])
}

// merged returns the trees of a merge.
func (s *session) merged(p *pack, into, from target, base plumbing.Hash) (*Merge, error) {
	commits := make([]*object.Commit, 0, 3)
	for _, hash := range []plumbing.Hash{into.commit, from.commit, base} {
		c, err := p.commit(hash)
		if err == nil {
			err = p.complete(c.TreeHash)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot fetch %s: commit %s: %w", s.repository.options.URL, hash, err)
		}
		commits = append(commits, c)
	}
	files, err := mergeOf(p, s.repository.options.Limits, commits[0], commits[1], commits[2])
	if err != nil {
		return nil, fmt.Errorf("cannot merge %s of %s: %w", from.short, s.repository.options.URL, err)
	}
	m := &Merge{
		Into: Revision{Ref: into.short, Commit: into.commit.String()}, From: Revision{Ref: from.short, Commit: from.commit.String()},
		Before: s.files(newGitFiles(p, commits[0].TreeHash)), After: s.files(files), claim: s.claim,
	}
	m.Before.revision = m.Into
	s.claim = nil
	return m, nil
}

// files returns a tree without a commit of its own.
func (s *session) files(files *gitFiles) *Tree {
	return &Tree{files: files, limits: s.repository.options.Limits, redaction: s.repository.redaction}
}
