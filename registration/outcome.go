package registration

// Outcome says how far an agent's permissions on the hub are.
type Outcome struct {
	State OutcomeState
	// Message says why a Failed one failed.
	Message string
}

// OutcomeState is how far that has come.
type OutcomeState string

// States of an agent's permissions.
const (
	// Pending: not looked at yet.
	Pending OutcomeState = ""
	// Applied: every role its template names is bound.
	Applied OutcomeState = "applied"
	// Failed: at least one is not.
	Failed OutcomeState = "failed"
)
