package oci

import (
	"errors"
	"regexp"
	"strings"

	"github.com/addonflow/addonflow/api/brief"
)

// Errors that callers distinguish with errors.Is. None of them holds a secret.
var (
	// ErrInvalidCredentials means that the Secret's keys cannot be used; the user must change them.
	ErrInvalidCredentials = errors.New("invalid credentials")
	// ErrInvalidReference means that the form of the reference is wrong; the user must change it.
	ErrInvalidReference = errors.New("invalid reference")
	// ErrPlainHTTP means that the source reads a registry over http, which the operator does not allow.
	ErrPlainHTTP = errors.New("plain http denied")
	// ErrNotFound means that the registry does not have what the reference names. It may appear later.
	ErrNotFound = errors.New("not found")
	// ErrAuthentication means that the registry requires credentials, or refuses the given ones.
	ErrAuthentication = errors.New("authentication failed")
	// ErrRedirected means that the registry redirected the client to an address that is not allowed.
	ErrRedirected = errors.New("redirect refused")
	// ErrAddressDenied means that a server has an address that the operator does not dial.
	ErrAddressDenied = errors.New("address denied")
	// ErrLimitExceeded means that what the digest names is larger than a documented limit.
	ErrLimitExceeded = errors.New("limit exceeded")
	// ErrContent means that the content of the digest has a kind that cannot be used. The content of a digest never changes.
	ErrContent = errors.New("unusable content")
	// ErrSignature means that a required signature is missing or not valid. It may be pushed later.
	ErrSignature = errors.New("signature refused")
	// ErrCorrupt means that the registry's answer does not match the digest.
	ErrCorrupt = errors.New("corrupt answer")
)

// final is an error of this package that ends an exchange. Its text is shown unchanged, without the texts that the
// layers above add.
type final struct{ error }

func (f final) Unwrap() error { return f.error }

// query matches the query of a URL. That of a store holds a signature.
var query = regexp.MustCompile(`\?[^\s"]+`)

// shown is an error whose text came from a server: one line, of bounded length,
// without the queries of URLs.
type shown struct{ error }

// Error returns the text of the error without characters that could end the line.
func (s shown) Error() string {
	const most = 300
	text := brief.Printable(query.ReplaceAllString(s.error.Error(), "?..."))
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

func (s shown) Unwrap() error { return s.error }
