package hubbin

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
)

// OCMVersion is the release of Open Cluster Management that the nested module builds.
const OCMVersion = "1.2.0"

const ocm = "ocm"

// FindOCM returns the path of one binary with OCM's own addon-manager,
// placement controller and work agent (see test/hubbin/ocm), building it if it
// must: some minutes, once. Progress goes to out in lines for a human; ctx ends
// a build and the wait for another process's build. The error names the
// command that reproduces the failure.
func FindOCM(ctx context.Context, out io.Writer) (string, error) {
	return findNested(ctx, out, ocm, OCMVersion, "about three minutes")
}

// findNested returns the binary of one nested module, building it if it must.
func findNested(ctx context.Context, out io.Writer, name, version, expected string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	f := finder{root: root, out: out, build: goBuild}
	toolchain, err := goVersion(ctx)
	if err != nil {
		return "", err
	}
	t := target{
		name:     name,
		source:   filepath.Join(root, "test", "hubbin", name),
		output:   filepath.Join(root, "bin", name, fmt.Sprintf("%s-%s-%s", version, runtime.GOOS, runtime.GOARCH), name),
		ldflags:  "-s -w",
		expected: expected,
	}
	if t.stamp, err = stampOf(t.source, t.ldflags, toolchain); err != nil || !t.stale() {
		return t.output, err
	}
	unlock, err := lock(ctx, filepath.Join(root, "bin", name+".lock"), out)
	if err != nil {
		return "", err
	}
	defer unlock()
	return t.output, f.buildOnce(ctx, t)
}
