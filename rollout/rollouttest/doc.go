// Package rollouttest drives the planner of package rollout without Kubernetes.
//
//	Fleet       a hub and its managed clusters in memory, with clusters that are slow,
//	            fail, fall silent, vanish, flap, join and leave
//	Scenario    a script of events on a fleet, run to rest, with a transcript
//	Invariants  what must hold after every plan, whatever happened before
//	Naive       the design read as literally and slowly as possible, as an oracle, with
//	            which Invariants compares every plan
//
// The package knows rollout by its exported surface only. Its verdicts come from what
// the fleet really did, not from what a plan says it did. It is for tests: it is not
// linked into the product.
package rollouttest
