package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// AddOnRolloutKind is the kind of AddOnRollout.
const AddOnRolloutKind = "AddOnRollout"

// StrategyType names how the clusters of an add-on are moved.
type StrategyType string

const (
	// StrategyAll moves every cluster at once; UpdateAll is the seed's name for it.
	StrategyAll StrategyType = "All"
	// StrategyUpdateAll is the seed's name of StrategyAll.
	StrategyUpdateAll StrategyType = "UpdateAll"
	// StrategyProgressive moves clusters a few at a time.
	StrategyProgressive StrategyType = "Progressive"
	// StrategyProgressivePerGroup moves one decision group after another.
	StrategyProgressivePerGroup StrategyType = "ProgressivePerGroup"
	// StrategyRollingUpdateWithPlacement moves a share of one placement's
	// clusters and holds the rest (seed lifecycle).
	StrategyRollingUpdateWithPlacement StrategyType = "RollingUpdateWithPlacement"
)

// AddOnRolloutSpec is policy: who gets the add-on and how fast. A user declares
// strategy or stages, clusterLabelSelector, health, suspend and revisionHistoryLimit
// in Git; target, install
// and removal are written by AddOnFlow from the same commit and refused in Git.
// +kubebuilder:validation:XValidation:rule="!(has(self.strategy) && has(self.stages) && size(self.stages) > 0)",message="strategy and stages exclude each other"
type AddOnRolloutSpec struct {
	// Strategy is one pace for the whole add-on.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// Stages is an ordered list, each a placement with its own pace. The first
	// stage that selects a cluster has it.
	// +kubebuilder:validation:MaxItems=31
	// +listType=map
	// +listMapKey=name
	// +optional
	Stages []Stage `json:"stages,omitempty"`

	// ClusterLabelSelector installs the add-on on every cluster whose ManagedCluster has
	// these labels (seed install-strategy). The ClusterManagementAddOn's installStrategy
	// must be Manual beside it. An empty selector selects every cluster.
	// +optional
	ClusterLabelSelector *metav1.LabelSelector `json:"clusterLabelSelector,omitempty"`

	// Suspend admits nobody further; what runs goes on and is repaired.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// RevisionHistoryLimit is how many AddOnRevisions are kept besides those in use.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Health says what decides the health of the add-on on a cluster; prober
	// WorkloadAvailability if absent.
	// +optional
	Health *Health `json:"health,omitempty"`

	// Target is the content the fleet is to run. Written by AddOnFlow.
	// +optional
	Target *Target `json:"target,omitempty"`
	// Install says who gets the add-on, as its ClusterManagementAddOn declares.
	// Written by AddOnFlow.
	// +optional
	Install *Install `json:"install,omitempty"`
	// Removal asks to take the add-on off the fleet. Written by AddOnFlow.
	// +optional
	Removal *Removal `json:"removal,omitempty"`
}

// RolloutStrategy is one pace for the whole add-on, in OCM's fields and the seed's.
// OCM's minSuccessTime has no pattern, and one stored value that is no duration
// would break the watch on every AddOnRollout; hence the rules.
// +kubebuilder:validation:XValidation:rule="!has(self.progressive) || !has(self.progressive.minSuccessTime) || self.progressive.minSuccessTime.matches('^(0|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$')",message="progressive.minSuccessTime must be a duration such as 10m"
// +kubebuilder:validation:XValidation:rule="!has(self.progressivePerGroup) || !has(self.progressivePerGroup.minSuccessTime) || self.progressivePerGroup.minSuccessTime.matches('^(0|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$')",message="progressivePerGroup.minSuccessTime must be a duration such as 10m"
// +kubebuilder:validation:XValidation:rule="!has(self.all) || !has(self.all.minSuccessTime) || self.all.minSuccessTime.matches('^(0|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$')",message="all.minSuccessTime must be a duration such as 10m"
type RolloutStrategy struct {
	// Type of the strategy, All if absent.
	// +kubebuilder:validation:Enum=All;UpdateAll;Progressive;ProgressivePerGroup;RollingUpdateWithPlacement
	// +kubebuilder:default=All
	// +optional
	Type StrategyType `json:"type,omitempty"`
	// All configures type All.
	// +optional
	All *clusterv1alpha1.RolloutAll `json:"all,omitempty"`
	// Progressive configures type Progressive.
	// +optional
	Progressive *clusterv1alpha1.RolloutProgressive `json:"progressive,omitempty"`
	// ProgressivePerGroup configures type ProgressivePerGroup.
	// +optional
	ProgressivePerGroup *clusterv1alpha1.RolloutProgressivePerGroup `json:"progressivePerGroup,omitempty"`
	// RollingUpdateWithPlacement configures type RollingUpdateWithPlacement.
	// +optional
	RollingUpdateWithPlacement *RollingUpdateWithPlacement `json:"rollingUpdateWithPlacement,omitempty"`
}

