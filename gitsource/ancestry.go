package gitsource

import (
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/addonflow/addonflow/api/problem"
)

// checkMove refuses a branch that was moved to a commit which does not contain the earlier one. This happens by a
// force push, or if the branch was deleted and created again.
func (s *session) checkMove(to target) error {
	from := s.repository.options.Follows
	if from == "" || !strings.HasPrefix(to.name, branchPrefix) || to.commit.String() == from {
		return nil
	}
	contains, err := s.contains(to.commit, plumbing.NewHash(from))
	if err != nil || contains {
		return err
	}
	return &RefusedCommit{
		Revision: Revision{Ref: to.short, Commit: to.commit.String()}, kind: ErrNotFastForward,
		Problem: problem.Problem{
			Message: "the branch moved from " + from[:10] + " to " + to.commit.String()[:10] + ", which does not contain it",
			Hint:    "restore the branch, or set spec.allowForcePush",
		},
	}
}

// contains reports whether earlier is an ancestor of commit. The request says that the client has earlier, so the
// server sends only the additional commits of commit. If earlier is an ancestor, it is the parent of one of them. A
// server that does not know earlier does not acknowledge it.
func (s *session) contains(commit, earlier plumbing.Hash) (bool, error) {
	request, err := s.request(commit)
	if err != nil {
		return false, err
	}
	request.Haves = []plumbing.Hash{earlier}
	if s.advertised.Capabilities.Supports(capability.Filter) {
		if err := request.Capabilities.Set(capability.Filter); err != nil {
			return false, s.explain("fetch", err)
		}
		request.Filter = packp.FilterTreeDepth(0) // commits only
	}
	response, err := s.git.UploadPack(s.ctx, request)
	if err != nil {
		return false, s.refused(err)
	}
	defer func() { _ = response.Close() }()
	if !slices.Contains(response.ACKs, earlier) {
		return false, nil
	}
	p, err := s.read(response, request)
	if err != nil {
		return false, err
	}
	seen := map[plumbing.Hash]bool{commit: true}
	for queue := []plumbing.Hash{commit}; len(queue) > 0; queue = queue[1:] {
		if !p.has(queue[0]) {
			continue // the commit is part of the history of earlier
		}
		c, err := p.commit(queue[0])
		if err != nil {
			return false, err
		}
		for _, parent := range c.ParentHashes {
			if parent == earlier {
				return true, nil
			}
			if !seen[parent] {
				seen[parent] = true
				queue = append(queue, parent)
			}
		}
	}
	return false, nil
}
