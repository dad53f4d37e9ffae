package commitstatus

import (
	"errors"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// DeliveryError is why a forge did not accept or return a status. Its text is fit for a condition: short and
// printable, without user information of addresses, tokens or running clocks.
type DeliveryError struct {
	// Reason is the whole text.
	Reason string
	// Permanent: the same request fails until the token, the address, the repository or the status changes.
	Permanent bool
	// RetryAfter is the least time until the next request to the forge. On a transient error it is the time that the
	// forge asked for; zero: none. On a permanent error it is the time until the next try, because the cause may have
	// changed; zero: never.
	RetryAfter time.Duration
	// Uncertain: the forge may have stored the status all the same, because the answer was lost or was an error after
	// the write. Read Latest before the next post.
	Uncertain bool
	// Everyone: the trouble is not about this status. Every other request to the forge would fail now, too (rate
	// limit, no connection).
	Everyone bool
	// Denied says why the forge does not accept the token; "" if it accepts it.
	Denied Denial

	cause error
}

// Denial is the reason for which a forge does not accept a token.
type Denial string

const (
	// TokenRefused: the forge does not know the token, or no longer does.
	TokenRefused Denial = v1alpha1.TokenRefusedReason
	// PermissionMissing: the token may not write statuses. See Permission.
	PermissionMissing Denial = v1alpha1.PermissionMissingReason
)

// Error returns the reason.
func (e *DeliveryError) Error() string { return e.Reason }

// Unwrap returns the cause of a transport error, for instance context.Canceled.
func (e *DeliveryError) Unwrap() error { return e.cause }

// asDeliveryError returns err as a DeliveryError. Any other error counts as transient, and its text is not shown.
func asDeliveryError(err error) *DeliveryError {
	if delivery, ok := errors.AsType[*DeliveryError](err); ok {
		return delivery
	}
	return &DeliveryError{Reason: oneLine(err.Error()), Uncertain: true, cause: err}
}
