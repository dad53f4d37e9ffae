// Package addonsource brings the head commit of an AddOnSource to the hub, as one
// unit or not at all, and says on the commit what became of it.
//
// One reconcile is one pass. No pass waits for a Git server: what it needs from there is
// fetched by an errand, apart from the workers, and the pass begins again when that is
// back (errands.go).
//
//	look      one ls-remote per interval; a known commit ends here
//	attempt   fetch, build, Compile; what lives only on the hub is read there
//	observe   rollouts, stored objects, owners, ManagedClusterAddOns: reads only
//	plan      pure: conflicts, take-overs, what may differ, what left Git
//	spare     ClusterManagementAddOns that were deleted by hand go without their agents
//	diff      server-side dry-run applies of what may differ
//	admit     server-side dry-run creates of what differs
//	apply     take-over, Namespaces, AddOnRevisions, objects, add-ons, rollouts
//	prune     what left the commit, where spec.prune approves it
//	report    one status write, then events, then the commit statuses
//
// Whether a pass has anything to do is decided by facts in the status
// (lastAttemptedRevision, lastAppliedRevision, inventory, addOns) and by the stored
// objects, never by a condition. A commit that was refused is recorded as attempted
// and not read again; one that waits for something is not, and is tried again from
// memory. What was compiled last is kept in memory, so that drift is repaired
// without a fetch; after a restart the commit is fetched once, and only when an
// object is found missing or changed.
//
// The controller writes AddOnSource.status and AddOnRollout.spec, never
// AddOnRollout.status and no work. It deletes nothing because something could not be
// read, and no Namespace at all: a Namespace holds more than what Git declared in it.
//
// controllers/addonrollout, which moves the clusters, is met on the API server only.
package addonsource
