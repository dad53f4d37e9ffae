package hubbin

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world is a repository in a temporary directory and a record of what find
// did there.
type world struct {
	finder
	did []string
	env map[string]string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{env: map[string]string{}}
	w.root = t.TempDir()
	w.out = io.Discard
	for _, name := range []string{etcd, apiServer} {
		writeBinary(t, filepath.Join(w.root, "test", "hubbin", name), "go.mod", "go.sum", "main.go")
	}
	w.getenv = func(name string) string { return w.env[name] }
	w.reached = func(context.Context) bool { w.did = append(w.did, "probe"); return false }
	w.download = func(context.Context, string, io.Writer) error { w.did = append(w.did, "download"); return nil }
	w.build = func(_ context.Context, target target, _ io.Writer) error {
		w.did = append(w.did, "build "+target.name)
		return writeFiles(filepath.Dir(target.output), target.name)
	}
	return w
}

func writeBinary(t *testing.T, dir string, names ...string) {
	t.Helper()
	if err := writeFiles(dir, names...); err != nil {
		t.Fatal(err)
	}
}

func writeFiles(dir string, names ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o755); err != nil {
			return err
		}
	}
	return nil
}

func TestFindOrder(t *testing.T) {
	here := "-" + runtime.GOOS + "-" + runtime.GOARCH
	cases := map[string]struct {
		reason  string
		prepare func(t *testing.T, w *world)
		want    string
		did     []string
		says    []string
	}{
		"Variable": {
			reason: "the caller's directory is taken without looking any further",
			prepare: func(t *testing.T, w *world) {
				w.env[assetsVariable] = t.TempDir()
				writeBinary(t, w.env[assetsVariable], apiServer, etcd)
			},
			want: assetsVariable,
		},
		"Offline": {
			reason:  "without a network both are built, the quick one first",
			prepare: func(*testing.T, *world) {},
			want:    "build",
			did:     []string{"probe", "build etcd", "build kube-apiserver"},
			says: []string{
				"hub: building etcd from Go modules, about a minute, once", "hub: built etcd",
				"hub: building kube-apiserver from Go modules, about five minutes, once", "hub: built kube-apiserver",
			},
		},
		"Built": {
			reason: "what was built before is used without asking the network",
			prepare: func(t *testing.T, w *world) {
				if _, err := w.find(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.did = nil
			},
			want: "cache",
		},
		"OneStale": {
			reason: "only the binary whose module changed is built again",
			prepare: func(t *testing.T, w *world) {
				if _, err := w.find(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.did = nil
				changed := filepath.Join(w.root, "test", "hubbin", etcd, "go.sum")
				if err := os.WriteFile(changed, []byte("other"), 0o644); err != nil {
					t.Fatal(err)
				}
			},
			want: "build",
			did:  []string{"probe", "build etcd"},
			says: []string{"hub: building etcd from Go modules, about a minute, once", "hub: built etcd"},
		},
		"Online": {
			reason: "a network is cheaper than five minutes of compiling",
			prepare: func(_ *testing.T, w *world) {
				w.reached = func(context.Context) bool { return true }
				w.download = func(_ context.Context, binDir string, _ io.Writer) error {
					w.did = append(w.did, "download")
					return writeFiles(filepath.Join(binDir, "k8s", "1.36.2"+here), apiServer, etcd)
				}
			},
			want: "download",
			did:  []string{"download"},
			says: []string{"hub: downloading kube-apiserver and etcd 1.36.x (about 60 MB)"},
		},
		"DownloadFails": {
			reason: "a network that breaks half-way is no network",
			prepare: func(_ *testing.T, w *world) {
				w.reached = func(context.Context) bool { return true }
				w.download = func(context.Context, string, io.Writer) error { return errors.New("reset by peer") }
			},
			want: "build",
			did:  []string{"build etcd", "build kube-apiserver"},
			says: []string{
				"hub: downloading kube-apiserver and etcd 1.36.x (about 60 MB)", "hub: download failed, building instead: reset by peer",
				"hub: building etcd from Go modules, about a minute, once", "hub: built etcd",
				"hub: building kube-apiserver from Go modules, about five minutes, once", "hub: built kube-apiserver",
			},
		},
		"HalfDownloaded": {
			reason: "a directory without etcd is no hub",
			prepare: func(t *testing.T, w *world) {
				writeBinary(t, filepath.Join(w.envtestDir(), "k8s", "1.36.2"+here), apiServer)
			},
			want: "build",
			did:  []string{"probe", "build etcd", "build kube-apiserver"},
			says: []string{
				"hub: building etcd from Go modules, about a minute, once", "hub: built etcd",
				"hub: building kube-apiserver from Go modules, about five minutes, once", "hub: built kube-apiserver",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.prepare(t, w)
			var said strings.Builder
			w.out = &said
			got, err := w.find(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if got.Source != tc.want {
				t.Errorf("%s: source = %q, want %q", tc.reason, got.Source, tc.want)
			}
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.says, withoutSeconds(said.String())); diff != "" {
				t.Errorf("%s: a waiting process says what it waits for: -want +got:\n%s", tc.reason, diff)
			}
			if !complete(got.Dir) {
				t.Errorf("%s: %s lacks a binary", tc.reason, got.Dir)
			}
		})
	}
}

// withoutSeconds are the lines of a text, without how long a build took.
func withoutSeconds(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if rest, built := strings.CutPrefix(line, "hub: built "); built {
			name, _, _ := strings.Cut(rest, " in ")
			line = "hub: built " + name
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// TestFindBuildsOnce: a second process waits, says so, and uses what the first built.
func TestFindBuildsOnce(t *testing.T) {
	w := newWorld(t)
	unlock, err := lock(t.Context(), filepath.Join(w.root, "bin", "k8s.lock"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	second, out := w.finder, make(chan string, 1)
	second.out = lines(out)
	second.build = func(context.Context, target, io.Writer) error { return errors.New("built twice") }
	type result struct {
		found Assets
		err   error
	}
	done := make(chan result, 1)
	go func() {
		found, err := second.find(t.Context())
		done <- result{found, err}
	}()
	if got, want := <-out, "hub: waiting for another process that builds the binaries\n"; got != want {
		t.Errorf("the second says %q, want %q", got, want)
	}
	if _, err := w.built(t.Context()); err != nil {
		t.Fatal(err)
	}
	unlock()
	if got := <-done; got.err != nil || got.found.Source != "cache" {
		t.Errorf("the second found %+v: %v", got.found, got.err)
	}
}

// lines sends what is written, write by write.
type lines chan<- string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

func TestFindNamesWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	w.env[assetsVariable] = t.TempDir()
	if _, err := w.find(t.Context()); !errors.Is(err, ErrIncomplete) {
		t.Errorf("a directory named by the caller must not be searched around: %v", err)
	}

	w = newWorld(t)
	w.build = func(context.Context, target, io.Writer) error { return errors.New("exit status 1") }
	_, err := w.find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "go build -trimpath") {
		t.Errorf("a failed build must name the command to run: %v", err)
	}
}

func TestFindWaitsForTheLock(t *testing.T) {
	w := newWorld(t)
	unlock, err := lock(t.Context(), filepath.Join(w.root, "bin", "k8s.lock"), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := lock(ctx, filepath.Join(w.root, "bin", "k8s.lock"), io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("a second holder must wait until its context ends: %v", err)
	}
	unlock()
	if _, err := w.find(t.Context()); err != nil {
		t.Errorf("a lock given back must be free: %v", err)
	}
}

func TestDownloadedDirTakesTheNewest(t *testing.T) {
	w := newWorld(t)
	here := "-" + runtime.GOOS + "-" + runtime.GOARCH
	for _, version := range []string{"1.36.10", "1.36.9", "1.35.11"} {
		writeBinary(t, filepath.Join(w.envtestDir(), "k8s", version+here), apiServer, etcd)
	}
	if got := filepath.Base(w.downloadedDir()); got != "1.36.10"+here {
		t.Errorf("downloadedDir() = %s", got)
	}
}

func TestRootAbove(t *testing.T) {
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	nested, err := rootAbove(filepath.Join(root, "test", "hubbin", apiServer))
	if err != nil || nested != root {
		t.Errorf("a nested module is not the root: %q, %v", nested, err)
	}
	if _, err := rootAbove(t.TempDir()); !errors.Is(err, ErrOutsideRepository) {
		t.Errorf("outside: %v", err)
	}
}
