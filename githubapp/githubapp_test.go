package githubapp_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
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
)

const canary = "canary-7f3a"

// app is an App's key, in the form in which GitHub hands it out.
func app(t *testing.T) (*rsa.PrivateKey, []byte) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
}

func secretOf(key []byte, base string) map[string][]byte {
	return map[string][]byte{
		"githubAppID": []byte("12"), "githubAppInstallationID": []byte("345"), "githubAppPrivateKey": key, "githubAppBaseURL": []byte(base),
	}
}

func parse(t *testing.T, keys map[string][]byte) *githubapp.Credentials {
	t.Helper()
	c, err := githubapp.Parse(keys)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// github answers as GitHub's documentation of "Create an installation access token for an app"
// says, if the JWT is one that GitHub accepts.
func github(t *testing.T, key *rsa.PublicKey, now func() time.Time) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = &atomic.Int32{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := asked.Add(1)
		if r.Method != http.MethodPost || r.URL.Path != "/api/v3/app/installations/345/access_tokens" || r.Header.Get("Accept") != "application/vnd.github+json" {
			http.NotFound(w, r)
			return
		}
		jwt := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if err := valid(jwt, key, now()); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"message": "A JSON web token could not be decoded: %s %s"}`, err, jwt)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"token": "ghs_%s%d", "expires_at": %q, "permissions": {"contents": "read"}}`, canary, n, now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/api/v3/", asked
}

// valid checks a JWT as GitHub does.
func valid(jwt string, key *rsa.PublicKey, now time.Time) error {
	parts := strings.Split(jwt, ".")
	if len(parts) != 3 {
		return errors.New("no JWT")
	}
	var header struct{ Alg, Typ string }
	var claims struct {
		Iat, Exp int64
		Iss      string
	}
	for i, into := range []any{&header, &claims} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err == nil {
			err = json.Unmarshal(raw, into)
		}
		if err != nil {
			return err
		}
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case header.Alg != "RS256" || claims.Iss != "12":
		return errors.New("wrong algorithm or issuer")
	case claims.Iat > now.Unix() || claims.Exp <= now.Unix() || claims.Exp-now.Unix() > 600:
		return errors.New("wrong times")
	}
	return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature)
}

// TestTokens_AreKeptUntilTheyExpire: one request serves an hour of fetches and statuses.
func TestTokens_AreKeptUntilTheyExpire(t *testing.T) {
	key, text := app(t)
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	base, asked := github(t, &key.PublicKey, clock)
	tokens, c := githubapp.New(clock), parse(t, secretOf(text, base))
	get := func(c *githubapp.Credentials) string {
		t.Helper()
		token, err := tokens.Token(t.Context(), http.DefaultClient, c)
		if err != nil {
			t.Fatal(err)
		}
		return string(token.Text)
	}
	first := get(c)
	if again := get(parse(t, secretOf(text, base))); again != first || asked.Load() != 1 {
		t.Errorf("got another token after %d requests", asked.Load())
	}
	now = now.Add(54 * time.Minute)
	if get(c) != first {
		t.Error("a token that is still valid was replaced")
	}
	now = now.Add(2 * time.Minute)
	second := get(c)
	if second == first {
		t.Error("a token that expires within five minutes was used")
	}
	tokens.Forget(c)
	if get(c) == second || asked.Load() != 3 {
		t.Errorf("a token that was refused is used again, after %d requests", asked.Load())
	}
}

// TestTokens_OfAnOwner: Flux's other way to name an installation. The endpoints are those of GitHub's documentation of
// "Get an organization installation" and "Get a user installation for the authenticated app".
func TestTokens_OfAnOwner(t *testing.T) {
	key, text := app(t)
	base, _ := github(t, &key.PublicKey, time.Now)
	api, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: api.Scheme, Host: api.Host})
	var asked []string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v3"))
		if err := valid(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), &key.PublicKey, time.Now()); err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/api/v3/orgs/team/installation", "/api/v3/users/ana/installation":
			fmt.Fprint(w, `{"id": 345, "account": {"login": "team"}}`)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(front.Close)
	for owner, want := range map[string]string{
		"team": "GET /orgs/team/installation, POST /app/installations/345/access_tokens",
		"ana":  "GET /orgs/ana/installation, GET /users/ana/installation, POST /app/installations/345/access_tokens",
		"eve":  "GET /orgs/eve/installation, GET /users/eve/installation",
	} {
		asked = nil
		keys := secretOf(text, front.URL+"/api/v3")
		delete(keys, "githubAppInstallationID")
		keys["githubAppInstallationOwner"] = []byte(owner)
		token, err := githubapp.New(nil).Token(t.Context(), http.DefaultClient, parse(t, keys))
		refused := errors.Is(err, githubapp.ErrRefused) && strings.Contains(err.Error(), "App 12, installation of eve: ")
		if got := strings.Join(asked, ", "); got != want || refused != (owner == "eve") || (err == nil) != (token.Text != "") {
			t.Errorf("%s: asked %s, want %s; %v", owner, got, want, err)
		}
	}
	keys := secretOf(text, "")
	delete(keys, "githubAppInstallationID")
	keys["githubAppInstallationOwner"] = []byte("../" + canary)
	if _, err := githubapp.Parse(keys); !errors.Is(err, githubapp.ErrInvalidCredentials) || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}

