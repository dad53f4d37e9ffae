package gitsource

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/test/gitserver"
)

// clone is a work tree on disk in which git runs.
type clone struct {
	t   *testing.T
	dir string
}

func newClone(t *testing.T) clone {
	t.Helper()
	c := clone{t, t.TempDir()}
	c.git("init", "-q", "-b", "main")
	return c
}

// git runs git and returns what it prints.
func (c clone) git(args ...string) string {
	c.t.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c clone) try(args ...string) (string, error) {
	command := exec.CommandContext(c.t.Context(), "git", append([]string{"-C", c.dir, "-c", "user.name=Ana", "-c", "user.email=ana@example.com"}, args...)...)
	out, err := command.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// commit replaces the files by these, and commits them. A name is its own content unless it has one.
func (c clone) commit(message string, files map[string]string) {
	c.t.Helper()
	c.git("rm", "-rq", "--ignore-unmatch", ".")
	for name, content := range files {
		file := filepath.Join(c.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			c.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			c.t.Fatal(err)
		}
	}
	c.git("add", "-A")
	c.git("commit", "-q", "--allow-empty", "-m", message)
}

// listing is every file of a tree with its content, one a line; a conflict is marked.
func listing(t *testing.T, tree *Tree) []string {
	t.Helper()
	var lines []string
	var walk func(dir string)
	walk = func(dir string) {
		list, err := tree.files.entries(dir)
		if errors.Is(err, errConflict) {
			lines = append(lines, dir+"/ conflict")
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			name := strings.TrimPrefix(dir+"/"+e.name, "/")
			if e.kind == directory {
				walk(name)
				continue
			}
			if _, err := tree.files.size(name, e); errors.Is(err, errConflict) {
				lines = append(lines, name+" conflict")
				continue
			}
			content, err := tree.files.content(name, e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, name+" "+string(content))
		}
	}
	walk("")
	return lines
}

// merged merges branch side into branch main.
func (c clone) merged() *Merge {
	c.t.Helper()
	m, err := MergeFromDir(c.dir, "main", "side")
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func TestMerge_TakesEachFileFromTheSideThatChangedIt(t *testing.T) {
	c := newClone(t)
	c.commit("base", map[string]string{"a": "1", "b": "1", "dir/c": "1", "dir/d": "1", "gone": "1", "both": "1", "moved/x": "1"})
	c.git("branch", "side")
	c.commit("main", map[string]string{"a": "2", "b": "1", "dir/c": "2", "dir/d": "1", "both": "3", "moved/x": "1", "new/m": "1"})
	c.git("checkout", "-q", "side")
	c.commit("side", map[string]string{"a": "1", "b": "2", "dir/c": "1", "dir/d": "2", "gone": "1", "both": "3", "new/s": "1"})
	m := c.merged()
	want := []string{"a 2", "b 2", "both 3", "dir/c 2", "dir/d 2", "new/m 1", "new/s 1"}
	if got := listing(t, m.After); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := listing(t, m.Before); !slices.Contains(got, "b 1") || m.Into.Commit != c.git("rev-parse", "main") || m.From.Commit != c.git("rev-parse", "side") {
		t.Errorf("before: %v, %s, %s", got, m.Into, m.From)
	}
}

// TestMerge_ConflictIsRefusedIfTheBuildReadsTheFile: a conflict in another directory, or in a file that
// is not part of an add-on, is the forge's to report.
func TestMerge_ConflictIsRefusedIfTheBuildReadsTheFile(t *testing.T) {
	c := newClone(t)
	c.commit("base", map[string]string{"addons/cm.yaml": configMap("cm", "1"), "addons/README.md": "1", "other/cm.yaml": configMap("other", "1")})
	c.git("branch", "side")
	c.commit("main", map[string]string{"addons/cm.yaml": configMap("cm", "2"), "addons/README.md": "2", "other/cm.yaml": configMap("other", "2")})
	c.git("checkout", "-q", "side")
	c.commit("side", map[string]string{"addons/cm.yaml": configMap("cm", "1"), "addons/README.md": "3"})
	after := c.merged().After
	objects, problems := after.Build(t.Context(), BuildOptions{Path: "addons"})
	if len(problems) > 0 || len(objects) != 1 {
		t.Errorf("addons: %d objects, %v", len(objects), problems)
	}
	_, problems = after.Build(t.Context(), BuildOptions{Path: "other"})
	if len(problems) != 1 || problems[0].Reason != MergeConflict || !strings.Contains(problems[0].String(), "other/cm.yaml: conflict: both sides changed it; rebase") {
		t.Errorf("other: %v", problems)
	}
}

// TestMerge_AgreesWithGit compares with git's own merge of random changes. Git merges lines, and files
// here have one; it follows renames, which is turned off.
func TestMerge_AgreesWithGit(t *testing.T) {
	names := []string{"a", "b", "dir/a", "dir/b", "dir/sub/a", "z/a"}
	draw := func(rt *rapid.T, label string) map[string]string {
		files := map[string]string{"keep": "keep"}
		for _, name := range names {
			if v := rapid.IntRange(0, 3).Draw(rt, label+name); v > 0 {
				files[name] = strings.Repeat(fmt.Sprint(name, v), 9)
			}
		}
		return files
	}
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; runs > 25 { // each run starts a dozen processes
			return
		}
		c := newClone(t)
		c.commit("base", draw(rt, "base "))
		c.git("branch", "side")
		c.commit("main", draw(rt, "main "))
		c.git("checkout", "-q", "side")
		c.commit("side", draw(rt, "side "))
		m := c.merged()
		c.git("checkout", "-q", "main")
		_, _ = c.try("-c", "merge.renames=false", "-c", "merge.directoryRenames=false", "merge", "-q", "--no-edit", "side")
		conflicts := strings.Fields(c.git("diff", "--name-only", "--diff-filter=U"))
		want := []string{}
		for _, name := range append([]string{"keep"}, names...) {
			content, err := os.ReadFile(filepath.Join(c.dir, name))
			switch {
			case slices.Contains(conflicts, name):
				want = append(want, name+" conflict")
			case err == nil:
				want = append(want, name+" "+string(content))
			}
		}
		got := listing(t, m.After)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Errorf("got %v, want %v", got, want)
		}
	})
}

