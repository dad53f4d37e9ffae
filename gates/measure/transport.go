package measure

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/dial"
)

// Options say what measurements may call.
type Options struct {
	// AllowHTTP permits addresses without TLS.
	AllowHTTP bool
	// AllowLoopback permits loopback and link-local addresses, and the metadata services of clouds.
	AllowLoopback bool
}

const (
	// answerWithin bounds one request, from the name lookup to the last byte of the answer.
	answerWithin = 10 * time.Second
	// answerBytes bounds an answer after decompression, headerBytes its header.
	answerBytes = 1 << 20
	headerBytes = 64 << 10
)

// Secret holds the credentials of a gate. Its keys are bearerToken, or username and password,
// for type prometheus; key for type webhook; and ca.crt.
type Secret struct {
	Reference secret.Reference
	// Host is the value of the Secret's annotation addonflow.io/gate-host.
	Host string
	Keys map[string][]byte
}

// The keys of a Secret.
const (
	bearerTokenKey = "bearerToken"
	usernameKey    = "username"
	passwordKey    = "password"
	signingKey     = "key"
	caKey          = "ca.crt"
)

// server is the server of a gate during one evaluation.
type server struct {
	address     *url.URL
	http        *http.Client
	credentials credentials
	redaction   secret.Redaction
}

// credentials are those of one gate; an empty one is not used.
type credentials struct {
	bearerToken, username, password, signing secret.Text
	authorities                              *x509.CertPool
}

// connect returns the server that a gate calls. It opens no connection. With an error, the returned
// server can only redact texts.
func connect(gate v1alpha1.Gate, from *Secret, o Options) (*server, error) {
	s := &server{}
	raw, _ := Address(gate)
	var err error
	if s.address, err = parseAddress(raw, gate.Type, o); err != nil {
		return s, err
	}
	if from != nil {
		if named := canonicalHost(from.Host, s.address.Scheme); named != hostOf(s.address) {
			return s, fmt.Errorf("%s is not for %s: it must have the annotation %s: %s",
				from.Reference, s.address.Host, v1alpha1.GateHostAnnotation, hostOf(s.address))
		}
		if s.credentials, err = parseCredentials(gate.Type, from); err != nil {
			return s, err
		}
		s.redaction = s.credentials.redaction()
	}
	s.http = newClient(s.credentials.authorities, o)
	return s, nil
}

// CheckAddress returns why a gate of type prometheus or webhook is never measured, whatever answers at its address.
func CheckAddress(gate v1alpha1.Gate, o Options) error {
	raw, _ := Address(gate)
	_, err := parseAddress(raw, gate.Type, o)
	return err
}

// parseAddress refuses everything but scheme, host, path and query, and hosts that are never called. The error does not
// repeat the address, as it may contain a password.
func parseAddress(raw string, kind v1alpha1.GateType, o Options) (*url.URL, error) {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("cannot use the address: it is not a URL")
	case parsed.Scheme == "http" && !o.AllowHTTP:
		return nil, errors.New("cannot use the address: it is not https; the operator's flag --gate-allow-http allows http")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return nil, errors.New("cannot use the address: it is neither https nor http")
	case parsed.User != nil:
		return nil, errors.New("cannot use the address: it contains user information; credentials belong in the Secret")
	case parsed.Fragment != "":
		return nil, errors.New("cannot use the address: it has a fragment")
	case kind == v1alpha1.GatePrometheus && parsed.RawQuery != "":
		return nil, errors.New("cannot use the address: it has a query")
	case parsed.Hostname() == "" || strings.HasSuffix(parsed.Host, ":"):
		return nil, errors.New("cannot use the address: it names no host, or an empty port")
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("cannot use the address: its port is out of range")
		}
	}
	if err := (dial.Policy{AllowLoopback: o.AllowLoopback}).CheckHost(parsed.Hostname()); err != nil {
		return nil, refusedLocal(parsed)
	}
	return parsed, nil
}

func refusedLocal(address *url.URL) error {
	return fmt.Errorf("%s %w; the operator's flag --gate-allow-loopback allows it", address.Host, dial.ErrLocal)
}

// hostOf returns the host[:port] of an address.
func hostOf(address *url.URL) string { return canonicalHost(address.Host, address.Scheme) }

