package gitsource

import (
	"fmt"
	"regexp"
	"strings"
)

// algorithm prefixes every commit in a revision string (Flux).
const algorithm = "sha1:"

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Revision is a commit and the reference that led to it.
type Revision struct {
	// Ref is the branch or tag, such as main or v1.2.0; a full name such as
	// refs/pull/1/head when it was given as one; empty for a commit given by sha.
	Ref string
	// Commit is the sha, 40 lower-case hexadecimal digits.
	Commit string
}

// String returns main@sha1:<commit>, or sha1:<commit> without a reference.
func (r Revision) String() string {
	if r.Ref == "" {
		return algorithm + r.Commit
	}
	return r.Ref + "@" + algorithm + r.Commit
}

// ParseRevision is the inverse of Revision.String; its error is ErrInvalidRevision.
func ParseRevision(s string) (Revision, error) {
	ref, rest := "", s
	// The last @: a branch name may hold one, too.
	if i := strings.LastIndex(s, "@"+algorithm); i >= 0 {
		ref, rest = s[:i], s[i+1:]
		if ref == "" {
			return Revision{}, fmt.Errorf("%w %q: nothing before @", ErrInvalidRevision, s)
		}
	}
	commit, ok := strings.CutPrefix(rest, algorithm)
	if !ok || !commitPattern.MatchString(commit) {
		return Revision{}, fmt.Errorf("%w %q: want <ref>@sha1:<40 hexadecimal digits>", ErrInvalidRevision, s)
	}
	return Revision{Ref: ref, Commit: commit}, nil
}
