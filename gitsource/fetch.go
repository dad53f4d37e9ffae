package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// deepenings are the depths that are tried for a commit that the server does not serve by sha. Each is a whole fetch.
// In a large repository, the byte limit ends the search, not the number of commits.
var deepenings = []int{20, 200, 2000}

// Fetch reads the commit that a revision's reference names, at depth 1. The tree's Revision is the commit that the
// server delivered. It is newer than the argument's commit if the reference moved meanwhile. Fetch requests an exact
// sha only if the reference is a commit. If the server refuses it, Fetch deepens the branch (ref.branch; if absent,
// HEAD) in bounded steps until it finds the commit.
//
// The error is one of Resolve's, ErrCorrupt for an incomplete pack, or a RefusedCommit. With an error, the tree is
// nil. The caller closes the tree when it no longer needs it.
func (r *Repository) Fetch(ctx context.Context, revision Revision) (*Tree, error) {
	return converse(ctx, r, func(s *session) (*Tree, error) {
		if r.options.Reference.Commit == "" {
			return s.fetchRef(revision.Ref)
		}
		if err := checkReference(v1alpha1.GitReference{Commit: revision.Commit}); err != nil {
			return nil, err
		}
		return s.fetchCommit(plumbing.NewHash(revision.Commit))
	})
}

// fetchRef fetches the present commit of ref.
func (s *session) fetchRef(ref string) (*Tree, error) {
	refs, err := s.references()
	if err != nil {
		return nil, err
	}
	reference := s.repository.options.Reference
	if reference.Name == "" && reference.SemVer != "" {
		// The resolved tag is fetched, even if a higher tag was created meanwhile.
		reference = v1alpha1.GitReference{Tag: ref}
	}
	found, err := s.selectRef(refs, reference)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	if err := s.checkMove(found); err != nil {
		return nil, err
	}
	p, err := s.pack(1, found.want)
	if err != nil {
		return nil, err
	}
	return s.tree(p, found.want, found.short)
}

// fetchCommit fetches an exact sha.
func (s *session) fetchCommit(sha plumbing.Hash) (*Tree, error) {
	refs, err := s.references()
	if err != nil {
		return nil, err
	}
	p, err := s.pack(1, sha)
	if err == nil {
		return s.tree(p, sha, "")
	}
	if !errors.Is(err, errRefused) {
		return nil, err
	}
	from, err := s.branchOf(refs)
	if err != nil {
		return nil, err
	}
	for _, depth := range deepenings {
		if p, err = s.pack(depth, from); err != nil {
			return nil, err
		}
		if p.has(sha) {
			return s.tree(p, sha, "")
		}
	}
	return nil, fmt.Errorf("cannot fetch %s: %w: the server does not hand out commit %s, and it is not among "+
		"the newest %d of the branch; set ref.branch to the one it is on",
		s.repository.options.URL, ErrRefNotFound, sha, deepenings[len(deepenings)-1])
}

// branchOf is the branch in which a commit is searched: ref.branch; if absent, HEAD.
func (s *session) branchOf(refs *packp.AdvRefs) (plumbing.Hash, error) {
	if branch := s.repository.options.Reference.Branch; branch != "" {
		found, err := lookup(refs, branchPrefix+branch, branchPrefix)
		if err != nil {
			return plumbing.ZeroHash, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
		}
		return found.want, nil
	}
	if refs.Head == nil {
		return plumbing.ZeroHash, fmt.Errorf("cannot fetch %s: %w: the repository has no HEAD; set ref.branch",
			s.repository.options.URL, ErrRefNotFound)
	}
	return *refs.Head, nil
}

// errRefused: the server does not serve the requested commit.
var errRefused = errors.New("the server refused the commit")

func (s *session) request(wants ...plumbing.Hash) (*packp.UploadPackRequest, error) {
	s.claim.Release() // an earlier fetch of the session is not used any more
	request := packp.NewUploadPackRequestFromCapabilities(s.advertised.Capabilities)
	request.Wants = wants
	// Azure Repos and AWS CodeCommit refuse a request without multi_ack. go-git removes it from what the server advertises.
	// Every version of git since 2005 has it, and go-git reads its answers to the one commit that ancestry asks about.
	if err := request.Capabilities.Set(capability.MultiACK); err != nil {
		return nil, s.explain("fetch", err)
	}
	if s.advertised.Capabilities.Supports(capability.NoProgress) {
		if err := request.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, s.explain("fetch", err)
		}
	}
	return request, nil
}

