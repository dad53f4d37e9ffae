package gitsource

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/addonflow/addonflow/githubapp"
	"github.com/addonflow/addonflow/test/gitserver"
)

// TestApp_FetchesWithAToken: one token serves many fetches; one that was revoked before it expires is requested again once.
func TestApp_FetchesWithAToken(t *testing.T) {
	h := newHistory(t, serve(t, gitserver.Options{}))
	h.commit("one")
	backend, err := url.Parse(h.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: backend.Scheme, Host: backend.Host})
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	// valid is the number of the only token that the server accepts, and revoke ends it before the answer.
	var asked, refusals, valid atomic.Int32
	var revoke func(*http.Request)
	valid.Store(1)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if revoke != nil {
			revoke(r)
		}
		if user, password, _ := r.BasicAuth(); user != "x-access-token" || password != fmt.Sprintf("ghs_%s%d", canary, valid.Load()) {
			http.Error(w, "no such token: "+password, http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	repository := front.URL + backend.Path
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v3/app/installations/345/access_tokens" {
			refusals.Add(1)
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": "ghs_%s%d", "expires_at": %q}`, canary, asked.Add(1), time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(api.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string][]byte{
		"githubAppID": []byte("12"), "githubAppInstallationID": []byte("345"), "githubAppBaseURL": []byte(api.URL + "/api/v3"),
		"githubAppPrivateKey": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	credentials, err := ParseAppCredentials(repository, keys)
	if err != nil {
		t.Fatal(err)
	}
	tokens := githubapp.New(nil)
	fetch := func() error {
		tree, err := fetchMain(t.Context(), t, repository, func(o *Options) { o.Credentials, o.Tokens = credentials, tokens })
		if err == nil {
			tree.Close()
		}
		return err
	}
	for range 3 {
		if err := fetch(); err != nil {
			t.Fatal(err)
		}
	}
	for name, method := range map[string]string{"before a fetch": http.MethodGet, "inside a fetch": http.MethodPost} {
		before := asked.Load()
		revoke = func(r *http.Request) {
			if r.Method == method && asked.Load() == before {
				valid.Store(before + 1)
			}
		}
		if err := fetch(); err != nil || asked.Load() != before+1 {
			t.Errorf("revoked %s: got %v, and %d tokens were requested, want 1", name, err, asked.Load()-before)
		}
	}
	before := asked.Load()
	revoke = func(*http.Request) { valid.Store(0) }
	if err := fetch(); !errors.Is(err, ErrAuthentication) || strings.Contains(err.Error(), canary) || asked.Load() != before+1 {
		t.Errorf("a server that accepts none: got %v, and %d tokens were requested, want 1", err, asked.Load()-before)
	}

	keys["githubAppInstallationID"] = []byte("346")
	if credentials, err = ParseAppCredentials(repository, keys); err != nil {
		t.Fatal(err)
	}
	if err := fetch(); !errors.Is(err, ErrAuthentication) || !strings.Contains(err.Error(), "GitHub refuses a token: App 12, installation 346: 127.0.0.1:") || refusals.Load() != 1 {
		t.Errorf("an unknown installation: got %v", err)
	}
	_, err = Open(Options{URL: repository, Credentials: credentials, Access: Access{AllowLoopback: true}})
	if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), "over which no credentials are sent") {
		t.Errorf("without TLS: got %v", err)
	}
	for address, want := range map[string]string{
		"https://git.example.com/team/fleet": "the App is not of git.example.com, where the URL leads",
		"ssh://git@127.0.0.1:22/team/fleet":  "a GitHub App needs a URL with https",
	} {
		if _, err := ParseAppCredentials(address, keys); !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", address, err, want)
		}
	}
}
