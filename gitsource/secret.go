package gitsource

import "fmt"

// redacted stands for every secret, whatever prints it.
const redacted = "[redacted]"

// Secret is a credential. However it is formatted, logged or encoded it shows a
// placeholder; only an explicit conversion to string gives the value.
type Secret string

// String returns a placeholder.
func (s Secret) String() string { return redacted }

// GoString returns a placeholder.
func (s Secret) GoString() string { return redacted }

// Format writes a placeholder for every verb: %x and %q of a string would not ask String.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalJSON returns a placeholder.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns a placeholder, for encoders that ask for text. (A map key is
// never asked: encoding/json writes keys of string types as they are.)
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
