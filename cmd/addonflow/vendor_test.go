package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/examples"
	"github.com/addonflow/addonflow/test/registry"
)

const chartedAddOn = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  installStrategy: {type: Manual}
`

// chartOf is a chart of a version with one ConfigMap.
func chartOf(version string, more ...string) map[string]string {
	files := map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: hello\nversion: " + version + "\n",
		"templates/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata: {version: {{ quote .Chart.Version }}}\n",
	}
	for _, name := range more {
		files[name] = "# " + name + "\n"
	}
	return files
}

// read returns a file of a directory; "" if it does not exist.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(parts...))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// TestVendor_WritesTheChartOrItsDigest: of a version, with the credentials of docker login, so
// that lint and render work with the chart, and say that they fetch none.
func TestVendor_WritesTheChartOrItsDigest(t *testing.T) {
	server := registry.Start(t, registry.Options{User: "ana", Password: "canary-90ab"})
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0+build.5"} {
		server.PushChart(t, "charts", chartOf(version, "templates/of-"+version[:1]+".txt"))
	}
	docker, dir := t.TempDir(), t.TempDir()
	put(t, docker, "config.json", string(server.DockerConfig()))
	t.Setenv("DOCKER_CONFIG", docker)
	put(t, dir, "clustermanagementaddon.yaml", chartedAddOn)
	vendor := func(args ...string) (code int, out, hints string) {
		s := newStage(t)
		code = s.run(t.Context(), append([]string{"vendor", "hello", "oci://" + server.Host + "/charts/hello", "--dir", dir, "--plain-http"}, args...)...)
		return code, s.out.String(), s.err.String()
	}
	if code, out, hints := vendor("--version", "~1.0"); code != 0 || !strings.HasPrefix(out, server.Host+"/charts/hello:1.0.0@sha256:") {
		t.Fatalf("exit code %d: %s%s", code, out, hints)
	}
	if code, out, hints := lintOf(t, dir); code != 0 {
		t.Errorf("lint: exit code %d: %s%s", code, out, hints)
	}
	s := newStage(t)
	if code := s.run(t.Context(), "render", dir); code != 0 || !strings.Contains(s.out.String(), "version: 1.0.0") {
		t.Errorf("render: exit code %d: %s%s", code, s.out.String(), s.err.String())
	}

	// An upgrade of a package that has been edited since; files that left the chart are gone.
	edited := strings.Replace(read(t, dir, "addonpackage.yaml"), "    path: chart\n", "    path: 'chart' # ours\n  values: {a: 1}\n", 1)
	put(t, dir, "addonpackage.yaml", edited)
	if code, out, hints := vendor("--version", "2.0.0+build.5"); code != 0 || !strings.Contains(out, ":2.0.0_build.5@sha256:") {
		t.Fatalf("exit code %d: %s%s", code, out, hints)
	}
	if got, want := read(t, dir, "addonpackage.yaml"), strings.Replace(edited, "'chart'", "chart", 1); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if read(t, dir, "chart", "templates", "of-1.txt") != "" || read(t, dir, "chart", "templates", "of-2.txt") == "" {
		t.Error("the folder is not the new version alone")
	}

	code, out, hints := vendor("--version", "1.1.0", "--digest")
	if code != 0 || !strings.Contains(read(t, dir, "addonpackage.yaml"), "    oci: "+strings.TrimSpace(out)+" # ours\n  values: {a: 1}\n") {
		t.Errorf("exit code %d: %s%s\n%s", code, out, hints, read(t, dir, "addonpackage.yaml"))
	}
	const warning = "addonpackage.yaml:8: AddOnPackage/hello: spec.helm.oci: nothing of the chart is checked, because nothing is fetched from a registry here; "
	if code, out, hints := lintOf(t, dir); code != 0 || !strings.Contains(hints, warning) {
		t.Errorf("lint: exit code %d: %s%s", code, out, hints)
	}
	s = newStage(t)
	if code := s.run(t.Context(), "render", dir); code != exitFailed || !strings.Contains(s.err.String(), `cannot render add-on "hello": its chart is in a registry, `+server.Host) {
		t.Errorf("render: exit code %d: %s", code, s.err.String())
	}
}

// TestVendor_NamesDockerLoginIfThereAreNoCredentials: the CLI reads no secretRef.
func TestVendor_NamesDockerLoginIfThereAreNoCredentials(t *testing.T) {
	server := registry.Start(t, registry.Options{User: "ana", Password: "canary-90ab"})
	server.PushChart(t, "charts", chartOf("1.0.0"))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	dir := t.TempDir()
	put(t, dir, "clustermanagementaddon.yaml", chartedAddOn)
	s := newStage(t)
	code := s.run(t.Context(), "vendor", "hello", "oci://"+server.Host+"/charts/hello", "--dir", dir, "--plain-http", "--version", "1.0.0")
	if want := "the registry asks for credentials; run docker login " + server.Host; code != exitFailed || !strings.Contains(s.err.String(), want) || strings.Contains(s.err.String(), "secretRef") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

// TestVendor_OfTheExample: the example of a chart in a registry is one of examples/chart, whose digest vendor writes, or
// whose files, so that they are rendered with the values of the example.
func TestVendor_OfTheExample(t *testing.T) {
	server, dir := registry.Start(t, registry.Options{}), t.TempDir()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	chart, err := fs.Sub(examples.Files, "chart/chart")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	err = fs.WalkDir(chart, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, unread := fs.ReadFile(chart, name)
			files[name], err = string(text), unread
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	digest := server.PushChart(t, "charts", files)
	if err := os.CopyFS(dir, os.DirFS("../../examples/registry")); err != nil {
		t.Fatal(err)
	}
	vendor := []string{"vendor", "log-shipper", "oci://" + server.Host + "/charts/log-shipper", "--version", "2.3.0", "--dir", dir, "--plain-http"}
	s := newStage(t)
	if code := s.run(t.Context(), append(vendor, "--digest")...); code != 0 || !strings.Contains(read(t, dir, "addonpackage.yaml"), "    oci: "+server.Host+"/charts/log-shipper:2.3.0@"+digest+"\n") {
		t.Fatalf("exit code %d: %s%s", code, s.err.String(), read(t, dir, "addonpackage.yaml"))
	}
	if code := s.run(t.Context(), vendor...); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	s.out.Reset()
	if code := s.run(t.Context(), "render", dir, "--cluster", "eu-01"); code != 0 || !strings.Contains(s.out.String(), "https://logs.example.com") {
		t.Errorf("exit code %d: %s%s", code, s.err.String(), s.out.String())
	}
}

// TestVendor_ReplacesNothingElse: a folder or a file that is not an earlier version stays.
func TestVendor_ReplacesNothingElse(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	server.PushChart(t, "charts", chartOf("1.0.0"))
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	for name, c := range map[string]struct {
		files map[string]string
		args  []string
		code  int
		want  string
	}{
		"another folder":   {map[string]string{"chart/notes.txt": "mine"}, nil, exitFailed, "it is not a version of the chart hello"},
		"another chart":    {map[string]string{"chart/Chart.yaml": "name: other\n"}, nil, exitFailed, "it is not a version of the chart hello"},
		"another package":  {map[string]string{"addonpackage.yaml": "kind: AddOnPackage\nspec: {addOn: other}\n"}, nil, exitFailed, "it exists, and is not the AddOnPackage"},
		"outside":          {map[string]string{"p.yaml": "kind: AddOnPackage\nspec: {addOn: hello, helm: {path: ../chart}}\n"}, nil, exitFailed, "it is not below the directory"},
		"manifests":        {map[string]string{"p.yaml": "kind: AddOnPackage\nspec:\n  addOn: hello\n  manifests: {path: m}\n"}, []string{"--digest"}, exitFailed, "below helm of the AddOnPackage"},
		"no such version":  {nil, []string{"--version", "9.9.9"}, exitFailed, "no tag in the range \"9.9.9\"; the highest are 1.0.0"},
		"two of one addon": {map[string]string{"a.yaml": "kind: AddOnPackage\nspec: {addOn: hello}\n", "b.yaml": "kind: AddOnPackage\nspec: {addOn: hello}\n"}, nil, exitFailed, "name one directory with --dir"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range c.files {
				put(t, dir, file, text)
			}
			s := newStage(t)
			code := s.run(t.Context(), append([]string{"vendor", "hello", "oci://" + server.Host + "/charts/hello", "--dir", dir, "--plain-http", "--version", "1.0.0"}, c.args...)...)
			if code != c.code || !strings.Contains(s.err.String(), c.want) {
				t.Errorf("exit code %d: %s; want %d: %s", code, s.err.String(), c.code, c.want)
			}
			for file, text := range c.files {
				if read(t, dir, file) != text {
					t.Errorf("%s was changed", file)
				}
			}
		})
	}
}
