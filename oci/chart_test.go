package oci

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/test/registry"
)

// TestChart_IsReadByDigest: over https, with the credentials of a Docker configuration, from a
// registry to which Helm pushed it.
func TestChart_IsReadByDigest(t *testing.T) {
	s := registry.Start(t, registry.Options{User: "ana", Password: "canary-31c8", TLS: true})
	digest := s.PushChart(t, "charts", chart())
	secured := func(o *Options) { o.Insecure, o.Credentials.CAFile = false, s.CA }
	files, err := open(t, s.Host, as(t, s.DockerConfig()), secured).Chart(t.Context(), "charts/hello", digest)
	if err != nil {
		t.Fatal(err)
	}
	want := chart()
	maps.DeleteFunc(want, func(name, _ string) bool { return strings.Contains("/"+name, "/.") })
	got := map[string]string{}
	for name, content := range files {
		got[name] = string(content)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	for name, c := range map[string]struct {
		change []func(*Options)
		want   error
		text   string
	}{
		"no credentials": {[]func(*Options){secured}, ErrAuthentication, "the registry asks for credentials; secretRef names a Secret with an entry for " + s.Host},
		"another user":   {[]func(*Options){as(t, registry.DockerConfig(s.Host, "bob", "canary-31c8")), secured}, ErrAuthentication, s.Host + " answered 401"},
		"another place":  {[]func(*Options){as(t, registry.DockerConfig(s.Host+"/other", "ana", "canary-31c8")), secured}, ErrAuthentication, "asks for credentials"},
		"no authority":   {[]func(*Options){as(t, s.DockerConfig()), func(o *Options) { o.Insecure = false }}, nil, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, s.Host, c.change...).Chart(t.Context(), "charts/hello", digest)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %v: %s", err, c.want, c.text)
			}
		})
	}
}

