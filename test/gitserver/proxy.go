package gitserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"sync"
	"time"
)

// ProxyOptions say how a Proxy is reached.
type ProxyOptions struct {
	// User and Password are required as basic auth if User is not empty.
	User, Password string
}

// Proxy is an HTTP proxy on loopback, for http and for tunnels. Close must be called.
type Proxy struct {
	opts    ProxyOptions
	address string
	http    *http.Server
	served  sync.WaitGroup

	mu   sync.Mutex
	seen []string
}

// StartProxy starts a proxy on a free port of 127.0.0.1.
func StartProxy(o ProxyOptions) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot start the proxy: %w", err)
	}
	p := &Proxy{opts: o, address: "http://" + listener.Addr().String()}
	p.http = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: quiet()}
	p.served.Go(func() { _ = p.http.Serve(listener) })
	return p, nil
}

// URL is the proxy's address, without credentials.
func (p *Proxy) URL() string { return p.address }

// Seen lists the method and the target host of each request that the proxy passed on.
func (p *Proxy) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Close ends the proxy. Tunnels end with their connections.
func (p *Proxy) Close() error {
	err := p.http.Close()
	p.served.Wait()
	return err
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.opts.User != "" {
		// The header has the form of Authorization.
		asked := &http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}
		if user, password, _ := asked.BasicAuth(); user != p.opts.User || password != p.opts.Password {
			http.Error(w, "proxy authentication required", http.StatusProxyAuthRequired)
			return
		}
	}
	p.mu.Lock()
	p.seen = append(p.seen, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Method == http.MethodConnect {
		tunnel(w, r)
		return
	}
	(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, ErrorLog: quiet()}).ServeHTTP(w, r)
}

// tunnel copies in both directions until one side ends.
func tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, "cannot reach the server", http.StatusBadGateway)
		return
	}
	defer func() { _ = far.Close() }()
	near, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = near.Close() }()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}
