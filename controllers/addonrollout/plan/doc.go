// Package plan decides what one turn of a rollout does. It is a pure function:
//
//	New(Observation) -> Plan
//
// An Observation is everything that was read; this package does not change it. A Plan is
// everything that follows from it: the state of every cluster and the objects to write, the
// status to store, the decisions to log. Package rollout decides which clusters move. This
// package computes its input: it renders the revisions for each cluster and compares.
//
//	observation.go  Observation and Member: what was read
//	plan.go         New, and the input of rollout.New
//	judge.go        the content of a member: refused, hosted, contended, up to date
//	departure.go    the progress of the deletion of a ManagedClusterAddOn
//	conflict.go     another owner or writer of the add-on
//	status.go       AddOnRollout.status; verdict.go: its conditions; journal.go
//	memory.go       the state between turns of one process; clock.go: a clock that was set
//
// It imports no client, clock or logger. It renders charts through the engine that the
// renderers were made with.
package plan
