package addonsource

import "github.com/addonflow/addonflow/api/v1alpha1"

// step is the action of a pass for the head of the repository.
type step int

const (
	// advance: the commit is new, was requested, or is not on the hub yet.
	advance step = iota
	// keep: the commit was refused; nothing is read and nothing is changed.
	keep
	// verify: the commit is applied and its compiled form is in memory. Every object is compared, and drift is
	// repaired.
	verify
	// inspect: the commit is applied but not in memory, as after a restart. The facts in the status are compared with
	// the hub, and the commit is fetched only if they differ.
	inspect
)

// facts decide the step. Conditions are not among them.
type facts struct {
	head string
	spec string
	// attempted and attemptedSpec are from the status.
	attempted, attemptedSpec string
	// asked: a reconcile was requested, or a pass did not complete its work.
	asked bool
	// compiled: the compiled head is in memory.
	compiled bool
	// explained: the text of the refusal of the head is in memory or in the conditions.
	explained bool
	// dependent: the head refers to objects that exist only on the hub.
	dependent bool
}

// nextStep returns the step of a pass.
//
//	attempted  under the spec  asked | step
//	other      any             any   | advance
//	head       any             yes   | advance
//	head       applied         no    | verify, or inspect if not compiled
//	head       refused         no    | keep, or advance if the reasons are lost or may be gone
//	head       another         no    | advance
func nextStep(f facts) step {
	switch {
	case f.attempted != f.head || f.asked:
		return advance
	case f.attemptedSpec == f.spec && f.compiled:
		return verify
	case f.attemptedSpec == f.spec:
		return inspect
	case f.attemptedSpec == refusedUnder(f.spec) && f.explained && !f.dependent:
		return keep
	default:
		return advance
	}
}

// refusedUnder is the value of status.lastAttemptedSpec for a commit that was refused under a fingerprint. A
// comparison of the commit with lastAppliedRevision is not enough, because the same commit may have been applied from
// another path before.
func refusedUnder(spec string) string { return spec + v1alpha1.RefusedSuffix }
