package secret

import "fmt"

// Redacted stands for every secret, whatever prints it.
const Redacted = "[redacted]"

// Text is a credential. However it is formatted, logged or encoded, it shows Redacted;
// only an explicit conversion to string, as whoever sends it makes, gives the value.
type Text string

// String returns a placeholder.
func (t Text) String() string { return Redacted }

// GoString returns a placeholder.
func (t Text) GoString() string { return Redacted }

// Format writes a placeholder for every verb: %x and %q of a string would not ask String.
func (t Text) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// MarshalJSON returns a placeholder.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText returns a placeholder, for encoders that ask for text. (A map key is
// never asked: encoding/json writes keys of string types as they are.)
func (t Text) MarshalText() ([]byte, error) { return []byte(Redacted), nil }
