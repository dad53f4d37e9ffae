package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

// Values of Cluster.Running that name no revision. They never equal one.
const (
	// Mixed: AddonFlow wrote the works, but their parts name different revisions; or there are no
	// works, and their content is not stored anywhere or the stable revision cannot be rendered
	// for the cluster. The cluster waits to be admitted.
	Mixed = "mixed"
	// Foreign: the cluster has works of the add-on that AddonFlow did not write.
	Foreign = "foreign"
)

// Input is everything a plan depends on. New never changes it.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// AddOn is the name of the add-on; it appears in texts only.
	AddOn string
	// Spec is the policy with target, install and removal filled.
	Spec v1alpha1.AddOnRolloutSpec
	// Suspended by annotation; Spec.Suspend suspends as well.
	Suspended bool
	// Contested names another owner of the add-on's objects; "": there is none. While it is
	// set, no cluster is admitted or removed. Clusters in flight continue where writes are
	// allowed; their deadlines do not run.
	Contested string
	// Stable is the digest of the stable revision, "" before any rollout succeeded.
	Stable string
	// TargetSince is when the target became the target. A cluster that took its slot before is retargeted at once.
	TargetSince time.Time
	// TargetProven: a rollout of the target's content ended Succeeded here before, as its
	// AddOnRevision says. No stage waits for a cluster to verify it.
	TargetProven bool
	// Reverting: the content was proven when it became the target. Clusters that run other content
	// go back to it without soaks, gates and dependencies, also when they return after the end.
	Reverting bool
	// RollingBack: the operator reverts, although Git declares the content that the clusters leave. Clusters that failed
	// with that content do not wait for the stages before their own.
	RollingBack bool
	// Returned: a rollout of the content has ended Succeeded since it became the target. After that, moves of other
	// clusters are no longer part of the revert.
	Returned bool
	// Ended: the rollout of this target under this policy ended Succeeded, as the stored
	// status says. It stays so while joiners and returning clusters catch up.
	Ended bool
	// Rebuild: the stored status is empty. Every cluster whose works differ from the stable
	// revision counts as in flight from now.
	Rebuild bool
	// TargetMissing says in words that the target's content is not available; "": it is. While
	// it is set, no cluster is admitted and removals continue. Clusters whose works name the
	// target count as running it, because their works cannot be compared.
	TargetMissing string
	// Ledger as stored. It must come from an uncached read if the plan reserves slots.
	Ledger v1alpha1.Ledger
	// Orders are to be carried out by this plan.
	Orders []Order
	// Aborted says by whom and why the rollout was ended; "": it was not. While it is set, no
	// cluster is admitted to the target.
	Aborted string
	// Withdrawn: the target's content is being quarantined. No cluster is admitted.
	Withdrawn bool
	// Placements holds every placement that install, stages or strategy name, also
	// those that do not exist. A missing entry counts as not existing.
	Placements []Placement
	// Gates are the verdicts of the gates of the stages, in any order. A gate without a verdict is
	// Waiting.
	Gates []Gate
	// Clusters holds one entry per cluster that has the add-on, is to have it, or is
	// selected by a placement, in any order.
	Clusters []Cluster
	// ParkAfter is how long a lost cluster keeps its slot if no progress deadline is
	// declared. RemovalGrace is the grace period and budget window of removals.
	ParkAfter, RemovalGrace time.Duration
	// ApplyErrorAfter is how long after the works were written an apply error becomes a
	// failure; 0: never.
	ApplyErrorAfter time.Duration
	// ApprovedRemoval is the value of the annotation addonflow.io/approve-removal.
	ApprovedRemoval string
	// LedgerLimit is the most bytes the encoded ledger may have; 0: DefaultLedgerLimit.
	LedgerLimit int
}

// Settlement says whether a placement exists, and whether its decisions can be relied upon.
type Settlement string

const (
	// Missing: the placement is not on the hub, or was not looked for.
	Missing Settlement = ""
	// Undecided: OCM has not decided about the current version of the placement. It counts as if it did not exist: it
	// says nothing about any cluster.
	Undecided Settlement = "Undecided"
	// Unsettled: the decisions are incomplete or still changing. Such a placement admits no
	// cluster; it removes a cluster only with an approval.
	Unsettled Settlement = "Unsettled"
	// Settled: the decisions name as many clusters as the placement's status counts.
	Settled Settlement = "Settled"
)

// Placement is a Placement and its decisions as observed.
type Placement struct {
	Namespace, Name string
	Settlement      Settlement
	// Groups are the decision groups, in any order; a cluster in none of them is not
	// selected. A placement without group strategy has one group, index 0, no name.
	Groups []Group
	// ClustersPerDecisionGroup is spec.decisionStrategy.groupStrategy's; zero: none.
	ClustersPerDecisionGroup intstr.IntOrString
}

// Group is one decision group of a placement.
type Group struct {
	Name     string
	Index    int
	Clusters []string
}

