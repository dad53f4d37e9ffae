package gitsource

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/dial"
)

const (
	connectTimeout = 15 * time.Second
	idleTimeout    = 15 * time.Second
	headerBytes    = 256 << 10
)

// client is the HTTP side of one repository. It is not shared, because credentials, authorities and byte limits
// belong to one repository. It ignores proxies in the environment, so that the servers that a source can reach do not
// depend on the pod.
type client struct {
	*exchange
	http      *http.Client
	transport *http.Transport
	proxy     *Proxy
	// confidential is set if requests carry credentials.
	confidential bool
	// certificates are those of the client. asked: a server has asked for one.
	certificates []tls.Certificate
	asked        atomic.Bool
}

func newClient(r *Repository, e *exchange) (*client, error) {
	pool, err := r.options.Credentials.authorities()
	if err != nil {
		return nil, err
	}
	out := &client{
		exchange: e, proxy: r.options.Proxy, certificates: r.options.Credentials.certificates, confidential: r.options.Credentials.confidential(),
		transport: &http.Transport{
			Proxy:                  http.ProxyURL(r.options.Proxy.URL()),
			DialContext:            r.options.Access.policy().Dialer(connectTimeout).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool},
			TLSHandshakeTimeout:    connectTimeout,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: headerBytes,
			OnProxyConnectResponse: dial.CheckProxy,
		},
	}
	out.transport.TLSClientConfig.GetClientCertificate = out.certificate
	out.http = &http.Client{Transport: out, CheckRedirect: out.checkRedirect}
	return out, nil
}

// certificate answers a server that asks for a client certificate. An empty value counts as none.
func (c *client) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c.asked.Store(true)
	if len(c.certificates) == 0 {
		return &tls.Certificate{}, nil
	}
	return &c.certificates[0], nil
}

// uncertified explains a connection that ended after the server asked for a client certificate. Some errors of HTTP/2
// and of writes do not contain the server's alert.
func (c *client) uncertified(err error) error {
	if len(c.certificates) > 0 {
		return fmt.Errorf("%w; the server asked for a client certificate, and may not accept that of %s", err, certificateKey)
	}
	return c.stop(fmt.Errorf("%w: the server asks for a client certificate and ends the connection; add the keys %s and %s to the Secret",
		ErrAuthentication, certificateKey, privateKey))
}

// RoundTrip limits the body of every answer. The body is counted after decompression.
func (c *client) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.transport.RoundTrip(r)
	if errors.Is(err, dial.ErrLocal) {
		return nil, c.stop(fmt.Errorf("%w: %s", ErrAddressDenied, denied(r.URL.Host, c.proxy)))
	}
	if errors.Is(err, dial.ErrProxyCredentials) {
		return nil, c.stop(unauthorized(c.proxy))
	}
	if err != nil && c.asked.Load() && r.Context().Err() == nil {
		return nil, c.uncertified(err)
	}
	if err != nil {
		return nil, err
	}
	if res.StatusCode == http.StatusProxyAuthRequired && c.proxy != nil {
		_ = res.Body.Close()
		return nil, c.stop(unauthorized(c.proxy))
	}
	if r.Method == http.MethodPost && res.StatusCode >= 300 && res.StatusCode <= 399 {
		// go-git refuses the redirect, too, but with an error that callers cannot match.
		_ = res.Body.Close()
		return nil, c.stop(fmt.Errorf("%w: the server answers the request for the pack with another address", ErrRedirected))
	}
	if res.StatusCode < 200 || res.StatusCode > 299 {
		// go-git reads the whole answer into its error.
		res.Body = &truncated{Reader: io.LimitReader(res.Body, answerBytes), Closer: res.Body}
		return res, nil
	}
	what := listAnswer
	if r.Method == http.MethodPost {
		what = packAnswer
	}
	start := bufio.NewReader(res.Body)
	if err := c.checkAnswer(res, start); err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	res.Body = c.bound(start, res.Body, what)
	return res, nil
}

// listType is the content type that smart HTTP demands of a list of references.
const listType = "application/x-git-upload-pack-advertisement"

// checkAnswer recognises three answers that go-git would report as damaged: a web page, such as a login; the answer
// of a server without smart HTTP; and a repository with SHA-256 hashes.
func (c *client) checkAnswer(res *http.Response, start *bufio.Reader) error {
	first, _ := start.Peek(1) // the error returns when the answer is read
	// The message has the original header, because redaction does not find a credential that was cut or is in lower
	// case.
	written := res.Header.Get("Content-Type")
	media, _, _ := mime.ParseMediaType(written)
	at := brief.Printable(res.Request.URL.Path)
	if media == "text/html" || string(first) == "<" {
		return c.stop(fmt.Errorf("%w: the server answered with a web page at %s, as for a login; "+
			"set url to what git clone takes, and secretRef if the repository needs credentials", ErrNotGit, at))
	}
	if res.Request.Method != http.MethodPost && media != listType {
		return c.stop(fmt.Errorf("%w: the server answered with %s at %s, not in Git's smart HTTP protocol, as a server of plain files does; "+
			"set url to a repository on a Git server, and secretRef if the repository needs credentials",
			ErrNotGit, cmp.Or(brief.Printable(written), "no content type"), at))
	}
	if res.Request.Method == http.MethodPost {
		return nil
	}
	line, _ := start.Peek(sha256Length)
	return c.checkFormat(line)
}

// checkRedirect lets a server change the path. Without credentials it may also change the scheme
// to https on the same host.
func (c *client) checkRedirect(r *http.Request, via []*http.Request) error {
	from := via[0].URL
	sameOrigin := r.URL.Scheme == from.Scheme && strings.EqualFold(r.URL.Host, from.Host)
	upgraded := !c.confidential && from.Scheme == "http" && r.URL.Scheme == "https" && strings.EqualFold(r.URL.Hostname(), from.Hostname())
	if sameOrigin || upgraded {
		return nil
	}
	return c.stop(fmt.Errorf("%w: the server answers for %s with %s; use that URL if it is the repository",
		ErrRedirected, redactURL(from.Scheme+"://"+from.Host), redactURL(r.URL.Scheme+"://"+r.URL.Host)))
}
