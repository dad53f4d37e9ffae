package gitsource

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/dial"
	"github.com/addonflow/addonflow/githubapp"
)

// Keys of a Secret, as in Flux's GitRepository.
const (
	usernameKey    = "username"
	passwordKey    = "password"
	bearerTokenKey = "bearerToken"
	caKey          = "ca.crt"
	certificateKey = "tls.crt"
	privateKey     = "tls.key"
	identityKey    = "identity"
	publicKey      = "identity.pub"
	knownHostsKey  = "known_hosts"

	// Older names, which Flux reads if the others are absent.
	caFileKey      = "caFile"
	certificateOld = "certFile"
	privateOld     = "keyFile"
)

// Credentials authenticate one repository. The zero value is anonymous.
type Credentials struct {
	// Username and Password are for basic authentication.
	Username, Password Secret
	// BearerToken is for bearer authentication and excludes the two above.
	BearerToken Secret
	// CAFile is a PEM bundle trusted besides the system's authorities.
	CAFile []byte

	// certificates authenticate this client to a server with https.
	certificates []tls.Certificate
	// ssh are the keys of an ssh URL.
	ssh *sshKeys
	// app obtains a token for each session.
	app *githubapp.Credentials
}

// ParseCredentials reads the keys of a Secret that the transport of the URL uses. For https and http: username and
// password, or bearerToken; tls.crt and tls.key; ca.crt; at least one of these. For ssh: identity and known_hosts;
// password if the identity is encrypted; identity.pub is compared if it exists. Errors are ErrInvalidCredentials or
// ErrInvalidURL, and name keys, never values.
func ParseCredentials(url string, keys map[string][]byte) (Credentials, error) {
	endpoint, err := parseURL(url)
	if err != nil {
		return Credentials{}, err
	}
	if endpoint.Protocol == schemeSSH {
		return parseSSHKeys(address(*endpoint), keys)
	}
	if githubapp.Has(keys) {
		return Credentials{}, fmt.Errorf("%w: the keys of a GitHub App need spec.provider github", ErrInvalidCredentials)
	}
	for _, key := range []string{usernameKey, passwordKey, bearerTokenKey} {
		if strings.ContainsFunc(string(keys[key]), unicode.IsControl) {
			return Credentials{}, fmt.Errorf("%w: key %s holds a line break or control character",
				ErrInvalidCredentials, key)
		}
	}
	c := Credentials{BearerToken: Secret(keys[bearerTokenKey]), CAFile: authorityOf(keys)}
	if c.BearerToken == "" { // as in Flux, a bearer token has precedence
		c.Username, c.Password = Secret(keys[usernameKey]), Secret(keys[passwordKey])
	}
	if c.certificates, err = parseCertificate(keys); err != nil {
		return Credentials{}, err
	}
	if c.empty() {
		hint := ""
		if len(keys[identityKey]) > 0 {
			hint = "; " + identityKey + " is for ssh, and the URL is " + endpoint.Protocol
		}
		return Credentials{}, fmt.Errorf("%w: none of the keys %s and %s, %s, %s and %s, %s is set%s",
			ErrInvalidCredentials, usernameKey, passwordKey, bearerTokenKey, certificateKey, privateKey, caKey, hint)
	}
	// As in Flux, the password may be empty: some servers take a token as the user name.
	if _, given := keys[passwordKey]; c.Username != "" && !given {
		return Credentials{}, fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, passwordKey)
	}
	// Open decides whether http is allowed.
	if err := c.validate(*endpoint, Access{AllowHTTPCredentials: true}); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

// either returns the value of a key, or of its older name.
func either(keys map[string][]byte, name, older string) []byte {
	if value := keys[name]; len(value) > 0 {
		return value
	}
	return keys[older]
}

// authorityOf returns the certificate authority in a Secret.
func authorityOf(keys map[string][]byte) []byte { return either(keys, caKey, caFileKey) }

// parseCertificate reads a client certificate; nil: there is none.
func parseCertificate(keys map[string][]byte) ([]tls.Certificate, error) {
	certificate, key := either(keys, certificateKey, certificateOld), either(keys, privateKey, privateOld)
	switch {
	case len(certificate) == 0 && len(key) == 0:
		return nil, nil
	case len(certificate) == 0:
		return nil, fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, certificateKey)
	case len(key) == 0:
		return nil, fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, privateKey)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("%w: keys %s and %s are not a certificate and its key: %w", ErrInvalidCredentials, certificateKey, privateKey, err)
	}
	return []tls.Certificate{pair}, nil
}

