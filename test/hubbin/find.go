package hubbin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// KubernetesVersion is the release that the nested module builds.
const KubernetesVersion = "1.36.3"

const (
	// assetsVariable is the name envtest and setup-envtest share.
	assetsVariable = "KUBEBUILDER_ASSETS"
	apiServer      = "kube-apiserver"
	etcd           = "etcd"
	// setupEnvtest is pinned here and not in go.mod: it is only ever run by
	// `go run`, and only where a network exists.
	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	// downloadSeries is a selector of setup-envtest. Its index does not carry
	// every patch release, so the newest of the series is asked for.
	downloadSeries = "1.36.x"
	// releaseIndex is what setup-envtest reads. Written out rather than taken
	// from controller-runtime, which this small program would then compile.
	releaseIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// Connecting must be quick or not at all: without a network the build is
	// waiting. The download itself (about 60 MB) may take longer.
	probeBudget    = 5 * time.Second
	downloadBudget = 3 * time.Minute
)

// ErrIncomplete: $KUBEBUILDER_ASSETS names a directory that lacks one of the two binaries. Find
// does not look elsewhere, because the user who sets the variable wants exactly that directory.
var ErrIncomplete = errors.New("directory lacks kube-apiserver or etcd")

// Assets is a pair of binaries that fit together.
type Assets struct {
	// Dir holds both.
	Dir string
	// APIServer and Etcd are paths below Dir.
	APIServer string
	Etcd      string
	// Source says how they were come by: the variable's name, "cache",
	// "download" or "build".
	Source string
}

// Find returns both binaries, building them if it must. Progress goes to out
// in lines for a human; ctx ends a download, a build and the wait for another
// process's build. Outside a clone nothing is built (ErrNoAssets). The error names the command that reproduces the failure.
func Find(ctx context.Context, out io.Writer) (Assets, error) {
	root, err := RepositoryRoot()
	if errors.Is(err, ErrOutsideRepository) {
		f, err := newOutside(out)
		if err != nil {
			return Assets{}, err
		}
		return f.outside(ctx)
	}
	if err != nil {
		return Assets{}, err
	}
	f := finder{
		root:     root,
		out:      out,
		getenv:   os.Getenv,
		reached:  indexAnswers,
		download: runSetupEnvtest,
		build:    goBuild,
	}
	return f.find(ctx)
}

// finder is Find with its surroundings as fields, for the order to be tested
// without a network, a compiler or five minutes.
type finder struct {
	root     string
	out      io.Writer
	getenv   func(string) string
	reached  func(ctx context.Context) bool
	download func(ctx context.Context, binDir string, out io.Writer) error
	build    func(ctx context.Context, target target, out io.Writer) error
}

func (f finder) find(ctx context.Context) (Assets, error) {
	if found, named, err := f.named(); named {
		return found, err
	}
	if found, ok, err := f.cached(ctx); err != nil || ok {
		return found, err
	}

	unlock, err := lock(ctx, filepath.Join(f.root, "bin", "k8s.lock"), f.out)
	if err != nil {
		return Assets{}, err
	}
	defer unlock()
	// The previous holder of the lock has most likely done the work.
	if found, ok, err := f.cached(ctx); err != nil || ok {
		return found, err
	}
	if found, ok := f.downloaded(ctx); ok {
		return found, nil
	}
	return f.built(ctx)
}

// named is the directory of the variable, and whether one is named.
func (f finder) named() (Assets, bool, error) {
	dir := f.getenv(assetsVariable)
	switch {
	case dir == "":
		return Assets{}, false, nil
	case !complete(dir):
		return Assets{}, true, fmt.Errorf("cannot use %s=%s: %w", assetsVariable, dir, ErrIncomplete)
	}
	return assets(dir, assetsVariable), true, nil
}

