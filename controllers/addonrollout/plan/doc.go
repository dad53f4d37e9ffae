// Package plan decides what one turn of a rollout does. It is a pure function:
//
//	New(Observation) -> Plan
//
// An Observation is everything that was read. Choose adds which content the fleet is to run, and
// Confirm can withdraw that; New changes nothing. A Plan is everything that follows from it: where
// every cluster stands and what is to be written there, the status to store, the decisions to log.
// Package rollout decides which clusters may move. This package makes its input: it renders the
// revisions for each cluster and compares.
//
//	observation.go  Observation and Member: what was read
//	plan.go         New and its phases, and the input of rollout.New
//	judge.go        the content of a member: refused, hosted, contended, up to date
//	departure.go    the progress of the deletion of a ManagedClusterAddOn
//	gates.go        the verdicts of gates, and what is to be measured
//	orders.go       orders and their answers; override.go: content that Git does not declare
//	conflict.go     another owner or writer of the add-on
//	status.go       AddOnRollout.status; verdict.go: its conditions; journal.go
//	memory.go       the state between turns of one process; clock.go: a clock that was set
//
// It imports no client, clock or logger. It renders charts through the engine that the
// renderers were made with.
package plan
