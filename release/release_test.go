package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/rhysd/actionlint"
	"go.uber.org/goleak"
	"sigs.k8s.io/krew/pkg/index"
	"sigs.k8s.io/yaml"
)

// TestMain expects that the tests leave no goroutine behind.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// commit copies the files of this repository, committed or not, into a repository with one commit.
func commit(t *testing.T) string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	commitAll(t, dir)
	return dir
}

// commitAll makes a directory a repository with one commit.
func commitAll(t *testing.T, dir string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "--all"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=all"},
	} {
		if _, err := git(t.Context(), dir, args...); err != nil {
			t.Fatal(err)
		}
	}
}

// signer writes a new key, and returns its file and its public half.
func signer(t *testing.T) (string, ed25519.PublicKey) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, public
}

// files reads a directory.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		found[name], err = os.ReadFile(filepath.Join(dir, name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestReleaseOfACommitIsTheSameEveryTime: two releases of one commit have equal bytes, and each file
// is what its users expect.
func TestReleaseOfACommitIsTheSameEveryTime(t *testing.T) {
	key, public := signer(t)
	repository := commit(t)
	o := options{version: "v0.98.7", repository: repository, out: filepath.Join(t.TempDir(), "first"), key: key, platforms: []string{"linux/amd64"}}
	if err := run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	again := o
	again.out = filepath.Join(t.TempDir(), "second")
	if err := run(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	first, second := files(t, o.out), files(t, again.out)
	for name := range first {
		if !bytes.Equal(first[name], second[name]) {
			t.Errorf("%s differs between two releases of one commit", name)
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d files, and %d in the second release", len(first), len(second))
	}

	if !ed25519.Verify(public, first[sums], first[sums+".sig"]) {
		t.Error("the signature of the checksums does not hold")
	}
	for name := range first {
		if !strings.HasPrefix(name, sums) && name != publicKey && !strings.Contains(string(first[sums]), "  "+name+"\n") {
			t.Errorf("%s has no checksum", name)
		}
	}
	testNotes(t, o.out, string(first["RELEASE_NOTES.md"]))

	program := filepath.Join(t.TempDir(), "addonflow")
	if err := os.WriteFile(program, unpacked(t, first["addonflow_0.98.7_linux_amd64.tar.gz"], "addonflow"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), program, "version").CombinedOutput(); err != nil || !strings.Contains(string(out), "v0.98.7") {
		t.Errorf("the program says %q, %v; want v0.98.7", out, err)
	}
	for _, name := range []string{"install.yaml", "replace.yaml"} {
		if text := string(first[name]); !strings.Contains(text, image+":v0.98.7") || strings.Contains(text, image+":v0.1.0") {
			t.Errorf("%s does not run the image of the version", name)
		}
	}
	chart := string(unpacked(t, first["addonflow-0.98.7.tgz"], "addonflow/Chart.yaml"))
	if !strings.Contains(chart, "\nversion: 0.98.7\nappVersion: v0.98.7\n") {
		t.Errorf("the chart is of another version:\n%s", chart)
	}
	var bill struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(first["addonflow_0.98.7_sbom.cdx.json"], &bill); err != nil || len(bill.Components) < 100 ||
		!strings.Contains(string(first["addonflow_0.98.7_sbom.cdx.json"]), `"pkg:golang/golang.org/x/crypto/x509roots/fallback@v0.0.0-2`) {
		t.Errorf("the SBOM has %d components, %v; want the certificates of the image among them", len(bill.Components), err)
	}
	testKrew(t, first["krew.yaml"], string(first[sums]))
	dir := unpackedAll(t, first["addonflow_0.98.7_image.tar"])
	testImage(t, dir)
	testMirror(t, dir)
}

// testNotes: the commands in the notes that exist on this machine accept the files of the release.
func testNotes(t *testing.T, dir, notes string) {
	t.Helper()
	for _, program := range []string{"openssl pkeyutl", "sha256sum", "shasum"} {
		_, command, found := strings.Cut(notes, "    "+program+" ")
		if !found {
			t.Errorf("the notes have no command of %s:\n%s", program, notes)
			continue
		}
		command, _, _ = strings.Cut(command, "\n")
		name, _, _ := strings.Cut(program, " ")
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not installed", name)
			continue
		}
		check := exec.CommandContext(t.Context(), "sh", "-c", program+" "+command)
		check.Dir = dir
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s %s: %v\n%s", program, command, err, out)
		}
	}
}

// unpackedAll unpacks an archive into a directory.
func unpackedAll(t *testing.T, archive []byte) string {
	t.Helper()
	dir := t.TempDir()
	for files := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, h.Name) //nolint:gosec // an archive of our own
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// testMirror: a copy of the layout to a registry, as the guide describes for a hub without the
// Internet, has the same digest, and can be pulled.
func testMirror(t *testing.T, dir string) {
	t.Helper()
	mirror := httptest.NewServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	t.Cleanup(mirror.Close)
	tag, err := name.NewTag(strings.TrimPrefix(mirror.URL, "http://") + "/addonflow/addonflow:v0.98.7")
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	platforms, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(tag, platforms); err != nil {
		t.Fatal(err)
	}
	copied, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if digest, err := copied.Digest(); err != nil || digest != top.Manifests[0].Digest {
		t.Errorf("the copy is %s, %v; the layout %s", digest, err, top.Manifests[0].Digest)
	}
	img, err := remote.Image(tag, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"}))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Errorf("what the mirror has of amd64: %v", err)
	}
}

