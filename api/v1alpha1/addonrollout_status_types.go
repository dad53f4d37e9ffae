package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase is the state of a rollout, in one word.
type Phase string

const (
	// PhaseProgressing: clusters are being moved to the target.
	PhaseProgressing Phase = "Progressing"
	// PhaseSucceeded: every cluster of the rollout runs the target, has failed within the failure
	// budget, is parked, or is held by an annotation.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed: no further cluster is admitted, because more clusters failed than the failure budget
	// allows, a gate failed, the clusters that could verify the content left, or an order ended the rollout.
	PhaseFailed Phase = "Failed"
	// PhaseRollingBack: clusters are being moved back to the target. Git declares other content.
	PhaseRollingBack Phase = "RollingBack"
	// PhaseRolledBack: the clusters were moved back to the target. Git declares other content.
	PhaseRolledBack Phase = "RolledBack"
	// PhaseHeld: no further cluster is admitted for a reason other than a failure, such as a strategy that
	// moves a share of the clusters, a gate that waits, or an empty stage.
	PhaseHeld Phase = "Held"
	// PhaseSuspended: no cluster is admitted until the rollout is resumed.
	PhaseSuspended Phase = "Suspended"
	// PhaseRemoving: the add-on is being removed from the fleet.
	PhaseRemoving Phase = "Removing"
	// PhaseRemoved: no cluster has the add-on.
	PhaseRemoved Phase = "Removed"
)

