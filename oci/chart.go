package oci

import (
	"context"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/addonflow/addonflow/api/brief"
)

// Media types of a chart, as Helm pushes it.
const (
	chartConfig  = "application/vnd.cncf.helm.config.v1+json"
	chartContent = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// Chart returns the files of a Helm chart by their paths in it, without files whose names start with a dot, as
// for a chart in Git. digest is that of its manifest. The error is ErrNotFound, ErrSignature, ErrAuthentication,
// ErrRedirected, ErrAddressDenied, ErrLimitExceeded, ErrContent, ErrCorrupt, or a connection error, which may be
// retried. It never holds the credentials.
func (r *Registry) Chart(ctx context.Context, repository, digest string) (map[string][]byte, error) {
	s, err := r.connect(ctx, repository)
	if err != nil {
		return nil, err
	}
	defer s.close()
	m, err := s.content(digest)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(m.Layers, func(l ocispec.Descriptor) bool { return l.MediaType == chartContent })
	if m.Config.MediaType != chartConfig || i < 0 {
		return nil, fmt.Errorf("%s: %w: it is not a Helm chart, but %s", s.name(digest), ErrContent, brief.Line(m.Config.MediaType, 80))
	}
	entries, err := s.unpacked(digest, m.Layers[i], chartLimits())
	if err != nil {
		return nil, err
	}
	files, err := chartFiles(entries)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name(digest), err)
	}
	return files, nil
}

// chartFiles returns the files below the one directory of a chart's archive.
func chartFiles(entries []File) (map[string][]byte, error) {
	files := map[string][]byte{}
	var root string
	for _, f := range entries {
		top, name, below := strings.Cut(f.Path, "/")
		if root == "" {
			root = top
		}
		switch {
		case !below || top != root:
			return nil, fmt.Errorf("%w: the archive of a chart has one folder, and %s is outside of it", ErrContent, f.Path)
		case strings.HasPrefix(name, ".") || strings.Contains(name, "/."):
			continue
		case f.Link || f.Special:
			return nil, fmt.Errorf("%w: %s is not a regular file", ErrContent, f.Path)
		case f.Content == nil:
			return nil, fmt.Errorf("%w: %s has %d bytes, at most %d are read", ErrLimitExceeded, f.Path, f.Size, chartLimits().FileBytes)
		}
		files[name] = f.Content
	}
	return files, nil
}