// cached looks at what is on disk, without the lock: finished files only ever
// appear by rename, and a stamp only after its file.
func (f finder) cached(ctx context.Context) (Assets, bool, error) {
	targets, err := f.targets(ctx)
	if err != nil {
		return Assets{}, false, err
	}
	if !slices.ContainsFunc(targets, target.stale) {
		return assets(f.buildDir(), "cache"), true, nil
	}
	if dir := f.downloadedDir(); dir != "" {
		return assets(dir, "cache"), true, nil
	}
	return Assets{}, false, nil
}

func (f finder) downloaded(ctx context.Context) (Assets, bool) {
	if !f.reached(ctx) {
		return Assets{}, false
	}
	fmt.Fprintf(f.out, "hub: downloading kube-apiserver and etcd %s (about 60 MB)\n", downloadSeries)
	ctx, cancel := context.WithTimeout(ctx, downloadBudget)
	defer cancel()
	if err := f.download(ctx, f.envtestDir(), f.out); err != nil {
		fmt.Fprintf(f.out, "hub: download failed, building instead: %v\n", err)
		return Assets{}, false
	}
	dir := f.downloadedDir()
	return assets(dir, "download"), dir != ""
}

// built builds what is stale, one after the other: two compilers at once need
// twice the memory and gain nothing on two cores.
func (f finder) built(ctx context.Context) (Assets, error) {
	targets, err := f.targets(ctx)
	if err != nil {
		return Assets{}, err
	}
	for _, t := range targets {
		if err := f.buildOnce(ctx, t); err != nil {
			return Assets{}, err
		}
	}
	return assets(f.buildDir(), "build"), nil
}

// buildOnce builds what is stale. The caller has the lock.
func (f finder) buildOnce(ctx context.Context, t target) error {
	if !t.stale() {
		return nil
	}
	fmt.Fprintf(f.out, "hub: building %s from Go modules, %s, once\n", t.name, t.expected)
	started := time.Now()
	if err := f.build(ctx, t, f.out); err != nil {
		return fmt.Errorf("cannot build %s: %w; to see it fail alone: %s", t.name, err, t.command())
	}
	if err := t.writeStamp(); err != nil {
		return err
	}
	fmt.Fprintf(f.out, "hub: built %s in %s\n", t.name, time.Since(started).Round(time.Second))
	return nil
}

// buildDir has setup-envtest's layout, so that `setup-envtest use -i --bin-dir
// bin` finds the same files.
func (f finder) buildDir() string {
	return filepath.Join(f.root, "bin", "k8s", KubernetesVersion+"-"+runtime.GOOS+"-"+runtime.GOARCH)
}

func (f finder) envtestDir() string { return filepath.Join(f.root, "bin", "envtest") }

// downloadedDir is the newest complete download, or "".
func (f finder) downloadedDir() string {
	series := strings.TrimSuffix(downloadSeries, "x")
	pattern := filepath.Join(f.envtestDir(), "k8s", series+"*-"+runtime.GOOS+"-"+runtime.GOARCH)
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return ""
	}
	slices.SortFunc(dirs, byLengthThenName)
	for _, dir := range slices.Backward(dirs) {
		if complete(dir) {
			return dir
		}
	}
	return ""
}

// byLengthThenName puts 1.36.10 after 1.36.9, which a plain sort does not.
func byLengthThenName(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func assets(dir, source string) Assets {
	return Assets{Dir: dir, APIServer: filepath.Join(dir, apiServer), Etcd: filepath.Join(dir, etcd), Source: source}
}

func complete(dir string) bool {
	for _, name := range []string{apiServer, etcd} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// indexAnswers asks the release index that setup-envtest would ask next.
func indexAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, probeBudget)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, releaseIndex, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

// runSetupEnvtest downloads into binDir/k8s. The tool checks the archive's
// hash, which is why it is used rather than a few lines of net/http.
func runSetupEnvtest(ctx context.Context, binDir string, out io.Writer) error {
	if err := os.MkdirAll(binDir, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "run", setupEnvtest, "use", downloadSeries, "--bin-dir", binDir, "-p", "path")
	cmd.Dir = binDir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	cmd.Stderr = out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go run %s: %w", setupEnvtest, err)
	}
	return nil
}
