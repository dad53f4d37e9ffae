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

// State is where one cluster stands. It is derived from ledger and observation at
// every plan, so that nothing sticks.
type State string

const (
	// Waiting: not admitted to the target yet.
	Waiting State = "Waiting"
	// Unreachable: its turn came, or will, while it is not available; it is counted
	// as parked, blocks nothing and is admitted on return.
	Unreachable State = "Unreachable"
	// HeldBack: as Unreachable, of a cluster that is there and cannot be given anything,
	// such as one whose configuration is missing.
	HeldBack State = "HeldBack"
	// Admitted: reserved in the ledger, its works not at the revision yet.
	Admitted State = "Admitted"
	// Progressing: its works are at the revision, not verified yet.
	Progressing State = "Progressing"
	// Soaking: verified, and its soak is running.
	Soaking State = "Soaking"
	// Lost: not available since it was admitted; it keeps its slot for a while.
	Lost State = "Lost"
	// Parked: lost for so long that its slot was freed. Not a failure.
	Parked State = "Parked"
	// Failed: it reported that it will not get there.
	Failed State = "Failed"
	// TimedOut: reachable, and not verified at its progress deadline.
	TimedOut State = "TimedOut"
	// Succeeded: it runs the target, verified and soaked.
	Succeeded State = "Succeeded"
	// Unchanged: the target renders for it what it has already.
	Unchanged State = "Unchanged"
	// Unstaged: in no stage; it keeps what it has.
	Unstaged State = "Unstaged"
	// Removing: it leaves the install set.
	Removing State = "Removing"
	// Ignored: selected by a stage or strategy, but outside the install set.
	Ignored State = "Ignored"
	// Gone: its ManagedCluster is terminating or absent.
	Gone State = "Gone"
)

// InFlight tells whether a cluster in the state holds a slot.
func (s State) InFlight() bool {
	return s == Admitted || s == Progressing || s == Soaking || s == Lost
}

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
