package oci

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestChart_AProxyThatRefusesIsNamed: over http the proxy answers instead of the registry, over https it opens no tunnel.
func TestChart_AProxyThatRefusesIsNamed(t *testing.T) {
	proxy := serve(t)
	proxy.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }
	at := &url.URL{Scheme: "http", Host: proxy.host(), User: url.UserPassword("ana", "canary-31c8")}
	for name, insecure := range map[string]bool{"http": true, "https": false} {
		t.Run(name, func(t *testing.T) {
			r := open(t, "registry.example.com", func(o *Options) { o.Insecure, o.Proxy = insecure, at })
			_, err := r.Chart(t.Context(), "charts/hello", "sha256:"+strings.Repeat("1", 64))
			want := "the proxy " + proxy.host() + " answered 407; check the Secret of spec.proxySecretRef"
			if !errors.Is(err, ErrAuthentication) || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}
