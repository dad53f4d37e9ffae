package rollout

import "errors"

// What New can refuse. Each comes wrapped with what is wrong; the plan returned
// with it admits nobody and removes nobody, and leaves what is in flight alone.
var (
	// ErrInvalidStrategy: the policy cannot be planned; the user must change it.
	ErrInvalidStrategy = errors.New("invalid rollout strategy")
	// ErrUnknownDecisionGroup: a mandatory decision group is in none of the
	// placements. Ignoring it would skip a canary.
	ErrUnknownDecisionGroup = errors.New("unknown mandatory decision group")
	// ErrCorruptLedger: the stored ledger breaks its own rules. Planning without it
	// could admit beyond every limit, so nothing is planned until it is repaired.
	ErrCorruptLedger = errors.New("corrupt admission ledger")
)
