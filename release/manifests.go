package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// writeManifests writes what `kubectl apply -k` of each directory applies, with the image of the
// version.
func (t tree) writeManifests(out string) error {
	for _, name := range []string{"prerequisites", "install", "replace", "monitoring"} {
		objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join(t.dir, "manifests", name))
		if err != nil {
			return fmt.Errorf("cannot build manifests/%s: %w", name, err)
		}
		text, err := objects.AsYaml()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".yaml"), t.pinned(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// tagged is the image with the tag of the last release.
var tagged = regexp.MustCompile(regexp.QuoteMeta(image) + `:v[0-9A-Za-z.-]+`)

// pinned has the image of the version.
func (t tree) pinned(text []byte) []byte {
	return tagged.ReplaceAll(text, []byte(image+":"+t.version))
}

// versions are the lines of Chart.yaml that name the version.
var versions = regexp.MustCompile(`(?m)^(version|appVersion): .*$`)

// writeChart writes the chart with the version, as `helm package` does.
func (t tree) writeChart(out string) error {
	dir := filepath.Join(t.dir, "manifests", "chart")
	number := strings.TrimPrefix(t.version, "v")
	members, err := readMembers(dir, "addonflow/")
	if err != nil {
		return fmt.Errorf("cannot read the chart: %w", err)
	}
	for i := range members {
		if members[i].name != "addonflow/Chart.yaml" {
			continue
		}
		members[i].content = versions.ReplaceAllFunc(members[i].content, func(line []byte) []byte {
			if bytes.HasPrefix(line, []byte("app")) {
				return []byte("appVersion: " + t.version)
			}
			return []byte("version: " + number)
		})
	}
	return create(filepath.Join(out, "addonflow-"+number+".tgz"), func(w io.Writer) error { return writeTarGzip(w, members, t.committed) })
}
