package gitsource

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/gitserver"
)

// pktLine frames a line as Git's protocol does.
func pktLine(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }

// TestRepository_NamesTheLoginPage: many servers answer with a login page if a repository is
// private or does not exist.
func TestRepository_NamesTheLoginPage(t *testing.T) {
	s := serve(t, gitserver.Options{})
	newHistory(t, s).commit("one")
	page := func(contentType string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/users/sign_in" {
					http.Redirect(w, r, "/users/sign_in", http.StatusFound)
					return
				}
				w.Header().Set("Content-Type", contentType)
				_, _ = io.WriteString(w, "<!DOCTYPE html><html>Sign in</html>")
			})
		}
	}
	for _, contentType := range []string{"text/html; charset=utf-8", "text/plain"} {
		_, err := fetchMain(t.Context(), t, front(t, s, page(contentType))+"/addons.git")
		const want = "the server answered with a web page at /users/sign_in, as for a login; set url to what git clone takes"
		if !errors.Is(err, ErrNotGit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", contentType, err, want)
		}
	}
	asPack := front(t, s, instead(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>")
	}))
	if _, err := fetchMain(t.Context(), t, asPack+"/addons.git"); !errors.Is(err, ErrNotGit) {
		t.Errorf("a page for the pack: got %v, want %v", err, ErrNotGit)
	}
}

// TestRepository_NamesTheServerThatIsNoGitServer: smart HTTP has a content type of its own. A server that answers with
// another one, such as an API or a server of plain files, is not asked again for what it cannot give.
func TestRepository_NamesTheServerThatIsNoGitServer(t *testing.T) {
	s := serve(t, gitserver.Options{})
	newHistory(t, s).commit("one")
	for name, c := range map[string]struct{ contentType, body, want string }{
		"an API":           {"application/json", `{"ok":true}`, "application/json"},
		"a health check":   {"text/plain; charset=utf-8", "OK", "text/plain; charset=utf-8"},
		"an empty answer":  {"", "", "no content type"},
		"a dumb server":    {"text/plain", someCommit + "\trefs/heads/main\n", "text/plain"},
		"a list as a file": {"application/octet-stream", "001e# service=git-upload-pack\n0000", "application/octet-stream"},
	} {
		url := front(t, s, list(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("Content-Type")
			if c.contentType != "" {
				w.Header().Set("Content-Type", c.contentType)
			}
			_, _ = io.WriteString(w, c.body)
		}))
		_, err := fetchMain(t.Context(), t, url+"/addons.git")
		want := "the server answered with " + c.want + " at /addons.git/info/refs, not in Git's smart HTTP protocol"
		if !errors.Is(err, ErrNotGit) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// TestRepository_NamesTheObjectFormat: a repository with SHA-256 is refused by its name.
func TestRepository_NamesTheObjectFormat(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	dir := filepath.Join(filepath.Dir(h.Dir()), "long.git")
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=Ana", "-c", "user.email=ana@example.com"}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "--quiet", "--bare", "--object-format=sha256", dir)
	check := func(what string) {
		t.Helper()
		_, err := fetchMain(t.Context(), t, s.URL()+"/long.git")
		if !errors.Is(err, ErrObjectFormat) || !strings.Contains(err.Error(), "the repository uses SHA-256, only SHA-1 is read") {
			t.Errorf("%s: got %v, want %v", what, err, ErrObjectFormat)
		}
	}
	tree := git("-C", dir, "hash-object", "-w", "-t", "tree", "/dev/null")
	git("-C", dir, "update-ref", "refs/heads/main", git("-C", dir, "commit-tree", "-m", "one", tree))
	check("a commit")
}

// TestRepository_NamesTheCutOffAnswer: an answer that ends early does not count as a refusal of
// the commit, wherever it ends.
func TestRepository_NamesTheCutOffAnswer(t *testing.T) {
	s := serve(t, gitserver.Options{})
	newHistory(t, s).commit("one")
	whole := recorded(t, s)
	for _, n := range []int{1, 10, 45, len(whole) / 2, len(whole) - 30, len(whole) - 4, len(whole) - 1} {
		url := front(t, s, instead(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(whole[:n]) }))
		_, err := fetchMain(t.Context(), t, url+"/addons.git")
		want := fmt.Sprintf("the server's answer was cut off after %d bytes", n)
		if n == len(whole)-4 && err == nil {
			continue // the pack is whole, only the flush is missing
		}
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want) {
			t.Errorf("%d of %d bytes: got %v, want %q", n, len(whole), err, want)
		}
	}
}