// Installation says whose ManagedClusterAddOn a cluster has.
type Installation = removal.Installation

// The values of an Installation.
const (
	NotInstalled = removal.NotInstalled
	Ours         = removal.Ours
	HandMade     = removal.HandMade
	Deleting     = removal.Deleting
)

// Selection is what selects the clusters that get an add-on: by placements, by labels or by hand.
type Selection string

const (
	// ByPlacements: installStrategy Placements. Also the zero value.
	ByPlacements Selection = ""
	// ByLabels: clusterLabelSelector.
	ByLabels Selection = "ClusterLabelSelector"
	// ByHand: no cluster is selected; a cluster that has the add-on keeps it.
	ByHand Selection = "Manual"
)

// Cluster is what was observed of one cluster.
type Cluster struct {
	Name string
	// Labels of the ManagedCluster. Only Spec.ClusterLabelSelector reads them.
	Labels map[string]string
	// InstallDisabled: its ManagedCluster disables automatic installation of add-ons.
	InstallDisabled bool
	// Installed says whether the cluster has a ManagedClusterAddOn, and whether AddonFlow created
	// it.
	Installed Installation
	// SelectedBy is what last selected the cluster, as an earlier Plan returned it.
	SelectedBy Selection
	// Gone: the ManagedCluster is terminating or absent; the operator does nothing for the cluster.
	Gone bool
	// Reachable: the ManagedCluster's Available condition is True.
	Reachable bool
	// Away says in words why the cluster can receive no content now although it is available,
	// such as a missing configuration. Reachable is false then. The cluster is counted, parked
	// and admitted like an unavailable cluster, and texts name it.
	Away string
	// Held: the cluster is not to be admitted before HeldUntil; zero: without end. Drift is repaired, and a cluster in
	// flight finishes with its content.
	// HeldFor is the value of the annotation if it is neither a time nor "true".
	Held      bool
	HeldUntil time.Time
	HeldFor   string
	// AvailableChanged is when Available last changed, by the clock of the managed cluster;
	// zero: unknown. It can lengthen a soak and nothing else.
	AvailableChanged time.Time
	// Running is the digest of the revision on its works, Mixed or Foreign; "": it has no
	// work.
	Running string
	// UpToDate: its works are equal to the rendering of the target, whichever revision they name. UpToDateStable is
	// the same for the stable revision.
	UpToDate, UpToDateStable bool
	// Health of the current content of its works.
	Health Health
	// Blocked says in words why its works cannot be written at all, such as a hosting
	// cluster that does not exist; "": they can be written. Refused says the same of the
	// target's works only, such as a variable of the target that has no value for the cluster.
	// An admitted cluster whose works cannot be written counts as failed.
	Blocked, Refused string
	// Awaits says in words what must happen before its works can be written; "" if they can be written now. The wait
	// ends without an action of the user.
	Awaits string
	// Waits says in words why the cluster is not admitted now, such as an add-on that it depends on;
	// "": it may be. It takes no slot meanwhile, blocks no other cluster and has no deadline. A
	// cluster in flight continues with its content. Reverts move clusters although they wait.
	Waits string
	// NeededBy are the add-ons that depend on this one and are still on the cluster. It is removed
	// after them.
	NeededBy []string
	// Unwritten says in words why the hub refused the last write of its works; "": it did not, or
	// none was made since the operator started. It becomes a failure if it lasts. UnwrittenSince is
	// since when every write was refused.
	Unwritten      string
	UnwrittenSince time.Time
	// Unremoved says in words why the hub refused the last deletion of the ManagedClusterAddOn; "": it did
	// not, or none was made since the operator started.
	Unremoved string
	// Departure of a cluster that is Deleting and waits for something.
	Departure Departure
}

// Departure is what a ManagedClusterAddOn that is being deleted waits for. The zero
// value waits for nothing but its deletion.
type Departure struct {
	// Reason in words.
	Reason string
	// OverdueAt is when the deletion is reported as overdue; zero: never.
	OverdueAt time.Time
}

// HealthState summarises the feedback of a cluster's works.
type HealthState string

const (
	// HealthUnknown: there is no current feedback. Also the zero value.
	HealthUnknown HealthState = ""
	// HealthProgressing: current feedback says that it is not verified yet, or no longer.
	HealthProgressing HealthState = "Progressing"
	// HealthVerified: the feedback of the works proves the content.
	HealthVerified HealthState = "Verified"
	// HealthFailed: the cluster reported that the content failed.
	HealthFailed HealthState = "Failed"
)

// Health is a HealthState and its reason in words.
type Health struct {
	State  HealthState
	Reason string
	// NotApplied is the agent's reason why it could not apply the current works; "": it applied
	// them, or has reported nothing. It becomes a failure if it lasts.
	NotApplied string
	// BadSince is when the operator first saw the failure, or NotApplied. Zero: in this observation.
	BadSince time.Time
}
