package rollout

import "errors"

// Errors of New; each is wrapped with the details. The plan that New returns with such an error admits and removes no
// cluster, and does not change clusters in flight.
var (
	// ErrInvalidStrategy means that the policy cannot be planned; the user must change it.
	ErrInvalidStrategy = errors.New("invalid rollout strategy")
	// ErrUnknownDecisionGroup means that a mandatory decision group is in none of the
	// placements. Ignoring it would skip a canary.
	ErrUnknownDecisionGroup = errors.New("unknown mandatory decision group")
	// ErrCorruptLedger means that the stored ledger is invalid. A plan without its records could exceed every limit. So the
	// operator waits until the ledger is repaired.
	ErrCorruptLedger = errors.New("status.ledger is invalid; repair or empty it")
)
