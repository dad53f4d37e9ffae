package gitsource

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// TestFetch_RefusesABranchThatWasNotMovedForward: over every transport, with a server that sends
// commits alone and with one that does not.
func TestFetch_RefusesABranchThatWasNotMovedForward(t *testing.T) {
	h, s, keys := sshWorld(t, gitserver.SSHOptions{})
	ssh := s.URL(h.Dir())
	credentials, err := ParseCredentials(ssh, keys)
	if err != nil {
		t.Fatal(err)
	}
	for transport, url := range map[string]string{"http": h.URL(), "ssh": ssh} {
		for filter, allow := range map[string]gitserver.Permission{"with a filter": gitserver.Allow, "without one": gitserver.Deny} {
			t.Run(transport+" "+filter, func(t *testing.T) {
				h := history{t, h.Repo}
				h.must(h.AllowFilter(allow))
				base := h.commit(transport + filter)
				first := h.commit("first")
				fetch := func(follows string, ref v1alpha1.GitReference) error {
					t.Helper()
					r := open(t, url, ref, func(o *Options) { o.Follows = follows; o.Credentials = credentials })
					head, err := r.Resolve(t.Context())
					h.must(err)
					tree, err := r.Fetch(t.Context(), head)
					if err == nil {
						tree.Close()
					}
					return err
				}
				accepted := func(what, follows string) {
					t.Helper()
					if err := fetch(follows, branch("main")); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
				refused := func(what, follows string) {
					t.Helper()
					head, err := h.Head()
					h.must(err)
					got, _ := errors.AsType[*RefusedCommit](fetch(follows, branch("main")))
					want := "not a fast-forward: the branch moved from " + follows[:10] + " to " + head[:10] +
						", which does not contain it; restore the branch, or set spec.allowForcePush"
					if got == nil || !errors.Is(got, ErrNotFastForward) || got.Error() != want || got.Revision.Commit != head {
						t.Errorf("%s: got %v, want %s", what, got, want)
					}
				}
				accepted("no earlier commit", "")
				accepted("the same commit", first)
				accepted("one commit more", base)
				for range 30 {
					h.write("more", nil)
				}
				accepted("many commits more", base)
				h.git("update-ref", "refs/heads/main", h.git("commit-tree", "-p", base, "-p", "refs/heads/main", "-m", "merge", "refs/heads/main^{tree}"))
				accepted("a merge whose second parent contains it", first)
				h.git("tag", "-f", "moved", base)
				if err := fetch(first, v1alpha1.GitReference{Tag: "moved"}); err != nil {
					t.Errorf("a tag: %v", err)
				}

				h.git("update-ref", "refs/heads/main", base)
				refused("a branch set back", first)
				h.git("update-ref", "refs/heads/main", h.git("commit-tree", "-p", base, "-m", "amended", first+"^{tree}"))
				refused("an amended commit", first)
				h.git("update-ref", "refs/heads/main", h.git("commit-tree", "-m", "orphan", first+"^{tree}"))
				refused("another history", first)
				refused("a commit that the server does not have", strings.Repeat("0123456789", 4))
				h.git("update-ref", "refs/heads/main", first)
			})
		}
	}
}

// TestFetch_RequestsWhatAzureReposRequires: the server refuses every request without multi_ack. The answers to requests
// with it are those of git. Over SSH, git answers in the same form (TestFetch_RefusesABranchThatWasNotMovedForward).
func TestFetch_RequestsWhatAzureReposRequires(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	base := h.commit("base")
	head := h.commit("head")
	behind, err := url.Parse(h.URL())
	if err != nil {
		t.Fatal(err)
	}
	host := url.URL{Scheme: behind.Scheme, Host: behind.Host}
	git := httputil.NewSingleHostReverseProxy(&host)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(r.Body)
			if err != nil || !strings.Contains(strings.SplitN(string(body), "\n", 2)[0]+" ", " multi_ack ") {
				http.Error(w, "TF401041: The Git protocol sent is not as expected (Clients must support multi-ack.).", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		git.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	fetch := func(follows string, ref v1alpha1.GitReference) error {
		t.Helper()
		r := open(t, front.URL+behind.Path, ref, func(o *Options) { o.Follows = follows })
		at, err := r.Resolve(t.Context())
		h.must(err)
		tree, err := r.Fetch(t.Context(), at)
		if err == nil {
			tree.Close()
		}
		return err
	}
	h.must(fetch("", branch("main")))
	h.must(fetch(base, branch("main")))
	h.must(fetch("", v1alpha1.GitReference{Commit: base}))
	h.git("update-ref", "refs/heads/main", base)
	if err := fetch(head, branch("main")); !errors.Is(err, ErrNotFastForward) {
		t.Errorf("got %v, want %v", err, ErrNotFastForward)
	}
	if err := fetch(strings.Repeat("0123456789", 4), branch("main")); !errors.Is(err, ErrNotFastForward) {
		t.Errorf("an unknown commit: got %v, want %v", err, ErrNotFastForward)
	}
}
