// Package addonsource applies the head commit of an AddOnSource to the hub, as one unit or not
// at all, and reports the result on the commit.
//
// One reconcile is one pass. No pass waits for a Git server: an errand outside the workers
// fetches what the pass needs, and its end starts a new pass (errands.go).
//
//	spare     keeps agents when a user deletes a ClusterManagementAddOn
//	look      one ls-remote per interval; a known commit ends here
//	attempt   fetch, build, Compile; objects that exist only on the hub are read there
//	observe   rollouts, stored objects, owners, ManagedClusterAddOns: reads only
//	plan      pure: conflicts, take-overs, what may differ, what left Git
//	diff      server-side dry-run applies of what may differ
//	dryRun    server-side dry-run creates of what differs
//	own       makes AddonFlow the manager of what it takes over; no value changes
//	intend    one status write: what the next steps write, and for which commit
//	apply     take-over, Namespaces, AddOnRevisions, objects, add-ons, rollouts
//	prune     deletes what left the commit, if spec.prune approves it
//	report    one status write, then events, then the commit statuses
//
// A pass decides by facts in the status (lastAttemptedRevision, lastAppliedRevision, inventory, addOns) and by the
// stored objects, never by a condition. A refused commit is stored as attempted and is not read again. A commit that
// waits for something is not stored as attempted; the operator tries it again from memory. The last compiled commit
// is kept in memory, so that drift is repaired without a fetch. After a restart the commit is fetched once, and only
// if an object is missing or changed.
//
// The controller writes AddOnSource.status and AddOnRollout.spec, but neither AddOnRollout.status nor works. If an
// object cannot be read, the controller deletes nothing because of that. It never deletes a Namespace, because a
// Namespace may contain more objects than Git declared in it.
//
// Three more controllers work for a source at its forge. They are separate, so that no forge delays a rollout:
//
//	Planner   answers pull requests with plans (pulls.go)
//	Reverter  proposes the commit that makes Git true after a rollback (reverts.go)
//	Approver  enters approvals that were given by comments (approvals.go)
//
// The package communicates with controllers/addonrollout, which moves the clusters, through the API server only.
package addonsource