// TestMergeBase_AgreesWithItsDefinition compares every two commits of histories with merges.
func TestMergeBase_AgreesWithItsDefinition(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 12).Draw(rt, "commits")
		h := newGraph(rt, n)
		for i := range n {
			for k := range n {
				got, cut, err := mergeBase(h, h.hash(i), h.hash(k))
				want := h.bestCommon(i, k)
				switch {
				case cut:
					rt.Fatalf("nothing is missing")
				case len(want) > 1 && !errors.Is(err, ErrNoMergeBase):
					rt.Errorf("%d and %d: got %s, want an error: %v", i, k, got, want)
				case len(want) == 1 && (err != nil || got != h.hash(want[0])):
					rt.Errorf("%d and %d: got %s, %v; want %d", i, k, got, err, want[0])
				case len(want) == 0 && (err != nil || !got.IsZero()):
					rt.Errorf("%d and %d: got %s, %v; want none", i, k, got, err)
				}
			}
		}
	})
}

func TestMergeFromDir_FindsCommitsAsGitNamesThem(t *testing.T) {
	c := newClone(t)
	c.commit("one", map[string]string{"a": "1"})
	c.commit("two", map[string]string{"a": "2"})
	c.git("tag", "-a", "-m", "a tag", "v1")
	c.git("branch", "side", "main~1")
	c.git("checkout", "-q", "side")
	c.commit("three", map[string]string{"a": "1", "b": "1"})
	c.git("checkout", "-q", "main")
	c.git("merge", "-q", "--no-edit", "side")
	c.git("update-ref", "refs/remotes/origin/main", "main~1")
	c.git("gc", "-q")
	linked := filepath.Join(t.TempDir(), "linked")
	c.git("worktree", "add", "-q", "--detach", linked, "side")
	for _, name := range []string{"HEAD", "@", "main", "main~1", "main^2", "main^2~1", "main^0", "v1", "v1~1", "origin/main", "side^", c.git("rev-parse", "main")} {
		m, err := MergeFromDir(c.dir, name, "main")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := c.git("rev-parse", name+"^{commit}"); m.Into.Commit != want {
			t.Errorf("%s: got %s, want %s", name, m.Into.Commit, want)
		}
	}
	if m, err := MergeFromDir(linked, "main", "HEAD"); err != nil || m.From.Commit != c.git("rev-parse", "side") {
		t.Errorf("a linked work tree: %v, %v", m, err)
	}
	for _, name := range []string{"nowhere", "main~99", "main^3", "", "a:b", strings.Repeat("0", 40)} {
		if _, err := MergeFromDir(c.dir, name, "main"); !errors.Is(err, ErrRefNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
	c.git("checkout", "-q", "-b", "far", "main~1")
	c.commit("four", map[string]string{"a": "2", "c": "1"})
	shallow := filepath.Join(t.TempDir(), "shallow")
	c.git("clone", "-q", "--depth=1", "--no-single-branch", "--no-tags", "file://"+c.dir, shallow)
	if _, err := MergeFromDir(shallow, "origin/main", "origin/far"); !errors.Is(err, ErrNoMergeBase) || !errors.Is(err, ErrShallow) || !strings.Contains(err.Error(), "git fetch --unshallow") {
		t.Errorf("a shallow clone: %v", err)
	}
	if _, err := MergeFromDir(t.TempDir(), "main", "HEAD"); !errors.Is(err, ErrNotGit) {
		t.Errorf("no repository: %v", err)
	}
}

// TestPropose_DeepensUntilTheMergeBaseIsThere: the branch and the request parted more commits ago than
// the first fetch brings.
func TestPropose_DeepensUntilTheMergeBaseIsThere(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	base := h.commit("base")
	for i := range deepenings[0] + 5 {
		h.write(fmt.Sprint(i), map[string]string{"main.yaml": configMap("main", fmt.Sprint(i))})
	}
	into := h.git("rev-parse", "main")
	tree := h.git("rev-parse", base+"^{tree}")
	head := h.git("commit-tree", tree, "-p", base, "-m", "request")
	h.git("update-ref", "refs/pull/7/head", head)
	m, err := open(t, h.URL(), branch("main")).Propose(t.Context(), "refs/pull/7/head")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Into.Commit != into || m.From.Commit != head {
		t.Errorf("got %s and %s", m.Into, m.From)
	}
	if got, want := listing(t, m.After), listing(t, m.Before); !slices.Equal(got, want) {
		t.Errorf("a request without a change: got %v, want %v", got, want)
	}
	other := h.git("commit-tree", tree, "-m", "unrelated")
	h.git("update-ref", "refs/pull/8/head", other)
	if _, err := open(t, h.URL(), branch("main")).Propose(t.Context(), "refs/pull/8/head"); !errors.Is(err, ErrNoMergeBase) {
		t.Errorf("unrelated: %v", err)
	}
	if _, err := open(t, h.URL(), branch("main")).Propose(t.Context(), "refs/pull/9/head"); !errors.Is(err, ErrRefNotFound) {
		t.Errorf("no such request: %v", err)
	}
}
