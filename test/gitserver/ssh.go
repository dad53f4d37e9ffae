package gitserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
)

// ErrNoSSHD is returned on a machine without OpenSSH's server.
var ErrNoSSHD = errors.New("no sshd on this machine (package openssh-server)")

// SSHOptions say how repositories are served over SSH.
type SSHOptions struct {
	// Dir holds host keys and configuration; the server keeps them.
	Dir string
	// AuthorizedKeys are the clients' public keys, one a line.
	AuthorizedKeys string
	// HostKeys are the types of the host keys, as ssh-keygen names them: ed25519, ecdsa, rsa.
	// Empty: ed25519.
	HostKeys []string
	// Authority lets a certificate authority sign each host key.
	Authority bool
}

// SSH is OpenSSH's server on loopback. It runs as the current user, and logs only that user in.
// Close must be called.
type SSH struct {
	sshd     string
	dir      string
	config   string
	user     string
	keys     []string
	listener net.Listener
	served   sync.WaitGroup
	cancel   context.CancelFunc
}

// StartSSH serves the file system of this machine. The error is ErrNoSSHD if there is no sshd.
func StartSSH(o SSHOptions) (*SSH, error) {
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		if sshd, err = exec.LookPath("/usr/sbin/sshd"); err != nil {
			return nil, ErrNoSSHD
		}
	}
	me, err := user.Current()
	if err != nil {
		return nil, fmt.Errorf("cannot start sshd: %w", err)
	}
	s := &SSH{sshd: sshd, dir: o.Dir, config: filepath.Join(o.Dir, "sshd_config"), user: me.Username}
	if err := s.configure(o); err != nil {
		return nil, fmt.Errorf("cannot start sshd: %w", err)
	}
	if s.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("cannot start sshd: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.served.Go(func() { s.accept(ctx) })
	return s, nil
}

// configure writes the host keys and sshd's configuration.
func (s *SSH) configure(o SSHOptions) error {
	if os.Geteuid() == 0 {
		// sshd changes its root to this directory before a client is logged in.
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return err
		}
	}
	authorized := filepath.Join(s.dir, "authorized_keys")
	if err := os.WriteFile(authorized, []byte(o.AuthorizedKeys), 0o600); err != nil {
		return err
	}
	lines := []string{
		"AuthorizedKeysFile " + authorized, "PasswordAuthentication no", "KbdInteractiveAuthentication no",
		"PermitRootLogin prohibit-password", "StrictModes no", "UsePAM no", "PidFile none", "LogLevel ERROR",
	}
	if len(o.HostKeys) == 0 {
		o.HostKeys = []string{"ed25519"}
	}
	if o.Authority {
		if err := s.keygen("-t", "ed25519", "-N", "", "-f", s.path("authority")); err != nil {
			return err
		}
	}
	for _, kind := range o.HostKeys {
		key := s.path("host_" + kind)
		if err := s.keygen("-t", kind, "-N", "", "-f", key); err != nil {
			return err
		}
		lines, s.keys = append(lines, "HostKey "+key), append(s.keys, key+".pub")
		if !o.Authority {
			continue
		}
		if err := s.keygen("-s", s.path("authority"), "-I", "host", "-h", "-n", "127.0.0.1", key+".pub"); err != nil {
			return err
		}
		lines = append(lines, "HostCertificate "+key+"-cert.pub")
	}
	return os.WriteFile(s.config, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

func (s *SSH) path(name string) string { return filepath.Join(s.dir, name) }

func (s *SSH) keygen(args ...string) error {
	out, err := exec.CommandContext(context.Background(), "ssh-keygen", append([]string{"-q"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ssh-keygen %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// accept gives each connection to an sshd of its own, as inetd would.
func (s *SSH) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.served.Go(func() { s.serve(ctx, conn) })
	}
}

// serve runs sshd on one connection.
func (s *SSH) serve(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	file, err := tcp.File()
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	c := exec.CommandContext(ctx, s.sshd, "-i", "-e", "-f", s.config)
	c.Stdin, c.Stdout, c.Stderr = file, file, io.Discard
	_ = c.Run() // the client reports what went wrong
}

// Addr is the host and port of the server.
func (s *SSH) Addr() string { return s.listener.Addr().String() }

// URL is where clients fetch a repository on this machine from.
func (s *SSH) URL(dir string) string { return "ssh://" + s.user + "@" + s.Addr() + dir }

// User is whom the server logs in.
func (s *SSH) User() string { return s.user }

// KnownHosts are lines with the server's host keys.
func (s *SSH) KnownHosts() (string, error) { return s.lines("", s.keys...) }

// AuthorityLine is a known_hosts line with the certificate authority of the host keys.
func (s *SSH) AuthorityLine() (string, error) {
	return s.lines("@cert-authority ", s.path("authority.pub"))
}

func (s *SSH) lines(marker string, files ...string) (string, error) {
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, file := range files {
		key, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("cannot read a host key: %w", err)
		}
		fmt.Fprintf(&all, "%s[%s]:%s %s", marker, host, port, key)
	}
	return all.String(), nil
}

// Close ends the server and its connections.
func (s *SSH) Close() error {
	err := s.listener.Close()
	s.cancel()
	s.served.Wait()
	return err
}
