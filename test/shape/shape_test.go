package shape

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// vague are names that say nothing about what is inside; plurals are caught too.
var vague = []string{"util", "helper", "common", "base", "manager", "handle", "process", "data", "misc"}

// foreign matches an absolute path below a home or a work directory. It is put
// together here so that this file does not match itself.
var foreign = regexp.MustCompile(`(^|[^A-Za-z0-9_.$)}\]/-])/(` + `root/|work/|home/[a-z])`)

// outside matches references to texts that the repository does not have: sections, promises and rows of the documents
// from which it was written.
var outside = regexp.MustCompile(`\bDESIGN\b|\bSafe-\d|\b[ST]\d{1,2}\b|\b[Rr]ow ?\d{2}|\breliability [A-Z]\d|\bissue \d+\b|\b[WG]\d\b`)

// generated is the marker line of https://go.dev/s/generatedcode.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// source is one file of the tree; path is slash-separated below the root.
type source struct {
	path string
	text []byte
}

// tree reads every file that Git tracks or would add.
func tree(t *testing.T) []source {
	t.Helper()
	list := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the files of the repository: %v", err)
	}
	var files []source
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but not in the index yet
		}
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source{name, text})
	}
	return files
}

// goTree is the part of the tree that is Go written by hand.
func goTree(t *testing.T) []source {
	t.Helper()
	return slices.DeleteFunc(tree(t), func(f source) bool {
		return path.Ext(f.path) != ".go" || strings.Contains(f.path, "testdata/") || generated.Match(f.text)
	})
}

func (f source) parse(t *testing.T, files *token.FileSet) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(files, f.path, f.text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestPackageComment(t *testing.T) {
	documented, command := map[string]bool{}, map[string]bool{}
	for _, f := range goTree(t) {
		dir, file := path.Split(f.path)
		parsed := f.parse(t, token.NewFileSet())
		command[dir] = command[dir] || parsed.Name.Name == "main"
		documented[dir] = documented[dir] || parsed.Doc != nil && (file == "doc.go" || command[dir])
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s has no package comment (a library keeps it in doc.go)", dir)
		}
	}
}

// TestEverySuiteLooksForLeaks: every package with tests ends with goleak, also in a module of its own.
func TestEverySuiteLooksForLeaks(t *testing.T) {
	looks := map[string]bool{}
	for _, f := range tree(t) {
		dir, file := path.Split(f.path)
		if strings.HasSuffix(file, "_test.go") {
			looks[dir] = looks[dir] || bytes.Contains(f.text, []byte(`"go.uber.org/goleak"`))
		}
	}
	for dir, ok := range looks {
		if !ok {
			t.Errorf("%s: no TestMain with goleak.VerifyTestMain", dir)
		}
	}
}

func TestNames(t *testing.T) {
	for _, f := range goTree(t) {
		for part := range strings.SplitSeq(strings.TrimSuffix(f.path, ".go"), "/") {
			for word := range strings.SplitSeq(part, "_") {
				if slices.Contains(vague, word) || slices.Contains(vague, strings.TrimSuffix(word, "s")) {
					t.Errorf("%s: name it after what it answers, not %q", f.path, word)
				}
			}
		}
	}
}

func TestBannedCalls(t *testing.T) {
	files := token.NewFileSet()
	for _, f := range goTree(t) {
		ast.Inspect(f.parse(t, files), func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Recv == nil && n.Name.Name == "init" {
					t.Errorf("%s: func init hides an order; call it from where it is needed", files.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && pkg.Name == "context" && n.Sel.Name == "TODO" {
					t.Errorf("%s: context.TODO: take the caller's context", files.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

// pure are the packages that compute results from values only.
var pure = regexp.MustCompile(`^(api|dashboard|proposal|render|rollout|registration|show|controllers/addonrollout/(addonstatus|plan))(/|$)|^(gates|manifests)$`)

// TestPurePackagesImportNoReaderOrWriter: a pure package imports no package of this module that reads
// or writes, and so gets no client, clock or logger from it. The linter checks the packages of other
// modules.
func TestPurePackagesImportNoReaderOrWriter(t *testing.T) {
	const module = "github.com/addonflow/addonflow/"
	for _, f := range goTree(t) {
		if !pure.MatchString(path.Dir(f.path)) || strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, i := range f.parse(t, token.NewFileSet()).Imports {
			imported := strings.Trim(i.Path.Value, `"`)
			if own, is := strings.CutPrefix(imported, module); is && !pure.MatchString(own) {
				t.Errorf("%s imports %s, which is not pure", f.path, own)
			}
			if strings.HasPrefix(imported, "sigs.k8s.io/controller-runtime") || strings.Contains(imported, "logr") || imported == "k8s.io/utils/clock" {
				t.Errorf("%s imports %s: take a value instead", f.path, imported)
			}
		}
	}
}

func TestComments_ReferToTheRepositoryOnly(t *testing.T) {
	for _, f := range tree(t) {
		if path.Ext(f.path) != ".go" || f.path == "test/shape/shape_test.go" {
			continue
		}
		for i, line := range strings.Split(string(f.text), "\n") {
			if found := outside.FindString(line); found != "" {
				t.Errorf("%s:%d: %q refers to a text outside of the repository", f.path, i+1, found)
			}
		}
	}
}

func TestNoForeignPaths(t *testing.T) {
	for _, f := range tree(t) {
		if bytes.IndexByte(f.text, 0) >= 0 {
			continue // not text
		}
		for i, line := range strings.Split(string(f.text), "\n") {
			if found := foreign.FindString(line); found != "" {
				t.Errorf("%s:%d: %q is a path of one machine", f.path, i+1, found)
			}
		}
	}
}
