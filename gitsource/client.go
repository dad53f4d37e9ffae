package gitsource

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	connectTimeout = 15 * time.Second
	idleTimeout    = 15 * time.Second
	headerBytes    = 256 << 10
)

// client is the HTTP side of one repository. It is not shared: credentials,
// authorities and byte limits are this repository's. It takes no proxy from the
// environment, so that what a source can reach does not depend on the pod.
type client struct {
	http      *http.Client
	transport *http.Transport
	packBytes int64

	mu    sync.Mutex
	cause error // why we ended an exchange ourselves
}

func newClient(c Credentials, packBytes int64) (*client, error) {
	pool, err := c.authorities()
	if err != nil {
		return nil, err
	}
	out := &client{
		packBytes: packBytes,
		transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			TLSHandshakeTimeout:    connectTimeout,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: headerBytes,
		},
	}
	out.http = &http.Client{Transport: out, CheckRedirect: out.checkRedirect}
	return out, nil
}

// RoundTrip bounds the body of every answer. The body is counted after
// decompression, so a compressed bomb counts for what it becomes.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if r.Method == http.MethodPost && res.StatusCode >= 300 && res.StatusCode <= 399 {
		// go-git refuses it, too, in words that nobody can match.
		_ = res.Body.Close()
		return nil, c.stop(fmt.Errorf("%w: the server answers the request for the pack with another address", ErrRedirected))
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		// go-git reads the whole answer into its error.
		res.Body = &truncated{Reader: io.LimitReader(res.Body, answerBytes), Closer: res.Body}
		return res, nil
	}
	limit, what := int64(advertisedBytes), "list of references"
	if r.Method == http.MethodPost {
		limit, what = c.packBytes+packOverhead, "pack"
	}
	res.Body = &bounded{ReadCloser: res.Body, left: limit, exceeded: func() error {
		return c.stop(fmt.Errorf("%w: the server's %s is larger than %d bytes", ErrLimitExceeded, what, limit))
	}}
	return res, nil
}

// checkRedirect lets a server change the path and the scheme to https, not the host.
func (c *client) checkRedirect(r *http.Request, via []*http.Request) error {
	from := via[0].URL
	sameOrigin := r.URL.Scheme == from.Scheme && strings.EqualFold(r.URL.Host, from.Host)
	upgraded := from.Scheme == "http" && r.URL.Scheme == "https" && strings.EqualFold(r.URL.Hostname(), from.Hostname())
	if sameOrigin || upgraded {
		return nil
	}
	return c.stop(fmt.Errorf("%w: the server answers for %s with %s; use that URL if it is the repository",
		ErrRedirected, Redact(from.Scheme+"://"+from.Host), Redact(r.URL.Scheme+"://"+r.URL.Host)))
}

// stop remembers why an exchange ended, because go-git keeps only the text of some errors.
func (c *client) stop(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = err
	return err
}

func (c *client) stopped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

type truncated struct {
	io.Reader
	io.Closer
}

// bounded fails with exceeded once more than left bytes were read.
type bounded struct {
	io.ReadCloser
	left     int64
	exceeded func() error
}

// Read is part of io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.exceeded()
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	if b.left < 0 {
		return n, b.exceeded()
	}
	return n, err
}
