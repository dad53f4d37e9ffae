package gitsource

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/test/gitserver"
)

const canary = "canary-7f3a"

func TestParseCredentials(t *testing.T) {
	keys := func(pairs ...string) map[string][]byte {
		out := map[string][]byte{}
		for pair := range slices.Chunk(pairs, 2) {
			out[pair[0]] = []byte(pair[len(pair)-1])
		}
		return out
	}
	s := serve(t, gitserver.Options{TLS: true})
	for name, c := range map[string]struct {
		reason string
		in     map[string][]byte
		want   Credentials
		err    string
	}{
		"basic":  {"user and password", keys("username", "u", "password", "p"), Credentials{Username: "u", Password: "p"}, ""},
		"bearer": {"a token", keys("bearerToken", "t"), Credentials{BearerToken: "t"}, ""},
		"ca":     {"an authority alone", keys("ca.crt", string(s.CA())), Credentials{CAFile: s.CA()}, ""},
		"caFile": {"Flux's older name", keys("caFile", string(s.CA())), Credentials{CAFile: s.CA()}, ""},
		"other":  {"keys of other programs do not matter", keys("bearerToken", "t", "note", "x"), Credentials{BearerToken: "t"}, ""},

		"an App":      {"another provider", keys("githubAppID", "12"), Credentials{}, "the keys of a GitHub App need spec.provider github"},
		"none":        {"a Secret for nothing", keys("note", canary), Credentials{}, "none of the keys username and password, bearerToken, tls.crt and tls.key, ca.crt is set"},
		"both":        {"two ways", keys("username", "u", "password", "other", "bearerToken", canary), Credentials{BearerToken: canary}, ""},
		"empty":       {"a token as the user name", keys("username", canary, "password", ""), Credentials{Username: canary}, ""},
		"no password": {"half a way", keys("username", canary), Credentials{}, "key password is missing"},
		"no user":     {"the other half", keys("password", canary), Credentials{}, "key username is missing"},
		"line break":  {"echo adds one", keys("bearerToken", canary+"\n"), Credentials{}, "key bearerToken holds a line break"},
		"no PEM":      {"not a certificate", keys("ca.crt", canary), Credentials{}, "key ca.crt holds no PEM certificate"},
		"ssh":         {"another protocol", keys("identity", canary), Credentials{}, "; identity is for ssh, and the URL is https"},
		"ssh as well": {"one Secret for two URLs", keys("identity", canary, "bearerToken", "t"), Credentials{BearerToken: "t"}, ""},
		"no key":      {"half a certificate", keys("tls.crt", canary), Credentials{}, "key tls.key is missing"},
		"no cert":     {"the other half", keys("tls.key", canary), Credentials{}, "key tls.crt is missing"},
		"client cert": {"no certificate", keys("tls.key", canary, "tls.crt", canary), Credentials{}, "keys tls.crt and tls.key are not a certificate and its key"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseCredentials("https://git.example/fleet", c.in)
			if c.err != "" {
				if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%s: got %v, want invalid credentials with %q", c.reason, err, c.err)
				}
				if strings.Contains(err.Error(), canary) {
					t.Errorf("%s: the error shows a value: %v", c.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Credentials{})); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	c := Credentials{Username: canary, Password: canary, BearerToken: canary}
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{string(encoded), authorize{c}.String(), authorize{c}.Name()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, c.Password), fmt.Sprintf(verb, &c))
	}
	for _, text := range texts {
		if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
			t.Errorf("a secret shows in %s", text)
		}
	}
}

