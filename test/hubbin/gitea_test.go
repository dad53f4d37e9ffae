package hubbin

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestGiteaNeedsACompilerOnlyToBeBuilt(t *testing.T) {
	w := newWorld(t)
	writeBinary(t, filepath.Join(w.root, "test", "hubbin", gitea), "go.mod", "go.sum")
	compiler := filepath.Join(t.TempDir(), "cc")
	t.Setenv("CC", compiler+" -O1")

	if _, err := w.gitea(t.Context()); !errors.Is(err, ErrNoCompiler) || !strings.Contains(err.Error(), compiler) {
		t.Errorf("got %v, want ErrNoCompiler with the name of the compiler", err)
	}
	writeBinary(t, filepath.Dir(compiler), "cc")
	built, err := w.gitea(t.Context())
	if err != nil || len(w.did) != 1 {
		t.Fatalf("with a compiler: did %q, %v", w.did, err)
	}
	t.Setenv("CC", compiler+"-removed")
	if cached, err := w.gitea(t.Context()); cached != built || err != nil || len(w.did) != 1 {
		t.Errorf("what was built before needs none: %q, did %q, %v", cached, w.did, err)
	}
}
