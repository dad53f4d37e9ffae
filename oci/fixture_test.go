package oci

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	specs "github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.uber.org/goleak"

	"github.com/addonflow/addonflow/test/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// chart is a chart as its author keeps it.
func chart() map[string]string {
	return map[string]string{
		"Chart.yaml":              "apiVersion: v2\nname: hello\nversion: 1.2.3\n",
		"values.yaml":             "replicas: 1\n",
		"templates/hello.yaml":    "kind: ConfigMap\n",
		"templates/.hidden":       "not part of it",
		".helmignore":             "*.md\n",
		"charts/sub/Chart.yaml":   "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
		"charts/sub/values.yaml":  "",
		"charts/sub/.hidden/file": "not part of it either",
	}
}

// open opens a registry as the operator does with the flags for this machine.
func open(t *testing.T, host string, change ...func(*Options)) *Registry {
	t.Helper()
	o := Options{Host: host, Insecure: true, Access: Access{AllowLoopback: true, AllowHTTP: true}}
	for _, c := range change {
		c(&o)
	}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// as gives the options the credentials of a Docker configuration.
func as(t *testing.T, config []byte) func(*Options) {
	t.Helper()
	credentials, err := ParseCredentials(map[string][]byte{dockerConfigKey: config})
	if err != nil {
		t.Fatal(err)
	}
	return func(o *Options) { o.Credentials = credentials }
}

// server is an HTTP server of a test. Its handler may be set after its address is known.
type server struct {
	*httptest.Server
	answer http.HandlerFunc

	mu   sync.Mutex
	seen []string
}

// took returns the Authorization headers that it got since the last call.
func (s *server) took() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.seen = append(s.seen, r.Header.Get("Authorization"))
		s.mu.Unlock()
		s.answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) host() string { return strings.TrimPrefix(s.URL, "http://") }

// forward answers with the real registry's answers.
func forward(host string) http.HandlerFunc {
	target := &url.URL{Scheme: "http", Host: host}
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return proxy.ServeHTTP
}

// tokens issues tokens for a registry, to one user.
type tokens struct {
	key            *ecdsa.PrivateKey
	user, password string
}

func newTokens(t *testing.T) tokens {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return tokens{key: key, user: "ana", password: "canary-31c8"}
}

// keys is the JSON Web Key Set of the server.
func (s tokens) keys(t *testing.T) string {
	t.Helper()
	point, err := s.key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"keys": [{"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": "one", "x": %q, "y": %q}]}`,
		base64.RawURLEncoding.EncodeToString(point[1:33]), base64.RawURLEncoding.EncodeToString(point[33:]))
}

// answer issues a token to the user.
func (s tokens) answer(w http.ResponseWriter, r *http.Request) {
	if user, password, _ := r.BasicAuth(); user != s.user || password != s.password {
		http.Error(w, "who are you? "+r.Header.Get("Authorization"), http.StatusUnauthorized)
		return
	}
	scope := strings.Split(r.URL.Query().Get("scope"), ":")
	now := time.Now()
	head, _ := json.Marshal(map[string]any{"typ": "JWT", "alg": "ES256", "kid": "one"})
	body, _ := json.Marshal(map[string]any{
		"iss": "tests", "sub": s.user, "aud": "registry", "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix(), "jti": rand.Text(),
		"access": []map[string]any{{"type": scope[0], "name": scope[1], "actions": strings.Split(scope[2], ",")}},
	})
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(text))
	a, b, err := ecdsa.Sign(rand.Reader, s.key, sum[:])
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	signature := append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": text + "." + base64.RawURLEncoding.EncodeToString(signature)})
}

// push pushes a manifest with one layer to charts/hello, with the media types of a chart unless others are given,
// and returns its digest.
func push(ctx context.Context, t *testing.T, s *registry.Server, tag string, layer []byte, types ...string) string {
	t.Helper()
	types = append(types, []string{chartConfig, chartContent}[len(types):]...)
	r, err := s.Remote("charts/hello")
	if err != nil {
		t.Fatal(err)
	}
	blob := func(mediaType string, content []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
		if err := r.Push(ctx, d, bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		return d
	}
	text, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: blob(types[0], []byte("{}")), Layers: []ocispec.Descriptor{blob(types[1], layer)},
	})
	if err != nil {
		t.Fatal(err)
	}
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromBytes(text), Size: int64(len(text))}
	if err := r.PushReference(ctx, d, bytes.NewReader(text), tag); err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}