// TestRedaction_SparesShortWords: a token as the user name has a filler as its password.
func TestRedaction_SparesShortWords(t *testing.T) {
	const token = "ghp_0123456789abcdefghij"
	for name, c := range map[string]struct {
		credentials Credentials
		text, want  string
	}{
		"a filler":               {Credentials{Username: token, Password: "a"}, "cannot read refs/heads/main", "cannot read refs/heads/main"},
		"a filler that is a ref": {Credentials{Username: token, Password: "main"}, "refs/heads/main", "refs/heads/main"},
		"a short bearer token":   {Credentials{BearerToken: "main"}, "refs/heads/main", "refs/heads/main"},
		"the token":              {Credentials{Username: token, Password: "a"}, "you are " + token, "you are [redacted]"},
		"the combination":        {Credentials{Username: "ana", Password: "a"}, "you are ana:a", "you are [redacted]"},
		"its base64":             {Credentials{Username: "ana", Password: "a"}, "sent YW5hOmE=", "sent [redacted]"},
		"the header":             {Credentials{BearerToken: "main"}, "you sent Bearer main", "you sent [redacted]"},
		"the header in base64":   {Credentials{Username: "ana", Password: "a"}, "QmFzaWMgWVc1aE9tRT0=", "[redacted]"},
		"the header in hex":      {Credentials{BearerToken: "main"}, "426561726572206d61696e", "[redacted]"},
		"a password":             {Credentials{Username: "ana", Password: "12345678"}, "refs/heads/12345678", "refs/heads/[redacted]"},
		"a bearer token":         {Credentials{BearerToken: "12345678"}, "refs/heads/12345678", "refs/heads/[redacted]"},
		"no password":            {Credentials{Username: "git"}, "git: fix x", "git: fix x"},
		"its header":             {Credentials{Username: "git"}, "sent Basic Z2l0Og==", "sent [redacted]"},
		"a token alone":          {Credentials{Username: token}, "sent Z2hwXzAxMjM0NTY3ODlhYmNkZWZnaGlqOg==", "sent [redacted]"},
		"a user name":            {Credentials{Username: "x-access-token", Password: "12345678"}, "x-access-token", "x-access-token"},
	} {
		if got := c.credentials.redaction().Text(c.text); got != c.want {
			t.Errorf("%s: %q becomes %q, want %q", name, c.text, got, c.want)
		}
	}
	proxy, err := ParseProxy(map[string][]byte{"address": []byte("http://proxy:8080"), "username": []byte("ana"), "password": []byte("main")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := (Credentials{}).redaction(proxy.secrets()...).Text("main of ana:main"), "main of [redacted]"; got != want {
		t.Errorf("of a proxy: got %q, want %q", got, want)
	}
}

// TestRepository_ReadsTheBranchThatIsTheFiller: a short password hides no reference.
func TestRepository_ReadsTheBranchThatIsTheFiller(t *testing.T) {
	const token = "ghp_0123456789abcdefghij"
	s := serve(t, gitserver.Options{User: token, Password: "main"})
	h := newHistory(t, s)
	sha := h.commit("one")
	got, err := open(t, h.URL(), branch("main"), func(o *Options) { o.Credentials = Credentials{Username: token, Password: "main"} }).Resolve(t.Context())
	if err != nil || got.Commit != sha {
		t.Errorf("got %v and %v, want %s", got, err, sha)
	}
}

func TestAuthentication(t *testing.T) {
	s := serve(t, gitserver.Options{User: "ana", Password: canary, Token: "token-" + canary})
	h := newHistory(t, s)
	h.commit("one")
	for name, c := range map[string]struct {
		credentials Credentials
		want        error
	}{
		"basic":          {Credentials{Username: "ana", Password: canary}, nil},
		"bearer":         {Credentials{BearerToken: "token-" + canary}, nil},
		"none":           {Credentials{}, ErrAuthentication},
		"wrong password": {Credentials{Username: "ana", Password: canary + "x"}, ErrAuthentication},
		"wrong token":    {Credentials{BearerToken: "x-" + canary}, ErrAuthentication},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, h.URL(), branch("main"), func(o *Options) { o.Credentials = c.credentials })
			rev, err := r.Resolve(t.Context())
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil {
				if strings.Contains(err.Error(), canary) {
					t.Errorf("the error shows a secret: %v", err)
				}
				return
			}
			if _, err := r.Fetch(t.Context(), rev); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAuthority(t *testing.T) {
	s := serve(t, gitserver.Options{TLS: true})
	h := newHistory(t, s)
	sha := h.commit("one")
	r := open(t, h.URL(), branch("main"), func(o *Options) { o.Credentials.CAFile = s.CA() })
	rev, err := r.Resolve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if tree, err := r.Fetch(t.Context(), rev); err != nil || tree.Revision().Commit != sha {
		t.Errorf("got %v and %v", tree, err)
	}
	other := serve(t, gitserver.Options{TLS: true})
	for name, ca := range map[string][]byte{"the system's authorities": nil, "another authority": other.CA()} {
		_, err := open(t, h.URL(), branch("main"), func(o *Options) { o.Credentials.CAFile = ca }).Resolve(t.Context())
		if err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("with %s: got %v, want a certificate that is not trusted", name, err)
		}
	}
}

// TestClientCertificate: the server accepts only clients with a certificate of its authority.
func TestClientCertificate(t *testing.T) {
	s := serve(t, gitserver.Options{TLS: true, ClientCertificate: true})
	h := newHistory(t, s)
	sha := h.commit("one")
	certificate, key := s.ClientCertificate()
	stranger, strangersKey := serve(t, gitserver.Options{TLS: true}).ClientCertificate()
	for name, c := range map[string]struct {
		keys map[string][]byte
		want string
	}{
		"its own":        {map[string][]byte{"ca.crt": s.CA(), "tls.crt": certificate, "tls.key": key}, ""},
		"Flux's older":   {map[string][]byte{"caFile": s.CA(), "certFile": certificate, "keyFile": key}, ""},
		"none":           {map[string][]byte{"ca.crt": s.CA()}, "authentication failed: the server asks for a client certificate and ends the connection; add the keys tls.crt and tls.key to the Secret"},
		"of another one": {map[string][]byte{"ca.crt": s.CA(), "tls.crt": stranger, "tls.key": strangersKey}, "the server asked for a client certificate, and may not accept that of tls.crt"},
		"of another key": {map[string][]byte{"ca.crt": s.CA(), "tls.crt": certificate, "tls.key": strangersKey}, "keys tls.crt and tls.key are not a certificate and its key"},
		"without the CA": {map[string][]byte{"tls.crt": certificate, "tls.key": key}, "certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			tree, err := fetchWith(t, h.URL(), c.keys)
			switch {
			case c.want == "" && (err != nil || tree.Revision().Commit != sha):
				t.Errorf("got %v and %v", tree, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// fetchWith fetches main with a Secret.
func fetchWith(t *testing.T, url string, keys map[string][]byte, change ...func(*Options)) (*Tree, error) {
	t.Helper()
	credentials, err := ParseCredentials(url, keys)
	if err != nil {
		return nil, err
	}
	return fetchMain(t.Context(), t, url, append([]func(*Options){func(o *Options) { o.Credentials = credentials }}, change...)...)
}

// TestCredentials_AreNotSentOverHTTP: the server does not even learn that there are some.
func TestCredentials_AreNotSentOverHTTP(t *testing.T) {
	s := serve(t, gitserver.Options{Token: canary})
	h := newHistory(t, s)
	h.commit("one")
	strict := func(o *Options) { o.Access.AllowHTTPCredentials = false }
	for name, keys := range map[string]map[string][]byte{
		"a token":    {"bearerToken": []byte(canary)},
		"a password": {"username": []byte("ana"), "password": []byte(canary)},
	} {
		credentials, err := ParseCredentials(h.URL(), keys)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(Options{URL: h.URL(), Credentials: credentials, Access: Access{AllowLoopback: true}})
		const want = "credentials are not sent over http; use https, or let the operator run with --git-allow-http-credentials"
		if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
	if n := s.Requests().LsRemote; n != 0 {
		t.Errorf("the server got %d requests", n)
	}
	open := serve(t, gitserver.Options{})
	public := newHistory(t, open)
	public.commit("one")
	if _, err := fetchMain(t.Context(), t, public.URL(), strict); err != nil {
		t.Errorf("without credentials: %v", err)
	}
}

// FuzzSecrets: every Secret that Git needs is read or refused with an error that callers know. No error shows a value.
func FuzzSecrets(f *testing.F) {
	f.Add("https://git.example/a.git", "username", "ana", "password", "x")
	f.Add("ssh://git@git.example/a.git", "identity", "-----BEGIN OPENSSH PRIVATE KEY-----\n", "known_hosts", "git.example ssh-ed25519 AAAA c")
	f.Add("git@git.example:a.git", "a.sshpub", `expiry-time="20260101" ssh-ed25519 AAAA`, "b.asc", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n")
	f.Add("https://github.com/a/b", "githubAppID", "1", "githubAppPrivateKey", "-----BEGIN RSA PRIVATE KEY-----\n")
	f.Add("https://git.example/a", "address", "http://proxy:8080", "ca.crt", "-----BEGIN CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, url, name, value, other, text string) {
		keys := map[string][]byte{name: []byte(value + canary), other: []byte(text)}
		_, credentials := ParseCredentials(url, keys)
		_, app := ParseAppCredentials(url, keys)
		_, proxy := ParseProxy(keys)
		_, verification := ParseVerification(v1alpha1.VerifyHEAD, keys, nil)
		for _, err := range []error{credentials, app, proxy, verification} {
			if err != nil && (!errors.Is(err, ErrInvalidCredentials) && !errors.Is(err, ErrInvalidURL) || strings.Contains(err.Error(), canary) && !strings.Contains(url+name+other+text, canary)) {
				t.Errorf("%q=%q of %q: %v", name, value, url, err)
			}
		}
		if hosts, err := parseKnownHosts([]byte(value)); err == nil && len(hosts.of("git.example:22")) > len(hosts) {
			t.Errorf("%q has more lines about a host than lines", value)
		}
	})
}

// FuzzParseURL: a URL that is used has a host and a path, and no password in it.
func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"https://git.example/a", "ssh://git@git.example:22/~ana/a", "git@git.example:a/b.git", "git@[::1]:a", "https://a:b@c/d", "ssh://-o@-p/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		endpoint, err := parseURL(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidURL) {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if endpoint.Host == "" || endpoint.Password != "" || endpoint.Protocol != schemeSSH && endpoint.User != "" || strings.HasPrefix(endpoint.Host, "-") || strings.HasPrefix(endpoint.Path, "-") {
			t.Errorf("%q is used as %+v", s, endpoint)
		}
	})
}
