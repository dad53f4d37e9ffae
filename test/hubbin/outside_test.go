package hubbin

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"testing"
)

// TestFindOutsideAClone: an installed program has no sources to build from.
func TestFindOutsideAClone(t *testing.T) {
	downloadedTo := func(w *world) string {
		return filepath.Join(w.root, "bin", "envtest", "k8s", "1.36.9-"+runtime.GOOS+"-"+runtime.GOARCH)
	}
	for name, c := range map[string]struct {
		reason  string
		prepare func(t *testing.T, w *world)
		want    string
		err     error
	}{
		"Variable": {"the caller's directory is taken wherever the program runs", func(t *testing.T, w *world) {
			t.Helper()
			w.env[assetsVariable] = t.TempDir()
			writeBinary(t, w.env[assetsVariable], apiServer, etcd)
		}, assetsVariable, nil},
		"Incomplete": {"a directory that is named is not searched around", func(t *testing.T, w *world) {
			t.Helper()
			w.env[assetsVariable] = t.TempDir()
		}, "", ErrIncomplete},
		"Downloaded": {"a former download is used without a network", func(t *testing.T, w *world) {
			t.Helper()
			writeBinary(t, downloadedTo(w), apiServer, etcd)
		}, "cache", nil},
		"Online": {"what can be downloaded is", func(_ *testing.T, w *world) {
			w.reached = func(context.Context) bool { return true }
			w.download = func(context.Context, string, io.Writer) error { return writeFiles(downloadedTo(w), apiServer, etcd) }
		}, "download", nil},
		"Offline": {"nothing can be built: the error says what is needed", func(*testing.T, *world) {}, "", ErrNoAssets},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.root = t.TempDir() // no sources
			w.build = nil
			c.prepare(t, w)
			got, err := w.outside(t.Context())
			if got.Source != c.want || !errors.Is(err, c.err) {
				t.Errorf("%s: got %+v, error %v; want source %q, error %v", c.reason, got, err, c.want, c.err)
			}
		})
	}
}
