package hubbin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// modulePath distinguishes the repository's go.mod from those of nested modules.
const modulePath = "github.com/addonflow/addonflow"

// ErrOutsideRepository is returned when no go.mod of AddonFlow is found in the
// working directory or above it.
var ErrOutsideRepository = errors.New("not inside the " + modulePath + " repository")

// RepositoryRoot returns the directory of AddonFlow's own go.mod, looking
// upwards from the working directory. `go test` and `go run` both start below
// it, so nothing needs to be configured.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cannot find the repository: %w", err)
	}
	return rootAbove(dir)
}

func rootAbove(dir string) (string, error) {
	for start := dir; ; {
		if isRoot(dir) {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("cannot find the repository above %s: %w", start, ErrOutsideRepository)
		}
		dir = parent
	}
}

func isRoot(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(content)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "module "); found {
			return strings.TrimSpace(name) == modulePath
		}
	}
	return false
}
