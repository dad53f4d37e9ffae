package gitserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Options say how a Server is reached. The zero value is plain HTTP without
// credentials in a temporary directory.
type Options struct {
	// Dir holds the bare repositories and, in clones/, the working clones. It
	// is kept by Close. Empty: a temporary directory that Close removes.
	Dir string
	// TLS serves HTTPS with a certificate of the server's own CA.
	TLS bool
	// ClientCertificate is required of clients, with TLS: one that the server's own CA signed.
	ClientCertificate bool
	// User and Password are required as basic auth if User is not empty.
	User, Password string
	// Token is required as bearer auth if it is not empty. If User is set as well, either is
	// accepted.
	Token string
	// Now is the clock of commits. Nil: one that starts with the year 2026
	// and advances a minute per commit.
	Now func() time.Time
}

// Server is a running Git server. Close must be called.
type Server struct {
	opts      Options
	dir       string
	temporary bool
	git       git
	url       string
	ca        []byte
	client    keyPair
	http      *http.Server
	faults    faults
	tally     tally
	served    sync.WaitGroup
}

// Start starts a server on a free port of 127.0.0.1.
func Start(opts Options) (*Server, error) {
	s := &Server{opts: opts, dir: opts.Dir}
	if err := s.prepareDir(); err != nil {
		return nil, err
	}
	backend, err := s.backend()
	if err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	if err := s.listen(s.tally.count(s.authenticate(s.faults.inject(backend)))); err != nil {
		return nil, errors.Join(err, s.removeDir())
	}
	return s, nil
}

func (s *Server) prepareDir() error {
	if s.dir == "" {
		dir, err := os.MkdirTemp("", "gitserver-")
		if err != nil {
			return fmt.Errorf("cannot create the repositories' directory: %w", err)
		}
		s.dir, s.temporary = dir, true
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return fmt.Errorf("cannot create the repositories' directory: %w", err)
	}
	s.dir = dir
	s.git = git{home: filepath.Join(dir, "home")}
	if err := os.MkdirAll(s.git.home, 0o755); err != nil {
		return fmt.Errorf("cannot create the repositories' directory: %w", err)
	}
	return nil
}

// backend is git http-backend behind net/http's CGI host.
func (s *Server) backend() (http.Handler, error) {
	execPath, err := s.git.run(s.dir, "--exec-path")
	if err != nil {
		return nil, err
	}
	return &cgi.Handler{
		Path: filepath.Join(execPath, "git-http-backend"),
		Dir:  s.dir,
		Env: append(s.git.isolation(),
			"GIT_PROJECT_ROOT="+s.dir,
			"GIT_HTTP_EXPORT_ALL=1",
		),
		InheritEnv: []string{"PATH"},
		// Errors of the backend (a client that closed the connection, a refused want) are
		// reported by the client.
		Stderr: io.Discard,
	}, nil
}

func (s *Server) listen(handler http.Handler) error {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot listen: %w", err)
	}
	s.http = &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: quiet()}
	s.url = "http://" + listener.Addr().String()
	serve := func() error { return s.http.Serve(listener) }
	if s.opts.TLS {
		authority, err := newAuthority()
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		s.ca, s.client, s.http.TLSConfig = authority.pem, authority.client, authority.serverConfig()
		if s.opts.ClientCertificate {
			s.http.TLSConfig.ClientCAs, s.http.TLSConfig.ClientAuth = authority.pool(), tls.RequireAndVerifyClientCert
		}
		s.url = "https://" + listener.Addr().String()
		serve = func() error { return s.http.ServeTLS(listener, "", "") }
	}
	// It always returns that the server was closed: the listener is open.
	s.served.Go(func() { _ = serve() })
	return nil
}

// URL is the server's base, without a trailing slash and without credentials.
func (s *Server) URL() string { return s.url }

// CA is the PEM certificate that signed the server's, or nil without TLS.
func (s *Server) CA() []byte { return append([]byte(nil), s.ca...) }

// ClientCertificate is a PEM certificate for clients, and its key, or nil without TLS.
func (s *Server) ClientCertificate() (certificate, key []byte) {
	return s.client.certificate, s.client.key
}

// Close ends all requests, hanging ones too, and removes what is temporary.
func (s *Server) Close() error {
	err := s.http.Close()
	s.faults.heal()
	s.served.Wait()
	return errors.Join(err, s.removeDir())
}

func (s *Server) removeDir() error {
	if !s.temporary {
		return nil
	}
	return os.RemoveAll(s.dir)
}

// authenticate answers 401 with a challenge if required credentials are absent or wrong: git
// sends none before it is challenged.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.permitted(r) {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="gitserver"`)
		http.Error(w, "authentication required", http.StatusUnauthorized)
	})
}

func (s *Server) permitted(r *http.Request) bool {
	if s.opts.User == "" && s.opts.Token == "" {
		return true
	}
	if user, password, ok := r.BasicAuth(); ok && s.opts.User != "" {
		return user == s.opts.User && password == s.opts.Password
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return ok && s.opts.Token != "" && token == s.opts.Token
}
