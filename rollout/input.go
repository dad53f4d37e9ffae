package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

// Values of Cluster.Running that are no digest. They differ from every digest.
const (
	// Mixed: AddonFlow wrote the works, but they name different revisions, or lost their marks. A cluster without
	// works is Mixed, too, if it cannot join at the stable revision: it ran with other configurations before, or the
	// stable revision cannot be rendered for it. The cluster waits to be admitted.
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
	// Spec is the policy; target, install and removal are set.
	Spec v1alpha1.AddOnRolloutSpec
	// Suspended: an annotation suspends the rollout. Spec.Suspend suspends it, too.
	Suspended bool
	// Contested names another owner of the add-on's objects; "": there is none. While it is
	// set, no cluster is admitted or removed. Clusters in flight continue where writes are
	// allowed; their deadlines do not run.
	Contested string
	// Stable is the digest of the stable revision, "" before any rollout succeeded.
	Stable string
	// TargetSince is when the target was set. A cluster that took its slot earlier is retargeted at once.
	TargetSince time.Time
	// TargetProven: a rollout of the target's content ended Succeeded here before, as its
	// AddOnRevision says. No stage waits for a cluster to verify it.
	TargetProven bool
	// Reverting: the content was proven when it became the target. Clusters that run other content move back without
	// soaks, gates and dependencies. The same holds for clusters that return after the end of the revert.
	Reverting bool
	// RollingBack: the operator reverts, although Git declares the content that the clusters leave. Clusters that failed
	// with that content do not wait for the stages before their own.
	RollingBack bool
	// Returned: a rollout of the content has ended Succeeded since it became the target. After that, moves of other
	// clusters are no longer part of the revert.
	Returned bool
	// Ended: the stored status says that the rollout of this target under this policy ended Succeeded. The rollout
	// stays ended while joiners and returning clusters catch up.
	Ended bool
	// Rebuild: the stored status is empty. Every cluster whose works differ from the stable
	// revision counts as in flight from now.
	Rebuild bool
	// TargetMissing says why the target's content is not available; "": it is available. While it is set, no cluster
	// is admitted and removals continue. A cluster whose works name the target counts as running it, because its
	// works cannot be compared.
	TargetMissing string
	// Ledger as stored. It must come from an uncached read if the plan reserves slots.
	Ledger v1alpha1.Ledger
	// Orders are to be carried out by this plan.
	Orders []Order
	// Aborted says which user ended the rollout, and why; "": no user did. While it is set, no cluster is admitted to
	// the target.
	Aborted string
	// Withdrawn: the target's content is being quarantined. No cluster is admitted.
	Withdrawn bool
	// Placements has every placement that install, stages or strategy name, even if it does not exist. A missing
	// entry counts as a placement that does not exist.
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

// Settlement says whether a placement exists, and whether its decisions are complete.
type Settlement string

const (
	// Missing: the placement is not on the hub, or was not read.
	Missing Settlement = ""
	// Undecided: OCM has not decided about the current version of the placement. It counts as if it did not exist,
	// because nothing is known about any cluster.
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
	// ClustersPerDecisionGroup is the field of spec.decisionStrategy.groupStrategy; zero: not set.
	ClustersPerDecisionGroup intstr.IntOrString
}

// Group is one decision group of a placement.
type Group struct {
	Name     string
	Index    int
	Clusters []string
}

// Installation says whether a cluster has a ManagedClusterAddOn, and which client created it.
type Installation = removal.Installation

// The values of an Installation.
const (
	NotInstalled = removal.NotInstalled
	Ours         = removal.Ours
	HandMade     = removal.HandMade
	Deleting     = removal.Deleting
)

// Selection is how clusters are selected that get an add-on: by placements, by labels or by hand.
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
	// SelectedBy is the last selection of the cluster, as an earlier Plan returned it.
	SelectedBy Selection
	// Gone: the ManagedCluster is terminating or absent; the operator does nothing for the cluster.
	Gone bool
	// Reachable: the ManagedCluster's Available condition is True.
	Reachable bool
	// Away says why the cluster can receive no content although it is available, such as a missing configuration.
	// Reachable is then false. The cluster is counted, parked and admitted like an unavailable cluster, and texts
	// name it.
	Away string
	// Held: the cluster is not admitted before HeldUntil; zero: without end. Drift is repaired, and a cluster in
	// flight finishes with its content. HeldFor is the value of the annotation if the value is neither a time nor
	// "true".
	Held      bool
	HeldUntil time.Time
	HeldFor   string
	// AvailableChanged is when Available last changed, by the clock of the managed cluster; zero: unknown. It is used
	// only to lengthen a soak.
	AvailableChanged time.Time
	// Running is the digest of the revision that the works name, Mixed or Foreign; "": the cluster has no work.
	Running string
	// UpToDate: its works are equal to the rendering of the target, whichever revision they name. UpToDateStable is
	// the same for the stable revision.
	UpToDate, UpToDateStable bool
	// Health of the current content of its works.
	Health Health
	// Blocked says why the works of the cluster cannot be written at all, such as a hosting cluster that does not
	// exist; "": they can be written. Refused says why only the target's works cannot be written, such as a variable
	// without a value. An admitted cluster whose works cannot be written counts as failed.
	Blocked, Refused string
	// Awaits says what must happen before the works of the cluster can be written; "": they can be written now. The
	// wait ends without an action of the user.
	Awaits string
	// Waits says why the cluster is not admitted now, such as an add-on that it depends on; "": it may be admitted.
	// Meanwhile it takes no slot, blocks no other cluster and has no deadline. A cluster in flight continues with its
	// content. A revert moves the cluster although it waits.
	Waits string
	// NeededBy are the add-ons on the cluster that depend on this one. This add-on is removed after them.
	NeededBy []string
	// Unwritten says why the hub refused the last write of the works; "": it accepted the write, or the operator has
	// not written since its start. A refusal that lasts becomes a failure. UnwrittenSince is since when the hub has
	// refused every write.
	Unwritten      string
	UnwrittenSince time.Time
	// Unremoved says why the hub refused the last deletion of the ManagedClusterAddOn; "": it accepted the deletion,
	// or the operator has deleted nothing since its start.
	Unremoved string
	// Departure of a cluster in state Deleting that waits for something.
	Departure Departure
}

// Departure says what a ManagedClusterAddOn that is being deleted waits for. The zero value: it waits for nothing
// but the deletion itself.
type Departure struct {
	// Reason in words.
	Reason string
	// OverdueAt is when the deletion is reported as overdue; zero: never.
	OverdueAt time.Time
}

// HealthState is the summary of the feedback of a cluster's works.
type HealthState string

const (
	// HealthUnknown: there is no current feedback. Also the zero value.
	HealthUnknown HealthState = ""
	// HealthProgressing: the current feedback says that the cluster is not verified, or no longer verified.
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
	// NotApplied is the reason of the agent why it could not apply the current works; "": it applied them, or has
	// reported nothing. A reason that lasts becomes a failure.
	NotApplied string
	// BadSince is when the operator first saw the failure, or NotApplied; zero: it sees it for the first time now.
	BadSince time.Time
}
