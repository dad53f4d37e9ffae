package registration

// Outcome is the state of an agent's permissions on the hub.
type Outcome struct {
	State OutcomeState
	// Message explains a Failed state.
	Message string
}

// OutcomeState is the state of an Outcome.
type OutcomeState string

// States of an agent's permissions.
const (
	// Pending: not judged yet.
	Pending OutcomeState = ""
	// Applied: every role its template names is bound.
	Applied OutcomeState = "applied"
	// Failed: at least one of them is not.
	Failed OutcomeState = "failed"
)
