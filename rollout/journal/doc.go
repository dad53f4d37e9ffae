// Package journal finds the decisions that were made between two stored states of a rollout.
//
//	records before, records after ──> Clusters ──> one decision per cluster (debug log)
//	                                      └──> Steps ──> decisions about stages ─┐
//	status before, status after ──> Rollout ──> stages, phase, target ───────────┴─> Append
//
// A decision about a cluster is a change of its record. The package keeps no state between calls. It compares stored
// states, so each decision is found exactly once, with the write that stores it.
//
// Like every decision of package rollout it is a function of its arguments: no client, no
// clock, no log.
package journal
