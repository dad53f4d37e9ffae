package oci

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/addonflow/addonflow/api/brief"
)

// Bounds of a list of tags.
const (
	tagPages = 100
	mostTags = 50_000
)

// Reference selects an artifact of a repository. Precedence: digest, semver, tag.
type Reference struct {
	// Digest of a manifest, sha256:<hex>.
	Digest string
	// SemVer is a range of versions; the tag of the highest one is followed.
	SemVer string
	// Tag to follow; latest if no other field is set.
	Tag string
}

// latest is the tag without a reference.
const latest = "latest"

// Revision is a digest and the tag that led to it.
type Revision struct {
	// Tag is empty for a digest.
	Tag string
	// Digest of the manifest, sha256:<hex>.
	Digest string
}

// Resolve returns the digest that the reference names now; a reference that is a digest needs no
// request. The error is one of Chart's.
func (r *Registry) Resolve(ctx context.Context, repository string, reference Reference) (Revision, error) {
	if reference.Digest != "" {
		return Revision{Digest: reference.Digest}, nil
	}
	s, err := r.connect(ctx, repository)
	if err != nil {
		return Revision{}, err
	}
	defer s.close()
	tag := cmp.Or(reference.Tag, latest)
	if reference.SemVer != "" {
		if tag, err = s.highest(reference.SemVer); err != nil {
			return Revision{}, err
		}
	}
	found, err := s.remote.Resolve(s.ctx, tag) //nolint:contextcheck // the session's own context, derived from the caller's
	if err != nil {
		return Revision{}, s.explain("find "+s.name(tag), err)
	}
	if err := found.Digest.Validate(); err != nil || found.Digest.Algorithm() != "sha256" {
		return Revision{}, fmt.Errorf("%s: %w: its digest is not of SHA-256", s.name(tag), ErrContent)
	}
	return Revision{Tag: tag, Digest: found.Digest.String()}, nil
}

// highest returns the tag of the highest version in a range. Of tags that are the same version it
// takes the greatest name. As Helm writes them, a + of a version is a _ in its tag.
func (s *session) highest(constraint string) (string, error) {
	wanted, err := semver.NewConstraint(constraint)
	if err != nil {
		return "", fmt.Errorf("%w: %q is not a range of versions: %w", ErrInvalidReference, brief.Printable(constraint), err)
	}
	var best *semver.Version
	var found string
	var versions []*semver.Version
	count := 0
	err = s.remote.Tags(s.ctx, "", func(tags []string) error {
		if count += len(tags); count > mostTags {
			return final{fmt.Errorf("%w: more than %d tags", ErrLimitExceeded, mostTags)}
		}
		for _, tag := range tags {
			v, err := semver.NewVersion(strings.ReplaceAll(tag, "_", "+"))
			if err != nil {
				continue
			}
			versions = append(versions, v)
			if wanted.Check(v) && (best == nil || cmp.Or(v.Compare(best), strings.Compare(tag, found)) > 0) {
				best, found = v, tag
			}
		}
		return nil
	})
	if err != nil {
		return "", s.explain("list the tags of "+s.name(""), err)
	}
	if best == nil {
		return "", fmt.Errorf("%s: %w: no tag in the range %q%s", s.name(""), ErrNotFound, brief.Printable(constraint), highestOf(versions))
	}
	return found, nil
}

// highestOf names the highest versions, for a hint.
func highestOf(versions []*semver.Version) string {
	const shownVersions = 3
	if len(versions) == 0 {
		return "; no tag is a version"
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int { return b.Compare(a) })
	var names []string
	for _, v := range versions[:min(len(versions), shownVersions)] {
		names = append(names, brief.Printable(v.Original()))
	}
	return "; the highest are " + strings.Join(names, ", ")
}
