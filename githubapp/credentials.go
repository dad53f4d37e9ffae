package githubapp

import (
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Keys of a Secret, as Flux's GitRepository with provider github knows them.
const (
	AppIDKey          = "githubAppID"
	InstallationIDKey = "githubAppInstallationID"
	PrivateKeyKey     = "githubAppPrivateKey"
	BaseURLKey        = "githubAppBaseURL"
	// ownerKey names an installation by its organization or user.
	ownerKey = "githubAppInstallationOwner"
)

// defaultBaseURL is the API of github.com.
const defaultBaseURL = "https://api.github.com"

// ErrInvalidCredentials is returned for a Secret that cannot be used. It names keys, never values.
var ErrInvalidCredentials = errors.New("invalid credentials of a GitHub App")

// Credentials are those of one installation of an App. They print nothing secret.
type Credentials struct {
	appID string
	// One of installationID and owner is set.
	installationID, owner string
	base                  *url.URL
	key                   *rsa.PrivateKey
	// identity differs for each pair of a key and an installation.
	identity [sha256.Size]byte
}

// Has reports whether a Secret has keys of a GitHub App.
func Has(keys map[string][]byte) bool {
	for _, key := range []string{AppIDKey, InstallationIDKey, PrivateKeyKey, BaseURLKey, ownerKey} {
		if len(keys[key]) > 0 {
			return true
		}
	}
	return false
}

// login matches the name of an organization or a user.
var login = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Parse reads the keys of a Secret: githubAppID, githubAppInstallationID or githubAppInstallationOwner,
// githubAppPrivateKey, and githubAppBaseURL of a GitHub Enterprise Server. The error is ErrInvalidCredentials.
func Parse(keys map[string][]byte) (*Credentials, error) {
	fail := func(format string, args ...any) (*Credentials, error) {
		return nil, fmt.Errorf("%w: "+format, append([]any{ErrInvalidCredentials}, args...)...)
	}
	text := func(key string) string { return strings.TrimSpace(string(keys[key])) }
	c := &Credentials{appID: text(AppIDKey), installationID: text(InstallationIDKey), owner: text(ownerKey)}
	number := func(s string) bool { _, err := strconv.ParseUint(s, 10, 64); return err == nil }
	switch {
	case !number(c.appID):
		return fail("key %s is missing or no number", AppIDKey)
	case c.installationID != "" && c.owner != "":
		return fail("keys %s and %s exclude each other", InstallationIDKey, ownerKey)
	case c.owner != "" && !login.MatchString(c.owner):
		return fail("key %s is not the name of an organization or user", ownerKey)
	case c.owner == "" && !number(c.installationID):
		return fail("key %s is missing or no number", InstallationIDKey)
	}
	var err error
	if c.key, err = parseKey(keys[PrivateKeyKey]); err != nil {
		return fail("key %s %w", PrivateKeyKey, err)
	}
	base := text(BaseURLKey)
	if base == "" {
		base = defaultBaseURL
	}
	c.base, err = url.Parse(strings.TrimSuffix(base, "/"))
	switch {
	case err != nil, c.base.Host == "", c.base.Scheme != "https" && c.base.Scheme != "http", c.base.User != nil, c.base.RawQuery != "", c.base.Fragment != "":
		return fail("key %s: want https://HOST/api/v3", BaseURLKey)
	}
	c.identity = sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%x", c.appID, c.installationID, c.owner, c.base, x509.MarshalPKCS1PrivateKey(c.key)))
	return c, nil
}

// parseKey reads the private key as GitHub hands it out (PKCS #1), or as PKCS #8.
func parseKey(text []byte) (*rsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("is missing or no PEM")
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("is not a private key")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, errors.New("is not an RSA key")
	}
	return key, nil
}

// AppID is the number of the App.
func (c *Credentials) AppID() string { return c.appID }

// Identity is a digest of the credentials. Changed credentials have another digest.
func (c *Credentials) Identity() string { return hex.EncodeToString(c.identity[:]) }

// Scheme is the scheme of the API: https or http.
func (c *Credentials) Scheme() string { return c.base.Scheme }

// Serves reports whether a host belongs to the forge whose API is called. A token must not be sent to another forge.
// The API of github.com is at api.github.com, the API of a GitHub Enterprise Server at its own name.
func (c *Credentials) Serves(host string) bool {
	api := c.base.Hostname()
	return strings.EqualFold(api, host) || strings.EqualFold(api, "api."+host)
}
