package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/base64"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// rootsModule contains the certificates of the image.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// writeBill writes the modules of the binaries as one CycloneDX document. It reads them from the binaries, so that
// the document lists exactly the linked modules. It adds the module of the image's certificates, with which this
// program was built.
func (t tree) writeBill(built []binary, out string) error {
	modules, goVersion := map[string]cdx.Component{}, ""
	for _, b := range built {
		info, err := buildinfo.ReadFile(b.path)
		if err != nil {
			return fmt.Errorf("cannot read the modules of %s: %w", b.path, err)
		}
		goVersion = strings.TrimPrefix(info.GoVersion, "go")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			c, err := component(m.Path, m.Version, m.Sum)
			if err != nil {
				return err
			}
			modules[c.PackageURL] = c
		}
	}
	roots, err := ownModule(rootsModule)
	if err != nil {
		return err
	}
	modules[roots.PackageURL] = roots
	std, err := component("std", goVersion, "")
	if err != nil {
		return err
	}
	components := []cdx.Component{std}
	for _, c := range modules {
		components = append(components, c)
	}
	slices.SortFunc(components, func(a, b cdx.Component) int { return cmp.Compare(a.PackageURL, b.PackageURL) })
	own, err := component("github.com/addonflow/addonflow", t.version, "")
	if err != nil {
		return err
	}
	own.Type = cdx.ComponentTypeApplication
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: t.committed.Format("2006-01-02T15:04:05Z"), Component: &own}
	bom.Components = &components
	return create(filepath.Join(out, "addonflow_"+strings.TrimPrefix(t.version, "v")+"_sbom.cdx.json"), func(w io.Writer) error {
		return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	})
}

// ownModule is a module that this program was built with.
func ownModule(path string) (cdx.Component, error) {
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range info.Deps {
			if m.Path == path {
				return component(m.Path, m.Version, m.Sum)
			}
		}
	}
	return cdx.Component{}, fmt.Errorf("cannot find the version of %s in this program", path)
}

// component is a Go module; sum is its line of go.sum.
func component(path, version, sum string) (cdx.Component, error) {
	c := cdx.Component{
		Type: cdx.ComponentTypeLibrary, Name: path, Version: version,
		PackageURL: "pkg:golang/" + path + "@" + version,
	}
	c.BOMRef = c.PackageURL
	if sum == "" {
		return c, nil
	}
	hash, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sum, "h1:"))
	if err != nil {
		return c, fmt.Errorf("cannot read the hash of module %s: %w", path, err)
	}
	c.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", hash)}}
	return c, nil
}
