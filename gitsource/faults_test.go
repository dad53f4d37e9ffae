package gitsource

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/addonflow/addonflow/test/gitserver"
)

// isPack distinguishes the request for a pack from the one for references.
func isPack(r *http.Request) bool { return r.Method == http.MethodPost }

// instead answers requests for packs with the test's handler. It reads the whole request first:
// net/http notices only then that the client has closed the connection.
func instead(answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isPack(r) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
				answer(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// list answers every request with the test's handler, as a list of references.
func list(answer http.HandlerFunc) func(http.Handler) http.Handler {
	return func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			answer(w, r)
		})
	}
}

// fetchMain resolves and fetches main.
func fetchMain(ctx context.Context, t *testing.T, url string, change ...func(*Options)) (*Tree, error) {
	t.Helper()
	r := open(t, url, branch("main"), change...)
	rev, err := r.Resolve(ctx)
	if err != nil {
		return nil, err
	}
	return r.Fetch(ctx, rev)
}

func TestStatusCodes(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	for status, want := range map[int]struct {
		err  error
		text string
	}{
		401: {ErrAuthentication, "the server answered 401"},
		403: {ErrAuthentication, "the server answered 403"},
		404: {ErrRepositoryNotFound, "the server answered 404"},
		429: {nil, "the server answered 429"},
		500: {nil, "the server answered 500"},
		503: {nil, "the server answered 503"},
	} {
		answer := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "page with "+canary, status) }
		for at, wrap := range map[string]func(http.Handler) http.Handler{
			"references": func(http.Handler) http.Handler { return http.HandlerFunc(answer) },
			"pack":       instead(answer),
		} {
			_, err := fetchMain(t.Context(), t, front(t, s, wrap)+"/addons.git")
			if err == nil || want.err != nil && !errors.Is(err, want.err) || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%d for %s: got %v, want %q", status, at, err, want.text)
			}
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("%d for %s: the server's page is in the error: %v", status, at, err)
			}
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	if _, err := fetchMain(t.Context(), t, s.URL+"/addons.git"); err == nil || !strings.Contains(err.Error(), "cannot list the references of "+s.URL) {
		t.Errorf("got %v, want an error that names the URL", err)
	}
}

func TestTimeout(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	s.Hang()
	_, err := fetchMain(t.Context(), t, h.URL(), func(o *Options) { o.Timeout = 50 * time.Millisecond })
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no complete answer within 50ms") {
		t.Errorf("a hanging server gives %v, want the deadline", err)
	}
	s.Heal()
	endless := front(t, s, instead(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "0008NAK\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	_, err = fetchMain(t.Context(), t, endless+"/addons.git", func(o *Options) { o.Timeout = 300 * time.Millisecond })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pack that stops in the middle gives %v, want the deadline", err)
	}
}

