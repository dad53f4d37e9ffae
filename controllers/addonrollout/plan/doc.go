// Package plan decides what one turn of a rollout does. It is a pure function:
//
//	New(Observation) -> Plan
//
// An Observation has everything that was read. Choose returns which content the fleet is to run, and Confirm can
// withdraw that choice; the caller adds it to the Observation. A Plan has everything that follows from it: the state of
// each cluster and the objects to write there, the status to store, and the decisions to log. Package rollout decides
// which clusters may move. This package makes the input of package rollout: it renders the revisions for each cluster
// and compares the result with the works.
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
// The package imports no client, clock or logger. The renderers bring their own engine for charts.
package plan
