// Package removal decides when the add-on's ManagedClusterAddOns are deleted from clusters
// that are to lose it: because they left the install set, or because the add-on left Git.
//
// New is a pure function from an Input to a Plan. The caller stores Plan.Record by
// compare-and-swap, then deletes what Plan.Decisions says, and plans again when a deletion
// was seen, or at Plan.Next.
//
// A cluster is leaving while it has a ManagedClusterAddOn of ours and is to lose it. The
// record holds one Departure per leaving cluster:
//
//	state     | Departure            | the cluster
//	----------+----------------------+--------------------------------------------------
//	-         | none                 | keeps the add-on, or never had it
//	Leaving   | Since                | waits out its grace period, then for the budget
//	Approved  | Since, Approved      | waits until its absence from unsettled decisions
//	          |                      | is confirmed: 30s, at most the grace period
//	Removing  | Since, Reserved      | is deleted at every plan until that is seen
//	Removing  | Since, both          | the same, by approval
//
//	from      | if                                                   | to
//	----------+------------------------------------------------------+----------
//	-         | the cluster leaves; decisions are settled            | Leaving
//	-         | the cluster leaves; an unused approval is set        | Approved
//	Leaving   | an unused approval is set                            | Approved
//	Leaving   | decisions are settled, the grace period is over, and | Removing
//	          | the budget is free                                   |
//	Approved  | decisions are settled, or its absence is confirmed   | Removing
//	Approved, | the approval is withdrawn, or names another commit   | Leaving,
//	Removing  |                                                      | same Since
//	Removing  | the hub refused the deletion; not by approval        | Leaving, anew
//	any       | another removal begins (Record.Commit)               | -, then anew
//	any       | the cluster is selected again, is not ours, is gone; | -
//	          | a placement is silent; or the removal of the whole   |
//	          | add-on is not approved                               |
//	any       | its ManagedClusterAddOn is being deleted or is gone  | -
//
// The budget is max(1, 5 %) of the ManagedClusterAddOns that were counted when the removal
// began. Each Removing cluster holds one share of it. A share is spent when the deletion is
// seen, or when a Removing cluster stops leaving: its deletion may be on its way. Spent
// shares are free again one grace period after the newest was spent. So the period runs
// from deletions and not from decisions. A cluster whose deletion the API server refused gives its
// share to the next one. A deletion whose answer is not known keeps its share. An approval lifts the wait and the limit, and its
// removals still spend shares.
//
// While Input.Held is set, or decisions are unsettled, states stay and grace periods run.
// An approved cluster is also removed while decisions are unsettled, once its absence is
// confirmed.
//
// A deletion must carry the resourceVersion that was observed as its precondition: a
// ManagedClusterAddOn that was created again is not the one that the plan is about.
package removal