func TestCancel(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	ctx, cancel := context.WithCancel(t.Context())
	url := front(t, s, instead(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	if _, err := fetchMain(ctx, t, url+"/addons.git"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}

// TestRedirects: a redirect may change the path, never the host; credentials are not sent to
// another host.
func TestRedirects(t *testing.T) {
	s := serve(t, gitserver.Options{User: "ana", Password: canary})
	h := newHistory(t, s)
	h.commit("one")
	withCredentials := func(o *Options) { o.Credentials = Credentials{Username: "ana", Password: canary} }

	var strangers atomic.Int32
	stranger := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		strangers.Add(1)
		if len(r.Header["Authorization"]) > 0 {
			t.Error("another host got the credentials")
		}
		http.NotFound(w, r)
	}))
	defer stranger.Close()
	for name, away := range map[string]func(*http.Request) bool{
		"references": func(r *http.Request) bool { return !isPack(r) },
		"pack":       isPack,
	} {
		url := front(t, s, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if away(r) {
					http.Redirect(w, r, stranger.URL+r.URL.RequestURI(), http.StatusTemporaryRedirect) //nolint:gosec // the test needs the redirect to another host
					return
				}
				next.ServeHTTP(w, r)
			})
		})
		_, err := fetchMain(t.Context(), t, url+"/addons.git", withCredentials)
		if !errors.Is(err, ErrRedirected) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v, want that it was redirected", name, err)
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("another host was asked %d times", n)
	}

	url := front(t, s, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if rest, ok := strings.CutPrefix(r.URL.RequestURI(), "/old.git"); ok {
				http.Redirect(w, r, "/addons.git"+rest, http.StatusMovedPermanently) //nolint:gosec // the test needs the redirect on the same host
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	if _, err := fetchMain(t.Context(), t, url+"/old.git", withCredentials); err != nil {
		t.Errorf("a renamed repository: %v", err)
	}
}

// TestRedirects_EndInACircle: go-git counts the redirects. net/http counts them only for clients that do not check them.
func TestRedirects_EndInACircle(t *testing.T) {
	var requests atomic.Int32
	circle := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, r.URL.RequestURI(), http.StatusTemporaryRedirect) //nolint:gosec // the test needs the redirect on the same host
	}))
	defer circle.Close()
	_, err := fetchMain(t.Context(), t, circle.URL+"/addons.git")
	if err == nil || !strings.HasSuffix(err.Error(), "too many redirects") || requests.Load() != 10 {
		t.Errorf("got %v after %d requests", err, requests.Load())
	}
}

func TestDowngradeIsRefused(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the plain address was asked")
	}))
	defer plain.Close()
	anonymous, err := newClient(&Repository{}, &exchange{})
	if err != nil {
		t.Fatal(err)
	}
	known, err := newClient(&Repository{options: Options{Credentials: Credentials{BearerToken: canary}}}, &exchange{})
	if err != nil {
		t.Fatal(err)
	}
	request := func(url string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, step := range []struct {
		client   *client
		from, to string
		want     error
	}{
		{anonymous, "https://git.example/a", "http://git.example/a", ErrRedirected},
		{anonymous, "https://git.example/a", "https://git.example:8443/a", ErrRedirected},
		{anonymous, "https://git.example/a", "https://git.example.evil/a", ErrRedirected},
		{anonymous, "http://git.example/a", "https://git.example/a", nil},
		{known, "http://git.example/a", "https://git.example/a", ErrRedirected},
		{known, "https://git.example/a", "https://git.example:8443/a", ErrRedirected},
		{known, "https://git.example/a", "https://GIT.example/b", nil},
	} {
		if err := step.client.checkRedirect(request(step.to), []*http.Request{request(step.from)}); !errors.Is(err, step.want) {
			t.Errorf("%s -> %s: got %v, want %v", step.from, step.to, err, step.want)
		}
	}
}

// recorded returns the server's answer to the request for main's pack.
func recorded(t *testing.T, s *gitserver.Server) []byte {
	t.Helper()
	var answer []byte
	url := front(t, s, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !isPack(r) {
				next.ServeHTTP(w, r)
				return
			}
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			answer = rec.Body.Bytes()
			_, _ = w.Write(answer)
		})
	})
	if _, err := fetchMain(t.Context(), t, url+"/addons.git"); err != nil {
		t.Fatal(err)
	}
	return answer
}

// TestDamagedPacks cuts the answer short and flips bits all over it. The result is always an
// error or the same content.
func TestDamagedPacks(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	h.write("more", map[string]string{"README.md": strings.Repeat("a line that compresses\n", 50)})
	sha := h.write("even more", map[string]string{"README.md": strings.Repeat("a line that compresses\n", 51)})
	whole := recorded(t, s)
	var answer []byte
	url := front(t, s, instead(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))

	for tenth := range 10 {
		answer = whole[:len(whole)*tenth/10]
		if tree, err := fetchMain(t.Context(), t, url+"/addons.git"); err == nil || tree != nil {
			t.Errorf("%d of %d bytes: got %v and %v, want an error and no tree", len(answer), len(whole), tree, err)
		}
	}
	for at := 0; at < len(whole); at += 7 {
		answer = bytes.Clone(whole)
		answer[at] ^= 1 << (at % 8)
		tree, err := fetchMain(t.Context(), t, url+"/addons.git")
		if err != nil {
			continue
		}
		if got := tree.Revision().Commit; got != sha || data(t, tree) != "one" {
			t.Errorf("byte %d flipped: got commit %s", at, got)
		}
	}
}

