// Package rollouttest drives and judges the planner of package rollout without Kubernetes.
//
//	Fleet     a hub and its managed clusters in memory, with clusters that are slow, fail,
//	          are silent, vanish, flap, join and leave
//	Scenario  a script of events on a fleet, run to rest, with a transcript
//	History   the second planner: it judges each step by everything that was seen and written
//	          before it
//	Recorder  writes the steps of a rollout as a trace; CheckTrace judges a trace
//
// The package knows rollout by its exported surface only, and shares no code or formula with
// the planner. It reads ledgers with a decoder of its own (Records), and believes no record whose admission or adoption
// it has not seen: a trace that begins in the middle of a rollout has to say so (Step.Start). History defines what is proved, in flight, failed and left by the looks at
// each cluster since its admission, and the policy by a reading of its own. Of a plan it takes
// the ledger that was written and the actions. It is for tests: it is not linked into the
// product.
package rollouttest
