package gitsource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

const (
	branchPrefix  = "refs/heads/"
	tagPrefix     = "refs/tags/"
	defaultBranch = "master"
)

// target is an advertised reference. want is the hash to request from the server; commit is the commit to which an
// annotated tag points.
type target struct {
	name, short  string
	want, commit plumbing.Hash
}

// checkReference refuses references that no repository can contain.
func checkReference(r v1alpha1.GitReference) error {
	switch {
	case r.Commit != "" && !commitPattern.MatchString(r.Commit):
		return fmt.Errorf("%w: ref.commit %q is not a full sha; want 40 lower-case hexadecimal digits",
			ErrInvalidReference, brief.Printable(r.Commit))
	case r.Commit == "" && r.Name != "" && !strings.HasPrefix(r.Name, "refs/"):
		return fmt.Errorf("%w: ref.name %q is not a full name; want one such as %s%s",
			ErrInvalidReference, brief.Printable(r.Name), branchPrefix, brief.Printable(r.Name))
	case r.Commit == "" && r.Name == "" && r.SemVer != "":
		if _, err := semver.NewConstraint(r.SemVer); err != nil {
			return fmt.Errorf("%w: ref.semver %q is not a range: %w", ErrInvalidReference, brief.Printable(r.SemVer), err)
		}
	}
	return nil
}

// selectRef applies Flux's precedence: name, semver, tag, branch (a commit needs no reference).
// It compares full names, so a tag and a branch of the same name do not conflict.
func selectRef(refs *packp.AdvRefs, r v1alpha1.GitReference) (target, error) {
	switch {
	case r.Name != "":
		return lookup(refs, r.Name, "")
	case r.SemVer != "":
		return highestTag(refs, r.SemVer)
	case r.Tag != "":
		return lookup(refs, tagPrefix+r.Tag, tagPrefix)
	default:
		return lookup(refs, branchPrefix+cmp.Or(r.Branch, defaultBranch), branchPrefix)
	}
}

func lookup(refs *packp.AdvRefs, name, prefix string) (target, error) {
	hash, ok := refs.References[name]
	if !ok {
		return target{}, fmt.Errorf("%w: %s%s", ErrRefNotFound, brief.Printable(name), nearest(refs, name, prefix))
	}
	return targetOf(refs, name, strings.TrimPrefix(name, prefix), hash), nil
}

func targetOf(refs *packp.AdvRefs, name, short string, hash plumbing.Hash) target {
	t := target{name: name, short: short, want: hash, commit: hash}
	if peeled, ok := refs.Peeled[name]; ok {
		t.commit = peeled
	}
	return t
}

// highestTag returns the tag of the highest version in the range. If several tags have the same version (v1.2.0 and
// 1.2.0), it returns the greatest name.
func highestTag(refs *packp.AdvRefs, constraint string) (target, error) {
	wanted, err := semver.NewConstraint(constraint)
	if err != nil {
		return target{}, fmt.Errorf("%w: ref.semver %q is not a range: %w", ErrRefNotFound, brief.Printable(constraint), err)
	}
	var best *semver.Version
	var found string
	for name := range refs.References {
		tag, ok := strings.CutPrefix(name, tagPrefix)
		if !ok {
			continue
		}
		v, err := semver.NewVersion(tag)
		if err != nil || !wanted.Check(v) {
			continue
		}
		if best == nil || cmp.Or(v.Compare(best), strings.Compare(tag, found)) > 0 {
			best, found = v, tag
		}
	}
	if best == nil {
		return target{}, fmt.Errorf("%w: no tag in the range %q%s",
			ErrRefNotFound, brief.Printable(constraint), highestVersions(refs))
	}
	return targetOf(refs, tagPrefix+found, found, refs.References[tagPrefix+found]), nil
}

// Candidates in an error: how many are shown, and how many names are compared at most.
const (
	candidates = 3
	compared   = 2000
)

func highestVersions(refs *packp.AdvRefs) string {
	var versions []*semver.Version
	for name := range refs.References {
		if tag, ok := strings.CutPrefix(name, tagPrefix); ok {
			if v, err := semver.NewVersion(tag); err == nil {
				versions = append(versions, v)
			}
		}
	}
	if len(versions) == 0 {
		return "; no tag is a version"
	}
	slices.SortFunc(versions, func(a, b *semver.Version) int {
		return cmp.Or(b.Compare(a), strings.Compare(a.Original(), b.Original()))
	})
	var names []string
	for _, v := range versions[:min(len(versions), candidates)] {
		names = append(names, brief.Printable(v.Original()))
	}
	return "; the highest are " + strings.Join(names, ", ")
}

// nearest lists the names below prefix that are spelled most like name.
func nearest(refs *packp.AdvRefs, name, prefix string) string {
	var names []string
	for n := range refs.References {
		if strings.HasPrefix(n, prefix) {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "; there is none below " + prefix
	}
	slices.Sort(names)
	names = names[:min(len(names), compared)]
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(problem.Distance(a, name), problem.Distance(b, name)) })
	names = names[:min(len(names), candidates)]
	for i, n := range names {
		names[i] = brief.Printable(strings.TrimPrefix(n, prefix))
	}
	return "; nearest: " + strings.Join(names, ", ")
}
