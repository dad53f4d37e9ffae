package removal

import (
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Input is everything that a plan depends on. New never changes it. The caller bounds the
// length of its texts.
type Input struct {
	// Now is the operator's own time.
	Now time.Time
	// Grace is the grace period of each cluster, and the period of the budget.
	Grace time.Duration
	// Record as it is stored. If Plan.Reserved is above 0, it must come from an uncached read.
	Record Record
	// Rebuilt: the stored status was empty. A present approval then counts as used, because the clusters that it
	// removed are no longer known.
	Rebuilt bool
	// Removal is spec.removal: the whole add-on is to be removed. Nil: Git declares the add-on.
	Removal *v1alpha1.Removal
	// Commit is the full sha of the commit that the fleet is to run. While Git declares the
	// add-on, an approval must name it; otherwise an approval must name Removal.Commit.
	Commit string
	// Approval is the value of the annotation addonflow.io/approve-removal.
	Approval string
	// Held is the reason why no cluster may be removed for now: "suspended", or another owner of the add-on. "":
	// removals continue.
	Held string
	// Trust says whether the install placements are reliable; Untrusted is the reason why they are not. If the whole
	// add-on is removed, the plan reads neither. If no placement installs the add-on, the caller sets Settled.
	Trust     Trust
	Untrusted string
	// Full: the ledger has no room for the name of another cluster. No cluster begins to
	// leave.
	Full bool
	// Clusters are all clusters that have a ManagedClusterAddOn, in any order.
	Clusters []Cluster
}

// Trust says whether the install placements can be relied upon. The zero value is read as
// Silent.
type Trust string

const (
	// Silent: an install placement does not exist, or OCM has not decided about it. Such a placement selects or
	// excludes no cluster. No cluster is removed, and every grace period starts again.
	Silent Trust = "Silent"
	// Unsettled: decisions are incomplete or still changing. Only an approval removes.
	Unsettled Trust = "Unsettled"
	// Settled: every install placement can be relied upon.
	Settled Trust = "Settled"
)

// Installation says who created the ManagedClusterAddOn of a cluster.
type Installation string

const (
	// NotInstalled: there is no ManagedClusterAddOn. Also the zero value.
	NotInstalled Installation = "None"
	// Ours: AddonFlow created it.
	Ours Installation = "Ours"
	// HandMade: AddonFlow did not create it. It takes part in rollouts and is never deleted.
	HandMade Installation = "HandMade"
	// Deleting: it carries a deletion timestamp.
	Deleting Installation = "Deleting"
)

// Cluster is the observed state of one cluster.
type Cluster struct {
	Name      string
	Installed Installation
	// Unselected: the cluster left the install set. It is false while a placement or the label selector selects the
	// cluster. It is also false after a switch of the install type: that switch removes no add-on.
	Unselected bool
	// Gone: its ManagedCluster is terminating or absent. AddonFlow changes nothing on the cluster.
	Gone bool
	// NeededBy are the add-ons that depend on this one and are still on the cluster. The cluster leaves only after
	// they have left, even with an approval.
	NeededBy []string
	// Refused is the reason why the hub refused the last deletion of the ManagedClusterAddOn; "": the hub did not
	// refuse it. A deletion with an unknown answer is not refused.
	Refused string
	// DeletionReason is the reason why a deletion in progress has not ended.
	DeletionReason string
	// OverdueAt is when a deletion in progress is reported as overdue; zero: never.
	OverdueAt time.Time
}

// Plan says which clusters leave now, and what to report.
type Plan struct {
	// Record to store before any cluster is removed.
	Record Record
	// Reserved is how many clusters this plan approves or reserves for the first time.
	// Above 0, Input.Record must come from an uncached read.
	Reserved int
	// Decisions are the clusters that leave, and those that keep a hand-made add-on while
	// the whole add-on is removed; sorted by name.
	Decisions []Decision
	// Guard is the reason that holds removals back (DeletionGuard); "": none does. Hint says how to lift it; "": an
	// approval cannot lift it.
	Guard, Hint string
	// Remaining is what the removal of the whole add-on still waits for.
	Remaining Remaining
	// Overdue are the clusters whose deletion takes too long, sorted by name.
	Overdue []v1alpha1.ClusterReason
	// Next is when the plan changes by the clock alone; zero: never.
	Next time.Time
}

// Verdict is what happens to a cluster now.
type Verdict string

const (
	// Keeps: the add-on is hand-made and is never removed.
	Keeps Verdict = "Keeps"
	// Stays: the add-on will be removed, but not now.
	Stays Verdict = "Stays"
	// Leaves: its ManagedClusterAddOn is to be deleted, as decided in this plan.
	Leaves Verdict = "Leaves"
	// LeavesAgain: its ManagedClusterAddOn is to be deleted, as decided in an earlier plan.
	LeavesAgain Verdict = "LeavesAgain"
)

// Decision is the verdict on one cluster, and why.
type Decision struct {
	Cluster string
	Verdict Verdict
	Reason  string
}
