package rollout

import (
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Plan has the actions to carry out now, and the state to report.
//
// The caller uses it in this order. If LedgerChanged, it writes Ledger by compare-and-swap. Then it carries out
// Actions. It repairs the works of each cluster in Clusters that has a Revision and whose works differ from it. It
// reports the rest. It plans again at RecheckAt, or when an observation changes.
type Plan struct {
	// Ledger to store before any action is taken.
	Ledger v1alpha1.Ledger
	// LedgerChanged says whether Ledger differs from Input.Ledger.
	LedgerChanged bool
	// Admitted counts the admissions, adoptions and removals this plan reserves for the first
	// time. Above 0, Input.Ledger must have come from an uncached read.
	Admitted int

	// Actions, sorted by cluster. The Install of a cluster precedes its Move.
	Actions []Action
	// Clusters has every cluster of Input, sorted by name.
	Clusters []ClusterPlan

	// Progressions of the install placements, in declared order.
	Progressions []Progression
	// Stages in the order they are worked, track by track.
	Stages []v1alpha1.StageStatus
	// Undivided: the only stage is the whole fleet of a strategy; the user declared no stage.
	Undivided bool
	// Counts of the clusters by state.
	Counts v1alpha1.Counts
	// Phase and Message of the rollout.
	Phase   v1alpha1.Phase
	Message string
	// Outcome is the state of the commit status.
	Outcome Outcome
	// Failing names the first failing clusters, with bounded reasons.
	Failing []v1alpha1.ClusterReason
	// Succeeded: the rollout of the target succeeds with this plan. The caller writes
	// succeeded-at and makes the target the stable revision.
	Succeeded bool
	// Halted: the rollout ended Succeeded before, and now the failures of a stage exceed its budget. Clusters that
	// join later, or whose configuration changes, are not moved. The commit status becomes a failure. The rollout
	// resumes when enough of the failed clusters are verified again.
	Halted bool
	// Abandoned: the rollout is Failed although neither a cluster nor a gate failed: the clusters that
	// could have verified the content left.
	Abandoned bool
	// Overdue names the clusters whose removal takes too long; "": none.
	Overdue string
	// Guard says why a removal is held (DeletionGuard); "": it is not held. GuardHint says how to lift the guard; "":
	// it cannot be lifted. The hint is too long for a commit status.
	Guard, GuardHint string

	// Promoted is how many soaks the orders ended, by stage.
	Promoted map[string]int
	// Passed are the gates before a stage that let this plan admit a cluster.
	Passed []Ask
	// Asks are the gates that are to be evaluated now.
	Asks []Ask

	// RecheckAt is the next time at which the plan changes by the clock alone; zero:
	// never.
	RecheckAt time.Time
}

// ActionKind is the kind of an Action.
type ActionKind string

const (
	// Install creates the ManagedClusterAddOn.
	Install ActionKind = "Install"
	// Move writes the works of Action.Revision.
	Move ActionKind = "Move"
	// Remove deletes the ManagedClusterAddOn.
	Remove ActionKind = "Remove"
)

// Action is one change of one cluster, and why.
type Action struct {
	Cluster string
	Kind    ActionKind
	// Revision is the digest to move to; empty for Install and Remove.
	Revision string
	Reason   string
}

// State is the state of one cluster.
type State = v1alpha1.ClusterState

// The states of a cluster, as documented in api/v1alpha1. The first group are the states of a
// record.
const (
	Admitted   = v1alpha1.ClusterAdmitted
	Updating   = v1alpha1.ClusterUpdating
	Soaking    = v1alpha1.ClusterSoaking
	Done       = v1alpha1.ClusterDone
	Failed     = v1alpha1.ClusterFailed
	TimedOut   = v1alpha1.ClusterTimedOut
	NotWritten = v1alpha1.ClusterNotWritten
	Lost       = v1alpha1.ClusterLost
	Parked     = v1alpha1.ClusterParked
	Left       = v1alpha1.ClusterLeft
	LeftFailed = v1alpha1.ClusterLeftFailed

	Waiting   = v1alpha1.ClusterWaiting
	Held      = v1alpha1.ClusterHeld
	Unchanged = v1alpha1.ClusterUnchanged
	Unstaged  = v1alpha1.ClusterUnstaged
	Removing  = v1alpha1.ClusterRemoving
	Ignored   = v1alpha1.ClusterIgnored
	Gone      = v1alpha1.ClusterGone
)

// ClusterPlan is one cluster in a plan.
type ClusterPlan struct {
	Name string
	// Stage is the step the cluster belongs to; "" for none.
	Stage string
	State State
	// SelectedBy is the selection of the cluster now; if it is not selected, its last one. The caller stores it in
	// the ManagedClusterAddOn that AddonFlow created. A cluster leaves only if the same selection selected it before.
	SelectedBy Selection
	// Revision is the digest to which the works are repaired: the revision to which the cluster was admitted,
	// otherwise the revision that it runs; for a Blocked cluster, the revision before. If it is "", Mixed or Foreign,
	// the works stay unchanged.
	Revision string
	// Reason says in words what the cluster waits for, or why it has its state.
	Reason string
	// SoakingUntil and Deadline are zero where they do not apply.
	SoakingUntil, Deadline time.Time
	// NotApplied says why the works of a cluster in flight are not applied: the agent could not apply them, or the
	// hub refuses them; "": they are applied, or not reported yet.
	NotApplied string
}
