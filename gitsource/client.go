package gitsource

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/addonflow/addonflow/dial"
)

const (
	connectTimeout = 15 * time.Second
	idleTimeout    = 15 * time.Second
	headerBytes    = 256 << 10
)

// client is the HTTP side of one repository. It is not shared: credentials, authorities and
// byte limits belong to this repository. It ignores proxies in the environment, so that what a
// source can reach does not depend on the pod.
type client struct {
	http      *http.Client
	transport *http.Transport
	packBytes int64
	// large is the claim to a place for a large answer.
	large *claim

	mu    sync.Mutex
	cause error // why this client ended an exchange
	// answer is the body that was read last.
	answer *bounded
}

func newClient(c Credentials, access Access, packBytes int64) (*client, error) {
	pool, err := c.authorities()
	if err != nil {
		return nil, err
	}
	out := &client{
		packBytes: packBytes,
		transport: &http.Transport{
			DialContext:            access.dialer().DialContext,
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
	if errors.Is(err, dial.ErrLocal) {
		return nil, c.stop(fmt.Errorf("%w: %s", ErrAddressDenied, denied(r.URL.Host)))
	}
	if err != nil {
		return nil, err
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
	limit, what := int64(advertisedBytes), "list of references"
	if r.Method == http.MethodPost {
		limit, what = c.packBytes+packOverhead, "pack"
	}
	start := bufio.NewReader(res.Body)
	if err := c.checkAnswer(res, start); err != nil {
		_ = res.Body.Close()
		return nil, err
	}
	body := &bounded{Reader: start, Closer: res.Body, left: limit, claim: c.large, exceeded: func() error {
		return c.stop(fmt.Errorf("%w: the server's %s is larger than %d bytes", ErrLimitExceeded, what, limit))
	}}
	c.mu.Lock()
	c.answer = body
	c.mu.Unlock()
	res.Body = body
	return res, nil
}

// sha256Length is how many bytes of a list of references are checked before it is read.
const sha256Length = 103

// sha256Line is the first reference of a repository whose hashes have 64 digits.
var sha256Line = regexp.MustCompile(`^(?:001e# service=git-upload-pack\n0000)?[0-9a-f]{4}[0-9a-f]{64} `)

// checkAnswer recognizes two answers that go-git would report as damaged: a web page, such as a
// login, and a repository with SHA-256 hashes.
func (c *client) checkAnswer(res *http.Response, start *bufio.Reader) error {
	first, _ := start.Peek(1) // an error comes again when the answer is read
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media == "text/html" || string(first) == "<" {
		return c.stop(fmt.Errorf("%w: the server answered with a web page at %s, as for a login; "+
			"set url to what git clone takes, and secretRef if the repository needs credentials",
			ErrNotGit, printable(res.Request.URL.Path)))
	}
	if res.Request.Method == http.MethodPost {
		return nil
	}
	if line, _ := start.Peek(sha256Length); sha256Line.Match(line) {
		return c.stop(fmt.Errorf("%w: the repository uses SHA-256, only SHA-1 is read", ErrObjectFormat))
	}
	return nil
}

// errorPacket begins, after its length, an answer that is an error message.
const errorPacket = "ERR "

// answered returns how much was read of the last answer, and how it ended.
func (c *client) answered() (read int64, ended ending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a := c.answer; {
	case a == nil:
		return 0, whole
	case strings.HasSuffix(string(a.head), errorPacket):
		return a.read, refusal
	case a.broken || a.read > 0 && string(a.tail) != "0000":
		return a.read, early
	case a.read == 0:
		return 0, refusal
	default:
		return a.read, whole
	}
}

// ending is how an answer ended.
type ending int

const (
	// whole: an answer with a pack ends in a flush.
	whole ending = iota
	// refusal: an error message, or an empty answer.
	refusal
	// early: any other end.
	early
)

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
	io.Reader
	io.Closer
	left, read int64
	claim      *claim
	exceeded   func() error
	// head is the first packet's length and four bytes of it, tail the last four bytes; broken
	// is set if an error ended the answer.
	head, tail []byte
	broken     bool
}

// Read is part of io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.exceeded()
	}
	n, err := b.claim.read(b.read, func() (int, error) { return b.Reader.Read(p[:min(int64(len(p)), b.left+1)]) })
	b.left -= int64(n)
	b.read += int64(n)
	b.head = append(b.head, p[:min(n, 2*flushLength-len(b.head))]...)
	b.tail = append(b.tail, p[max(0, n-flushLength):n]...)
	b.tail = b.tail[max(0, len(b.tail)-flushLength):]
	b.broken = b.broken || err != nil && !errors.Is(err, io.EOF)
	if b.left < 0 {
		return n, b.exceeded()
	}
	return n, err
}

// flushLength is the length of the packet that ends a list in Git's protocol.
const flushLength = 4
