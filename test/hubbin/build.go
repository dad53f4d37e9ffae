package hubbin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// target is one binary to build: a nested module and where its result goes.
type target struct {
	name     string
	source   string // directory of the nested module
	program  string // package to build; "": the module itself
	output   string // finished binary
	ldflags  string
	tags     string // build tags
	cgo      string // CGO_ENABLED; "": 0
	expected string // how long it takes, in words
	stamp    string // what the stamp file must say for output to be current
}

// targets lists both binaries, the quick one first: a machine that cannot
// build at all fails on it within seconds.
func (f finder) targets(ctx context.Context) ([]target, error) {
	toolchain, err := goVersion(ctx)
	if err != nil {
		return nil, err
	}
	targets := []target{
		{name: etcd, ldflags: "-s -w", expected: "about a minute"},
		{name: apiServer, ldflags: "-s -w " + versionFlags(), expected: "about five minutes"},
	}
	for i := range targets {
		t := &targets[i]
		t.source = filepath.Join(f.root, "test", "hubbin", t.name)
		t.output = filepath.Join(f.buildDir(), t.name)
		if t.stamp, err = stampOf(t.source, t.ldflags, toolchain); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// versionFlags set the version that the server reports. Without them it is v0.0.0-master, which
// clients that parse the version cannot use.
func versionFlags() string {
	major, rest, _ := strings.Cut(KubernetesVersion, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			"-X "+pkg+".gitVersion=v"+KubernetesVersion,
			"-X "+pkg+".gitMajor="+major,
			"-X "+pkg+".gitMinor="+minor,
			"-X "+pkg+".gitTreeState=clean",
		)
	}
	return strings.Join(flags, " ")
}

// stampOf hashes everything that decides what the compiler produces.
func stampOf(source, ldflags, toolchain string) (string, error) {
	sum := sha256.New()
	files := os.DirFS(source)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		fmt.Fprintf(sum, "%s %d\n", name, len(content))
		sum.Write(content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the nested module: %w", err)
	}
	fmt.Fprintf(sum, "%s\n%s\n%s/%s\n", ldflags, toolchain, runtime.GOOS, runtime.GOARCH)
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// goVersion is that of the go command that would build, not of the one that
// built this program.
func goVersion(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	version, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask the go command for its version (is go in PATH?): %w", err)
	}
	return strings.TrimSpace(string(version)), nil
}

func (t target) stampFile() string { return t.output + ".stamp" }

func (t target) stale() bool {
	stamp, err := os.ReadFile(t.stampFile())
	if err != nil || string(stamp) != t.stamp {
		return true
	}
	info, err := os.Stat(t.output)
	return err != nil || !info.Mode().IsRegular()
}

func (t target) writeStamp() error {
	if err := os.WriteFile(t.stampFile(), []byte(t.stamp), 0o644); err != nil {
		return fmt.Errorf("cannot remember the build of %s: %w", t.name, err)
	}
	return nil
}

// environment is what the build sets besides the caller's. The stamp does not
// see the caller's GOOS, so it must not reach the compiler either.
func (t target) environment() []string {
	return []string{
		"CGO_ENABLED=" + cmp.Or(t.cgo, "0"),
		"GOFLAGS=-buildvcs=false",
		"GOWORK=off",
		"GOOS=" + runtime.GOOS,
		"GOARCH=" + runtime.GOARCH,
	}
}

func (t target) arguments(output string) []string {
	return []string{"build", "-trimpath", "-ldflags", t.ldflags, "-tags", t.tags, "-o", output, cmp.Or(t.program, ".")}
}

// command is what to type in a shell to see the build alone.
func (t target) command() string {
	args := t.arguments(os.DevNull)
	args[3], args[5] = "'"+args[3]+"'", "'"+args[5]+"'"
	return fmt.Sprintf("(cd %s && %s go %s)", t.source, strings.Join(t.environment(), " "), strings.Join(args, " "))
}

// goBuild builds to a temporary name in the same directory and renames, so
// that an interrupted build leaves the old binary or none.
func goBuild(ctx context.Context, t target, out io.Writer) error {
	if err := os.MkdirAll(filepath.Dir(t.output), 0o755); err != nil {
		return err
	}
	unfinished := fmt.Sprintf("%s.%d.tmp", t.output, os.Getpid())
	defer func() { _ = os.Remove(unfinished) }()
	cmd := exec.CommandContext(ctx, "go", t.arguments(unfinished)...)
	cmd.Dir = t.source
	cmd.Env = append(os.Environ(), t.environment()...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return err
	}
	// The stamp of an older build must not outlive its binary.
	if err := os.RemoveAll(t.stampFile()); err != nil {
		return err
	}
	return os.Rename(unfinished, t.output)
}
