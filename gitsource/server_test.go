package gitsource

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

// serve starts a real Git server for one test.
func serve(t *testing.T, o gitserver.Options) *gitserver.Server {
	t.Helper()
	s, err := gitserver.Start(o)
	if err != nil {
		t.Fatalf("cannot start the Git server (is git installed?): %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// history is a repository under test; a failing step ends the test.
type history struct {
	t *testing.T
	*gitserver.Repo
}

func newHistory(t *testing.T, s *gitserver.Server) history {
	t.Helper()
	r, err := s.Create("addons")
	if err != nil {
		t.Fatal(err)
	}
	return history{t, r}
}

func (h history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// commit adds one commit whose ConfigMap holds the message.
func (h history) commit(message string) string {
	h.t.Helper()
	return h.write(message, map[string]string{"cm.yaml": configMap("cm", message)})
}

func (h history) write(message string, files map[string]string) string {
	h.t.Helper()
	sha, err := h.Commit(message, files)
	h.must(err)
	return sha
}

// git runs git in the bare repository.
func (h history) git(args ...string) string {
	h.t.Helper()
	// The machine may have no identity to commit and tag with.
	who := []string{"-C", h.Dir(), "-c", "user.name=Ana Example", "-c", "user.email=ana@example.com"}
	c := exec.CommandContext(h.t.Context(), "git", append(who, args...)...)
	out, err := c.Output()
	if err != nil {
		h.t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

func configMap(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n  k: " + value + "\n"
}

// open opens a repository; change may modify the options.
func open(t *testing.T, url string, ref v1alpha1.GitReference, change ...func(*Options)) *Repository {
	t.Helper()
	o := Options{URL: url, Reference: ref, Timeout: 2 * time.Minute, Access: onThisMachine}
	for _, c := range change {
		c(&o)
	}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onThisMachine is what the operator of a demo permits.
var onThisMachine = Access{AllowLoopback: true, AllowHTTPCredentials: true}

func branch(name string) v1alpha1.GitReference { return v1alpha1.GitReference{Branch: name} }

// front puts the test's handler before a Git server, at another address.
func front(t *testing.T, s *gitserver.Server, wrap func(next http.Handler) http.Handler) string {
	t.Helper()
	target, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	f := httptest.NewServer(wrap(proxy))
	t.Cleanup(f.Close)
	return f.URL
}

// data returns the value a fetched tree's ConfigMap holds.
func data(t *testing.T, tree *Tree) string {
	t.Helper()
	objects, problems := tree.Build(t.Context(), BuildOptions{})
	if len(problems) > 0 || len(objects) != 1 {
		t.Fatalf("got %d objects and %v", len(objects), problems)
	}
	values, _ := objects[0].Object["data"].(map[string]any)
	value, _ := values["k"].(string)
	return value
}
