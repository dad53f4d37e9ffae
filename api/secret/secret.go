package secret

import "fmt"

// Redacted is shown instead of a secret.
const Redacted = "[redacted]"

// Text is a credential. However it is formatted, logged or encoded, it shows Redacted; only an
// explicit conversion to string gives the value.
type Text string

// String returns a placeholder.
func (t Text) String() string { return Redacted }

// GoString returns a placeholder.
func (t Text) GoString() string { return Redacted }

// Format writes a placeholder for every verb, because fmt does not call String for verbs such
// as %x.
func (t Text) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// MarshalJSON returns a placeholder.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText returns a placeholder, for encoders that use text. It does not protect map keys:
// encoding/json writes keys of string types as they are.
func (t Text) MarshalText() ([]byte, error) { return []byte(Redacted), nil }
