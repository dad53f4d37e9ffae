// Package addonrollout moves clusters to the content an AddOnRollout names, no
// faster than its policy allows, and reports what is true.
//
//	observe  reads: placements, ManagedClusterAddOns, works, clusters, revisions
//	plan     pure: rollout.New decides who moves; render and addon_status.go say what is written
//	apply    writes: ledger first, then ManagedClusterAddOns and works
//	report   events and commit statuses, after the status they speak of
//
// The ledger in AddOnRollout.status is reserved by compare-and-swap before any
// work is written, so neither a crash nor a second operator nor a stale cache can
// admit a cluster twice or one too many: a lost swap drops the plan. Nothing here
// reads a condition AddonFlow wrote itself to decide what to do next.
package addonrollout
