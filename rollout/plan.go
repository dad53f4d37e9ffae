package rollout

import (
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Plan is what is to be done now and what is to be said about it.
//
// Order of use: write Ledger by compare-and-swap if LedgerChanged; when that was
// accepted (or needless) carry out Actions; bring every cluster of Clusters with a
// Revision back to it where it drifted; report the rest; plan again at RecheckAt or
// when something observed changes.
type Plan struct {
	// Ledger to store before any action is taken.
	Ledger v1alpha1.Ledger
	// LedgerChanged says whether Ledger differs from Input.Ledger.
	LedgerChanged bool
	// Admitted counts the admissions and removals this plan reserves for the first
	// time. Above 0, Input.Ledger must have come from an uncached read.
	Admitted int

	// Actions, sorted by cluster; an Install stands before the Move of its cluster.
	Actions []Action
	// Clusters tells of every cluster in Input, sorted by name.
	Clusters []ClusterPlan

	// Progressions of the install placements, in declared order.
	Progressions []Progression
	// Stages in the order they are worked, track by track.
	Stages []v1alpha1.StageStatus
	// Undivided: the only stage is not one of the user's, but the whole of a strategy.
	Undivided bool
	// Counts over the clusters in question.
	Counts v1alpha1.Counts
	// Phase and Message say where the rollout stands.
	Phase   v1alpha1.Phase
	Message string
	// Outcome is what the commit is told.
	Outcome Outcome
	// Failing names the first failing clusters, with bounded reasons.
	Failing []v1alpha1.ClusterReason
	// Succeeded: the target earned success with this plan. The caller writes
	// succeeded-at and makes the target the stable revision.
	Succeeded bool
	// Halted: the target ended Succeeded before, and now a stage has no budget left: who
	// comes later, or has another configuration now, is not moved. The commit is told, and
	// the rollout does not go on by itself.
	Halted bool
	// Overdue names, in words, the clusters whose removal takes too long; "" for none.
	Overdue string
	// Guard says in words what holds a removal back (DeletionGuard); "" when nothing does.
	// GuardHint says how to lift it, where that can be done; too long for a commit status.
	Guard, GuardHint string

	// RecheckAt is the next time at which the plan changes by the clock alone; zero:
	// never.
	RecheckAt time.Time
}

// ActionKind names what is done to a cluster.
type ActionKind string

const (
	// Install creates the ManagedClusterAddOn.
	Install ActionKind = "Install"
	// Move writes the works of Action.Revision.
	Move ActionKind = "Move"
	// Remove deletes the ManagedClusterAddOn.
	Remove ActionKind = "Remove"
)

// Action is one thing to do to one cluster, and why.
type Action struct {
	Cluster string
	Kind    ActionKind
	// Revision is the digest to move to; empty for Install and Remove.
	Revision string
	Reason   string
}

// State is where one cluster stands.
type State = v1alpha1.ClusterState

// The states of a cluster. Those up to LeftFailed are states of a record; api/v1alpha1
// says what each means.
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
	// SelectedBy is what selects the cluster now, and where nothing does what did last: the
	// caller remembers it with a ManagedClusterAddOn of ours. Only who is no longer selected
	// by what selected it leaves.
	SelectedBy Selection
	// Revision is the digest its works are to be at and are repaired to: what it was
	// admitted to, else what it runs; of a cluster that is Blocked what it ran before. "",
	// Mixed and Foreign: leave its works alone.
	Revision string
	// Reason is, in words, the single thing it waits for, or why it is where it is.
	Reason string
	// SoakingUntil and Deadline are zero where they do not apply.
	SoakingUntil, Deadline time.Time
}
