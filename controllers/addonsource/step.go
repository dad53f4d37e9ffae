package addonsource

// step is what a pass does about the head of the repository.
type step int

const (
	// bring: the commit is new, was asked for, or has not got to the hub yet.
	bring step = iota
	// keep: the commit was refused; nothing is read and nothing is changed.
	keep
	// verify: the commit is applied, and what it compiles to is in memory: every
	// object is compared, and drift repaired.
	verify
	// inspect: the commit is applied, but not in memory (a restart): the facts in the
	// status are compared with the hub, and only a difference is worth a fetch.
	inspect
)

// facts decide the step. No condition is among them.
type facts struct {
	head string
	spec string
	// attempted, attemptedSpec and applied are from the status.
	attempted, attemptedSpec, applied string
	// asked says that a reconcile was requested, or that a pass left something to do.
	asked bool
	// compiled says that what the head compiles to is in memory.
	compiled bool
	// explained says that the refusal of the head can be repeated, word for word.
	explained bool
}

// nextStep returns what a pass does.
//
//	attempted  applied  asked | step
//	other      any      any   | bring
//	head       any      yes   | bring
//	head       head     no    | verify, inspect if not compiled
//	head       other    no    | keep, bring if the reasons are lost
func nextStep(f facts) step {
	known := f.attempted == f.head && f.attemptedSpec == f.spec
	switch {
	case !known || f.asked:
		return bring
	case f.applied == f.head && f.compiled:
		return verify
	case f.applied == f.head:
		return inspect
	case f.explained:
		return keep
	default:
		return bring
	}
}
