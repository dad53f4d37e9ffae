// Package fleet simulates the managed clusters of an OCM hub, for tests, bench and demo alike:
// ManagedClusters, Placements with their decisions, and the agents that answer ManifestWorks.
//
//	Fleet.AddClusters -> ManagedCluster, namespace
//	Fleet.Place       -> Placement, PlacementDecisions (100 to one, groups)
//	Fleet.Start       -> one watch on all works; a model per cluster
//	                     (package spoke); status by PATCH
//
// Agents answer as OCM 1.3's work agent does, conditions, reasons, messages and feedback
// included. With no latency a change is answered by one status write with the final state. With
// latency each report comes that much after the one before, and lags: first Applied, with the
// feedback of the content before; then the new objects with the old counts; then step by step.
//
// Tests control everything that can go wrong in a fleet, per cluster or for all: SetLatency,
// Hold, Silence, Disappear, Fail, Flap, Lie. Running and Objects return the real state,
// whatever was reported.
//
// Two shortcuts: agents share one identity, and the condition Deleting of a deleted work is
// only written with latency. Agents write their finalizer on a work separately;
// Options.WithoutFinalizer omits it.
//
// Production code must not import this package.
package fleet
