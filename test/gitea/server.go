package gitea

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"text/template"
	"time"

	"github.com/addonflow/addonflow/test/freeport"
	"github.com/addonflow/addonflow/test/hubbin"
)

const (
	// Host is where Gitea listens.
	Host = "127.0.0.1"
	// Admin is the user who creates everything.
	Admin = "root-of-the-forge"
	// startWithin bounds a start: the first creates the tables.
	startWithin = 2 * time.Minute
	// stopWithin is how long Gitea may take to end before it is killed.
	stopWithin = 30 * time.Second
)

// Server is a Gitea. Stop must be called.
type Server struct {
	program hubbin.Gitea
	dir     string
	web     int
	ssh     int
	ca      []byte
	client  *http.Client

	process *exec.Cmd
	ended   chan error
}

// Start installs a new Gitea below a directory, with one administrator, and starts it.
func Start(ctx context.Context, program hubbin.Gitea, dir string) (*Server, error) {
	s := &Server{program: program, dir: dir}
	for _, step := range []struct {
		doing string
		take  func(context.Context) error
	}{
		{"find free ports", s.findPorts},
		{"write its configuration", s.configure},
		{"make its certificate", s.certify},
		{"make its host key", s.makeHostKey},
		{"create its tables", func(ctx context.Context) error { return s.run(ctx, "migrate") }},
		{"start it", s.Resume},
	} {
		if err := step.take(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("cannot run Gitea: cannot %s: %w", step.doing, err), s.Stop())
		}
	}
	return s, nil
}

// findPorts asks the machine for two ports. Gitea keeps them when it is started again.
func (s *Server) findPorts(ctx context.Context) error {
	for _, port := range []*int{&s.web, &s.ssh} {
		address, err := freeport.Address(ctx)
		if err != nil {
			return err
		}
		parsed, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		*port = int(parsed.Port())
	}
	return nil
}

// configuration is Gitea's own defaults, but for places, and for what a Gitea of a few minutes
// does not need.
const configuration = `
APP_NAME = Forge
RUN_MODE = prod
WORK_PATH = {{.Dir}}
[server]
PROTOCOL = https
CERT_FILE = {{.Dir}}/cert.pem
KEY_FILE = {{.Dir}}/key.pem
HTTP_ADDR = {{.Host}}
HTTP_PORT = {{.Web}}
ROOT_URL = https://{{.Host}}:{{.Web}}/
STATIC_ROOT_PATH = {{.Static}}
START_SSH_SERVER = true
SSH_DOMAIN = {{.Host}}
SSH_LISTEN_HOST = {{.Host}}
SSH_PORT = {{.SSH}}
SSH_SERVER_HOST_KEYS = {{.Dir}}/host
BUILTIN_SSH_SERVER_USER = git
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {{.Dir}}/gitea.db
[repository]
ROOT = {{.Dir}}/repositories
DEFAULT_BRANCH = main
[security]
INSTALL_LOCK = true
SECRET_KEY = a-key-of-a-test
INTERNAL_TOKEN = eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJuYmYiOjE1MDI0NTY5NjN9.Sd1v0yxk9NSD-BJq8ORqvYSSKBMkIdZ9yN8hXHIqbxo
[oauth2]
ENABLED = false
[webhook]
# Gitea calls no address of its own machine otherwise.
ALLOWED_HOST_LIST = loopback
[service]
DISABLE_REGISTRATION = true
[mailer]
ENABLED = false
[actions]
ENABLED = false
[packages]
ENABLED = false
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
MODE = console
LEVEL = Warn
[session]
PROVIDER = memory
`

func (s *Server) configure(context.Context) error {
	text, err := template.New("app.ini").Parse(configuration)
	if err != nil {
		return err
	}
	var ini bytes.Buffer
	if err := text.Execute(&ini, map[string]any{
		"Dir": s.dir, "Host": Host, "Web": s.web, "SSH": s.ssh, "Static": s.program.Static,
	}); err != nil {
		return err
	}
	return os.WriteFile(s.path("app.ini"), ini.Bytes(), 0o600)
}

