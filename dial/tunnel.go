package dial

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"time"
)

// headerBytes bounds what is read of a proxy's answer.
const headerBytes = 64 << 10

// ErrProxyCredentials means that a proxy requires credentials, or refuses the given ones.
var ErrProxyCredentials = errors.New("the proxy answers 407")

// CheckProxy is the OnProxyConnectResponse of a transport. Without it, only the answer's reason phrase remains.
func CheckProxy(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
	if answer.StatusCode == http.StatusProxyAuthRequired {
		return ErrProxyCredentials
	}
	return nil
}

// Tunnel opens a connection to an address through an HTTP proxy, whose credentials are in its URL. The policy applies
// to the address of the proxy only, because the proxy resolves and dials the other address.
func (p Policy) Tunnel(ctx context.Context, timeout time.Duration, proxy *url.URL, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dialled, err := p.Dialer(timeout).DialContext(ctx, "tcp", hostPort(proxy))
	if err != nil {
		return nil, fmt.Errorf("cannot reach the proxy: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = dialled.Close() })
	conn := dialled
	if proxy.Scheme == "https" {
		conn = tls.Client(dialled, &tls.Config{ServerName: proxy.Hostname(), MinVersion: tls.VersionTLS12})
	}
	through, err := connect(conn, proxy, address)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return through, nil
}

// hostPort returns the address of a proxy.
func hostPort(proxy *url.URL) string {
	switch {
	case proxy.Port() != "":
		return proxy.Host
	case proxy.Scheme == "https":
		return net.JoinHostPort(proxy.Hostname(), "443")
	default:
		return net.JoinHostPort(proxy.Hostname(), "80")
	}
}

// connect asks the proxy for the tunnel.
func connect(conn net.Conn, proxy *url.URL, address string) (net.Conn, error) {
	request := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if proxy.User != nil {
		password, _ := proxy.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(proxy.User.Username() + ":" + password))
		request.Header.Set("Proxy-Authorization", "Basic "+basic)
	}
	if err := request.Write(conn); err != nil {
		return nil, fmt.Errorf("cannot ask the proxy: %w", err)
	}
	answer := &tunnel{Conn: conn, remaining: headerBytes}
	answer.buffer = bufio.NewReader(bounded{answer})
	response, err := http.ReadResponse(answer.buffer, request)
	if err != nil {
		return nil, fmt.Errorf("cannot read the proxy's answer: %w", err)
	}
	_ = response.Body.Close() // of an accepted CONNECT it is empty
	if response.StatusCode == http.StatusProxyAuthRequired {
		return nil, ErrProxyCredentials
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy answers %d", response.StatusCode)
	}
	answer.remaining = math.MaxInt64
	return answer, nil
}

// tunnel reads first what arrived together with the proxy's answer: an SSH server speaks first.
type tunnel struct {
	net.Conn
	buffer    *bufio.Reader
	remaining int64
}

func (t *tunnel) Read(p []byte) (int, error) { return t.buffer.Read(p) }

// bounded reads from the connection of a tunnel.
type bounded struct{ *tunnel }

var errLong = errors.New("the answer is too long")

func (b bounded) Read(p []byte) (int, error) {
	if b.remaining <= 0 {
		return 0, errLong
	}
	n, err := b.Conn.Read(p)
	if b.remaining != math.MaxInt64 {
		b.remaining -= int64(n)
	}
	return n, err
}
