package rollout

import (
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Values of Cluster.Running that name no revision. They never equal one.
const (
	// Mixed: the works are ours, but their parts disagree about the revision; or there are
	// none, and what they held can be had from nowhere. Such a cluster waits for its turn.
	Mixed = "mixed"
	// Foreign: there are works of the add-on that AddonFlow did not write.
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
	// Contested says in words who else owns what is the add-on's, "" for nobody: nobody is
	// admitted or removed until that is settled. Who is in flight goes on as far as it may be
	// written, and is not late meanwhile.
	Contested string
	// Stable is the digest of the stable revision, "" before any rollout succeeded.
	Stable string
	// TargetProven: a rollout of the target's content ended Succeeded here before, as its
	// AddOnRevision says. Nothing waits for its proof.
	TargetProven bool
	// Reverting: that was so when it became the target. Until the rollout has ended, clusters
	// do not soak on the way back to it.
	Reverting bool
	// Ended: the rollout of this target under this policy ended Succeeded, as the stored
	// status says. It stays so while joiners and returning clusters catch up.
	Ended bool
	// Rebuild: the stored status is empty. Every cluster whose works differ from the stable
	// revision counts as in flight from now.
	Rebuild bool
	// TargetMissing says in words that the target's content cannot be had, "" when it can:
	// nobody is admitted, whoever runs it is believed to, and removals go on.
	TargetMissing string
	// Ledger as stored, from an uncached read where budget is to be spent.
	Ledger v1alpha1.Ledger
	// Placements holds every placement that install, stages or strategy name, also
	// those that do not exist. A missing entry counts as not existing.
	Placements []Placement
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

// Existence says whether a placement was found on the hub.
type Existence string

// Settlement says whether a placement's decisions can be relied upon.
type Settlement string

const (
	// Missing: the placement was looked for and is not there.
	Missing Existence = "Missing"
	// Exists: the placement was read.
	Exists Existence = "Exists"

	// Undecided: OCM has not decided about the placement as it is. It says nothing about
	// anybody, as if it did not exist.
	Undecided Settlement = "Undecided"
	// Unsettled: the decisions are incomplete or still changing. Nobody is removed
	// and nobody is admitted on the word of such a placement, unless an approval says so.
	Unsettled Settlement = "Unsettled"
	// Settled: as many clusters as the placement's status counts.
	Settled Settlement = "Settled"
)

// Placement is a Placement and its decisions as observed. The zero values of
// Existence and Settlement are read as Missing and Unsettled.
type Placement struct {
	Namespace, Name string
	Existence       Existence
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
type Installation string

const (
	// NotInstalled: there is no ManagedClusterAddOn. Also the zero value.
	NotInstalled Installation = "None"
	// Ours: AddonFlow created it.
	Ours Installation = "Ours"
	// HandMade: somebody else did; it is rolled out to and never deleted.
	HandMade Installation = "HandMade"
	// Deleting: it carries a deletion timestamp.
	Deleting Installation = "Deleting"
)

// Selection is what selects the clusters that get an add-on: by placements, by labels or by hand.
type Selection string

const (
	// ByPlacements: installStrategy Placements. Also the zero value.
	ByPlacements Selection = ""
	// ByLabels: clusterLabelSelector.
	ByLabels Selection = "ClusterLabelSelector"
	// ByHand: nobody is selected; whoever has the add-on keeps it.
	ByHand Selection = "Manual"
)

// Cluster is what was observed of one cluster.
type Cluster struct {
	Name string
	// Labels of the ManagedCluster. Only Spec.ClusterLabelSelector reads them.
	Labels map[string]string
	// InstallDisabled: its ManagedCluster asks for no add-on to be installed by itself.
	InstallDisabled bool
	// Installed says whether and whose the ManagedClusterAddOn is.
	Installed Installation
	// SelectedBy is what last selected the cluster, as Plan said it.
	SelectedBy Selection
	// Gone: the ManagedCluster is terminating or absent; it is left alone.
	Gone bool
	// Reachable: the ManagedCluster's Available condition is True.
	Reachable bool
	// Away says in words why the cluster cannot be given anything now though it is
	// there: a configuration it names is missing, say. Reachable is false then. It is
	// counted, parked and admitted as one that is not available, and named in texts.
	Away string
	// AvailableChanged is when Available last changed, by the clock of the managed cluster;
	// zero: unknown. It can lengthen a soak and nothing else.
	AvailableChanged time.Time
	// Running is the digest of the revision on its works; "" with no work, or Mixed,
	// or Foreign.
	Running string
	// UpToDate: its works already are what the target renders for it now, whichever
	// revision they name. UpToDateStable is the same for the stable revision.
	UpToDate, UpToDateStable bool
	// Health of what its works ask for now.
	Health Health
	// Blocked says in words why its works cannot be written at all, such as a hosting
	// cluster that does not exist, or a variable of the target's that it has no value for;
	// "" when they can. Admitted, it counts as failed.
	Blocked string
	// Awaits says in words what must pass before its works can be written, by itself; ""
	// for nothing.
	Awaits string
	// Departure of a cluster that is Deleting and waits for something.
	Departure Departure
}

// Departure is what a ManagedClusterAddOn that is being deleted waits for. The zero
// value waits for nothing but its deletion.
type Departure struct {
	// Reason in words.
	Reason string
	// OverdueAt is from when on the user is told that it should have been over.
	OverdueAt time.Time
}

// HealthState is what the feedback of a cluster's works adds up to.
type HealthState string

const (
	// HealthUnknown: there is no current feedback. Also the zero value.
	HealthUnknown HealthState = ""
	// HealthProgressing: current feedback says that it is not there yet, or no longer.
	HealthProgressing HealthState = "Progressing"
	// HealthVerified: verified, as the works' feedback proves it.
	HealthVerified HealthState = "Verified"
	// HealthFailed: the cluster reported that it will not get there.
	HealthFailed HealthState = "Failed"
)

// Health is a HealthState and its reason in words.
type Health struct {
	State  HealthState
	Reason string
	// NotApplied is why the agent could not apply what the works ask for now, in its words;
	// "" if it could, or has not said. It becomes a failure if it lasts.
	NotApplied string
	// NotAppliedSince is when the operator first saw that. Zero: with this observation.
	NotAppliedSince time.Time
}
