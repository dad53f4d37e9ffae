package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// writeImage writes the image of every Linux platform as the archive of an OCI image layout. It has
// the program, the roots of Mozilla's certificate authorities, and the user that the manifests name.
func (t tree) writeImage(built []binary, out string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is temporary
	if err := t.writeLayout(built, dir); err != nil {
		return err
	}
	members, err := readMembers(dir, "")
	if err != nil {
		return fmt.Errorf("cannot read the image: %w", err)
	}
	return create(filepath.Join(out, fmt.Sprintf("addonflow_%s_image.tar", strings.TrimPrefix(t.version, "v"))),
		func(w io.Writer) error { return writeTar(w, members, t.committed) })
}

// writeLayout writes the layout into a directory.
func (t tree) writeLayout(built []binary, dir string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range built {
		if b.os != "linux" {
			continue
		}
		img, err := t.image(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: b.os, Architecture: b.arch},
		}})
	}
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": t.version,
		"io.containerd.image.name":          image + ":" + t.version,
	}))
}

func (t tree) image(b binary) (v1.Image, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	if err := writeTarGzip(&files, []member{
		{"etc/passwd", 0o644, []byte("nonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots()},
		{"addonflow", 0o755, program},
	}, t.committed); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created = b.os, b.arch, v1.Time{Time: t.committed}
	for i := range file.History {
		file.History[i].Created = file.Created
	}
	file.Config = v1.Config{
		User: "65532:65532", Entrypoint: []string{"/addonflow"}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.source":   "https://github.com/addonflow/addonflow",
			"org.opencontainers.image.version":  t.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, file)
}

// roots are the certificates that a Go module pins, so that the build machine adds none of its own.
func roots() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		// A buffer takes every write.
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})
	}
	return text.Bytes()
}
