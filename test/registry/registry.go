package registry

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"helm.sh/helm/v4/pkg/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/test/hubbin"
)

// Options say how a registry is started. The zero value asks for no credentials, over plain http.
type Options struct {
	// User and Password, if set, are asked for.
	User, Password string
	// TokenRealm is the URL of a server of tokens, and TokenKeys its JSON Web Key Set; tokens of
	// the issuer tests for the service registry are accepted.
	TokenRealm, TokenKeys string
	// TLS serves https, with a certificate that CA verifies.
	TLS bool
}

// Server is a running registry.
type Server struct {
	// Host is its host and port.
	Host string
	// CA is the certificate of its authority in PEM; nil without TLS.
	CA      []byte
	options Options
	program string
	client  *http.Client
}

// Start runs a registry until the test ends.
func Start(tb testing.TB, o Options) *Server {
	tb.Helper()
	s, dir := &Server{options: o, client: &http.Client{Timeout: time.Minute}}, tb.TempDir()
	var err error
	if s.program, err = hubbin.FindRegistry(tb.Context(), tb.Output()); err != nil {
		tb.Fatal(err)
	}
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			tb.Fatal(err)
		}
		return file
	}
	args := []string{"serve"}
	if o.User != "" {
		hash, err := bcrypt.GenerateFromPassword([]byte(o.Password), bcrypt.MinCost)
		if err != nil {
			tb.Fatal(err)
		}
		args = append(args, "-htpasswd="+write("htpasswd", []byte(o.User+":"+string(hash)+"\n")))
	}
	if o.TokenRealm != "" {
		args = append(args, "-token-realm="+o.TokenRealm, "-token-keys="+write("keys.json", []byte(o.TokenKeys)))
	}
	if o.TLS {
		certificate, key := certificate(tb)
		s.CA = certificate
		args = append(args, "-cert="+write("tls.crt", certificate), "-key="+write("tls.key", key))
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(certificate)
		s.client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	}
	s.run(tb, args)
	return s
}

// run starts the program and reads its address. The program ends with its standard input, so
// that it outlives no test.
func (s *Server) run(tb testing.TB, args []string) {
	tb.Helper()
	cmd := exec.Command(s.program, args...) //nolint:noctx // it ends with the test
	cmd.Stderr = tb.Output()
	input, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	tb.Cleanup(func() {
		_ = input.Close()
		_ = cmd.Wait() // its error is that the listener was closed
		s.client.CloseIdleConnections()
	})
	if err != nil {
		tb.Fatalf("the registry does not start: %v", err)
	}
	s.Host = strings.TrimSpace(line)
}

// certificate returns a certificate for 127.0.0.1 that is its own authority, and its key.
func certificate(tb testing.TB) (certificate, key []byte) {
	tb.Helper()
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	pair := server.TLS.Certificates[0]
	encoded, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		tb.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// As lets the server's own pushes use an account.
func (s *Server) As(user, password string) { s.options.User, s.options.Password = user, password }

// DockerConfig is the Docker configuration with the registry's user.
func (s *Server) DockerConfig() []byte {
	return DockerConfig(s.Host, s.options.User, s.options.Password)
}

// DockerConfig is a Docker configuration with one user, as kubectl create secret docker-registry
// writes it.
func DockerConfig(host, user, password string) []byte {
	text, _ := json.Marshal(map[string]any{"auths": map[string]any{host: map[string]any{"username": user, "password": password}}}) // strings only
	return text
}

// Remote returns a client of one repository that may push.
func (s *Server) Remote(repository string) (*remote.Repository, error) {
	r, err := remote.NewRepository(s.Host + "/" + repository)
	if err != nil {
		return nil, err
	}
	r.PlainHTTP = !s.options.TLS
	r.Client = &auth.Client{Client: s.client, Credential: auth.StaticCredential(s.Host, auth.Credential{Username: s.options.User, Password: s.options.Password})}
	return r, nil
}

// PushChart pushes a chart with Helm's client, to repository/<name of the chart>:<its version>.
// It returns its digest.
func (s *Server) PushChart(tb testing.TB, repository string, files map[string]string) string {
	tb.Helper()
	var about struct{ Name, Version string }
	if err := yaml.Unmarshal([]byte(files["Chart.yaml"]), &about); err != nil {
		tb.Fatal(err)
	}
	within := map[string]string{}
	for name, content := range files {
		within[about.Name+"/"+name] = content
	}
	options := []registry.ClientOption{registry.ClientOptHTTPClient(s.client), registry.ClientOptCredentialsFile(filepath.Join(tb.TempDir(), "none.json"))}
	if s.options.User != "" {
		options = append(options, registry.ClientOptBasicAuth(s.options.User, s.options.Password))
	}
	if !s.options.TLS {
		options = append(options, registry.ClientOptPlainHTTP())
	}
	client, err := registry.NewClient(options...)
	if err != nil {
		tb.Fatal(err)
	}
	pushed, err := client.Push(Archive(within), fmt.Sprintf("%s/%s/%s:%s", s.Host, repository, about.Name, about.Version))
	if err != nil {
		tb.Fatal(err)
	}
	return pushed.Manifest.Digest
}

// PushTree pushes a directory as flux push artifact does. It returns its digest.
func (s *Server) PushTree(ctx context.Context, repository, tag, dir, revision string) (string, error) {
	cmd := exec.CommandContext(ctx, s.program, "push", "oci://"+s.Host+"/"+repository+":"+tag, dir, revision)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	digest, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("cannot push %s: %w: %s", dir, err, failed.String())
	}
	return strings.TrimSpace(string(digest)), nil
}

// Archive returns a compressed archive of files.
func Archive(files map[string]string) []byte {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		_ = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}) // a buffer takes everything
		_, _ = archive.Write([]byte(files[name]))
	}
	_ = archive.Close()
	_ = compressed.Close()
	return out.Bytes()
}
