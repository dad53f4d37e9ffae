package commitstatus

import (
	"errors"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// DeliveryError says why a forge did not accept or return a status. Its text is fit for a
// condition: short, printable, without addresses' user information, tokens or running clocks.
type DeliveryError struct {
	// Reason is the whole text.
	Reason string
	// Permanent says that the same request fails again until the token, the address, the
	// repository or the status changes.
	Permanent bool
	// RetryAfter is the shortest time to leave the forge alone. On a transient error it is what
	// the forge asked for (zero: it named none). On a permanent one it is when to try again in
	// case something was changed; zero means never.
	RetryAfter time.Duration
	// Uncertain says that the forge may have stored the status anyway: the answer was lost, or
	// was an error after the fact. Read Latest before posting again.
	Uncertain bool
	// Everyone says that the trouble is not about this status: every other request to the forge
	// would fail now, too (rate limit, no connection).
	Everyone bool
	// Denied says why the forge does not accept the token; "" if it accepts it.
	Denied Denial

	cause error
}

// Denial is the reason for which a forge does not accept a token.
type Denial string

const (
	// TokenRefused: the forge does not know the token, or does not any more.
	TokenRefused Denial = v1alpha1.TokenRefusedReason
	// PermissionMissing: the token may not write statuses. See Permission.
	PermissionMissing Denial = v1alpha1.PermissionMissingReason
)

// Error returns the reason.
func (e *DeliveryError) Error() string { return e.Reason }

// Unwrap returns the cause of a transport error, for instance context.Canceled.
func (e *DeliveryError) Unwrap() error { return e.cause }

// asDeliveryError returns err as a DeliveryError. Any other error is treated as transient, and
// its text is not trusted.
func asDeliveryError(err error) *DeliveryError {
	if delivery, ok := errors.AsType[*DeliveryError](err); ok {
		return delivery
	}
	return &DeliveryError{Reason: oneLine(err.Error()), Uncertain: true, cause: err}
}