// canonicalHost returns one name for a host[:port]: in lower case, without the default port of the
// scheme.
func canonicalHost(host, scheme string) string {
	host = strings.ToLower(strings.TrimSpace(host))
	if scheme == "http" {
		return strings.TrimSuffix(host, ":80")
	}
	return strings.TrimSuffix(host, ":443")
}

// parseCredentials reads the keys that a type of gate knows.
func parseCredentials(kind v1alpha1.GateType, from *Secret) (credentials, error) {
	c := credentials{}
	if kind == v1alpha1.GateWebhook {
		c.signing = secret.Text(from.Keys[signingKey])
	} else {
		c.bearerToken = word(from.Keys[bearerTokenKey])
		c.username, c.password = word(from.Keys[usernameKey]), word(from.Keys[passwordKey])
	}
	switch {
	case c.bearerToken != "" && (c.username != "" || c.password != ""):
		return credentials{}, fmt.Errorf("%s: the keys %s and %s exclude each other", from.Reference, bearerTokenKey, usernameKey)
	case (c.username == "") != (c.password == ""):
		return credentials{}, fmt.Errorf("%s: the keys %s and %s must be set together", from.Reference, usernameKey, passwordKey)
	}
	for key, text := range map[string]secret.Text{bearerTokenKey: c.bearerToken, usernameKey: c.username, passwordKey: c.password} {
		if strings.ContainsFunc(string(text), unicode.IsControl) {
			return credentials{}, fmt.Errorf("%s: the key %s contains a line break or control character", from.Reference, key)
		}
	}
	var err error
	if c.authorities, err = dial.Authorities(from.Keys[caKey]); err != nil {
		return credentials{}, fmt.Errorf("%s: the key %s %w", from.Reference, caKey, err)
	}
	if c == (credentials{}) {
		return c, fmt.Errorf("%s has none of the keys of a gate of type %s", from.Reference, kind)
	}
	return c, nil
}

// word returns a credential without the line break at its end that files often have.
func word(raw []byte) secret.Text { return secret.Text(bytes.TrimSpace(raw)) }

// redaction takes the credentials out of what the server writes.
func (c credentials) redaction() secret.Redaction {
	parts := []secret.Text{c.bearerToken, c.password, c.signing}
	if c.username != "" {
		parts = append(parts, c.username+":"+c.password, secret.Text(base64.StdEncoding.EncodeToString([]byte(c.username))))
	}
	return secret.NewRedaction(parts...)
}

// newClient returns the client of one evaluation. It uses no proxy of the environment, so that the
// servers that a gate can reach do not depend on the pod.
func newClient(authorities *x509.CertPool, o Options) *http.Client {
	dialer := dial.Policy{AllowLoopback: o.AllowLoopback}.Dialer(answerWithin)
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities},
			MaxResponseHeaderBytes: headerBytes,
		},
		// A redirect would send the credentials to another place.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       answerWithin,
	}
}

// close ends the connections of the evaluation.
func (s *server) close() { s.http.CloseIdleConnections() }

// post sends a body and returns the answer's status and body.
func (s *server) post(ctx context.Context, to *url.URL, body []byte, header http.Header) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, errors.New("the request cannot be made")
	}
	request.Header = header
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "addonflow")
	switch c := s.credentials; {
	case c.bearerToken != "":
		request.Header.Set("Authorization", "Bearer "+string(c.bearerToken))
	case c.username != "":
		request.SetBasicAuth(string(c.username), string(c.password))
	}
	response, err := s.http.Do(request)
	if err != nil {
		return 0, nil, s.unreachable(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return 0, nil, fmt.Errorf("%s answers %d with another address; redirects are not followed", s.address.Host, response.StatusCode)
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerBytes+1))
	switch {
	case err != nil:
		return 0, nil, s.unreachable(err)
	case len(answer) > answerBytes:
		return 0, nil, fmt.Errorf("%s sends more than %d bytes", s.address.Host, answerBytes)
	}
	return response.StatusCode, answer, nil
}

// unreachable returns the error for a server that gave no whole answer.
func (s *server) unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the URL
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, dial.ErrLocal):
		return refusedLocal(s.address)
	case ok && timeout.Timeout():
		return fmt.Errorf("%s does not answer within %s", s.address.Host, answerWithin)
	}
	return fmt.Errorf("cannot reach %s: %w", s.address.Host, err)
}
