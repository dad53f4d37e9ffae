package oci

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// fluxContent is the media type of a tree that Flux pushed.
const fluxContent = "application/vnd.cncf.flux.content.v1.tar+gzip"

// archives are the media types of layers that are read as a tree, as Flux reads them.
func archives() []string {
	return []string{fluxContent, ocispec.MediaTypeImageLayerGzip, "application/vnd.docker.image.rootfs.diff.tar.gzip"}
}

// artifactLimits returns the documented limits of an artifact: those of a fetch from Git.
func artifactLimits() Limits {
	return Limits{Bytes: 64 << 20, Unpacked: 256 << 20, Files: 50_000, FileBytes: 1 << 20, TotalBytes: 64 << 20, Depth: 64}
}

// Artifact is a tree of files.
type Artifact struct {
	Files []File
	claim Claim
}

// Close releases the artifact's share of the Room. Its files must not be read afterwards.
func (a *Artifact) Close() { a.claim.Release() }

// Artifact returns the tree in the first layer of an artifact, as flux push artifact writes it.
// digest is that of its manifest. The error is one of Chart's. The caller closes the artifact.
func (r *Registry) Artifact(ctx context.Context, repository, digest string) (*Artifact, error) {
	s, err := r.connect(ctx, repository)
	if err != nil {
		return nil, err
	}
	defer s.close()
	m, err := s.content(digest)
	if err != nil {
		return nil, err
	}
	if len(m.Layers) == 0 || !slices.Contains(archives(), m.Layers[0].MediaType) {
		return nil, fmt.Errorf("%s: %w: its first layer is not a tree of files, as flux push artifact writes it", s.name(digest), ErrContent)
	}
	files, err := s.unpacked(digest, m.Layers[0], artifactLimits())
	if err != nil {
		return nil, err
	}
	a := &Artifact{Files: files, claim: s.claim}
	s.claim = noClaim{}
	return a, nil
}

// madeOf matches the commit in the annotation org.opencontainers.image.revision: main@sha1:<commit> is written by flux
// push artifact, main/<commit> by its older versions, <commit> by other tools.
var madeOf = regexp.MustCompile(`^(?:.{0,250}(?:@sha1:|/))?([0-9a-f]{40})$`)

// Commit returns the commit that the annotation of an artifact names, or "". digest is that of the artifact's
// manifest. Every user who may push the artifact can write the annotation; with a Verification, only users who may sign
// it. The error is one of Chart's.
func (r *Registry) Commit(ctx context.Context, repository, digest string) (string, error) {
	s, err := r.connect(ctx, repository)
	if err != nil {
		return "", err
	}
	defer s.close()
	m, err := s.content(digest)
	if errors.Is(err, ErrContent) {
		return "", nil // Artifact says what is wrong with it
	}
	if err != nil {
		return "", err
	}
	if found := madeOf.FindStringSubmatch(m.Annotations[ocispec.AnnotationRevision]); found != nil {
		return found[1], nil
	}
	return "", nil
}

func (s *session) unpacked(digest string, layer ocispec.Descriptor, limits Limits) ([]File, error) {
	archive, err := s.blob(layer, limits.Bytes)
	if err != nil {
		return nil, err
	}
	if err := s.claim.Turn(s.ctx); err != nil {
		return nil, s.explain("unpack "+s.name(digest), err)
	}
	files, err := unpack(archive, limits)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(digest), err)
	}
	return files, nil
}
