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
	// Record as stored; from an uncached read if Plan.Reserved is above 0.
	Record Record
	// Rebuilt: the stored status was empty. An approval that is set counts as used, because
	// the clusters it removed are not known any more.
	Rebuilt bool
	// Removal is spec.removal: the whole add-on is to go. Nil: Git declares the add-on.
	Removal *v1alpha1.Removal
	// Commit is the full sha of the commit that the fleet is to run. While Git declares the
	// add-on, an approval must name it; otherwise an approval must name Removal.Commit.
	Commit string
	// Approval is the value of the annotation addonflow.io/approve-removal.
	Approval string
	// Held says in words why no cluster may be removed for now: "suspended", or another owner
	// of the add-on. "": removals go on.
	Held string
	// Trust says whether the install placements can be relied upon; Untrusted says in words
	// why not. Neither is read while the whole add-on is to go. If no placement installs the
	// add-on, the caller says Settled.
	Trust     Trust
	Untrusted string
	// Full: the ledger has no room for the name of another cluster. No cluster begins to
	// leave.
	Full bool
	// Clusters are all that have a ManagedClusterAddOn, in any order. A cluster that is not
	// listed has none.
	Clusters []Cluster
}

// Trust says whether the install placements can be relied upon. The zero value is read as
// Silent.
type Trust string

const (
	// Silent: an install placement does not exist, or OCM has not decided about it. It says
	// nothing about any cluster: none is removed, and every grace period starts again.
	Silent Trust = "Silent"
	// Unsettled: decisions are incomplete or still changing. Only an approval removes.
	Unsettled Trust = "Unsettled"
	// Settled: every install placement can be relied upon.
	Settled Trust = "Settled"
)

// Installation says whose ManagedClusterAddOn a cluster has.
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

// Cluster is what was observed of one cluster.
type Cluster struct {
	Name      string
	Installed Installation
	// Unselected: the cluster left the install set. False while something selects it, and
	// after a switch of the install type, which keeps the add-on where it is.
	Unselected bool
	// Gone: its ManagedCluster is terminating or absent. The cluster is left alone.
	Gone bool
	// NeededBy are the add-ons that depend on this one and are still on the cluster. It does not leave before them,
	// even with an approval.
	NeededBy []string
	// Refused says in words why the hub refused the last deletion of the ManagedClusterAddOn; "": it
	// did not. A deletion whose answer is not known is not refused.
	Refused string
	// DeletionReason says in words what a deletion in progress waits for.
	DeletionReason string
	// OverdueAt is when a deletion in progress is reported as overdue; zero: never.
	OverdueAt time.Time
}

// Plan is what to do now and what to report.
type Plan struct {
	// Record to store before any cluster is removed.
	Record Record
	// Reserved is how many clusters this plan approves or reserves for the first time.
	// Above 0, Input.Record must come from an uncached read.
	Reserved int
	// Decisions are the clusters that leave, and those that keep a hand-made add-on while
	// the whole add-on is removed; sorted by name.
	Decisions []Decision
	// Guard says in words what holds removals back (DeletionGuard); "": nothing does.
	// Hint says how to lift it; "": it cannot be lifted by approval.
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
	// Stays: the add-on will be removed, and not now.
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
