package gitsource

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// released is a repository with every kind of reference; want maps a word to a commit.
func released(t *testing.T, s *gitserver.Server) (h history, want map[string]string) {
	t.Helper()
	h, want = newHistory(t, s), map[string]string{}
	want["first"] = h.commit("first")
	h.must(h.Tag("v1.0.0"))
	want["second"] = h.commit("second")
	h.must(h.AnnotatedTag("v1.2.0", "the second"))
	want["third"] = h.commit("third")
	h.must(h.Tag("v2.0.0-rc.1"))
	want["main"] = h.commit("main")
	h.git("update-ref", "refs/pull/7/head", want["second"])
	h.git("tag", "-a", "-m", "a tag of a tag", "nested", "v1.2.0")
	h.must(h.Branch("side"))
	want["branch"] = h.commit("branch named like a tag")
	h.git("update-ref", "refs/heads/v1.0.0", want["branch"])
	h.must(h.DeleteBranch("side"))
	return h, want
}

func TestResolveAndFetch(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h, shas := released(t, s)
	for name, c := range map[string]struct {
		reason string
		ref    v1alpha1.GitReference
		rev    string
		commit string
	}{
		"branch":    {"a branch by name", branch("main"), "main", "main"},
		"tag":       {"a lightweight tag", v1alpha1.GitReference{Tag: "v1.0.0"}, "v1.0.0", "first"},
		"annotated": {"an annotated tag is the commit it is on", v1alpha1.GitReference{Tag: "v1.2.0"}, "v1.2.0", "second"},
		"nested":    {"so is a tag of a tag", v1alpha1.GitReference{Tag: "nested"}, "nested", "second"},
		"ambiguous": {"a branch and a tag of one name do not meet", branch("v1.0.0"), "v1.0.0", "branch"},
		"semver":    {"the highest tag in the range", v1alpha1.GitReference{SemVer: ">=1.0.0"}, "v1.2.0", "second"},
		"patch":     {"ranges bind", v1alpha1.GitReference{SemVer: "~1.0"}, "v1.0.0", "first"},
		"candidate": {"a pre-release only when asked for", v1alpha1.GitReference{SemVer: ">=1.0.0-0"}, "v2.0.0-rc.1", "third"},
		"name":      {"a full name", v1alpha1.GitReference{Name: "refs/pull/7/head"}, "refs/pull/7/head", "second"},
		"full":      {"a full name of a branch", v1alpha1.GitReference{Name: "refs/heads/main"}, "refs/heads/main", "main"},
		"tag>branch": {
			"a tag goes before a branch",
			v1alpha1.GitReference{Branch: "main", Tag: "v1.0.0"},
			"v1.0.0", "first",
		},
		"semver>tag": {
			"semver goes before a tag",
			v1alpha1.GitReference{Branch: "main", Tag: "v1.0.0", SemVer: "1.2.x"},
			"v1.2.0", "second",
		},
		"name>semver": {
			"a name goes before semver",
			v1alpha1.GitReference{Branch: "main", SemVer: "1.2.x", Name: "refs/heads/main"},
			"refs/heads/main", "main",
		},
		"commit>name": {
			"a commit goes before everything",
			v1alpha1.GitReference{Name: "refs/tags/v1.0.0", Commit: shas["main"]},
			"", "main",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, h.URL(), c.ref)
			got, err := r.Resolve(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			want := Revision{Ref: c.rev, Commit: shas[c.commit]}
			if got != want {
				t.Fatalf("%s: resolved %v, want %v", c.reason, got, want)
			}
			tree, err := r.Fetch(t.Context(), got)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if tree.Revision() != want {
				t.Errorf("%s: fetched %v, want %v", c.reason, tree.Revision(), want)
			}
			if got := data(t, tree); got != tree.Subject() {
				t.Errorf("%s: content of %q, commit message %q", c.reason, got, tree.Subject())
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h, _ := released(t, s)
	for name, c := range map[string]struct {
		ref  v1alpha1.GitReference
		want string
	}{
		"branch": {branch("mian"), "refs/heads/mian; nearest: main, v1.0.0"},
		"master": {v1alpha1.GitReference{}, "refs/heads/master; nearest: main, v1.0.0"},
		"tag":    {v1alpha1.GitReference{Tag: "1.0.0"}, "refs/tags/1.0.0; nearest: v1.0.0, v1.2.0"},
		"semver": {v1alpha1.GitReference{SemVer: ">=3"}, `no tag in the range ">=3"; the highest are v2.0.0-rc.1, v1.2.0, v1.0.0`},
		"name":   {v1alpha1.GitReference{Name: "refs/pull/8/head"}, "refs/pull/8/head; nearest: refs/pull/7/head"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, h.URL(), c.ref).Resolve(t.Context())
			if !errors.Is(err, ErrRefNotFound) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want a reference not found with %q", err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		ref  v1alpha1.GitReference
		want string
	}{
		"short sha":  {v1alpha1.GitReference{Commit: "abc1234"}, `ref.commit "abc1234" is not a full sha`},
		"short name": {v1alpha1.GitReference{Name: "main"}, `ref.name "main" is not a full name; want one such as refs/heads/main`},
		"no range":   {v1alpha1.GitReference{SemVer: "one"}, `ref.semver "one" is not a range`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(Options{URL: h.URL(), Reference: c.ref})
			if !errors.Is(err, ErrInvalidReference) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an invalid reference with %q", err, c.want)
			}
		})
	}
}

// TestRequests: resolving takes one ls-remote, and no request if the reference is a commit.
func TestRequests(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	sha := h.commit("one")
	s.ResetRequests()
	rev, err := open(t, h.URL(), branch("main")).Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Requests(); got.LsRemote != 1 || got.UploadPack+got.Other+got.Rejected != 0 {
		t.Errorf("Resolve made %+v, want one ls-remote", got)
	}
	s.ResetRequests()
	if _, err := open(t, h.URL(), v1alpha1.GitReference{Commit: sha}).Resolve(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests(); got != (gitserver.Requests{}) {
		t.Errorf("Resolve of a commit made %+v, want none", got)
	}
	s.ResetRequests()
	if _, err := open(t, h.URL(), branch("main")).Fetch(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests(); got.LsRemote != 1 || got.UploadPack != 1 || got.Other+got.Rejected != 0 {
		t.Errorf("Fetch made %+v, want one ls-remote and one pack", got)
	}
}

func TestFetchTakesWhatTheReferenceNamesNow(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	first := h.commit("first")
	r := open(t, h.URL(), branch("main"))
	seen, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := h.commit("second")
	check := func(want string) {
		t.Helper()
		tree, err := r.Fetch(t.Context(), seen)
		if err != nil {
			t.Fatal(err)
		}
		if got := tree.Revision().Commit; got != want {
			t.Errorf("fetched %s, want %s", got, want)
		}
	}
	check(second)
	h.must(h.ForcePush(first))
	check(first)
	h.must(h.Branch("other"))
	h.must(h.DeleteBranch("main"))
	if _, err := r.Fetch(t.Context(), seen); !errors.Is(err, ErrRefNotFound) {
		t.Errorf("a deleted branch gives %v, want a reference not found", err)
	}
}

func TestFetchKeepsTheTagThatWasResolved(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	first := h.commit("first")
	h.must(h.Tag("v1.0.0"))
	r := open(t, h.URL(), v1alpha1.GitReference{SemVer: "1.x"})
	seen, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.commit("second")
	h.must(h.Tag("v1.1.0"))
	tree, err := r.Fetch(t.Context(), seen)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Revision{Ref: "v1.0.0", Commit: first}); tree.Revision() != want {
		t.Errorf("fetched %v, want %v", tree.Revision(), want)
	}
}

func TestFetchCommit(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	old := h.commit("old")
	for range deepenings[0] + 2 {
		h.write("between", nil)
	}
	h.must(h.Branch("side"))
	between := h.commit("not the head of side")
	side := h.commit("side")
	h.must(h.Branch("main"))

	url := h.URL()
	fetch := func(ref v1alpha1.GitReference) (*Tree, error) {
		r := open(t, url, ref)
		rev, err := r.Resolve(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return r.Fetch(t.Context(), rev)
	}
	expect := func(reason, sha string, ref v1alpha1.GitReference) {
		t.Helper()
		tree, err := fetch(ref)
		if err != nil {
			t.Fatalf("%s: %v", reason, err)
		}
		if want := (Revision{Commit: sha}); tree.Revision() != want {
			t.Errorf("%s: fetched %v, want %v", reason, tree.Revision(), want)
		}
	}
	s.ResetRequests()
	expect("a server that hands out any commit is asked once", old, v1alpha1.GitReference{Commit: old})
	if got := s.Requests().UploadPack; got != 1 {
		t.Errorf("asked for %d packs, want one", got)
	}
	expect("a commit that is a branch's head", side, v1alpha1.GitReference{Commit: side})
	if _, err := fetch(v1alpha1.GitReference{Commit: strings.Repeat("0123456789", 4)}); !errors.Is(err, ErrRefNotFound) {
		t.Errorf("an unknown commit gives %v, want a reference not found", err)
	}

	// Over HTTP, Git's own server serves every reachable commit; other servers do not.
	for name, answer := range map[string]string{"with words": "0029ERR upload-pack: not our ref secretly\n", "with silence": ""} {
		url = front(t, s, refusing(answer, old, between)) + "/addons.git"
		s.ResetRequests()
		expect("refused "+name+", HEAD is deepened", old, v1alpha1.GitReference{Commit: old})
		if got := s.Requests().UploadPack; got != 2 {
			t.Errorf("refused %s: asked for %d packs, want two deeper ones", name, got)
		}
		expect("refused "+name+", ref.branch says where to look", between, v1alpha1.GitReference{Commit: between, Branch: "side"})
		_, err := fetch(v1alpha1.GitReference{Commit: between})
		if !errors.Is(err, ErrRefNotFound) || !strings.Contains(err.Error(), "set ref.branch") {
			t.Errorf("refused %s: a commit of another branch gives %v, want a reference not found", name, err)
		}
	}
}

// refusing answers requests for certain commits as a server that serves only heads.
func refusing(answer string, commits ...string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if slices.ContainsFunc(commits, func(c string) bool { return bytes.Contains(body, []byte("want "+c)) }) {
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				_, _ = io.WriteString(w, answer)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func TestEmptyRepository(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	_, err := open(t, h.URL(), branch("main")).Resolve(t.Context())
	if !errors.Is(err, ErrRefNotFound) || !strings.Contains(err.Error(), "the repository is empty") {
		t.Errorf("got %v, want a reference not found because the repository is empty", err)
	}
}

func TestTagOfNoCommit(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	h.git("tag", "tree", "HEAD^{tree}")
	r := open(t, h.URL(), v1alpha1.GitReference{Tag: "tree"})
	rev, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Fetch(t.Context(), rev)
	if !errors.Is(err, ErrRefNotFound) || !strings.Contains(err.Error(), "leads to a tree, not to a commit") {
		t.Errorf("got %v, want a reference that leads to no commit", err)
	}
}
