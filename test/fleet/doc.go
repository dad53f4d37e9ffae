// Package fleet simulates the managed clusters of an OCM hub, for tests, bench
// and demo alike: ManagedClusters, Placements with their decisions, and the
// agents that answer ManifestWorks.
//
//	Fleet.AddClusters -> ManagedCluster, namespace
//	Fleet.Place       -> Placement, PlacementDecisions (100 to one, groups)
//	Fleet.Start       -> one watch on all works; a model per cluster
//	                     (package spoke); status by PATCH
//
// Agents answer as OCM 1.3's work agent does, conditions, reasons, messages
// and feedback included. With no latency a change is answered by one status
// write with the final state. With latency each report comes that much after
// the one before, and lags: first Applied, with the feedback of the content
// before; then the new objects with the old counts; then step by step.
//
// Everything that goes wrong in a fleet is under control, per cluster or for
// all: SetLatency, Hold, Silence, Disappear, Fail, Flap, Lie. What is true
// whatever was reported is in Running and Objects.
//
// Two shortcuts: agents share one identity, and the condition Deleting of a
// deleted work is only written with latency. The finalizer that agents put on
// works is a write of its own; Options.WithoutFinalizer leaves it out.
//
// Nothing in production code may import this package.
package fleet