// RollingUpdateWithPlacement moves a share of a placement's clusters (seed lifecycle).
type RollingUpdateWithPlacement struct {
	PlacementReference `json:",inline"`
	// MaxConcurrentlyUpdating is the number or percent, rounded up, of the
	// clusters both selected and installed; 25% if absent.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxConcurrentlyUpdating *intstr.IntOrString `json:"maxConcurrentlyUpdating,omitempty"`
}

// PlacementReference names a Placement.
type PlacementReference struct {
	// Namespace of the Placement.
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// Name of the Placement.
	// +kubebuilder:validation:MinLength=1
	Name string `json:"name"`
}

// Stage is a placement with its own pace.
type Stage struct {
	// Name of the stage; also the last part of its commit status context.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Placement whose clusters the stage moves.
	Placement PlacementReference `json:"placement"`
	// MaxConcurrency is the number or percent, rounded up, of the stage's whole
	// membership that may be in flight; 0 holds. Absent: the placement's
	// clustersPerDecisionGroup, and without one the whole membership.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// MinSuccessTime is the soak of each cluster, from when the new content was
	// verified there.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$"
	// +optional
	MinSuccessTime metav1.Duration `json:"minSuccessTime,omitempty"`
	// ProgressDeadline is a positive duration, or None (the default).
	// +optional
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// MaxFailures is the number or percent, rounded up, of the stage's
	// membership that may fail; none if absent.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
}

// Target is the content the fleet is to run.
type Target struct {
	// Source is the name of the AddOnSource, in the same namespace.
	Source string `json:"source"`
	// Revision is the name of the AddOnRevision.
	Revision string `json:"revision"`
	// Digest of the AddOnRevision.
	Digest string `json:"digest"`
	// Commit that brought the content, <ref>@sha1:<commit>.
	Commit string `json:"commit"`
}

// Install is the declared installStrategy of the ClusterManagementAddOn.
type Install struct {
	// Type is Manual or Placements.
	Type string `json:"type"`
	// Placements in declared order; of two that select a cluster the later has it.
	// +optional
	Placements []InstallPlacement `json:"placements,omitempty"`
}

// InstallPlacement is a placement that installs the add-on, and its pace.
type InstallPlacement struct {
	PlacementReference `json:",inline"`
	// RolloutStrategy is OCM's strategy of this placement.
	// +optional
	RolloutStrategy clusterv1alpha1.RolloutStrategy `json:"rolloutStrategy,omitempty"`
}

// Removal asks to take the add-on off the fleet because its source no longer declares it.
type Removal struct {
	// Commit whose tree no longer declares the add-on, or, for a deleted source,
	// the last commit it saw: a full sha. The approval annotation names it.
	Commit string `json:"commit"`
	// Approved says that spec.prune of the source approves the removal at the
	// budget's pace.
	// +optional
	Approved bool `json:"approved,omitempty"`
}

// Phase is where a rollout stands, in one word.
type Phase string

const (
	// PhaseProgressing: clusters are being moved to the target.
	PhaseProgressing Phase = "Progressing"
	// PhaseSucceeded: every cluster in question runs the target, failures within budget.
	PhaseSucceeded Phase = "Succeeded"
	// PhaseFailed: the failure budget is spent, nobody further is admitted.
	PhaseFailed Phase = "Failed"
	// PhaseHeld: the strategy's share is moved, the rest is held.
	PhaseHeld Phase = "Held"
	// PhaseSuspended: nobody is admitted until resumed.
	PhaseSuspended Phase = "Suspended"
	// PhaseRemoving: the add-on is being taken off the fleet.
	PhaseRemoving Phase = "Removing"
	// PhaseRemoved: no cluster has the add-on any more.
	PhaseRemoved Phase = "Removed"
)

