package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/addonflow/addonflow/api/secret"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// scheme is how a kind of forge proves that it sent a webhook. Exactly one field is set.
type scheme struct {
	// signed are headers. One of them must be the HMAC-SHA256 of the body in hex, after sha256= where prefixed.
	signed []header
	// token is the header whose value is the token.
	token string
	// password: the token is the password of basic authentication.
	password bool
}

// header is a header that contains a signature.
type header struct {
	name, prefix string
}

// sha256Prefix begins a signature that names its hash.
const sha256Prefix = "sha256="

// schemes are the kinds of webhooks, by spec.webhook.type. A new one is a row here, and its name in the enum of the API.
func schemes() map[string]scheme {
	hub := scheme{signed: []header{{"X-Hub-Signature", sha256Prefix}}}
	return map[string]scheme{
		v1alpha1.WebhookAzureDevOps:     {password: true},
		v1alpha1.WebhookBitbucket:       hub,
		v1alpha1.WebhookBitbucketServer: hub,
		v1alpha1.WebhookForgejo:         {signed: []header{{"X-Forgejo-Signature", ""}, {"X-Gitea-Signature", ""}}},
		v1alpha1.WebhookGeneric:         {signed: []header{{"X-Signature", sha256Prefix}}},
		v1alpha1.WebhookGitea:           {signed: []header{{"X-Gitea-Signature", ""}}},
		v1alpha1.WebhookGitHub:          {signed: []header{{"X-Hub-Signature-256", sha256Prefix}}},
		v1alpha1.WebhookGitLab:          {token: "X-Gitlab-Token"}, //nolint:gosec // the name of a header
	}
}

// errDenied is for a webhook without the right signature or token.
var errDenied = errors.New("the signature or token is wrong")

// verify returns nil if the request proves that its sender has the token. It compares in constant time, and reads the
// body without keeping it. Other errors are those of reading the body.
func (s scheme) verify(r *http.Request, token secret.Text) error {
	switch {
	case s.password:
		_, password, _ := r.BasicAuth()
		return same(password, string(token))
	case s.token != "":
		return same(r.Header.Get(s.token), string(token))
	}
	mac := hmac.New(sha256.New, []byte(token))
	if _, err := io.Copy(mac, r.Body); err != nil {
		return err
	}
	sum := mac.Sum(nil)
	for _, h := range s.signed {
		signature, ok := strings.CutPrefix(r.Header.Get(h.name), h.prefix)
		given, err := hex.DecodeString(signature)
		if ok && err == nil && hmac.Equal(given, sum) {
			return nil
		}
	}
	return errDenied
}

// same compares in constant time, also of texts of different length.
func same(given, token string) error {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return errDenied
	}
	return nil
}
