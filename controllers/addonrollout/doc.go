// Package addonrollout moves clusters to the content an AddOnRollout names, no
// faster than its policy allows, and reports what is true.
//
//	observe  reads: placements, ManagedClusterAddOns, works, clusters, revisions
//	plan     pure: rollout.New decides who moves; render and addonstatus say what is written
//	apply    writes: ledger first, then ManagedClusterAddOns and works
//	report   events and commit statuses, after the status they speak of
//
// The way of one turn through the files, reconciler.go in the middle:
//
//	observe.go       placements.go, configs.go, revisions.go, probers.go; overlay.go: what
//	                 the watch cache does not show yet
//	plan.go          the Input of rollout.New; missing.go, refused.go: what it lacks, and
//	                 what it cannot use; departure.go, adopt.go: who goes, who was there
//	apply.go         rounds.go says which cluster is next, and for each of them:
//	  works.go         its ManifestWorks; manifests.go: what agents said of them
//	  addon.go         its ManagedClusterAddOn's status, which addonstatus makes;
//	                   annotations.go, finalizers.go, hosting.go; access.go: its agent
//	status.go        AddOnRollout.status, which is written before any of that
//	report.go        metrics.go; publish.go: the ClusterManagementAddOn's, with replace
//	foreign.go       other writers; finalize.go, release.go: the end of a rollout
//
// The ledger in AddOnRollout.status is reserved by compare-and-swap before any
// work is written, so neither a crash nor a second operator nor a stale cache can
// admit a cluster twice or one too many: a lost swap drops the plan. Nothing here
// reads a condition AddonFlow wrote itself to decide what to do next.
package addonrollout
