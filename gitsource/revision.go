package gitsource

import (
	"cmp"
	"fmt"
	"regexp"
)

// Algorithms are the prefixes of names in a revision string (Flux): of a commit, or of the digest of an artifact in a
// registry.
const (
	sha1Prefix   = "sha1:"
	sha256Prefix = "sha256:"
)

var (
	commitPattern   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	revisionPattern = regexp.MustCompile(`^(?:(.+)@)?(?:sha1:([0-9a-f]{40})|sha256:([0-9a-f]{64})(?:\+sha1:([0-9a-f]{40}))?)$`)
)

// Revision is a commit and its reference, or an artifact and its tag.
type Revision struct {
	// Ref is the branch or tag, such as main or v1.2.0. It is a full name such as refs/pull/1/head if a full name was
	// given, and empty for a commit that was given by sha.
	Ref string
	// Commit is the sha, 40 lower-case hexadecimal digits. For an artifact, it is the commit that the
	// artifact names in an annotation; without that annotation, the 64 digits of the artifact's digest.
	Commit string
	// Digest of an artifact, 64 hexadecimal digits.
	Digest string
}

// String returns main@sha1:<commit> or latest@sha256:<digest>. Without a reference it returns only the part after the
// @. An artifact that names its commit has latest@sha256:<digest>+sha1:<commit>.
func (r Revision) String() string {
	name := sha1Prefix + r.Commit
	if r.Digest != "" {
		name = sha256Prefix + r.Digest
		if r.Commit != r.Digest {
			name += "+" + sha1Prefix + r.Commit
		}
	}
	if r.Ref == "" {
		return name
	}
	return r.Ref + "@" + name
}

// ParseRevision is the inverse of Revision.String; its error is ErrInvalidRevision.
func ParseRevision(s string) (Revision, error) {
	parts := revisionPattern.FindStringSubmatch(s) // up to the last @, because a branch name may contain one
	if parts == nil {
		return Revision{}, fmt.Errorf("%w %q: want <ref>@sha1:<40 hexadecimal digits>, <tag>@sha256:<64> or <tag>@sha256:<64>+sha1:<40>", ErrInvalidRevision, s)
	}
	return Revision{Ref: parts[1], Commit: cmp.Or(parts[2], parts[4], parts[3]), Digest: parts[3]}, nil
}