// TestRepository_ServersTextsAreRedacted: whatever the server repeats of the request, no form
// of the credentials appears in an error or in a commit's subject or author.
func TestRepository_ServersTextsAreRedacted(t *testing.T) {
	const user, password, bearer = "deploy-token-with-a-long-name", "p&ss/wörd+\"1", "gho_0123456789abcdef"
	basic := Credentials{Username: user, Password: password}
	forms := func(parts ...string) []string {
		var out []string
		for _, s := range parts {
			out = append(out, s, url.QueryEscape(s), url.PathEscape(s), strings.ToLower(url.QueryEscape(s)),
				base64.StdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)))
		}
		return out
	}
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("leaks " + strings.Join(forms(user, password, user+":"+password, bearer)[:3], " "))
	whole := recorded(t, s)
	padding := strings.Repeat("x", 230) // the text is cut in the middle of the credentials
	for name, credentials := range map[string]Credentials{"basic": basic, "bearer": {BearerToken: bearer}} {
		secrets := forms(user, password, user+":"+password)
		if name == "bearer" {
			secrets = forms(bearer)
		}
		for _, pad := range []string{"", padding} {
			said := func(r *http.Request) string {
				return pad + " you sent " + r.Header.Get("Authorization") + " " + strings.Join(secrets, " ")
			}
			for at, wrap := range map[string]func(http.Handler) http.Handler{
				"ERR for the list":    list(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, pktLine("ERR "+said(r))) }),
				"a list that is none": list(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, pktLine(said(r))) }),
				"a content type":      list(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Type", said(r)) }),
				"ERR for the pack":    instead(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, pktLine("ERR "+said(r))) }),
				"an error page":       instead(func(w http.ResponseWriter, r *http.Request) { http.Error(w, said(r), http.StatusTeapot) }),
				"the reason phrase": func(http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Location", "//"+url.PathEscape(said(r))+"/")
						w.WriteHeader(http.StatusFound)
					})
				},
				"a redirect": func(http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if strings.HasPrefix(r.URL.Path, "/login") {
							w.Header().Set("Content-Type", "text/html")
							return
						}
						w.Header().Set("Location", "/login/"+strings.ReplaceAll(url.PathEscape(said(r)), "%2F", "/"))
						w.WriteHeader(http.StatusFound)
					})
				},
				"sideband": instead(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, "00000008NAK\n"+pktLine("\x03"+said(r))+"0000")
				}),
			} {
				_, err := fetchMain(t.Context(), t, front(t, s, wrap)+"/addons.git", func(o *Options) { o.Credentials = credentials })
				if err == nil {
					t.Errorf("%s, %s: no error", name, at)
					continue
				}
				for _, secret := range secrets {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%s, %s: %q is in the error: %v", name, at, secret, err)
					}
				}
				if strings.Contains(err.Error(), "ZGVwb") || strings.Contains(err.Error(), "gho_") || strings.Contains(err.Error(), "Z2hv") {
					t.Errorf("%s, %s: the beginning of a secret is in the error: %v", name, at, err)
				}
			}
		}
	}
	replay := front(t, s, instead(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(whole) }))
	tree, err := fetchMain(t.Context(), t, replay+"/addons.git", func(o *Options) { o.Credentials = basic })
	if err != nil {
		t.Fatal(err)
	}
	if subject := tree.Subject(); !strings.HasPrefix(subject, "leaks [redacted]") || strings.Contains(subject, user) {
		t.Errorf("the subject is %q", subject)
	}
}

// noise is content that does not compress.
func noise(size int) string {
	content, seed := make([]byte, size), uint32(1)
	for i := range content {
		seed = seed*1664525 + 1013904223
		content[i] = byte(seed >> 24)
	}
	return string(content)
}

// TestRoom_SlowServersDelayNoOther: a server that hangs, or sends a byte now and then, in the
// middle of a large answer loses its place to the next repository, however long its own timeout.
func TestRoom_SlowServersDelayNoOther(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.write("one", map[string]string{"cm.yaml": configMap("cm", "one"), "noise.bin": noise(2 * smallAnswer)})
	whole := recorded(t, s)
	slow := front(t, s, instead(func(w http.ResponseWriter, r *http.Request) {
		const first = smallAnswer + smallAnswer/2
		_, _ = w.Write(whole[:first])
		for at := first; ; at++ {
			_ = http.NewResponseController(w).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
				_, _ = w.Write(whole[at : at+1])
			}
		}
	}))
	room := newRoom(2, 100*time.Millisecond)
	within := func(timeout time.Duration) func(*Options) {
		return func(o *Options) { o.Room, o.Timeout = room, timeout }
	}
	const all = 10
	ended := make(chan error, all)
	for range all {
		go func() {
			_, err := fetchMain(t.Context(), t, slow+"/addons.git", within(time.Hour))
			ended <- err
		}()
	}
	for len(room.places) < cap(room.places) {
		time.Sleep(time.Millisecond) //nolint:forbidigo // a full channel does not show that a claim waits for it
	}
	tree, err := fetchMain(t.Context(), t, h.URL(), within(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	tree.Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the server took more than 100ms for 1 MiB of a large answer, and another large repository waited") {
		t.Errorf("got %v, want that the server was slow", err)
	}
}

// TestRoom_TreesHoldTheirPlaces: a tree holds its place until it is closed, even if other
// repositories wait.
func TestRoom_TreesHoldTheirPlaces(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.write("one", map[string]string{"cm.yaml": configMap("cm", "one"), "noise.bin": noise(2 * smallAnswer)})
	room := newRoom(1, 10*time.Millisecond)
	inRoom := func(o *Options) { o.Room = room }
	tree, err := fetchMain(t.Context(), t, h.URL(), inRoom)
	if err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	go func() {
		room.wanted <- struct{}{} // a fetch that waits for a place receives it
		cancel()
	}()
	if _, err := fetchMain(waiting, t, h.URL(), inRoom); err == nil || !strings.Contains(err.Error(), "other large repositories are being read") {
		t.Errorf("a second large tree while the only place is taken: %v", err)
	}
	tree.Close()
	again, err := fetchMain(t.Context(), t, h.URL(), inRoom)
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	if len(room.places)+len(room.unpacking) != 0 {
		t.Error("a place is taken though every tree is closed")
	}
}

// TestRepository_RefusesThisMachine: a URL of a tenant must not reach the operator's own
// machine, or what listens on its link.
func TestRepository_RefusesThisMachine(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	_, err := open(t, h.URL(), branch("main"), func(o *Options) { o.Access = Access{} }).Resolve(t.Context())
	const want = " leads to a loopback or link-local address, or to a metadata service of a cloud; the operator's flag --git-allow-loopback allows it"
	if !errors.Is(err, ErrAddressDenied) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v", err, ErrAddressDenied)
	}
	if got := s.Requests().LsRemote; got != 0 {
		t.Errorf("the server got %d requests", got)
	}
}