// AddOnRolloutStatus has the ledger and the report of a rollout.
type AddOnRolloutStatus struct {
	// ObservedGeneration is the generation of the spec for which this status was written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions Ready, Reconciling, Stalled and CommitStatusReported.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Phase of the rollout of the target.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Message explains the phase.
	// +optional
	Message string `json:"message,omitempty"`

	// Outcome of the target: pending, success or failure, as the commit status says.
	// +optional
	Outcome string `json:"outcome,omitempty"`

	// Target is the content to which the rollout moves clusters. The operator sets it to spec.target in the write
	// that stores the first plan for that content. If it is other content, override says why.
	// +optional
	Target *Target `json:"target,omitempty"`
	// Override says why target is not the content that Git declares; absent: it is that content.
	// +optional
	Override *Override `json:"override,omitempty"`
	// TargetSince is when the first plan for the target was made.
	// +optional
	TargetSince *metav1.Time `json:"targetSince,omitempty"`
	// Aborted is the order that ended the rollout of the target in this attempt; absent: none.
	// +optional
	Aborted *GivenOrder `json:"aborted,omitempty"`
	// CarriedOut are the orders that have taken effect and are not answered yet.
	// +listType=atomic
	// +optional
	CarriedOut []GivenOrder `json:"carriedOut,omitempty"`
	// Attempt counts the attempts with the content of the target, from 1. Each verdict of a gate is about one
	// attempt.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// Reverting is true if the target had succeeded on this hub before it became the target.
	// +optional
	Reverting bool `json:"reverting,omitempty"`
	// Returned is true if the rollout of the target has ended Succeeded since it became the target. After that, moves
	// of other clusters are no longer part of a revert to it.
	// +optional
	Returned bool `json:"returned,omitempty"`
	// Stable is the revision that succeeded last.
	// +optional
	Stable *Target `json:"stable,omitempty"`

	// Counts of the clusters of the rollout.
	// +optional
	Counts Counts `json:"counts,omitempty"`
	// Stages in the order in which they are worked.
	// +optional
	Stages []StageStatus `json:"stages,omitempty"`
	// Failing names the first failing clusters, with the reason.
	// +optional
	Failing []ClusterReason `json:"failing,omitempty"`

	// Ledger of the clusters. A slot is reserved in it before any work is written.
	// +optional
	Ledger Ledger `json:"ledger,omitempty"`

	// History of rollouts, newest first.
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	// Journal has the last decisions about stages and the whole rollout, oldest first: at
	// most 100, in at most 16 KiB.
	// +optional
	Journal []JournalEntry `json:"journal,omitempty"`

	// CommitStatuses are the marks of the statuses that the forge accepted, and of those that are still owed to it.
	// +optional
	CommitStatuses []CommitMark `json:"commitStatuses,omitempty"`

	// ParkAfter is the flag --park-after of the operator that wrote this status, for tools that make the same plan.
	// +optional
	ParkAfter *metav1.Duration `json:"parkAfter,omitempty"`
	// RemovalGracePeriod is the flag --removal-grace-period of that operator, for the same tools.
	// +optional
	RemovalGracePeriod *metav1.Duration `json:"removalGracePeriod,omitempty"`
	// TargetBounds are the bounds of the tenant, for the same tools; absent: none.
	// +optional
	TargetBounds *TargetBounds `json:"targetBounds,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// TargetBounds limit the objects of an add-on on managed clusters, according to the policy of tenants.
type TargetBounds struct {
	// Namespaces of objects, and the names of Namespaces; * stands for any characters.
	// +optional
	Namespaces []string `json:"namespaces,omitempty"`
	// Kinds of objects without a namespace, as Kind or Kind.group.
	// +optional
	Kinds []string `json:"kinds,omitempty"`
}

// Counts of clusters. Total is the sum of Updated, InFlight, Failed, Parked, Held and
// Waiting.
type Counts struct {
	// Total clusters of the rollout.
	Total int32 `json:"total"`
	// Updated clusters run the target, verified and soaked, or the target does not change them.
	Updated int32 `json:"updated"`
	// InFlight clusters hold a slot.
	InFlight int32 `json:"inFlight"`
	// Failed clusters failed or timed out. Clusters that left after that are included, but are not in Total.
	Failed int32 `json:"failed"`
	// Parked clusters cannot get content now: they are not available, or their own configurations cannot be used.
	// They are updated when they can get it. This is not a failure.
	Parked int32 `json:"parked"`
	// Held clusters are not admitted because an annotation of their ManagedClusters holds them.
	// They are updated when the hold is over.
	// +optional
	Held int32 `json:"held,omitempty"`
	// Waiting clusters are not admitted yet.
	Waiting int32 `json:"waiting"`
	// Unstaged clusters are in no stage and keep their content.
	// +optional
	Unstaged int32 `json:"unstaged,omitempty"`
	// Ignored clusters are selected by a stage or strategy but are not in the install set.
	// +optional
	Ignored int32 `json:"ignored,omitempty"`
	// Removing clusters are being removed from the add-on.
	// +optional
	Removing int32 `json:"removing,omitempty"`
}

// StageStatus reports one stage.
type StageStatus struct {
	// Name of the stage. The steps of a strategy are named after their decision group, such as
	// group-canary; rest has the clusters in no group, all has all clusters. With a pace per
	// placement, the name begins with the name of the placement.
	Name string `json:"name"`
	// Phase is Waiting, Progressing, Soaking, Complete, Failed, Held or NothingToDo.
	Phase string `json:"phase"`
	// Counts of the stage's clusters.
	Counts Counts `json:"counts"`
	// SoakingUntil is the end of the last soak that has begun.
	// +optional
	SoakingUntil *metav1.Time `json:"soakingUntil,omitempty"`
	// Message explains what the stage waits for.
	// +optional
	Message string `json:"message,omitempty"`
	// Gates are the verdicts of the stage's gates about the content of the target, in this
	// attempt.
	// +optional
	Gates []GateStatus `json:"gates,omitempty"`
}

// ClusterReason is a cluster and why it is listed.
type ClusterReason struct {
	// Cluster name.
	Cluster string `json:"cluster"`
	// Reason, of limited length.
	Reason string `json:"reason"`
}

// HistoryEntry is one past or present rollout.
type HistoryEntry struct {
	// Target of the rollout.
	Target Target `json:"target"`
	// Attempt is the last attempt with the content in this rollout; absent while it runs.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// Phase in which the rollout ended; while it runs, its present phase.
	Phase Phase `json:"phase"`
	// Started is when the first plan for the rollout was made.
	Started metav1.Time `json:"started"`
	// Finished is when it ended; absent while it runs.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
	// Counts at the end of the rollout; while it runs, the present counts.
	Counts Counts `json:"counts"`
	// Reason explains how the rollout ended, or its present phase.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Failing names the first clusters that failed, at most ten, with the reason.
	// +optional
	Failing []ClusterReason `json:"failing,omitempty"`
	// Stages that began, in that order, with their times; the last 16.
	// +optional
	Stages []StageTimes `json:"stages,omitempty"`
	// Quarantine of the content, kept after its AddOnRevision was deleted; absent: it is not quarantined.
	// +optional
	Quarantine *RememberedQuarantine `json:"quarantine,omitempty"`
	// SupersededBy is the commit that replaced the content before the rollout ended.
	// +optional
	SupersededBy string `json:"supersededBy,omitempty"`
}
