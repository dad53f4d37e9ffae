package v1alpha1

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
)

// AddOnRolloutKind is the kind of AddOnRollout.
const AddOnRolloutKind = "AddOnRollout"

// StrategyType names a way to move the clusters of an add-on.
type StrategyType string

const (
	// StrategyAll moves every cluster at once; OCM's lifecycle proposal calls it UpdateAll.
	StrategyAll StrategyType = "All"
	// StrategyUpdateAll is StrategyAll under the name of OCM's lifecycle proposal.
	StrategyUpdateAll StrategyType = "UpdateAll"
	// StrategyProgressive moves clusters a few at a time.
	StrategyProgressive StrategyType = "Progressive"
	// StrategyProgressivePerGroup moves one decision group after another.
	StrategyProgressivePerGroup StrategyType = "ProgressivePerGroup"
	// StrategyRollingUpdateWithPlacement moves a share of one placement's
	// clusters and holds the rest, as in OCM's lifecycle proposal.
	StrategyRollingUpdateWithPlacement StrategyType = "RollingUpdateWithPlacement"
)

// AddOnRolloutSpec is policy: which clusters get the add-on, and how fast. In Git, a user declares strategy or
// stages, onFailure, rollback, blocked, dependsOn, onNewCommit, clusterLabelSelector, health, suspend and
// revisionHistoryLimit. AddonFlow writes target, install, policyCommit, placementDigest and removal, and refuses them
// in Git. AddonFlow writes the whole spec and undoes changes by other writers.
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="!(has(self.strategy) && has(self.stages) && size(self.stages) > 0)",message="strategy and stages exclude each other"
type AddOnRolloutSpec struct {
	// Strategy is one pace for the whole add-on.
	// +optional
	Strategy *RolloutStrategy `json:"strategy,omitempty"`

	// Stages is an ordered list of placements, each with its own pace. A cluster belongs to the first stage that
	// selects it.
	// +kubebuilder:validation:MaxItems=31
	// +listType=map
	// +listMapKey=name
	// +optional
	Stages []Stage `json:"stages,omitempty"`

	// OnFailure is Pause (the default) or Rollback. With Rollback, if the failures exceed the budget, the clusters
	// that have the content move back to the newest revision that succeeded, failed clusters first. Without such a
	// revision, as on a first install, Rollback has the effect of Pause.
	// +kubebuilder:validation:Enum=Pause;Rollback
	// +optional
	OnFailure FailureAction `json:"onFailure,omitempty"`
	// Rollback limits rollbacks.
	// +optional
	Rollback *RollbackPolicy `json:"rollback,omitempty"`
	// Blocked content is not rolled out. Clusters that run it move to the newest revision that
	// succeeded and is not blocked.
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Blocked []BlockedContent `json:"blocked,omitempty"`

	// DependsOn are add-ons of the same namespace. Content reaches a cluster only when the target of each of these
	// add-ons is verified there. Reverts and rollbacks do not wait for them.
	// +kubebuilder:validation:MaxItems=20
	// +listType=map
	// +listMapKey=addOn
	// +optional
	DependsOn []Dependency `json:"dependsOn,omitempty"`

	// OnNewCommit is Supersede (the default) or Finish. With Finish, new content waits until the current rollout has
	// ended Succeeded, Failed, Held or RolledBack. Of several contents that wait, only the newest is rolled out. A
	// commit that changes only the policy, and a revert to proven content, never wait.
	// +kubebuilder:validation:Enum=Supersede;Finish
	// +optional
	OnNewCommit NewCommitAction `json:"onNewCommit,omitempty"`

	// ClusterLabelSelector installs the add-on on every cluster whose ManagedCluster has these
	// labels. It requires installStrategy Manual in the ClusterManagementAddOn. An empty
	// selector selects every cluster.
	// +optional
	ClusterLabelSelector *metav1.LabelSelector `json:"clusterLabelSelector,omitempty"`

	// Suspend stops admissions and removals. Clusters in flight continue, and drift is repaired.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// RevisionHistoryLimit is how many AddOnRevisions are kept besides those in use.
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// Health says how the health of the add-on on a cluster is determined; prober
	// WorkloadAvailability if absent.
	// +optional
	Health *Health `json:"health,omitempty"`

	// Target is the content the fleet is to run. Written by AddonFlow.
	// +optional
	Target *Target `json:"target,omitempty"`
	// Install is the install strategy of the ClusterManagementAddOn in Git. Written by AddonFlow.
	// +optional
	Install *Install `json:"install,omitempty"`
	// PolicyCommit is the commit that declared the rest of this spec, <ref>@sha1:<commit>; absent: it is the target's
	// commit. Written by AddonFlow.
	// +optional
	PolicyCommit string `json:"policyCommit,omitempty"`
	// PlacementDigest identifies the Placements of this policy, and the ManagedClusterSetBindings in their
	// namespaces, as Git declares them; "": Git declares none. They are policy: if the digest changes, the operator
	// plans again. Written by AddonFlow.
	// +optional
	PlacementDigest string `json:"placementDigest,omitempty"`
	// Removal requests that the add-on is removed from the fleet. Written by AddonFlow.
	// +optional
	Removal *Removal `json:"removal,omitempty"`
}

