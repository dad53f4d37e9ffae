package addonsource

import "github.com/addonflow/addonflow/api/v1alpha1"

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
	// attempted and attemptedSpec are from the status.
	attempted, attemptedSpec string
	// asked says that a reconcile was requested, or that a pass left something to do.
	asked bool
	// compiled says that what the head compiles to is in memory.
	compiled bool
	// explained says that the refusal of the head can be repeated, word for word.
	explained bool
	// dependent says that the head refers to objects that live only on the hub.
	dependent bool
}

// nextStep returns what a pass does.
//
//	attempted  under the spec  asked | step
//	other      any             any   | bring
//	head       any             yes   | bring
//	head       applied         no    | verify, inspect if not compiled
//	head       refused         no    | keep, bring if the reasons are lost or may be gone
//	head       another         no    | bring
func nextStep(f facts) step {
	switch {
	case f.attempted != f.head || f.asked:
		return bring
	case f.attemptedSpec == f.spec && f.compiled:
		return verify
	case f.attemptedSpec == f.spec:
		return inspect
	case f.attemptedSpec == refusedUnder(f.spec) && f.explained && !f.dependent:
		return keep
	default:
		return bring
	}
}

// refusedUnder is what status.lastAttemptedSpec says of a commit that was refused
// under a fingerprint. That the commit is not lastAppliedRevision does not say it:
// the same commit may have been applied from another path before.
func refusedUnder(spec string) string { return spec + v1alpha1.RefusedSuffix }
