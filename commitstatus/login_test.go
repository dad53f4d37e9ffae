package commitstatus_test

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/githubapp"
)

// appForge is a GitHub that a GitHub App posts to. Its answers are those of the documentation.
type appForge struct {
	url string
	// issued counts tokens, and got has the tokens of the other requests.
	issued int
	got    []string
	// refuses is the answer to a token, "" for a stored status.
	refuses func(token string) string
	// issues is the code for a request of a token.
	issues int
}

func (f *appForge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch r.URL.Path {
	case "/api/v3/app/installations/345/access_tokens":
		f.issued++
		w.WriteHeader(cmp.Or(f.issues, http.StatusCreated))
		if f.issues != 0 {
			fmt.Fprintf(w, `{"message":"A JSON web token could not be decoded: %s"}`, token)
			return
		}
		fmt.Fprintf(w, `{"token":"ghs_canary%d","expires_at":"2100-01-01T00:00:00Z","permissions":{"statuses":"write"}}`, f.issued)
	default:
		f.got = append(f.got, token)
		if f.refuses == nil || f.refuses(token) == "" {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, githubCreated)
			return
		}
		code, message, _ := strings.Cut(f.refuses(token), " ")
		w.WriteHeader(map[string]int{"401": http.StatusUnauthorized, "403": http.StatusForbidden}[code])
		fmt.Fprintf(w, `{"message":"%s, %s"}`, message, token)
	}
}

// newAppForge serves until the test ends. The credentials are those of an App that it knows.
func newAppForge(t *testing.T) (*appForge, map[string][]byte) {
	t.Helper()
	f := &appForge{}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	f.url = server.URL
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return f, map[string][]byte{
		githubapp.AppIDKey: []byte("12"), githubapp.InstallationIDKey: []byte("345"), githubapp.BaseURLKey: []byte(server.URL + "/api/v3"),
		githubapp.PrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
}

// as returns the forge to which the App posts.
func as(t *testing.T, keys map[string][]byte, provider, address string) (commitstatus.Forge, error) {
	t.Helper()
	credentials, err := githubapp.Parse(keys)
	if err != nil {
		t.Fatal(err)
	}
	return commitstatus.New(commitstatus.Config{
		Provider: provider, Address: address, App: &commitstatus.App{Credentials: credentials, Tokens: githubapp.New(nil)},
		Clock: func() time.Time { return now },
	})
}

// TestApp_PostsAsItsInstallation: the token is requested by the first post, and serves the next ones.
func TestApp_PostsAsItsInstallation(t *testing.T) {
	f, keys := newAppForge(t)
	client, err := as(t, keys, "github", f.url+"/fleet/addons")
	if err != nil {
		t.Fatal(err)
	}
	if f.issued > 0 {
		t.Error("a token was requested before there is a status to post")
	}
	for range 2 {
		if err := client.Post(t.Context(), testStatus()); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"ghs_canary1", "ghs_canary1"}; f.issued != 1 || !slices.Equal(f.got, want) {
		t.Errorf("%d tokens, used as %q", f.issued, f.got)
	}
}

// TestApp_RequestsARefusedTokenOnceMore: it may have been revoked. What the App lacks is read again with the next post.
func TestApp_RequestsARefusedTokenOnceMore(t *testing.T) {
	for name, c := range map[string]struct {
		refuses   func(token string) string
		got       []string
		denied    commitstatus.Denial
		next      string
		permanent bool
	}{
		"Revoked": {
			refuses: func(token string) string {
				return map[string]string{"ghs_canary1": "401 Bad credentials"}[token]
			},
			got: []string{"ghs_canary1", "ghs_canary2"}, next: "ghs_canary2",
		},
		"Suspended": {
			refuses: func(string) string { return "401 Bad credentials" },
			got:     []string{"ghs_canary1", "ghs_canary2"}, denied: commitstatus.TokenRefused, next: "ghs_canary2", permanent: true,
		},
		"WithoutThePermission": {
			refuses: func(string) string { return "403 Resource not accessible by integration" },
			got:     []string{"ghs_canary1"}, denied: commitstatus.PermissionMissing, next: "ghs_canary2", permanent: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, keys := newAppForge(t)
			f.refuses = c.refuses
			client, err := as(t, keys, "github", f.url+"/fleet/addons")
			if err != nil {
				t.Fatal(err)
			}
			err = client.Post(t.Context(), testStatus())
			refused, _ := errors.AsType[*commitstatus.DeliveryError](err)
			if (c.denied != "") != (refused != nil) || refused != nil && (refused.Denied != c.denied || refused.Permanent != c.permanent || strings.Contains(err.Error(), "canary")) {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(f.got, c.got) {
				t.Errorf("used %q, want %q", f.got, c.got)
			}
			f.got, f.refuses = nil, nil
			if err := client.Post(t.Context(), testStatus()); err != nil || c.denied != commitstatus.TokenRefused && f.got[0] != c.next {
				t.Errorf("then used %q: %v", f.got, err)
			}
		})
	}
}

// TestApp_GetsNoToken: the App's own trouble is that of the token, any other that of the forge. No status was sent.
func TestApp_GetsNoToken(t *testing.T) {
	for name, c := range map[string]struct {
		code   int
		denied commitstatus.Denial
		want   string
	}{
		"Removed":     {http.StatusNotFound, commitstatus.TokenRefused, "GitHub refuses a token: App 12, installation 345: 127.0.0.1"},
		"Unavailable": {http.StatusServiceUnavailable, "", "for a token: it answers 503"},
	} {
		t.Run(name, func(t *testing.T) {
			f, keys := newAppForge(t)
			f.issues = c.code
			client, err := as(t, keys, "github", f.url+"/fleet/addons")
			if err != nil {
				t.Fatal(err)
			}
			err = client.Post(t.Context(), testStatus())
			refused, ok := errors.AsType[*commitstatus.DeliveryError](err)
			if !ok || refused.Denied != c.denied || refused.Everyone == (c.denied != "") || refused.Uncertain || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "eyJ") {
				t.Errorf("got %+v", refused)
			}
			if len(f.got) > 0 {
				t.Error("a status was sent")
			}
		})
	}
}

// TestApp_IsOfTheForgeOfTheAddress: its tokens go to no other one, and its key is not proven over less than https.
func TestApp_IsOfTheForgeOfTheAddress(t *testing.T) {
	_, keys := newAppForge(t)
	for name, c := range map[string]struct{ provider, base, address, want string }{
		"GitHub":       {"github", "", "https://github.com/fleet/addons", ""},
		"Enterprise":   {"github", "https://git.example.com/api/v3", "https://git.example.com/fleet/addons", ""},
		"Residency":    {"github", "https://api.octocorp.ghe.com", "https://octocorp.ghe.com/fleet/addons", ""},
		"AnotherForge": {"github", "", "https://git.example.com/fleet/addons", "the App is not of git.example.com; correct the address or key githubAppBaseURL"},
		"Plain":        {"github", "http://git.example.com/api/v3", "https://git.example.com/fleet/addons", "key githubAppBaseURL has http, and the address https"},
		"GitLab":       {"gitlab", "", "https://github.com/fleet/addons", `provider "gitlab" takes no GitHub App`},
	} {
		t.Run(name, func(t *testing.T) {
			keys[githubapp.BaseURLKey] = []byte(c.base)
			_, err := as(t, keys, c.provider, c.address)
			if (err != nil) != (c.want != "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