// pack fetches objects and everything that they need, depth commits back.
func (s *session) pack(depth int, wants ...plumbing.Hash) (*pack, error) {
	request, err := s.request(wants...)
	if err != nil {
		return nil, err
	}
	if s.advertised.Capabilities.Supports(capability.Shallow) {
		request.Depth = packp.DepthCommits(depth)
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return nil, s.explain("fetch", err)
		}
	}
	response, err := s.git.UploadPack(s.ctx, request)
	if err != nil {
		return nil, s.refused(err)
	}
	defer func() { _ = response.Close() }()
	return s.read(response, request)
}

func (s *session) read(response *packp.UploadPackResponse, request *packp.UploadPackRequest) (*pack, error) {
	content, err := readPack(response, request.Capabilities)
	// Over SSH, an answer looks complete even if the end of the session cut it off.
	if err = cmp.Or(err, s.ctx.Err()); err != nil {
		return nil, s.explain("fetch", s.cutOff(fmt.Errorf("%w: %w", ErrCorrupt, err)))
	}
	if err := s.claim.Turn(s.ctx); err != nil {
		return nil, s.explain("fetch", err)
	}
	p, err := openPack(content, s.repository.options.Limits.InflatedBytes)
	if errors.Is(err, ErrCorrupt) {
		err = s.cutOff(err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	return p, nil
}

// cutOff returns the cause if the answer ended early, instead of the errors that followed from it.
func (s *session) cutOff(err error) error {
	if read, ended := s.answered(); ended == early {
		return fmt.Errorf("%w: the server's answer was cut off after %d bytes", ErrCorrupt, read)
	}
	return err
}

// refused turns the server's refusal of a commit into errRefused and keeps every other failure. Git servers write a
// refusal into the text of the answer, or send an empty answer. A status code means another failure. If an answer ends
// before the pack, the connection was cut off.
func (s *session) refused(err error) error {
	_, ended := s.answered()
	switch {
	case s.stopped() != nil || s.ctx.Err() != nil || s.lost() != nil || !fromGit(err):
	case ended == refusal:
		err = fmt.Errorf("%w: %w", errRefused, err)
	default:
		err = s.cutOff(fmt.Errorf("%w: %w", ErrCorrupt, err))
	}
	return s.explain("fetch", err)
}

func readPack(r io.Reader, caps *capability.List) ([]byte, error) {
	switch {
	case caps.Supports(capability.Sideband64k):
		r = sideband.NewDemuxer(sideband.Sideband64k, r)
	case caps.Supports(capability.Sideband):
		r = sideband.NewDemuxer(sideband.Sideband, r)
	}
	return io.ReadAll(r)
}

// tree reads the commit with the hash, or the commit to which the tag with the hash points.
func (s *session) tree(p *pack, hash plumbing.Hash, ref string) (*Tree, error) {
	commit, err := p.commit(hash)
	if err != nil {
		return nil, fmt.Errorf("cannot fetch %s: %w", s.repository.options.URL, err)
	}
	if err := p.complete(commit.TreeHash); err != nil {
		return nil, fmt.Errorf("cannot fetch %s: commit %s: %w", s.repository.options.URL, commit.Hash, err)
	}
	if err := s.repository.options.Verification.verify(p, hash, ref, commit); err != nil {
		return nil, err
	}
	tree := &Tree{
		revision:  Revision{Ref: ref, Commit: commit.Hash.String()},
		subject:   headline(s.repository.redaction.Text(commit.Message)),
		author:    headline(s.repository.redaction.Text(commit.Author.Name)),
		files:     newGitFiles(p, commit.TreeHash),
		limits:    s.repository.options.Limits,
		redaction: s.repository.redaction,
		claim:     s.claim,
	}
	s.claim = nil
	return tree, nil
}

// unwrapUnexpected reads go-git's wrappers, which have no Unwrap.
func unwrapUnexpected(err error) error {
	if unexpected, ok := errors.AsType[*plumbing.UnexpectedError](err); ok {
		return unexpected.Err
	}
	return err
}

// fromGit reports whether the error is an answer of the Git program behind the server. go-git wraps answers of the
// server itself, or maps them to its own errors.
func fromGit(err error) bool {
	var unexpected *plumbing.UnexpectedError
	var permanent *plumbing.PermanentError
	return !errors.As(err, &unexpected) && !errors.As(err, &permanent) &&
		!errors.Is(err, transport.ErrAuthenticationRequired) &&
		!errors.Is(err, transport.ErrAuthorizationFailed) &&
		!errors.Is(err, transport.ErrRepositoryNotFound)
}