// TestTokens_FollowARotatedKey: the token of the former key is not used any more.
func TestTokens_FollowARotatedKey(t *testing.T) {
	key, text := app(t)
	_, stolen := app(t)
	base, _ := github(t, &key.PublicKey, time.Now)
	tokens := githubapp.New(nil)
	if _, err := tokens.Token(t.Context(), http.DefaultClient, parse(t, secretOf(text, base))); err != nil {
		t.Fatal(err)
	}
	_, err := tokens.Token(t.Context(), http.DefaultClient, parse(t, secretOf(stolen, base)))
	if !errors.Is(err, githubapp.ErrRefused) || !strings.Contains(err.Error(), "App 12, installation 345: ") {
		t.Errorf("got %v, want %v", err, githubapp.ErrRefused)
	}
	if strings.Contains(err.Error(), "eyJ") {
		t.Errorf("the error shows the assertion: %v", err)
	}
}

func TestTokens_FollowNoRedirect(t *testing.T) {
	_, text := app(t)
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close)
	s := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	if _, err := githubapp.New(nil).Token(t.Context(), http.DefaultClient, parse(t, secretOf(text, s.URL))); err == nil || stolen.Load() > 0 {
		t.Errorf("got %v, and another server was asked %d times", err, stolen.Load())
	}
}

func TestParse_NamesTheKeyThatIsWrong(t *testing.T) {
	_, text := app(t)
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKCS8PrivateKey(curve)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ key, value, want string }{
		"no App":          {"githubAppID", "", "key githubAppID is missing or no number"},
		"no installation": {"githubAppInstallationID", "main", "key githubAppInstallationID is missing or no number"},
		"no key":          {"githubAppPrivateKey", canary, "key githubAppPrivateKey is missing or no PEM"},
		"another key":     {"githubAppPrivateKey", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: other})), "key githubAppPrivateKey is not an RSA key"},
		"no address":      {"githubAppBaseURL", "ftp://" + canary, "key githubAppBaseURL: want https://HOST/api/v3"},
		"an owner, too":   {"githubAppInstallationOwner", "team", "keys githubAppInstallationID and githubAppInstallationOwner exclude each other"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := secretOf(text, "")
			keys[c.key] = []byte(c.value)
			_, err := githubapp.Parse(keys)
			if !errors.Is(err, githubapp.ErrInvalidCredentials) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCredentials_ServeOneForge: a token of github.com is not for another host.
func TestCredentials_ServeOneForge(t *testing.T) {
	_, text := app(t)
	for _, c := range []struct {
		base, host string
		want       bool
	}{
		{"", "github.com", true},
		{"", "GitHub.com", true},
		{"", "github.com.evil.example", false},
		{"", "git.example.com", false},
		{"https://git.example.com/api/v3", "git.example.com", true},
		{"https://git.example.com/api/v3", "github.com", false},
		{"https://api.octocorp.ghe.com", "octocorp.ghe.com", true},
	} {
		if got := parse(t, secretOf(text, c.base)).Serves(c.host); got != c.want {
			t.Errorf("%q serves %s: %t", c.base, c.host, got)
		}
	}
}

// FuzzParse: the keys of an App are read, or refused with an error that callers know.
func FuzzParse(f *testing.F) {
	f.Add("1", "2", "https://ghe.example/api/v3", "-----BEGIN RSA PRIVATE KEY-----\n")
	f.Add("", "x", "https://a:b@c", "")
	f.Fuzz(func(t *testing.T, app, installation, base, key string) {
		c, err := githubapp.Parse(map[string][]byte{
			githubapp.AppIDKey: []byte(app), githubapp.InstallationIDKey: []byte(installation),
			githubapp.BaseURLKey: []byte(base), githubapp.PrivateKeyKey: []byte(key),
		})
		if (err == nil) != (c != nil) || err != nil && !errors.Is(err, githubapp.ErrInvalidCredentials) {
			t.Errorf("%v, %v", c, err)
		}
	})
}
