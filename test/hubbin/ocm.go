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
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	return finder{root: root, out: out, build: goBuild}.ocm(ctx)
}

func (f finder) ocm(ctx context.Context) (string, error) {
	t, err := f.ocmTarget(ctx)
	if err != nil {
		return "", err
	}
	if !t.stale() {
		return t.output, nil
	}
	unlock, err := lock(ctx, filepath.Join(f.root, "bin", "ocm.lock"), f.out)
	if err != nil {
		return "", err
	}
	defer unlock()
	return t.output, f.buildOnce(ctx, t)
}

func (f finder) ocmTarget(ctx context.Context) (target, error) {
	toolchain, err := goVersion(ctx)
	if err != nil {
		return target{}, err
	}
	t := target{
		name:     ocm,
		source:   filepath.Join(f.root, "test", "hubbin", ocm),
		output:   filepath.Join(f.root, "bin", ocm, fmt.Sprintf("%s-%s-%s", OCMVersion, runtime.GOOS, runtime.GOARCH), ocm),
		ldflags:  "-s -w",
		expected: "about three minutes",
	}
	t.stamp, err = stampOf(t.source, t.ldflags, toolchain)
	return t, err
}