// TestChart_TokensComeFromTheRegistryItself: credentials are sent to the registry's own token server only, whatever
// other address the registry names.
func TestChart_TokensComeFromTheRegistryItself(t *testing.T) {
	issuer, front, other := newTokens(t), serve(t), serve(t)
	other.answer = issuer.answer
	// realm sets the registry up with one server of tokens, and returns a chart in it. Tests push
	// through the issuer as well.
	realm := func(t *testing.T, at *server) (digest string) {
		t.Helper()
		s := registry.Start(t, registry.Options{TokenRealm: at.URL + "/token", TokenKeys: issuer.keys(t)})
		front.answer = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/token" {
				issuer.answer(w, r)
				return
			}
			forward(s.Host)(w, r)
		}
		s.As(issuer.user, issuer.password)
		return s.PushChart(t, "charts", chart())
	}
	config := registry.DockerConfig(front.host(), issuer.user, issuer.password)
	t.Run("itself", func(t *testing.T) {
		digest := realm(t, front)
		if _, err := open(t, front.host(), as(t, config)).Chart(t.Context(), "charts/hello", digest); err != nil {
			t.Error(err)
		}
	})
	t.Run("another", func(t *testing.T) {
		digest := realm(t, other)
		other.took()
		_, err := open(t, front.host(), as(t, config)).Chart(t.Context(), "charts/hello", digest)
		if want := other.host() + " answered 401, which is not the registry itself and gets no credentials"; !errors.Is(err, ErrAuthentication) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if got := other.took(); !slices.Equal(got, []string{""}) {
			t.Errorf("the server of tokens got %q", got)
		}
		other.answer = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"token": "for-everyone"}`) }
		_, err = open(t, front.host(), as(t, config)).Chart(t.Context(), "charts/hello", digest)
		if want := front.host() + " answered 401; the credentials were not sent, because the token server " + other.host() + " is another host"; !errors.Is(err, ErrAuthentication) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		_, err = open(t, front.host()).Chart(t.Context(), "charts/hello", digest)
		if want := front.host() + " answered 401"; !errors.Is(err, ErrAuthentication) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("without credentials: got %v, want %s", err, want)
		}
		other.answer = issuer.answer
		other.took()
		asDocker := func(o *Options) { o.Access.AllowTokenHosts = true }
		if _, err := open(t, front.host(), as(t, config), asDocker).Chart(t.Context(), "charts/hello", digest); err != nil {
			t.Error(err)
		}
		other.took()
		_, err = open(t, front.host(), func(o *Options) { o.Credentials = Token(front.host(), "canary-31c8") }).Chart(t.Context(), "charts/hello", digest)
		if got := other.took(); !errors.Is(err, ErrRedirected) || len(got) > 0 || strings.Contains(err.Error(), "canary") {
			t.Errorf("an identity token: got %v, and the server got %d requests", err, len(got))
		}
	})
}

// TestChart_ShowsNoCredentialInAHost: a registry that got the credentials chooses the host of its token server. The proxy
// answers for both.
func TestChart_ShowsNoCredentialInAHost(t *testing.T) {
	const host = "registry.example"
	encoded := base64.StdEncoding.EncodeToString([]byte("ana:canary-31c8"))
	for name, c := range map[string]struct {
		code int
		want string
	}{
		"refused": {http.StatusUnauthorized, "[redacted].example answered 401, which is not the registry itself"},
		"broken":  {http.StatusBadGateway, "[redacted].example answered 502"},
		"useless": {http.StatusOK, host + " answered 401; the credentials were not sent, because the token server [redacted].example is another host"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			s.answer = func(w http.ResponseWriter, r *http.Request) {
				if r.Host != host {
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, `{"token": "for-everyone"}`)
					return
				}
				w.Header().Set("Www-Authenticate", fmt.Sprintf(`Bearer realm="http://%s.example/token",service="registry"`, encoded))
				w.WriteHeader(http.StatusUnauthorized)
			}
			through := func(o *Options) { o.Proxy = &url.URL{Scheme: "http", Host: s.host()} }
			_, err := open(t, host, as(t, registry.DockerConfig(host, "ana", "canary-31c8")), through).
				Chart(t.Context(), "charts/hello", "sha256:"+strings.Repeat("0", 64))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), encoded) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestChart_RedirectsCarryNoCredentials: registries keep archives on other hosts.
func TestChart_RedirectsCarryNoCredentials(t *testing.T) {
	s := registry.Start(t, registry.Options{})
	digest := s.PushChart(t, "charts", chart())
	front, store := serve(t), serve(t)
	store.answer = forward(s.Host)
	front.answer = func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") == "":
			w.Header().Set("Www-Authenticate", `Basic realm="registry"`)
			w.WriteHeader(http.StatusUnauthorized)
		case strings.Contains(r.URL.Path, "/blobs/"):
			http.Redirect(w, r, store.URL+r.URL.Path, http.StatusTemporaryRedirect) //nolint:gosec // a store of the test
		default:
			r.Header.Del("Authorization")
			forward(s.Host)(w, r)
		}
	}
	config := as(t, registry.DockerConfig(front.host(), "ana", "canary-31c8"))
	if _, err := open(t, front.host(), config).Chart(t.Context(), "charts/hello", digest); err != nil {
		t.Fatal(err)
	}
	if got := store.took(); !slices.Equal(got, []string{""}) {
		t.Errorf("the store got %q", got)
	}

	front.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, front.URL+"/v2/", http.StatusFound)
	}
	if _, err := open(t, front.host(), config).Chart(t.Context(), "charts/hello", digest); !errors.Is(err, ErrRedirected) {
		t.Errorf("a circle: got %v, want %v", err, ErrRedirected)
	}

	store.took()
	front.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "<"+store.URL+`/v2/charts/hello/tags/list?last=1>; rel="next"`)
		_, _ = w.Write([]byte(`{"name": "charts/hello", "tags": ["1.0.0"]}`))
	}
	if _, err := open(t, front.host(), config).Resolve(t.Context(), "charts/hello", Reference{SemVer: "1"}); err == nil || len(store.took()) > 0 {
		t.Errorf("a list of tags that goes on at another host: got %v", err)
	}

	front.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/store?X-Amz-Signature=canary-31c8", http.StatusFound)
	}
	if _, err := open(t, front.host(), config).Chart(t.Context(), "charts/hello", digest); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a store that does not answer: got %v, want an error without the signature in the URL", err)
	}
}

// TestChart_RefusesHTTPBehindHTTPS: what a registry sends over https does not continue in plain text.
func TestChart_RefusesHTTPBehindHTTPS(t *testing.T) {
	s := registry.Start(t, registry.Options{TLS: true})
	c, err := newClient(Options{Credentials: Credentials{CAFile: s.CA}}, s.Host)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Host+"/v2/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.RoundTrip(request); !errors.Is(err, ErrRedirected) { //nolint:bodyclose // there is none
		t.Errorf("got %v, want %v", err, ErrRedirected)
	}
}

// TestOpen_RefusesPlainHTTP: a registry is read over http only if the operator's flag allows it.
func TestOpen_RefusesPlainHTTP(t *testing.T) {
	if _, err := Open(Options{Host: "registry.example.com", Insecure: true}); !errors.Is(err, ErrPlainHTTP) {
		t.Errorf("got %v, want %v", err, ErrPlainHTTP)
	}
	if _, err := Open(Options{Host: "registry.example.com/charts"}); !errors.Is(err, ErrInvalidReference) {
		t.Errorf("got %v, want %v", err, ErrInvalidReference)
	}
}

// TestChart_RefusesThisMachine: a reference of a tenant must not reach the operator's own machine.
func TestChart_RefusesThisMachine(t *testing.T) {
	s := serve(t)
	s.answer = func(http.ResponseWriter, *http.Request) { t.Error("the server got a request") }
	_, err := open(t, s.host(), func(o *Options) { o.Access.AllowLoopback = false }).Chart(t.Context(), "charts/hello", "sha256:"+strings.Repeat("a", 64))
	const want = " leads to a loopback or link-local address, or to a metadata service of a cloud; the operator's flag --git-allow-loopback allows it"
	if !errors.Is(err, ErrAddressDenied) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %v%s", err, ErrAddressDenied, want)
	}
}

// TestChart_NamesWhatIsWrong with what a digest names, or with the answer of the registry.
func TestChart_NamesWhatIsWrong(t *testing.T) {
	s := registry.Start(t, registry.Options{})
	good := s.PushChart(t, "charts", chart())
	in := func(content string) map[string]string { return map[string]string{"hello/Chart.yaml": content} }
	large := in(strings.Repeat("x", 1<<20+1))
	for name, c := range map[string]struct {
		digest string
		want   error
		text   string
	}{
		"nothing":      {"sha256:" + strings.Repeat("a", 64), ErrNotFound, "cannot read " + s.Host + "/charts/hello@sha256:aaaa"},
		"an image":     {push(t.Context(), t, s, "image", []byte("x"), "application/vnd.oci.image.config.v1+json"), ErrContent, "it is not a Helm chart, but application/vnd.oci.image.config.v1+json"},
		"no archive":   {push(t.Context(), t, s, "text", []byte("hello")), ErrContent, "it is not an archive"},
		"a large file": {push(t.Context(), t, s, "large", registry.Archive(large)), ErrLimitExceeded, "hello/Chart.yaml has 1048577 bytes, at most 1048576 are read"},
		"two folders":  {push(t.Context(), t, s, "two", registry.Archive(map[string]string{"a/x": "", "b/x": ""})), ErrContent, "b/x is outside of it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t, s.Host).Chart(t.Context(), "charts/hello", c.digest)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v: %s", err, c.want, c.text)
			}
		})
	}

	for name, c := range map[string]struct {
		part   string
		answer http.HandlerFunc
		want   error
	}{
		"another manifest": {"/manifests/", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			_, _ = w.Write([]byte(`{"schemaVersion": 2}`))
		}, nil},
		"another archive": {"/blobs/", func(w http.ResponseWriter, r *http.Request) {
			answer := &swapped{ResponseWriter: w}
			forward(s.Host)(answer, r)
		}, ErrCorrupt},
		"another manifest under its digest": {"/manifests/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", path.Base(r.URL.Path))
			_, _ = w.Write([]byte(`{"schemaVersion": 2}`))
		}, ErrCorrupt},
		"an archive without end": {"/blobs/", func(w http.ResponseWriter, _ *http.Request) {
			for err := error(nil); err == nil; {
				_, err = w.Write(make([]byte, 64<<10))
			}
		}, ErrCorrupt},
		"half of it": {"/blobs/", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("half"))
		}, nil},
		"an error with all it got": {"/manifests/", func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, `{"errors": [{"code": "DENIED", "message": "canary-31c8 `+r.Header.Get("Authorization")+`"}]}`, http.StatusBadGateway)
		}, nil},
		"nothing in time": {"/blobs/", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			front := serve(t) // of its own: an earlier request may still be answered
			front.answer = func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, c.part) {
					c.answer(w, r)
					return
				}
				forward(s.Host)(w, r)
			}
			timeout := func(o *Options) { o.Timeout = 30 * time.Second }
			if name == "nothing in time" {
				timeout = func(o *Options) { o.Timeout = 300 * time.Millisecond }
			}
			files, err := open(t, front.host(), as(t, registry.DockerConfig(front.host(), "ana", "canary-31c8")), timeout).Chart(t.Context(), "charts/hello", good)
			if err == nil || files != nil || c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %d files, %v; want %v", len(files), err, c.want)
			}
		})
	}
}

// TestVerify_NeedsASignatureOfTheDigest: by one of the keys, before anything that the digest names
// is read.
func TestVerify_NeedsASignatureOfTheDigest(t *testing.T) {
	s, front := registry.Start(t, registry.Options{}), serve(t)
	digest := s.PushChart(t, "charts", chart())
	other := push(t.Context(), t, s, "other", []byte("other"))
	mine, theirs := registry.NewSigner(t), registry.NewSigner(t)
	verification, err := ParseVerification(map[string][]byte{"old.pub": registry.NewSigner(t).Public(t), "cosign.pub": mine.Public(t), "README": nil})
	if err != nil {
		t.Fatal(err)
	}
	read := func() error {
		blobs := 0
		front.answer = func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") && !strings.HasSuffix(r.URL.Path, registry.PayloadOf(s.Host, digest)) && !strings.HasSuffix(r.URL.Path, registry.PayloadOf(s.Host, other)) {
				blobs++
			}
			forward(s.Host)(w, r)
		}
		_, err := open(t, front.host(), func(o *Options) { o.Verification = verification }).Chart(t.Context(), "charts/hello", digest)
		if err != nil && blobs > 0 {
			t.Errorf("%d archives were read of what is not verified", blobs)
		}
		return err
	}
	refused := func(text string) {
		t.Helper()
		if err := read(); !errors.Is(err, ErrSignature) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %v: %s", err, ErrSignature, text)
		}
	}
	refused("it is not signed: there is no tag sha256-")
	s.Sign(t, "charts/hello", digest, theirs.Signature(t, s.Host, digest))
	refused("none of its signatures is of this digest and valid under a key of verify.secretRef")
	s.Sign(t, "charts/hello", digest, mine.Signature(t, s.Host, other))
	refused("none of its signatures is of this digest and valid under a key of verify.secretRef")
	s.Sign(t, "charts/hello", digest, theirs.Signature(t, s.Host, digest), mine.Signature(t, s.Host, digest))
	if err := read(); err != nil {
		t.Error(err)
	}
	for text, keys := range map[string]map[string][]byte{
		"no key with the name of a public key (NAME.pub)": {"cosign.key": mine.Public(t)},
		"key a.pub holds no public key in PEM":            {"a.pub": []byte("x")},
	} {
		if _, err := ParseVerification(keys); !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
}

// swapped changes the first byte of an answer.
type swapped struct {
	http.ResponseWriter
	begun bool
}

// Write is part of http.ResponseWriter.
func (s *swapped) Write(p []byte) (int, error) {
	if !s.begun && len(p) > 0 {
		p = append([]byte{p[0] ^ 1}, p[1:]...)
		s.begun = true
	}
	return s.ResponseWriter.Write(p)
}

// FuzzParseCredentials: a Docker configuration is read or refused, and no error shows a value.
func FuzzParseCredentials(f *testing.F) {
	f.Add(`{"auths":{"registry.example":{"auth":"YTpi"}}}`, "")
	f.Add(`{"auths":{"https://registry.example/v1/":{"username":"a","password":"b\n"}}}`, "-----BEGIN CERTIFICATE-----\n")
	f.Fuzz(func(t *testing.T, config, ca string) {
		_, credentials := ParseCredentials(map[string][]byte{dockerConfigKey: []byte(config), caKey: []byte(ca)})
		_, verification := ParseVerification(map[string][]byte{"cosign.pub": []byte(ca)})
		for _, err := range []error{credentials, verification} {
			if err != nil && !errors.Is(err, ErrInvalidCredentials) {
				t.Errorf("%q: %v", config, err)
			}
		}
	})
}
