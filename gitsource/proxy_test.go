package gitsource

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/test/gitserver"
)

// through starts a proxy for one test, and returns its Secret.
func through(t *testing.T, o gitserver.ProxyOptions) (*gitserver.Proxy, map[string][]byte) {
	t.Helper()
	p, err := gitserver.StartProxy(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	keys := map[string][]byte{"address": []byte(p.URL())}
	if o.User != "" {
		keys["username"], keys["password"] = []byte(o.User), []byte(o.Password)
	}
	return p, keys
}

func parseProxy(t *testing.T, keys map[string][]byte) *Proxy {
	t.Helper()
	p, err := ParseProxy(keys)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestProxy_CarriesEveryTransport: the server is reached through the proxy, and by no other way.
func TestProxy_CarriesEveryTransport(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	plain, secure := serve(t, gitserver.Options{Token: canary}), serve(t, gitserver.Options{TLS: true, Token: canary})
	_, ssh, sshKeys := sshWorld(t, gitserver.SSHOptions{})
	token := map[string][]byte{"bearerToken": []byte(canary), "ca.crt": secure.CA()}
	http, https := newHistory(t, plain), newHistory(t, secure)
	http.commit("one")
	https.commit("one")
	host := func(url string) string { return strings.Split(url, "/")[2] }
	for name, c := range map[string]struct {
		url  string
		keys map[string][]byte
		want string
	}{
		"http":  {http.URL(), token, "GET " + host(http.URL())},
		"https": {https.URL(), token, "CONNECT " + host(https.URL())},
		"ssh":   {ssh.URL(https.Dir()), sshKeys, "CONNECT " + ssh.Addr()},
	} {
		for user, o := range map[string]gitserver.ProxyOptions{"open": {}, "with a password": {User: "ana", Password: "proxy-" + canary}} {
			t.Run(name+" "+user, func(t *testing.T) {
				proxy, keys := through(t, o)
				tree, err := fetchWith(t, c.url, c.keys, func(options *Options) { options.Proxy = parseProxy(t, keys) })
				if err != nil {
					t.Fatal(err)
				}
				tree.Close()
				if seen := proxy.Seen(); !slices.Contains(seen, c.want) {
					t.Errorf("the proxy saw %v, want %s", seen, c.want)
				}
				if o.User == "" {
					return
				}
				keys["password"] = []byte("wrong-" + canary)
				_, err = fetchWith(t, c.url, c.keys, func(options *Options) { options.Proxy = parseProxy(t, keys) })
				want := "the proxy " + host(proxy.URL()) + " answered 407; check the Secret of spec.proxySecretRef"
				if !errors.Is(err, ErrAuthentication) || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), canary) {
					t.Errorf("a wrong password: got %v, want %s", err, want)
				}
			})
		}
		t.Run(name+" at a refused address", func(t *testing.T) {
			proxy, keys := through(t, gitserver.ProxyOptions{})
			_, err := fetchWith(t, c.url, c.keys, func(options *Options) {
				options.Proxy, options.Access.AllowLoopback = parseProxy(t, keys), false
			})
			if !errors.Is(err, ErrAddressDenied) || !strings.Contains(err.Error(), "the proxy 127.0.0.1:") || len(proxy.Seen()) > 0 {
				t.Errorf("got %v, and the proxy saw %v", err, proxy.Seen())
			}
		})
	}
}

// TestParseProxy_TakesTheCredentialsOfTheAddress: as in Flux, the keys username and password have precedence.
func TestParseProxy_TakesTheCredentialsOfTheAddress(t *testing.T) {
	const address = "http://ana:p%40ss@proxy.example.com:3128"
	for want, keys := range map[string]map[string][]byte{
		address: {"address": []byte(address)},
		"http://bob:other@proxy.example.com:3128": {"address": []byte(address), "username": []byte("bob"), "password": []byte("other")},
	} {
		if got := parseProxy(t, keys).URL().String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestParseProxy_NamesTheKeyThatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		address, user, password string
		want                    string
	}{
		"nothing":    {"", "", "", "key address is missing"},
		"no URL":     {"http://%zz", "", "", "key address is not a URL"},
		"SOCKS":      {"socks5://proxy.example.com:1080", "", "", "key address: want http://host:port or https://host:port"},
		"no scheme":  {"proxy.example.com:3128", "", "", "key address: want http://host:port or https://host:port"},
		"in the URL": {"http://ana:" + canary + "%0a@proxy.example.com", "", "", "key address holds a line break or control character"},
		"a path":     {"http://proxy.example.com/x", "", "", "key address: want scheme, host and port only"},
		"no user":    {"http://proxy.example.com", "", canary, "key username is missing"},
		"line break": {"http://proxy.example.com", "ana", canary + "\n", "key password holds a line break or control character"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseProxy(map[string][]byte{"address": []byte(c.address), "username": []byte(c.user), "password": []byte(c.password)})
			if !errors.Is(err, ErrInvalidCredentials) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), canary) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
