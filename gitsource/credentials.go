package gitsource

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"github.com/addonflow/addonflow/api/secret"
)

// Keys of a Secret that Flux's GitRepository knows for http and https.
const (
	usernameKey    = "username"
	passwordKey    = "password"
	bearerTokenKey = "bearerToken"
	caKey          = "ca.crt"
)

// foreignKeys are credentials that Flux supports and this package does not. They are refused,
// not ignored: the author of the Secret expects them to work.
var foreignKeys = []string{
	"identity", "known_hosts", "tls.crt", "tls.key",
	"githubAppID", "githubAppInstallationID", "githubAppPrivateKey",
}

// Credentials authenticate one repository. The zero value is anonymous.
type Credentials struct {
	// Username and Password are for basic authentication.
	Username, Password Secret
	// BearerToken is for bearer authentication and excludes the two above.
	BearerToken Secret
	// CAFile is a PEM bundle trusted besides the system's authorities.
	CAFile []byte
}

// ParseCredentials reads the keys of a Secret: username and password, or
// bearerToken; ca.crt; at least one of them. Errors are ErrInvalidCredentials and
// name keys, never values.
func ParseCredentials(keys map[string][]byte) (Credentials, error) {
	for _, key := range foreignKeys {
		if _, ok := keys[key]; ok {
			return Credentials{}, fmt.Errorf("%w: key %s is not supported; use %s and %s, or %s",
				ErrInvalidCredentials, key, usernameKey, passwordKey, bearerTokenKey)
		}
	}
	for _, key := range []string{usernameKey, passwordKey, bearerTokenKey} {
		if strings.ContainsFunc(string(keys[key]), unicode.IsControl) {
			return Credentials{}, fmt.Errorf("%w: key %s holds a line break or control character",
				ErrInvalidCredentials, key)
		}
	}
	c := Credentials{
		Username:    Secret(keys[usernameKey]),
		Password:    Secret(keys[passwordKey]),
		BearerToken: Secret(keys[bearerTokenKey]),
		CAFile:      keys[caKey],
	}
	if c.Username == "" && c.Password == "" && c.BearerToken == "" && len(c.CAFile) == 0 {
		return Credentials{}, fmt.Errorf("%w: none of the keys %s and %s, %s, %s is set",
			ErrInvalidCredentials, usernameKey, passwordKey, bearerTokenKey, caKey)
	}
	if err := c.validate(); err != nil {
		return Credentials{}, err
	}
	return c, nil
}

func (c Credentials) validate() error {
	switch {
	case c.Username == "" && c.Password == "" && c.BearerToken == "" && len(c.CAFile) == 0:
		return nil
	case c.BearerToken != "" && (c.Username != "" || c.Password != ""):
		return fmt.Errorf("%w: keys %s and %s exclude each other", ErrInvalidCredentials, bearerTokenKey, usernameKey)
	case c.Password == "" && c.Username != "":
		return fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, passwordKey)
	case c.Username == "" && c.Password != "":
		return fmt.Errorf("%w: key %s is missing", ErrInvalidCredentials, usernameKey)
	}
	_, err := c.authorities()
	return err
}

// tokenLength is the shortest user name that is treated as a token. A shorter one is not a
// secret, and may be a common word that must not be removed from every text.
const tokenLength = 16

// redaction takes the credentials out of what the server writes.
func (c Credentials) redaction() secret.Redaction {
	parts := []Secret{c.Password, c.BearerToken}
	if c.Username != "" {
		parts = append(parts, c.Username+":"+c.Password, Secret(base64.StdEncoding.EncodeToString([]byte(c.Username))))
	}
	if len(c.Username) >= tokenLength {
		parts = append(parts, c.Username)
	}
	return secret.NewRedaction(parts...)
}

// authorities returns the system's pool with CAFile added, nil for the system's alone.
func (c Credentials) authorities() (*x509.CertPool, error) {
	if len(c.CAFile) == 0 {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(c.CAFile) {
		return nil, fmt.Errorf("%w: key %s holds no PEM certificate", ErrInvalidCredentials, caKey)
	}
	return pool, nil
}

// authorize implements go-git's AuthMethod for requests to the repository's own origin.
type authorize struct{ Credentials }

// Name is part of go-git's AuthMethod.
func (authorize) Name() string { return "addonflow" }

// String is part of go-git's AuthMethod and shows nothing.
func (authorize) String() string { return redacted }

// SetAuth adds the Authorization header.
func (a authorize) SetAuth(r *http.Request) {
	switch {
	case a.BearerToken != "":
		r.Header.Set("Authorization", "Bearer "+string(a.BearerToken))
	case a.Username != "":
		r.SetBasicAuth(string(a.Username), string(a.Password))
	}
}

var _ githttp.AuthMethod = authorize{}
