package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

type tree struct {
	dir, version string
	// committed is the time of the commit; every file of the release has it.
	committed time.Time
}

type binary struct {
	os, arch, path string
}

func (b binary) executable() string {
	if b.os == "windows" {
		return "addonflow.exe"
	}
	return "addonflow"
}

// clone makes the source of a release: a clone of HEAD whose only tag is the version. Go writes the
// tag into the binaries.
func clone(ctx context.Context, repository, version, dir string) (tree, error) {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return tree{}, err
	}
	dirty, err := git(ctx, repository, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return tree{}, err
	}
	if dirty != "" {
		return tree{}, fmt.Errorf("%s has changes that are not committed; commit them first:\n%s", repository, dirty)
	}
	if _, err := git(ctx, "", "clone", "--quiet", "--no-tags", repository, dir); err != nil {
		return tree{}, err
	}
	if _, err := git(ctx, dir, "-c", "user.name=release", "-c", "user.email=release@localhost", "tag", "--force", version); err != nil {
		return tree{}, err
	}
	seconds, err := git(ctx, dir, "log", "-1", "--format=%ct")
	if err != nil {
		return tree{}, err
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return tree{}, fmt.Errorf("cannot read the time of the commit: %w", err)
	}
	return tree{dir: dir, version: version, committed: time.Unix(at, 0).UTC()}, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// build compiles the program for each platform, such as linux/amd64.
func (t tree) build(ctx context.Context, platforms []string, dir string) ([]binary, error) {
	var built []binary
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		b := binary{os: system, arch: arch, path: filepath.Join(dir, system+"-"+arch)}
		fmt.Printf("==> %s\n", p)
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=true", "-trimpath", "-ldflags=-s -w", "-o", b.path, "./cmd/addonflow")
		cmd.Dir = t.dir
		cmd.Env = append(os.Environ(), "GOOS="+b.os, "GOARCH="+b.arch, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("cannot build for %s: %w\n%s", p, err, out)
		}
		built = append(built, b)
	}
	if !slices.ContainsFunc(built, func(b binary) bool { return b.os == "linux" }) {
		return nil, fmt.Errorf("no platform of Linux among %v, and the image needs one", platforms)
	}
	return built, nil
}
