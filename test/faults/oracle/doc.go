// Package oracle judges what operators did, from the API server's own history: every write that
// etcd stored, in its order, from the first one on.
//
//	hub.History -> History -> Judge -> violations
//	                       -> EndState
//	forge log   -> Statuses
//
// It is written from the promises in docs/design.md and shares no formula with the planner. It
// reads ledgers, works and feedback as JSON with its own code. The second planner of package
// rollouttest judges the ledgers' steps beside it.
package oracle