// framed frames a pack as a server does.
func framed(pack []byte) []byte {
	var b bytes.Buffer
	b.WriteString("00000008NAK\n")
	for len(pack) > 0 {
		n := min(len(pack), 60000)
		fmt.Fprintf(&b, "%04x\x01%s", n+5, pack[:n])
		pack = pack[n:]
	}
	b.WriteString("0000")
	return b.Bytes()
}

func TestPackWithoutABlob(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	objects := strings.Join([]string{h.git("rev-parse", "main"), h.git("rev-parse", "main^{tree}")}, "\n")
	c := exec.CommandContext(t.Context(), "git", "-C", h.Dir(), "pack-objects", "--stdout", "--quiet")
	c.Stdin = strings.NewReader(objects)
	pack, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	url := front(t, s, instead(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(framed(pack)) }))
	_, err = fetchMain(t.Context(), t, url+"/addons.git")
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "(cm.yaml) is missing") {
		t.Errorf("got %v, want a missing object", err)
	}
}

func TestLimits(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	for i := range 5 {
		h.must(h.Tag(fmt.Sprintf("v%d", i)))
	}
	noise := make([]byte, 4<<20)
	seed := uint32(1)
	for i := range noise {
		seed = seed*1664525 + 1013904223
		noise[i] = byte(seed >> 24)
	}
	h.write("noise", map[string]string{"noise.bin": string(noise), "zeros.bin": strings.Repeat("\x00", 8<<20)})
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"references": {Limits{Refs: 5}, "6 references, at most 5 are read"},
		"pack":       {Limits{PackBytes: 1 << 20}, "the server's pack is larger than"},
		"unpacked":   {Limits{InflatedBytes: 6 << 20}, "an object of 8388608 bytes, at most 6291456 are read"},
		"together":   {Limits{InflatedBytes: 9 << 20}, "the pack unpacks to more than 9437184 bytes"},
	} {
		_, err := fetchMain(t.Context(), t, h.URL(), func(o *Options) { o.Limits = c.limits })
		if !errors.Is(err, ErrLimitExceeded) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a limit with %q", name, err, c.want)
		}
	}
	tree, err := fetchMain(t.Context(), t, h.URL())
	if err != nil {
		t.Fatal(err)
	}
	if got := data(t, tree); got != "one" {
		t.Errorf("large files that are no YAML are in the way: %q", got)
	}
}

// TestEndlessAnswers: the client closes the connection to a server that never stops once the
// limit is reached, plain or compressed.
func TestEndlessAnswers(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.commit("one")
	const limit = 2 << 20
	var sent atomic.Int64
	pour := func(w io.Writer, chunk string) {
		for {
			n, err := io.WriteString(w, chunk)
			if sent.Add(int64(n)); err != nil || sent.Load() > 1<<30 {
				return
			}
		}
	}
	zeros := "ea65\x01" + strings.Repeat("\x00", 60000)
	reference := fmt.Sprintf("003f%s refs/heads/a\n", strings.Repeat("0", 39)+"1")
	for name, wrap := range map[string]func(http.Handler) http.Handler{
		"pack": instead(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "00000008NAK\n")
			pour(w, zeros)
		}),
		"compressed pack": instead(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "00000008NAK\n")
			pour(z, zeros)
		}),
		"references": list(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000")
			pour(w, reference)
		}),
	} {
		sent.Store(0)
		_, err := fetchMain(t.Context(), t, front(t, s, wrap)+"/addons.git", func(o *Options) { o.Limits.PackBytes = limit })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if n := sent.Load(); n > 64<<20 {
			t.Errorf("%s: read on for %d bytes, after %v", name, n, err)
		}
		if name != "references" && !errors.Is(err, ErrLimitExceeded) {
			t.Errorf("%s: got %v, want a limit", name, err)
		}
	}
}
