package gitsource

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/test/gitserver"
)

// TestRestore_TakesChosenFilesBack: with some of the changes made, every other file is that of the newer commit. The
// server hands out no commit by its hash, so that history is fetched until the earlier one is in it.
func TestRestore_TakesChosenFilesBack(t *testing.T) {
	for _, permission := range []gitserver.Permission{gitserver.Deny, gitserver.Allow} {
		t.Run(string(permission), func(t *testing.T) {
			h := newHistory(t, serve(t, gitserver.Options{}))
			h.must(h.AllowSHAInWant(permission))
			then := h.write("then", map[string]string{"a/changed.yaml": "old", "a/gone.yaml": "old", "b/c/other.yaml": "old", "same": "same"})
			h.write("between", map[string]string{"a/changed.yaml": "between"})
			_, err := h.Remove("without", "a/gone.yaml")
			h.must(err)
			head := h.write("head", map[string]string{"a/changed.yaml": "new", "b/c/other.yaml": "new", "d/added.yaml": "new"})
			h.git("update-ref", "refs/heads/proposed", h.git("commit-tree", then+"^{tree}", "-p", head, "-m", "proposed"))

			r, err := open(t, h.URL(), branch("main")).Restore(t.Context(), then, "proposed")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			read, err := r.Read(r.Changes)
			h.must(err)
			var paths []string
			for _, c := range read {
				paths = append(paths, c.Path+" "+string(c.Content))
			}
			if want := []string{"a/changed.yaml old", "a/gone.yaml old", "b/c/other.yaml old", "d/added.yaml "}; !slices.Equal(paths, want) {
				t.Errorf("changes %q, want %q", paths, want)
			}
			if r.Head.Revision().Commit != head || r.Then.Revision().Commit != then || r.Proposed == nil || !SameChanges(*r.Proposed, r.Changes) {
				t.Errorf("%s, %s, %v", r.Head.Revision(), r.Then.Revision(), r.Proposed)
			}
			tree, err := r.With(slices.DeleteFunc(slices.Clone(r.Changes), func(c FileChange) bool { return c.Path == "b/c/other.yaml" }))
			h.must(err)
			if got, want := listing(t, tree), []string{"a/changed.yaml old", "a/gone.yaml old", "b/c/other.yaml new", "same same"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := listing(t, r.Head); !slices.Contains(got, "d/added.yaml new") {
				t.Errorf("the newer commit changed: %q", got)
			}
		})
	}
}

// TestRestore_NamesWhatIsNoPlainFile: such files are not restored, and a commit that is not in the history is not
// found.
func TestRestore_NamesWhatIsNoPlainFile(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	then := h.write("then", map[string]string{"file": "1", "dir/x": "1"})
	_, err := h.Symlink("link", "link", "file")
	h.must(err)
	r, err := open(t, h.URL(), branch("main")).Restore(t.Context(), then, "none")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.Changes) != 1 || r.Changes[0].Odd != "is a symbolic link" || r.Proposed != nil {
		t.Errorf("%+v", r.Changes)
	}
	_, err = open(t, h.URL(), branch("main")).Restore(t.Context(), strings.Repeat("1", 40), "none")
	if !errors.Is(err, ErrRefNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestRestore_NamesFilesThatBecameDirectories: neither the file nor the directory of its name can be restored alone.
func TestRestore_NamesFilesThatBecameDirectories(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	then := h.write("then", map[string]string{"a": "1", "b/x": "1", "b.yaml": "1"})
	for _, name := range []string{"a", "b/x"} {
		_, err := h.Remove("without", name)
		h.must(err)
	}
	h.write("head", map[string]string{"a/x": "1", "b": "1", "b.yaml": "2"})
	r, err := open(t, h.URL(), branch("main")).Restore(t.Context(), then, "none")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	odd := map[string]string{}
	for _, c := range r.Changes {
		odd[c.Path] = c.Odd
	}
	const became = "is a directory in one of the commits"
	if want := map[string]string{"a": became, "a/x": "", "b": became, "b/x": "", "b.yaml": ""}; !maps.Equal(odd, want) {
		t.Errorf("got %q, want %q", odd, want)
	}
}

// TestRestore_ReadsABoundedNumberOfFiles: two commits may differ in more files than a restoration can change.
func TestRestore_ReadsABoundedNumberOfFiles(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	object := func(text string, args ...string) string {
		c := exec.CommandContext(t.Context(), "git", append([]string{"-C", h.Dir()}, args...)...)
		c.Stdin = strings.NewReader(text)
		out, err := c.Output()
		h.must(err)
		return strings.TrimSpace(string(out))
	}
	tree := func(large, small string) string {
		large, small = object(large, "hash-object", "-w", "--stdin"), object(small, "hash-object", "-w", "--stdin")
		var entries strings.Builder
		fmt.Fprintf(&entries, "100644 blob %s\tlarge\n", large)
		for i := range restoredFiles + 1 {
			fmt.Fprintf(&entries, "100644 blob %s\tmany%d\n", small, i)
		}
		return object(entries.String(), "mktree")
	}
	then := h.git("commit-tree", tree(strings.Repeat("x", restoredBytes), "1"), "-m", "then")
	h.git("update-ref", "refs/heads/main", h.git("commit-tree", tree("2", "2"), "-p", then, "-m", "head"))
	r, err := open(t, h.URL(), branch("main"), func(o *Options) { o.Limits.FileBytes = 2 * restoredBytes }).Restore(t.Context(), then, "none")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(r.Changes) != restoredFiles+2 {
		t.Fatalf("%d changes", len(r.Changes))
	}
	many, large := r.Changes[1:], r.Changes[:1]
	for _, c := range []struct {
		changes []FileChange
		want    error
	}{
		{r.Changes, ErrManyChanges}, {many, ErrManyChanges}, {many[:restoredFiles], nil}, {large, nil}, {slices.Concat(large, many[restoredFiles:]), ErrManyChanges},
	} {
		if _, err := r.Read(c.changes); !errors.Is(err, c.want) {
			t.Errorf("%d changes: %v, want %v", len(c.changes), err, c.want)
		}
	}
}

// TestRestore_IsBounded: a few trees can name 2^40 files, or directories in each other without end.
func TestRestore_IsBounded(t *testing.T) {
	for name, wide := range map[string]int{"wide": 2, "deep": 1} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, serve(t, gitserver.Options{}))
			nested := func(content string) string {
				c := exec.CommandContext(t.Context(), "git", "-C", h.Dir(), "hash-object", "-w", "--stdin")
				c.Stdin = strings.NewReader(content)
				out, err := c.Output()
				h.must(err)
				kind, object := "100644 blob", strings.TrimSpace(string(out))
				for range 80 / wide {
					c := exec.CommandContext(t.Context(), "git", "-C", h.Dir(), "mktree")
					var entries strings.Builder
					for i := range wide {
						fmt.Fprintf(&entries, "%s %s\t%c\n", kind, object, 'a'+i)
					}
					c.Stdin = strings.NewReader(entries.String())
					out, err := c.Output()
					h.must(err)
					kind, object = "040000 tree", strings.TrimSpace(string(out))
				}
				return object
			}
			then := h.git("commit-tree", nested("1"), "-m", "then")
			h.git("update-ref", "refs/heads/main", h.git("commit-tree", nested("2"), "-p", then, "-m", "head"))
			_, err := open(t, h.URL(), branch("main"), func(o *Options) { o.Limits.Files = 500 }).Restore(t.Context(), then, "none")
			if !errors.Is(err, ErrLimitExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}