// certify lets Gitea make a certificate that is its own authority.
func (s *Server) certify(ctx context.Context) error {
	if err := s.run(ctx, "cert", "--ca", "--host", Host, "--ecdsa-curve", "P256", "--out", s.path("cert.pem"), "--keyout", s.path("key.pem")); err != nil {
		return err
	}
	var err error
	if s.ca, err = os.ReadFile(s.path("cert.pem")); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(s.ca) {
		return errors.New("it made none")
	}
	s.client = &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, DisableKeepAlives: true},
	}
	return nil
}

// makeHostKey makes the key of the SSH server; Gitea's own of 4096 bits takes half a minute.
func (s *Server) makeHostKey(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path("host")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	return nil
}

// Resume starts Gitea with what it stored, and returns when it answers.
func (s *Server) Resume(ctx context.Context) error {
	log, err := os.OpenFile(s.path("gitea.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	s.process = s.command(context.WithoutCancel(ctx), "web")
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.process = nil
		return errors.Join(err, log.Close())
	}
	ended, process := make(chan error, 1), s.process
	s.ended = ended
	go func() { ended <- errors.Join(process.Wait(), log.Close()) }()
	return s.awaitAnswer(ctx)
}

// awaitAnswer returns when Gitea says that it is healthy.
func (s *Server) awaitAnswer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w: %s", ctx.Err(), s.Tail(20))
		case err := <-s.ended:
			s.process = nil
			return fmt.Errorf("it ended: %w: %s", err, s.Tail(20))
		case <-ticker.C:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/api/healthz", nil)
		if err != nil {
			return err
		}
		response, err := s.client.Do(request)
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
	}
}

// Stop ends Gitea; what it stored stays. It is not an error if it does not run.
func (s *Server) Stop() error {
	if s.process == nil {
		return nil
	}
	process := s.process
	s.process = nil
	_ = process.Process.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case err := <-s.ended:
		return err
	case <-timer.C:
		_ = process.Process.Kill()
		return fmt.Errorf("cannot stop Gitea within %s: killed (%w)", stopWithin, <-s.ended)
	}
}

// run runs a command of Gitea's program.
func (s *Server) run(ctx context.Context, args ...string) error {
	_, err := s.output(ctx, args...)
	return err
}

// output runs a command of Gitea's program, and returns what it prints.
func (s *Server) output(ctx context.Context, args ...string) (string, error) {
	command := s.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("gitea %s: %w: %s%s", strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// command is Gitea's program away from the machine's and the user's Git configuration.
func (s *Server) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, s.program.Binary, append(args, "--config", s.path("app.ini"))...)
	if args[0] == "cert" { // which has no configuration yet
		command.Args = command.Args[:len(command.Args)-2]
	}
	command.Dir = s.dir
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "USER=" + os.Getenv("USER"), "GITEA_WORK_DIR=" + s.dir,
		"GIT_CONFIG_NOSYSTEM=1",
		"GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", // a container of a check has no other user
	}
	return command
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

// URL is Gitea's address, without a slash at the end.
func (s *Server) URL() string { return fmt.Sprintf("https://%s:%d", Host, s.web) }

// SSHURL is where a repository is read and written over SSH.
func (s *Server) SSHURL(repository string) string {
	return fmt.Sprintf("ssh://git@%s:%d/%s.git", Host, s.ssh, repository)
}

// CA is the authority of Gitea's certificate, in PEM.
func (s *Server) CA() []byte { return s.ca }

// KnownHosts is the line with the key of Gitea's SSH server.
func (s *Server) KnownHosts() (string, error) {
	key, err := os.ReadFile(s.path("host.pub"))
	if err != nil {
		return "", fmt.Errorf("cannot read Gitea's host key: %w", err)
	}
	return fmt.Sprintf("[%s]:%d %s", Host, s.ssh, key), nil
}

// Tail returns the last lines of Gitea's log.
func (s *Server) Tail(lines int) string {
	text, err := os.ReadFile(s.path("gitea.log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(string(bytes.TrimRight(text, "\n")), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
