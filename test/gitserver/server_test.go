package gitserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/test/gitserver"
)

// start returns a server with one repository of one commit.
func start(t *testing.T, opts gitserver.Options) (*gitserver.Server, *gitserver.Repo) {
	t.Helper()
	s, err := gitserver.Start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	r, err := s.Create("org/fleet")
	if err != nil {
		t.Fatal(err)
	}
	commit(t, r, "first", map[string]string{"addons/hello/a.yaml": "a: 1\n", "README.md": "hello\n"})
	return s, r
}

func commit(t *testing.T, r *gitserver.Repo, message string, files map[string]string) string {
	t.Helper()
	sha, err := r.Commit(message, files)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// client runs the git command as on another machine.
func client(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "LC_ALL=C",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func mustClient(t *testing.T, args ...string) string {
	t.Helper()
	out, err := client(t, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func TestCloneOverHTTP(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	dir := filepath.Join(t.TempDir(), "clone")
	mustClient(t, "clone", "--quiet", "--depth=1", r.URL(), dir)
	content, err := os.ReadFile(filepath.Join(dir, "addons", "hello", "a.yaml"))
	if err != nil || string(content) != "a: 1\n" {
		t.Errorf("cloned %q, %v", content, err)
	}
	if seen := s.Requests(); seen.LsRemote != 1 || seen.UploadPack < 1 || seen.Rejected != 0 {
		t.Errorf("a clone was counted as %+v", seen)
	}
}

func TestLsRemoteIsNoUploadPack(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	for _, version := range []string{"0", "2"} {
		s.ResetRequests()
		mustClient(t, "-c", "protocol.version="+version, "ls-remote", r.URL())
		if diff := cmp.Diff(gitserver.Requests{LsRemote: 1}, s.Requests()); diff != "" {
			t.Errorf("protocol %s: -want +got:\n%s", version, diff)
		}
	}
}

func TestCredentials(t *testing.T) {
	s, r := start(t, gitserver.Options{User: "ana", Password: "s3cret", Token: "t0ken"})
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("ana:s3cret"))
	wrong := "Basic " + base64.StdEncoding.EncodeToString([]byte("ana:guess"))
	for name, tc := range map[string]struct {
		header string
		ok     bool
	}{
		"None":        {},
		"Basic":       {header: basic, ok: true},
		"WrongBasic":  {header: wrong},
		"Bearer":      {header: "Bearer t0ken", ok: true},
		"WrongBearer": {header: "Bearer other"},
		"EmptyBearer": {header: "Bearer "},
	} {
		t.Run(name, func(t *testing.T) {
			s.ResetRequests()
			args := []string{"ls-remote", r.URL()}
			if tc.header != "" {
				args = append([]string{"-c", "http.extraHeader=Authorization: " + tc.header}, args...)
			}
			out, err := client(t, args...)
			if (err == nil) != tc.ok {
				t.Errorf("ls-remote: %v\n%s", err, out)
			}
			if rejected := s.Requests().Rejected; (rejected == 0) != tc.ok {
				t.Errorf("%d requests were rejected", rejected)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	s, r := start(t, gitserver.Options{TLS: true})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, s.CA(), 0o644); err != nil {
		t.Fatal(err)
	}
	mustClient(t, "-c", "http.sslCAInfo="+ca, "ls-remote", r.URL())
	if out, err := client(t, "ls-remote", r.URL()); err == nil {
		t.Errorf("a client without the CA trusted the server:\n%s", out)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.CA()) {
		t.Error("CA() is not PEM")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	if resp := get(t, &http.Client{Transport: transport}, r.URL()+"/info/refs?service=git-upload-pack"); resp != http.StatusOK {
		t.Errorf("status %d", resp)
	}
}

func get(t *testing.T, c *http.Client, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}

func TestFailAndHeal(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	s.FailWith(http.StatusServiceUnavailable)
	out, err := client(t, "ls-remote", r.URL())
	if err == nil || !strings.Contains(out, "503") {
		t.Errorf("ls-remote of a failing server: %v\n%s", err, out)
	}
	s.Heal()
	mustClient(t, "ls-remote", r.URL())
}

func TestHangingRequestsCanBeCancelled(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	url := r.URL() + "/info/refs?service=git-upload-pack"
	s.Hang()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- request(ctx, url) }()
	waitFor(t, func() bool { return s.Requests().LsRemote == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a hanging server answered: %v", err)
	}

	go func() { ended <- request(t.Context(), url) }()
	waitFor(t, func() bool { return s.Requests().LsRemote == 2 })
	s.Heal()
	if err := <-ended; err != nil {
		t.Errorf("a healed server did not answer: %v", err)
	}
}

func TestCloseEndsHangingRequests(t *testing.T) {
	s, err := gitserver.Start(gitserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Hang()
	ended := make(chan error, 1)
	go func() { ended <- request(t.Context(), s.URL()+"/x.git/info/refs") }()
	waitFor(t, func() bool { return s.Requests().LsRemote == 1 })
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a closed server answered")
	}
}

func TestSlowServerStillDelivers(t *testing.T) {
	s, r := start(t, gitserver.Options{})
	s.Delay(time.Millisecond)
	s.Throttle(64 << 10)
	mustClient(t, "clone", "--quiet", r.URL(), filepath.Join(t.TempDir(), "clone"))
}

func request(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// waitFor polls; the deadline of the test run is its only limit.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended first")
		case <-ticker.C:
		}
	}
}