// AddOnRolloutStatus is the admission ledger and the report of a rollout.
type AddOnRolloutStatus struct {
	// ObservedGeneration is the generation of spec this status is about.
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
	// Message says in words what Phase means right now.
	// +optional
	Message string `json:"message,omitempty"`

	// Target the ledger is about; it follows spec.target in the same write that
	// first plans for it.
	// +optional
	Target *Target `json:"target,omitempty"`
	// TargetSince is when the target was first planned for.
	// +optional
	TargetSince *metav1.Time `json:"targetSince,omitempty"`
	// Reverting says that the target had succeeded here before it became the target.
	// +optional
	Reverting bool `json:"reverting,omitempty"`
	// Stable is the newest revision whose rollout ended Succeeded.
	// +optional
	Stable *Target `json:"stable,omitempty"`

	// Counts over the clusters in question.
	// +optional
	Counts Counts `json:"counts,omitempty"`
	// Stages in the order they are worked.
	// +optional
	Stages []StageStatus `json:"stages,omitempty"`
	// Failing names the first failing clusters, with the reason.
	// +optional
	Failing []ClusterReason `json:"failing,omitempty"`

	// Ledger of admissions: reserved here before any work is written.
	// +optional
	Ledger Ledger `json:"ledger,omitempty"`

	// History of rollouts, newest first.
	// +optional
	History []HistoryEntry `json:"history,omitempty"`

	// CommitReports is the memory of what the forge was told and is to be told.
	// +optional
	CommitReports []CommitReport `json:"commitReports,omitempty"`

	// ParkAfter and RemovalGracePeriod are the flags of the operator that wrote this
	// status, for tools that plan as it does.
	// +optional
	ParkAfter *metav1.Duration `json:"parkAfter,omitempty"`
	// +optional
	RemovalGracePeriod *metav1.Duration `json:"removalGracePeriod,omitempty"`

	meta.ReconcileRequestStatus `json:",inline"`
}

// Counts of clusters. Total is the sum of Updated, InFlight, Failed, Parked and Waiting.
type Counts struct {
	// Total clusters the rollout is about.
	Total int32 `json:"total"`
	// Updated clusters run the target, verified and soaked, or had nothing to change.
	Updated int32 `json:"updated"`
	// InFlight clusters hold a slot.
	InFlight int32 `json:"inFlight"`
	// Failed clusters failed or are past the deadline.
	Failed int32 `json:"failed"`
	// Parked clusters are not available: lost after admission, or not there when
	// their turn came. They are caught up on return.
	Parked int32 `json:"parked"`
	// Waiting clusters are not admitted yet.
	Waiting int32 `json:"waiting"`
	// Unstaged clusters are in no stage and keep what they have.
	// +optional
	Unstaged int32 `json:"unstaged,omitempty"`
	// Ignored clusters are selected by a stage or strategy but not installed.
	// +optional
	Ignored int32 `json:"ignored,omitempty"`
	// Removing clusters are leaving the install set.
	// +optional
	Removing int32 `json:"removing,omitempty"`
}

