package hubbin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// GiteaVersion is the release of Gitea that the nested module builds.
const GiteaVersion = "1.26.0"

const (
	gitea       = "gitea"
	giteaModule = "code.gitea.io/gitea"
	// giteaTags are the build tags of Gitea's own builds with SQLite, which is written in C.
	giteaTags = "sqlite sqlite_unlock_notify"
)

// ErrNoCompiler says that Gitea cannot be built, because there is no C compiler.
var ErrNoCompiler = errors.New("no C compiler; install one (apt-get install gcc libc6-dev), or name yours in $CC")

// Gitea is a Gitea that can be started.
type Gitea struct {
	// Binary is its program.
	Binary string
	// Static is the directory with its templates and texts, STATIC_ROOT_PATH in its
	// configuration.
	Static string
}

// FindGitea returns Gitea, building it if it must: some minutes and a C compiler, once. Progress
// goes to out in lines for a human; ctx ends a build and the wait for another process's build.
// The error names the command that reproduces the failure.
func FindGitea(ctx context.Context, out io.Writer) (Gitea, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return Gitea{}, err
	}
	binary, err := finder{root: root, out: out, build: goBuild}.gitea(ctx)
	if err != nil {
		return Gitea{}, err
	}
	static, err := moduleDir(ctx, filepath.Join(root, "test", "hubbin", gitea), giteaModule)
	return Gitea{Binary: binary, Static: static}, err
}

func (f finder) gitea(ctx context.Context) (string, error) {
	t, err := f.giteaTarget(ctx)
	if err != nil {
		return "", err
	}
	if !t.stale() {
		return t.output, nil
	}
	if err := hasCompiler(ctx); err != nil {
		return "", fmt.Errorf("cannot build %s: %w", gitea, err)
	}
	unlock, err := lock(ctx, filepath.Join(f.root, "bin", "gitea.lock"), f.out)
	if err != nil {
		return "", err
	}
	defer unlock()
	return t.output, f.buildOnce(ctx, t)
}

func (f finder) giteaTarget(ctx context.Context) (target, error) {
	toolchain, err := goVersion(ctx)
	if err != nil {
		return target{}, err
	}
	t := target{
		name:     gitea,
		source:   filepath.Join(f.root, "test", "hubbin", gitea),
		program:  giteaModule,
		tags:     giteaTags,
		cgo:      "1",
		output:   filepath.Join(f.root, "bin", gitea, fmt.Sprintf("%s-%s-%s", GiteaVersion, runtime.GOOS, runtime.GOARCH), gitea),
		ldflags:  "-s -w -X main.Version=" + GiteaVersion,
		expected: "about four minutes",
	}
	t.stamp, err = stampOf(t.source, t.ldflags+" "+t.tags, toolchain)
	return t, err
}

// hasCompiler returns ErrNoCompiler if the go command would find none.
func hasCompiler(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "CC").Output()
	if err != nil {
		return fmt.Errorf("cannot ask the go command for its C compiler: %w", err)
	}
	compiler, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ") // the rest are its flags
	if _, err := exec.LookPath(compiler); err != nil {
		return fmt.Errorf("%w (%w)", ErrNoCompiler, err)
	}
	return nil
}

// moduleDir returns where the go command keeps a module that a nested module requires.
func moduleDir(ctx context.Context, source, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("cannot find the files of %s: %w: %s", module, err, stderr.Bytes())
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		return "", fmt.Errorf("cannot find the files of %s: %w", module, err)
	}
	return found.Dir, nil
}
