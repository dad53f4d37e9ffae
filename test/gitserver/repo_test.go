package gitserver_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/test/gitserver"
)

// refs maps what ls-remote shows to hashes.
func refs(t *testing.T, r *gitserver.Repo) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(mustClient(t, "ls-remote", r.URL())) {
		sha, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		found[name] = sha
	}
	return found
}

func TestCommitsAreReproducible(t *testing.T) {
	var heads []string
	for range 2 {
		_, r := start(t, gitserver.Options{})
		heads = append(heads, commit(t, r, "second", map[string]string{"b.yaml": "b: 2\n"}))
	}
	if heads[0] != heads[1] {
		t.Errorf("the same calls made %s and %s", heads[0], heads[1])
	}
}

func TestEveryCommitIsServed(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	empty := commit(t, r, "no change", nil)
	if got := refs(t, r)["refs/heads/main"]; got != empty {
		t.Errorf("served %s, committed %s", got, empty)
	}
	removed, err := r.Remove("drop the readme", "README.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := tree(t, r, removed); strings.Contains(got, "README.md") {
		t.Errorf("README.md is still in %s:\n%s", removed, got)
	}
	if head, err := r.Head(); err != nil || head != removed {
		t.Errorf("Head() = %s, %v", head, err)
	}
}

// tree lists mode and path of every entry of a commit, as a client gets them.
func tree(t *testing.T, r *gitserver.Repo, sha string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "bare")
	mustClient(t, "clone", "--quiet", "--bare", r.URL(), dir)
	return mustClient(t, "-C", dir, "ls-tree", "-r", "--format=%(objectmode) %(path)", sha)
}

func TestRevert(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	before := tree(t, r, "main")
	bad := commit(t, r, "break it", map[string]string{"bad.yaml": "x: {{\n"})
	reverted, err := r.Revert(bad)
	if err != nil {
		t.Fatal(err)
	}
	if reverted == bad {
		t.Error("a revert is a commit of its own")
	}
	if diff := cmp.Diff(before, tree(t, r, reverted)); diff != "" {
		t.Errorf("the tree differs from before: -want +got:\n%s", diff)
	}
}

func TestForcePush(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	first, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	commit(t, r, "second", map[string]string{"b.yaml": "b: 2\n"})
	if err := r.ForcePush(first); err != nil {
		t.Fatal(err)
	}
	other := commit(t, r, "other second", map[string]string{"c.yaml": "c: 3\n"})
	if got := refs(t, r)["refs/heads/main"]; got != other {
		t.Errorf("main is %s, want %s", got, other)
	}
	if got := tree(t, r, other); strings.Contains(got, "b.yaml") {
		t.Errorf("the abandoned commit is still below:\n%s", got)
	}
}

func TestBranchesAndTags(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	first, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Tag("v1.0.0"), r.AnnotatedTag("v1.0.1", "signed off"), r.Branch("next")); err != nil {
		t.Fatal(err)
	}
	next := commit(t, r, "on next", map[string]string{"b.yaml": "b: 2\n"})
	got := refs(t, r)
	for name, want := range map[string]string{
		"HEAD":                first,
		"refs/heads/main":     first,
		"refs/heads/next":     next,
		"refs/tags/v1.0.0":    first,
		"refs/tags/v1.0.1^{}": first,
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}

	if err := errors.Join(r.Tag("v1.0.0"), r.DeleteTag("v1.0.1"), r.Branch("main"), r.DeleteBranch("next")); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"HEAD": first, "refs/heads/main": first, "refs/tags/v1.0.0": next}
	if diff := cmp.Diff(want, refs(t, r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnusualEntries(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	if _, err := r.Symlink("a link", "addons/link.yaml", "../../etc/passwd"); err != nil {
		t.Fatal(err)
	}
	sha, err := r.Submodule("a submodule", "vendor/base", "https://example.invalid/base.git")
	if err != nil {
		t.Fatal(err)
	}
	got := tree(t, r, sha)
	for _, want := range []string{"120000 addons/link.yaml", "160000 vendor/base", "100644 .gitmodules"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in the tree:\n%s", want, got)
		}
	}
	if later := tree(t, r, commit(t, r, "later", map[string]string{"z.yaml": "z: 1\n"})); !strings.Contains(later, "160000 vendor/base") {
		t.Errorf("the next commit lost the submodule:\n%s", later)
	}
}

func TestPathsStayInside(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	for _, path := range []string{"../outside", "/etc/passwd", ".git/config"} {
		if _, err := r.Commit("bad path", map[string]string{path: "x"}); !errors.Is(err, gitserver.ErrPath) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := s.Create("../outside"); !errors.Is(err, gitserver.ErrPath) {
		t.Errorf("Create: %v", err)
	}
}

// TestCommitIsServedByItsSHA uses protocol 0, which clients without version 2 speak.
func TestCommitIsServedByItsSHA(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	first, err := r.Head()
	if err != nil {
		t.Fatal(err)
	}
	commit(t, r, "second", map[string]string{"b.yaml": "b: 2\n"})
	fetch := func() (string, error) {
		dir := t.TempDir()
		mustClient(t, "init", "--quiet", dir)
		return client(t, "-C", dir, "-c", "protocol.version=0", "fetch", "--quiet", "--depth=1", r.URL(), first)
	}
	if out, err := fetch(); err == nil {
		t.Errorf("a commit that is no head was served by hash:\n%s", out)
	}
	if err := r.AllowSHAInWant(gitserver.Allow); err != nil {
		t.Fatal(err)
	}
	if out, err := fetch(); err != nil {
		t.Errorf("an allowed hash was refused: %v\n%s", err, out)
	}
}

func TestFollowsForeignPushes(t *testing.T) {
	_, r := start(t, gitserver.Options{})
	dir := filepath.Join(t.TempDir(), "clone")
	mustClient(t, "clone", "--quiet", r.Dir(), dir)
	mustClient(t, "-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "--quiet", "--allow-empty", "-m", "theirs")
	mustClient(t, "-C", dir, "push", "--quiet", "origin", "main")
	theirs := strings.TrimSpace(mustClient(t, "-C", dir, "rev-parse", "HEAD"))
	ours := commit(t, r, "ours", map[string]string{"b.yaml": "b: 2\n"})
	if parent := strings.TrimSpace(mustClient(t, "-C", r.Dir(), "rev-parse", ours+"^")); parent != theirs {
		t.Errorf("ours is on top of %s, not of theirs", parent)
	}
}
