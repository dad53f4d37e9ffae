// Package addonrollout moves clusters to the content that an AddOnRollout names, at the pace of
// its policy, and reports the outcome. A turn (reconciler.go) has six phases. Each returns a value of its own type, and
// reads the results of the phases before it only:
//
//	observe  -> plan.Observation  all reads: placements, ManagedClusterAddOns, works, clusters, revisions
//	plan.New -> plan.Plan         pure: package plan, which asks package rollout which clusters may move
//	reserve  -> reserved          writes AddOnRollout.status with the ledger
//	announce -> time.Duration     logs, events, marks of revisions, answers of orders, gates to measure, commit statuses
//	apply    -> applied           writes ManagedClusterAddOns and works, cluster by cluster
//	report   -> ctrl.Result       what could not be written, the status for OCM's tools (replace mode), when to look again
//
// Before the phases, rightsOf judges the rollout by the policy of tenants, end carries out the next step of a release
// or a deletion, and catchUp waits until the watch cache shows what the ledger was made from. end can complete the
// turn, and catchUp can put it off.
//
// A turn reads the watch cache. The reads below are uncached, because an old copy would do harm, or because the watch
// cache lacks the object:
//
//	before    the AddOnRollout
//	          the ClusterManagementAddOn of an add-on that is removed or released
//	          the ManagedClusterAddOns of a rollout that ends, and the Secret for its last commit statuses
//	          the metadata of the lists that observe reads, for catchUp
//	observe   the AddOnRevisions
//	          AddOnOrders without an answer, AddOnApprovals, and the policy that proves their authors
//	          the AddOnSource, for approvals at its forge
//	          configurations that are not watched or have a new version
//	          the AddOnRollout of each dependency, with the reads of its own observe
//	          the ClusterManagementAddOn, if the watch cache lacks it
//	          a ManagedClusterAddOn or work that this process created, if the watch cache lacks it for unseenFor
//	          the Namespace and CustomResourceDefinitions, if the rollout is deleted
//	reserve   the Secret for commit statuses
//	announce  the AddOnRevision whose quarantine begins or ends: this turn may have written it before
//	apply     the ClusterManagementAddOn, if an owner reference differs from what the watch shows: the garbage
//	          collector deletes an add-on whose owner is gone
//	          a ManifestWork whose name is taken: the watch does not show a work without its label
//	          a ManifestWork whose writes another client undoes: its last writer
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