// StageStatus is where one stage stands.
type StageStatus struct {
	// Name of the stage: a declared stage; a decision group, as in group-canary; rest
	// after the groups, or all without any; with a pace per placement those names
	// after the placement's, or its name alone.
	Name string `json:"name"`
	// Phase is Waiting, Progressing, Soaking, Complete, Failed, Held or NothingToDo.
	Phase string `json:"phase"`
	// Counts over the stage's clusters.
	Counts Counts `json:"counts"`
	// SoakingUntil is when the last cluster verified so far has soaked.
	// +optional
	SoakingUntil *metav1.Time `json:"soakingUntil,omitempty"`
	// Message says in words what the stage waits for.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClusterReason is a cluster and why it is listed.
type ClusterReason struct {
	// Cluster name.
	Cluster string `json:"cluster"`
	// Reason in words, bounded in length.
	Reason string `json:"reason"`
}

// Ledger is what was reserved and when. A name stands in it once: in a wave, or parked.
type Ledger struct {
	// Waves of admissions, oldest first.
	// +optional
	Waves []Wave `json:"waves,omitempty"`
	// Parked clusters were lost after admission and hold no slot.
	// +optional
	Parked []ParkedClusters `json:"parked,omitempty"`
	// Removal is the budget of clusters leaving.
	// +optional
	Removal *RemovalBudget `json:"removal,omitempty"`
}

// Wave is a set of clusters admitted together to one revision.
// Invariant: Clusters is sorted; every position in Verified is < len(Clusters).
type Wave struct {
	// Revision is the digest admitted to.
	Revision string `json:"revision"`
	// Stage the clusters were admitted in.
	// +optional
	Stage string `json:"stage,omitempty"`
	// AdmittedAt starts the progress deadline.
	AdmittedAt metav1.Time `json:"admittedAt"`
	// All reserves every cluster of the stage that stands nowhere else in the
	// ledger; then Clusters is empty.
	// +optional
	All bool `json:"all,omitempty"`
	// Joining says that the clusters ran nothing when they were admitted, to the
	// revision that was stable; they are moved on to the target last.
	// +optional
	Joining bool `json:"joining,omitempty"`
	// Clusters admitted, by name. Empty where ClustersGzip is set.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// ClustersGzip is the gzip'd, newline-joined Clusters of a list above 64 KiB.
	// +optional
	ClustersGzip []byte `json:"clustersGzip,omitempty"`
	// Verified groups, by second, the positions in Clusters of those verified.
	// +optional
	Verified []VerifiedAt `json:"verified,omitempty"`
}

// VerifiedAt is a second and who was verified in it.
type VerifiedAt struct {
	// At starts the soak.
	At metav1.Time `json:"at"`
	// Positions in the wave's Clusters, as ranges: "0-3,7".
	Positions string `json:"positions"`
}

// ParkedClusters are clusters lost after admission to one revision.
type ParkedClusters struct {
	// Revision they were admitted to.
	Revision string `json:"revision"`
	// Stage they were admitted in.
	// +optional
	Stage string `json:"stage,omitempty"`
	// Clusters by name, sorted. Empty where ClustersGzip is set.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// ClustersGzip is the gzip'd, newline-joined Clusters of a list above 64 KiB.
	// +optional
	ClustersGzip []byte `json:"clustersGzip,omitempty"`
	// Failed says that they had failed when the add-on left them: the target's failures
	// are not forgotten with those who failed.
	// +optional
	Failed bool `json:"failed,omitempty"`
}

// RemovalBudget is how many clusters may leave, and since when they want to.
type RemovalBudget struct {
	// Since is when the removal began.
	Since metav1.Time `json:"since"`
	// Total is the add-on's ManagedClusterAddOns counted when it began.
	Total int32 `json:"total"`
	// Commit whose tree no longer declares the add-on, where all of it is to go.
	// Since is then its grace period's start; of single clusters Departed is.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Departed are the clusters that nothing selects any more, by when that was first
	// seen, oldest first. Whoever is selected again is struck off.
	// +optional
	Departed []Departed `json:"departed,omitempty"`
	// Lifted is the approval that was used: it lets go of whoever had departed by then.
	// +optional
	Lifted *LiftedRemoval `json:"lifted,omitempty"`
	// WindowStart is when the newest of Removed was let go; the budget's window is
	// over a grace period later.
	// +optional
	WindowStart *metav1.Time `json:"windowStart,omitempty"`
	// Removed in the current window, by name, sorted.
	// +optional
	Removed []string `json:"removed,omitempty"`
	// Returned counts those removed in the current window that have the add-on again.
	// They have used up their share of the budget, and their names stand for nothing.
	// +optional
	Returned int32 `json:"returned,omitempty"`
}

// Departed are clusters that left the install set in the same second.
type Departed struct {
	// Since is when that was first seen; their grace period starts then.
	Since metav1.Time `json:"since"`
	// Clusters by name, sorted. Empty where ClustersGzip is set.
	// +optional
	Clusters []string `json:"clusters,omitempty"`
	// ClustersGzip is the gzip'd, newline-joined Clusters of a list above 64 KiB.
	// +optional
	ClustersGzip []byte `json:"clustersGzip,omitempty"`
}

// LiftedRemoval is an approval and when it was first acted upon.
type LiftedRemoval struct {
	// Commit the approval annotation named.
	Commit string `json:"commit"`
	// At is when it was first acted upon. It says nothing about who departs later.
	At metav1.Time `json:"at"`
}

// HistoryEntry is one past or present rollout.
type HistoryEntry struct {
	// Target of the rollout.
	Target Target `json:"target"`
	// Phase it ended in, or is in.
	Phase Phase `json:"phase"`
	// Started is when it was first planned for.
	Started metav1.Time `json:"started"`
	// Finished is when it ended; absent while it runs.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
	// Counts when it ended, or now.
	Counts Counts `json:"counts"`
	// SupersededBy is the commit that took its place before it ended.
	// +optional
	SupersededBy string `json:"supersededBy,omitempty"`
}

// AddOnRollout is policy and admission ledger of one add-on.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=aoroll,categories=addonflow
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Commit",type=string,JSONPath=`.status.target.commit`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.counts.updated`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.counts.total`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.counts.failed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.message`,priority=1
type AddOnRollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   AddOnRolloutSpec   `json:"spec,omitempty"`
	Status AddOnRolloutStatus `json:"status,omitempty"`
}

// GetConditions returns the conditions, as fluxcd's runtime reads them.
func (r *AddOnRollout) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions, as fluxcd's runtime writes them.
func (r *AddOnRollout) SetConditions(c []metav1.Condition) { r.Status.Conditions = c }

// AddOnRolloutList is a list of AddOnRollouts.
// +kubebuilder:object:root=true
type AddOnRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnRollout `json:"items"`
}
