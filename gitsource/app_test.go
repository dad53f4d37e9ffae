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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/addonflow/addonflow/githubapp"
	"github.com/addonflow/addonflow/test/gitserver"
)

// TestApp_FetchesWithAToken: one token serves many fetches; one that the server refuses is
// replaced with the next call.
func TestApp_FetchesWithAToken(t *testing.T) {
	s := serve(t, gitserver.Options{User: "x-access-token", Password: "ghs_" + canary + "2"})
	h := newHistory(t, s)
	h.commit("one")
	var asked atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v3/app/installations/345/access_tokens" {
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
	credentials, err := ParseAppCredentials(h.URL(), keys)
	if err != nil {
		t.Fatal(err)
	}
	tokens := githubapp.New(nil)
	fetch := func() error {
		tree, err := fetchMain(t.Context(), t, h.URL(), func(o *Options) { o.Credentials, o.Tokens = credentials, tokens })
		if err == nil {
			tree.Close()
		}
		return err
	}
	if err := fetch(); !errors.Is(err, ErrAuthentication) || strings.Contains(err.Error(), canary) {
		t.Errorf("a token that the server does not know: got %v", err)
	}
	for range 3 {
		if err := fetch(); err != nil {
			t.Fatal(err)
		}
	}
	if asked.Load() != 2 {
		t.Errorf("%d tokens were requested, want 2", asked.Load())
	}

	keys["githubAppInstallationID"] = []byte("346")
	if credentials, err = ParseAppCredentials(h.URL(), keys); err != nil {
		t.Fatal(err)
	}
	if err := fetch(); !errors.Is(err, ErrAuthentication) || !strings.Contains(err.Error(), "GitHub refuses a token: App 12, installation 346: 127.0.0.1:") {
		t.Errorf("an unknown installation: got %v", err)
	}
	_, err = Open(Options{URL: h.URL(), Credentials: credentials, Access: Access{AllowLoopback: true}})
	if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), "over which no credentials are sent") {
		t.Errorf("without TLS: got %v", err)
	}
	for url, want := range map[string]string{
		"https://git.example.com/team/fleet": "the App is not of git.example.com, where the URL leads",
		"ssh://git@127.0.0.1:22/team/fleet":  "a GitHub App needs a URL with https",
	} {
		if _, err := ParseAppCredentials(url, keys); !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", url, err, want)
		}
	}
}
