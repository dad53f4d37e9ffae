package oci

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/dial"
)

// Keys of a Secret.
const (
	dockerConfigKey = ".dockerconfigjson"
	caKey           = "ca.crt"
)

// Credentials authenticate to registries. The zero value is anonymous.
type Credentials struct {
	accounts []account
	// CAFile is a PEM bundle trusted besides the system's authorities.
	CAFile []byte
}

// account is an entry of a Docker configuration.
type account struct {
	// place is host or host/repository prefix.
	place string
	auth.Credential
}

// dockerConfig is the part of a Docker configuration that is read.
type dockerConfig struct {
	Auths map[string]struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
}

// ParseCredentials reads a Secret: .dockerconfigjson as in a Secret of type
// kubernetes.io/dockerconfigjson, and ca.crt; at least one of them. The error is
// ErrInvalidCredentials, and names keys, never values.
func ParseCredentials(keys map[string][]byte) (Credentials, error) {
	fail := func(format string, args ...any) (Credentials, error) {
		return Credentials{}, fmt.Errorf("%w: "+format, append([]any{ErrInvalidCredentials}, args...)...)
	}
	out := Credentials{CAFile: keys[caKey]}
	text := keys[dockerConfigKey]
	if len(text) == 0 && len(out.CAFile) == 0 {
		return fail("neither key %s nor %s is set", dockerConfigKey, caKey)
	}
	if _, err := out.authorities(); err != nil {
		return Credentials{}, err
	}
	var config dockerConfig
	if len(text) > 0 && json.Unmarshal(text, &config) != nil {
		return fail("key %s is not a Docker configuration; kubectl create secret docker-registry writes one", dockerConfigKey)
	}
	for place, entry := range config.Auths {
		found := auth.Credential{Username: entry.Username, Password: entry.Password, RefreshToken: entry.IdentityToken, AccessToken: entry.RegistryToken}
		if entry.Auth != "" {
			decoded, err := base64.StdEncoding.DecodeString(entry.Auth)
			user, password, both := strings.Cut(string(decoded), ":")
			if err != nil || !both {
				return fail("key %s: auth of %s is not the base64 form of user:password", dockerConfigKey, brief.Printable(hostOf(place)))
			}
			found.Username, found.Password = user, strings.TrimRight(password, "\x00")
		}
		for _, value := range []string{found.Username, found.Password, found.RefreshToken, found.AccessToken} {
			if strings.ContainsFunc(value, unicode.IsControl) {
				return fail("key %s: the entry of %s holds a line break or control character", dockerConfigKey, brief.Printable(hostOf(place)))
			}
		}
		out.accounts = append(out.accounts, account{place: hostOf(place), Credential: found})
	}
	return out, nil
}

// Account returns credentials of one registry.
func Account(host, user, password string) Credentials {
	return Credentials{accounts: []account{{place: hostOf(host), Credential: auth.Credential{Username: user, Password: password}}}}
}

// Token returns the identity token of one registry, as docker login stores it.
func Token(host, identity string) Credentials {
	return Credentials{accounts: []account{{place: hostOf(host), Credential: auth.Credential{RefreshToken: identity}}}}
}

// hostOf removes what Docker writes around the name of a registry: https://host/v1/.
func hostOf(place string) string {
	if _, rest, found := strings.Cut(place, "://"); found {
		place = rest
	}
	place = strings.TrimSuffix(place, "/")
	for _, version := range []string{"/v1", "/v2"} {
		place = strings.TrimSuffix(place, version)
	}
	if place == "index.docker.io" || place == "registry-1.docker.io" {
		return "docker.io"
	}
	return place
}

// of returns the credentials of a repository: those with the longest registry path that contains it.
func (c Credentials) of(host, repository string) auth.Credential {
	var best account
	name := hostOf(host) + "/" + repository + "/"
	for _, a := range c.accounts {
		if strings.HasPrefix(name, a.place+"/") && len(a.place) > len(best.place) {
			best = a
		}
	}
	return best.Credential
}

// authorities returns the system's pool with CAFile added, nil for the system's alone.
func (c Credentials) authorities() (*x509.CertPool, error) {
	pool, err := dial.Authorities(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("%w: key %s %w", ErrInvalidCredentials, caKey, err)
	}
	return pool, nil
}

// secrets returns the credentials that no text may show.
func (c Credentials) secrets() []secret.Text {
	var out []secret.Text
	for _, a := range c.accounts {
		out = append(out, secret.Text(a.Password), secret.Text(a.RefreshToken), secret.Text(a.AccessToken))
		if a.Username != "" {
			out = append(out, secret.Text(a.Username+":"+a.Password))
		}
	}
	return out
}
