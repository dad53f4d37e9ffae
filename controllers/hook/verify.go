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
	"github.com/addonflow/addonflow/commitstatus"
)

// errDenied is for a webhook without the right signature or token.
var errDenied = errors.New("the signature or token is wrong")

// verify returns nil if the request proves that its sender has the token. It compares in constant time, and reads the
// body without keeping it. Other errors are those of reading the body.
func verify(kind commitstatus.Webhook, r *http.Request, token secret.Text) error {
	switch {
	case kind.Password:
		_, password, _ := r.BasicAuth()
		return same(password, string(token))
	case kind.Token != "":
		return same(r.Header.Get(kind.Token), string(token))
	}
	mac := hmac.New(sha256.New, []byte(token))
	if _, err := io.Copy(mac, r.Body); err != nil {
		return err
	}
	sum := mac.Sum(nil)
	for _, h := range kind.Signed {
		signature, ok := strings.CutPrefix(r.Header.Get(h.Name), h.Prefix)
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
