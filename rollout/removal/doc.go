// Package removal decides when the add-on's ManagedClusterAddOns are deleted. Clusters lose the add-on because they
// left the install set, or because the add-on left Git.
//
// New is a pure function from an Input to a Plan. The caller stores Plan.Record by
// compare-and-swap, then deletes what Plan.Decisions says, and plans again when a deletion
// was seen, or at Plan.Next.
//
// A cluster is leaving while it has a ManagedClusterAddOn that AddonFlow created, and is to lose it. The record holds
// one Departure per leaving cluster:
//
//	state     | Departure            | the cluster
//	----------+----------------------+--------------------------------------------------
//	-         | none                 | keeps the add-on, or never had it
//	Leaving   | Since                | waits out its grace period, then for the budget
//	Approved  | Since, Approved      | while decisions are unsettled, waits until it was
//	          |                      | absent from them for 30s, or the grace period if
//	          |                      | that is shorter
//	Removing  | Since, Reserved      | its ManagedClusterAddOn is deleted at every plan
//	          |                      | until the deletion is seen
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
//	Removing  | the hub refused the deletion; not by approval        | Leaving,
//	          |                                                      | new Since
//	any       | another removal begins (Record.Commit)               | -, then anew
//	any       | the cluster is selected again, is not ours, is gone; | -
//	          | an install placement does not exist, or OCM has not  |
//	          | decided about it; or the removal of the whole add-on |
//	          | is not approved                                      |
//	any       | its ManagedClusterAddOn is being deleted or is gone  | -
//
// The budget is max(1, 5 %) of the ManagedClusterAddOns that were counted when the removal began. Each Removing
// cluster holds one share of it. A share is spent when the deletion is seen. It is also spent when a Removing cluster
// stops leaving, because its deletion may be under way. Spent shares are free again one grace period after the newest
// was spent; so the period starts with a deletion, not with a decision. If the API server refuses the deletion, the
// share is free for the next cluster. If the answer of the deletion is not known, the cluster keeps its share. With
// an approval, clusters wait neither for their grace period nor for the budget; removals by approval still spend
// shares.
//
// While Input.Held is set, or decisions are unsettled, states do not change and grace periods run. An approved
// cluster is also removed while decisions are unsettled, once its absence is confirmed.
//
// The precondition of a deletion must be the observed resourceVersion, because a ManagedClusterAddOn that was created
// again is not the one in the plan.
package removal