func parseSSHKeys(address string, keys map[string][]byte) (Credentials, error) {
	fail := func(format string, args ...any) (Credentials, error) {
		return Credentials{}, fmt.Errorf("%w: "+format, append([]any{ErrInvalidCredentials}, args...)...)
	}
	for _, key := range []string{identityKey, knownHostsKey} {
		if len(keys[key]) == 0 {
			return fail("key %s is missing; a URL with ssh needs %s and %s", key, identityKey, knownHostsKey)
		}
	}
	identity, err := parseIdentity(keys[identityKey], keys[passwordKey])
	if err != nil {
		return fail("key %s %w", identityKey, err)
	}
	if line := keys[publicKey]; len(line) > 0 {
		public, _, _, _, err := ssh.ParseAuthorizedKey(line)
		if err != nil || !sameKey(public, identity.PublicKey()) {
			return fail("key %s is not the public key of %s", publicKey, identityKey)
		}
	}
	hosts, err := parseKnownHosts(keys[knownHostsKey])
	if err != nil {
		return fail("key %s cannot be used: %w", knownHostsKey, err)
	}
	if len(hosts.of(address)) == 0 {
		return fail("key %s has no line for %s with a key of Ed25519, ECDSA or RSA (%d bits or more); ssh-keyscan prints it; "+
			"compare it with what the server's administrators publish", knownHostsKey, brief.Printable(knownhosts.Normalize(address)), rsaBits)
	}
	return Credentials{ssh: &sshKeys{identity: identity, hosts: hosts}}, nil
}

// parseIdentity reads a private key, decrypted with the password if it is encrypted.
func parseIdentity(pem, password []byte) (ssh.Signer, error) {
	identity, err := ssh.ParsePrivateKey(pem)
	if _, encrypted := errors.AsType[*ssh.PassphraseMissingError](err); encrypted {
		if len(password) == 0 {
			return nil, fmt.Errorf("is encrypted, and key %s is missing", passwordKey)
		}
		if identity, err = ssh.ParsePrivateKeyWithPassphrase(pem, password); err != nil {
			return nil, fmt.Errorf("cannot be decrypted with key %s", passwordKey)
		}
	}
	if err != nil {
		return nil, errors.New("holds no private key in PEM, as ssh-keygen writes it")
	}
	if err := checkKey(identity.PublicKey()); err != nil {
		return nil, fmt.Errorf("cannot be used: %w", err)
	}
	return identity, nil
}

// confidential reports whether credentials are sent to a server over https or http.
func (c Credentials) confidential() bool {
	return c.Username != "" || c.Password != "" || c.BearerToken != "" || len(c.certificates) > 0 || c.app != nil
}

// empty reports whether there are neither credentials nor an authority for a server with https or http.
func (c Credentials) empty() bool { return !c.confidential() && len(c.CAFile) == 0 }

// validate refuses credentials that cannot be used with a URL.
func (c Credentials) validate(e transport.Endpoint, access Access) error {
	if c.app != nil {
		if err := c.validateApp(e, access); err != nil {
			return err
		}
	}
	switch {
	case e.Protocol == schemeHTTP && c.confidential() && !access.AllowHTTPCredentials:
		return fmt.Errorf("%w: credentials are not sent over http; use https, or let the operator run with --git-allow-http-credentials",
			ErrInvalidCredentials)
	case e.Protocol == schemeSSH && c.ssh == nil:
		return fmt.Errorf("%w: a URL with ssh needs a Secret with %s and %s; set secretRef", ErrInvalidCredentials, identityKey, knownHostsKey)
	case c.empty():
		return nil
	case c.Username == "" && c.Password != "":
		return fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, usernameKey)
	}
	_, err := c.authorities()
	return err
}

// A shorter word is not removed from texts if it stands alone, because it may be a common word, and names of
// references that contain it must stay usable. Combinations such as user:password are removed at any length. A short user
// name without a password is not a secret, with or without the colon.
const (
	// tokenLength is the length from which a user name is treated as a token. A shorter one is not a secret.
	tokenLength = 16
	// passwordLength is the length from which a password is treated as a secret. A shorter password is a placeholder
	// beside a token in the user name, or is easy to guess.
	passwordLength = 8
)

// words returns the texts of a length or longer.
func words(length int, texts ...Secret) []Secret {
	return slices.DeleteFunc(texts, func(s Secret) bool { return len(s) < length })
}

// redaction removes the credentials from the texts of the server.
func (c Credentials) redaction(more ...Secret) secret.Redaction {
	parts := slices.Concat(more, words(tokenLength, c.Username), words(passwordLength, c.Password, c.BearerToken))
	if c.Username != "" {
		both := c.Username + ":" + c.Password
		if c.Password != "" || len(c.Username) >= tokenLength {
			parts = append(parts, both)
		}
		parts = append(parts, "Basic "+Secret(base64.StdEncoding.EncodeToString([]byte(both))),
			Secret(base64.StdEncoding.EncodeToString([]byte(c.Username))))
	}
	if c.BearerToken != "" {
		parts = append(parts, "Bearer "+c.BearerToken)
	}
	return secret.NewRedaction(parts...)
}

// authorities returns the system's pool with CAFile added; nil: only the system's pool.
func (c Credentials) authorities() (*x509.CertPool, error) {
	pool, err := dial.Authorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: key %s %w", ErrInvalidCredentials, caKey, err)
	}
	return pool, nil
}

// authorize implements go-git's AuthMethod for requests to the repository's own origin.
type authorize struct{ Credentials }

func (authorize) Name() string { return "addonflow" }

func (authorize) String() string { return redacted }

func (a authorize) SetAuth(r *http.Request) {
	switch {
	case a.BearerToken != "":
		r.Header.Set("Authorization", "Bearer "+string(a.BearerToken))
	case a.Username != "":
		r.SetBasicAuth(string(a.Username), string(a.Password))
	}
}

var _ githttp.AuthMethod = authorize{}
