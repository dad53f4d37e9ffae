// Package addonrollout moves clusters to the content that an AddOnRollout names, at the pace of
// its policy, and reports the outcome. A turn (reconciler.go) has six phases. Each returns a
// value of its own type, and reads the results of the phases before it only:
//
//	observe  -> plan.Observation  all reads: placements, ManagedClusterAddOns, works, clusters, revisions
//	plan.New -> plan.Plan         pure: package plan, which asks package rollout which clusters may move
//	reserve  -> reserved          writes AddOnRollout.status with the ledger
//	announce -> time.Duration     logs, events, marks of revisions, answers of orders, gates to measure, commit statuses
//	apply    -> applied           writes ManagedClusterAddOns and works, cluster by cluster
//	report   -> ctrl.Result       what could not be written, OCM's tools, when to look again
//
// Besides the phase observe, three reads precede single writes. They are uncached, and each is made
// right before the write that needs it:
//
//	announce the AddOnRevision whose quarantine begins or ends: this turn may have written it before
//	apply    the ClusterManagementAddOn, if an owner reference differs from what the watch shows:
//	         the garbage collector deletes an add-on whose owner is gone
//	apply    a ManifestWork whose name is taken: the watch does not show a work without its label
//
// The files:
//
//	caughtup.go    compares the watch cache with the hub after a handover
//	observe.go     placements.go, configs.go with configwatch.go, revisions.go; overlay.go: what
//	               the watch cache does not show yet
//	plan/          the decisions; addonstatus/: the words of OCM's statuses
//	reserve.go     the ledger and the conditions; commits.go: commit statuses
//	announce.go    log and events; beside.go: writes that may be refused; orders.go: answers
//	apply.go       works.go: ManifestWorks; addon.go: the ManagedClusterAddOn, annotations.go;
//	               departure.go: its removal
//	report.go      metrics.go
//	finalize.go    the end of a rollout; release.go: without removing anything
//	memory.go      what a process remembers; setup.go, wake.go: what starts a turn
//	explain.go     the same plan for the command line; trace.go: for tests
//
// The ledger in AddOnRollout.status is reserved by compare-and-swap before any work is written, and the ledger of
// another process is planned only with a watch cache that shows as much as that process had seen. So no crash, second
// operator or stale cache can admit a cluster twice or one cluster too many. If the swap is refused, the plan is
// dropped. No decision depends on a condition that the operator wrote.
package addonrollout