// Placements returns every placement that the policy names, each once, in the order install,
// stages, strategy.
func (s *AddOnRolloutSpec) Placements() []PlacementReference {
	var refs []PlacementReference
	add := func(r PlacementReference) {
		if !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	if s.Install != nil {
		for _, p := range s.Install.Placements {
			add(p.PlacementReference)
		}
	}
	for _, st := range s.Stages {
		add(st.Placement)
	}
	if s.Strategy != nil && s.Strategy.RollingUpdateWithPlacement != nil {
		add(s.Strategy.RollingUpdateWithPlacement.PlacementReference)
	}
	return refs
}

// Dependency is an add-on that another one depends on.
type Dependency struct {
	// AddOn is its name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	AddOn string `json:"addOn"`
	// Optional: a cluster does not wait for this add-on if it does not exist or is not to be installed on the
	// cluster.
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// RolloutStrategy is one pace for the whole add-on, with the fields of OCM and of its lifecycle proposal. The
// validation rules exist because OCM's minSuccessTime has no pattern. One stored value that is not a duration would
// break the watch on every AddOnRollout.
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

// RollingUpdateWithPlacement moves a share of a placement's clusters.
type RollingUpdateWithPlacement struct {
	PlacementReference `json:",inline"`
	// MaxConcurrentlyUpdating is the number or percent, rounded up, of the clusters that are
	// both selected and installed; 25% if absent.
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
	// Name of the stage. It is the last part of the stage's commit status context.
	// +kubebuilder:validation:Pattern="^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`
	// Placement whose clusters the stage moves.
	Placement PlacementReference `json:"placement"`
	// MaxConcurrency is how many clusters of the stage may be in flight: a number, or a percentage of its clusters,
	// rounded up; 0 holds the stage. If absent, it is the placement's clustersPerDecisionGroup; if that is absent,
	// all clusters of the stage.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxConcurrency *intstr.IntOrString `json:"maxConcurrency,omitempty"`
	// MinSuccessTime is the soak of each cluster: how long the new content must stay verified
	// there.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^(0|([0-9]+(\\.[0-9]+)?(ms|s|m|h))+)$"
	// +optional
	MinSuccessTime metav1.Duration `json:"minSuccessTime,omitempty"`
	// ProgressDeadline is a positive duration, or None. Absent: 1h.
	// +optional
	ProgressDeadline string `json:"progressDeadline,omitempty"`
	// MaxFailures is how many clusters of the stage may fail: a number, or a percentage of its clusters, rounded up;
	// none if absent.
	// +kubebuilder:validation:XIntOrString
	// +optional
	MaxFailures *intstr.IntOrString `json:"maxFailures,omitempty"`
	// WhenEmpty is the effect of a stage whose placement selects no cluster of the install set: Hold (the default)
	// holds the stages after it, Pass lets them start. An empty stage always passes on a first install, a revert and
	// a removal, and after the rollout ended Succeeded.
	// +kubebuilder:validation:Enum=Hold;Pass
	// +optional
	WhenEmpty WhenEmpty `json:"whenEmpty,omitempty"`
	// Gates that the stage must pass.
	// +optional
	Gates *Gates `json:"gates,omitempty"`
}

// WhenEmpty is the behaviour of a stage without clusters.
type WhenEmpty string

const (
	// WhenEmptyHold holds the stages after the empty stage.
	WhenEmptyHold WhenEmpty = "Hold"
	// WhenEmptyPass lets the stages after the empty stage start.
	WhenEmptyPass WhenEmpty = "Pass"
)

// Target is the content the fleet is to run.
type Target struct {
	// Source is the name of the AddOnSource, in the same namespace.
	Source string `json:"source"`
	// Revision is the name of the AddOnRevision.
	Revision string `json:"revision"`
	// Digest of the AddOnRevision.
	Digest string `json:"digest"`
	// Commit that introduced the content, <ref>@sha1:<commit>.
	Commit string `json:"commit"`
}

// Install is the declared installStrategy of the ClusterManagementAddOn.
type Install struct {
	// Type is Manual or Placements.
	Type string `json:"type"`
	// DefaultCanary: no file declares a pace, and the operator runs with --default-canary.
	// +optional
	DefaultCanary bool `json:"defaultCanary,omitempty"`
	// Placements in declared order; if two select a cluster, the later one applies.
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

// Removal requests that the add-on is removed from the fleet because its source no longer
// declares it, or is being deleted.
type Removal struct {
	// Commit whose tree no longer declares the add-on, a full sha. For a deleted source, it is the last commit that
	// the source saw. The approval annotation names it.
	Commit string `json:"commit"`
	// Approved is true if spec.prune of the source approves the removal, at the pace of the
	// removal budget.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// Deleting is the object whose deletion removes the add-on, such as AddOnSource/fleet. Absent: the add-on left
	// Git.
	// +optional
	Deleting string `json:"deleting,omitempty"`
}

// UninstallAdvice says how a user ends a deletion that uninstalls AddonFlow.
const UninstallAdvice = "add-ons keep running; delete the operator and run addonflow uninstall"

// Uninstalls reports whether the deletion uninstalls AddonFlow, and does not only remove a source.
func (r *Removal) Uninstalls() bool {
	return r != nil && r.Deleting != "" && !strings.HasPrefix(r.Deleting, AddOnSourceKind+"/")
}

// AddOnRollout has the policy (spec) and the ledger (status) of one add-on.
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

// SpecEdited reports whether a writer other than AddonFlow set a field of the spec. Then the spec differs from Git.
func (r *AddOnRollout) SpecEdited() bool {
	return slices.ContainsFunc(r.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager != FieldManager && e.Subresource == "" && e.FieldsV1 != nil && bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:spec"`))
	})
}

// SetConditions replaces the conditions, as fluxcd's runtime writes them.
func (r *AddOnRollout) SetConditions(c []metav1.Condition) { r.Status.Conditions = c }

// AddOnRolloutList is a list of AddOnRollouts.
// +kubebuilder:object:root=true
type AddOnRolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AddOnRollout `json:"items"`
}