// testKrew: the manifest has only fields that krew knows, and the values that its validation asks for.
func testKrew(t *testing.T, manifest []byte, sums string) {
	t.Helper()
	var p index.Plugin
	if err := yaml.UnmarshalStrict(manifest, &p); err != nil {
		t.Fatalf("krew cannot read its manifest: %v", err)
	}
	if p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin" || p.Name != "addonflow" ||
		p.Spec.ShortDescription == "" || strings.ContainsAny(p.Spec.ShortDescription, "\r\n") || p.Spec.Version != "v0.98.7" {
		t.Errorf("the krew manifest is %+v", p)
	}
	if len(p.Spec.Platforms) != 1 {
		t.Fatalf("the krew manifest has %d platforms, want 1", len(p.Spec.Platforms))
	}
	on := p.Spec.Platforms[0]
	if labels := on.Selector.MatchLabels; labels["os"] != "linux" || labels["arch"] != "amd64" || on.Bin != "addonflow" ||
		!strings.HasPrefix(on.URI, "https://") || !strings.Contains(sums, on.Sha256+"  "+path.Base(on.URI)+"\n") {
		t.Errorf("the krew manifest has the platform %+v", on)
	}
}

// testImage: the image runs the program as a user without rights, and knows the public authorities.
func testImage(t *testing.T, dir string) {
	t.Helper()
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("the layout has %+v, %v; want one index", top, err)
	}
	platforms, err := index.ImageIndex(top.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := platforms.IndexManifest()
	if err != nil || len(list.Manifests) != 1 || list.Manifests[0].Platform.Architecture != "amd64" {
		t.Fatalf("the index has %+v, %v", list, err)
	}
	img, err := platforms.Image(list.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil || config.Config.User != "65532:65532" || strings.Join(config.Config.Entrypoint, " ") != "/addonflow" || config.OS != "linux" {
		t.Errorf("the image has the configuration %+v, %v", config, err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("the image has %d layers, %v", len(layers), err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(unpacked(t, packed, "etc/ssl/certs/ca-certificates.crt")) {
		t.Error("the image has no certificates")
	}
}

// unpacked is a file of a compressed archive.
func unpacked(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for files := tar.NewReader(z); ; {
		h, err := files.Next()
		if err != nil {
			t.Fatalf("the archive has no %s: %v", name, err)
		}
		if h.Name != name {
			continue
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
}

// TestArchivesOfEveryPlatformAreTheSameEveryTime: two builds in different directories have equal bytes on every
// platform, and each archive has an executable of its system. The program is a small one, so that this takes seconds.
func TestArchivesOfEveryPlatformAreTheSameEveryTime(t *testing.T) {
	repository := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/small\n\ngo 1.26\n", "LICENSE": "none\n", "cmd/addonflow/main.go": "package main\n\nfunc main() { println(\"small\") }\n",
	} {
		file := filepath.Join(repository, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	commitAll(t, repository)
	var made []map[string][]byte
	for range 2 {
		source, err := clone(t.Context(), repository, "v0.98.7", filepath.Join(t.TempDir(), "source"))
		if err != nil {
			t.Fatal(err)
		}
		built, err := source.build(t.Context(), strings.Split(platforms, ","), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		if err := source.writeArchives(built, out); err != nil {
			t.Fatal(err)
		}
		made = append(made, files(t, out))
	}
	magic := map[string]string{"linux": "\x7fELF", "darwin": "\xcf\xfa\xed\xfe", "windows": "MZ"}
	for p := range strings.SplitSeq(platforms, ",") {
		system, arch, _ := strings.Cut(p, "/")
		b := binary{os: system, arch: arch}
		name := tree{version: "v0.98.7"}.archive(b)
		first := made[0][name]
		if len(first) == 0 || !bytes.Equal(first, made[1][name]) {
			t.Errorf("%s differs between two releases of one commit", name)
			continue
		}
		var program []byte
		if system == "windows" {
			z, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
			if err != nil {
				t.Fatal(err)
			}
			if program, err = fs.ReadFile(z, b.executable()); err != nil {
				t.Fatal(err)
			}
		} else {
			program = unpacked(t, first, b.executable())
		}
		if !strings.HasPrefix(string(program), magic[system]) {
			t.Errorf("%s has no executable for %s", name, system)
		}
	}
}

// TestNoReleaseOfWhatIsNotCommitted: a release is of a commit, and of a version.
func TestNoReleaseOfWhatIsNotCommitted(t *testing.T) {
	repository := commit(t)
	for name, c := range map[string]struct {
		version string
		change  bool
		want    string
	}{
		"a change":     {version: "v1.0.0", change: true, want: "not committed"},
		"no version":   {version: "", want: "is not a version"},
		"without a v":  {version: "1.0.0", want: "is not a version"},
		"not a number": {version: "vnext", want: "is not a version"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.change {
				if err := os.WriteFile(filepath.Join(repository, "LICENSE"), []byte("mine"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			out := filepath.Join(t.TempDir(), "dist")
			err := run(t.Context(), options{version: c.version, repository: repository, out: out, platforms: []string{"linux/amd64"}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
				t.Error("something was written")
			}
		})
	}
}

// TestWorkflowsAreValid: actionlint knows GitHub's schema of workflows, the inputs of known actions, and the contexts
// that an expression may use.
func TestWorkflowsAreValid(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) < 2 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	linter, err := actionlint.NewLinter(t.Output(), &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := linter.LintFiles(files, nil)
	if err != nil || len(problems) > 0 {
		t.Errorf("%d problems, %v", len(problems), err)
	}
}
