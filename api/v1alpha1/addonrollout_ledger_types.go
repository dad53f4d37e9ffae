package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ClusterState is the state of one cluster in a rollout. The API, the status, the CLI and the
// documents use the same words.
type ClusterState string

// States of a record. Admitted, Updating, Soaking and Lost hold a slot: the cluster is in
// flight.
const (
	// ClusterAdmitted: a slot is reserved; the works are not written yet.
	ClusterAdmitted ClusterState = "Admitted"
	// ClusterUpdating: the works are written; the content is not verified yet.
	ClusterUpdating ClusterState = "Updating"
	// ClusterSoaking: the content is verified; the soak is not over.
	ClusterSoaking ClusterState = "Soaking"
	// ClusterDone: the content is verified and has soaked.
	ClusterDone ClusterState = "Done"
	// ClusterFailed: the cluster failed with this content.
	ClusterFailed ClusterState = "Failed"
	// ClusterTimedOut: the cluster was available, but was not verified before its progress deadline. This is a
	// failure.
	ClusterTimedOut ClusterState = "TimedOut"
	// ClusterNotWritten: the works could not be written, so the cluster failed without the content. The cluster is
	// admitted again when they can be written. Only the ledger has this state; elsewhere it is shown as Failed.
	ClusterNotWritten ClusterState = "NotWritten"
	// ClusterLost: the cluster is not available and keeps its slot for a while.
	ClusterLost ClusterState = "Lost"
	// ClusterParked: the cluster cannot get content now and holds no slot: it is not available, or its own
	// configurations cannot be used. This is not a failure.
	ClusterParked ClusterState = "Parked"
	// ClusterLeft: the cluster left the add-on before it was Done.
	ClusterLeft ClusterState = "Left"
	// ClusterLeftFailed: the cluster left the add-on after it had failed. It still counts as
	// a failure.
	ClusterLeftFailed ClusterState = "LeftFailed"
)

// InFlight reports whether a cluster in the state holds a slot.
func (s ClusterState) InFlight() bool {
	return s == ClusterAdmitted || s == ClusterUpdating || s == ClusterSoaking || s == ClusterLost
}

// States of a cluster outside the rollout of the target, or not yet admitted to it.
const (
	// ClusterWaiting: the cluster is not admitted to the target yet.
	ClusterWaiting ClusterState = "Waiting"
	// ClusterHeld: the cluster is not admitted because an annotation of its ManagedCluster holds it.
	ClusterHeld ClusterState = "Held"
	// ClusterUnchanged: the target renders the objects that the cluster already runs.
	ClusterUnchanged ClusterState = "Unchanged"
	// ClusterUnstaged: no stage selects the cluster, and it keeps its content.
	ClusterUnstaged ClusterState = "Unstaged"
	// ClusterRemoving: the add-on is being removed from the cluster.
	ClusterRemoving ClusterState = "Removing"
	// ClusterIgnored: a stage or strategy selects the cluster, but it is outside the install set.
	ClusterIgnored ClusterState = "Ignored"
	// ClusterGone: the ManagedCluster is terminating or does not exist.
	ClusterGone ClusterState = "Gone"
)

// Ledger is the memory of a rollout: one record per cluster, and the removals. A record stays until its cluster is
// admitted to other content. There are three exceptions. When a rollout ends Succeeded, records of other revisions
// are dropped. After that, records of clusters that no longer exist are dropped. If content is reverted or
// quarantined, the records of clusters that were admitted to it but never got its works are dropped.
type Ledger struct {
	// Names of all clusters in the ledger: sorted, joined by newlines, gzip'd. Every other
	// field names a cluster by its position in this list.
	// +optional
	Names []byte `json:"names,omitempty"`
	// Records of the clusters, grouped by equal fields. Each cluster is in one group.
	// +optional
	Records []RecordGroup `json:"records,omitempty"`
	// Removal is the record of clusters that leave the add-on.
	// +optional
	Removal *RemovalRecord `json:"removal,omitempty"`
}

// RecordGroup has the records that are equal except for their times.
type RecordGroup struct {
	RecordKey `json:",inline"`
	// Times lists the clusters by the times of their records.
	Times []RecordTimes `json:"times"`
}

// RecordKey has the fields that are equal in the records of a group.
type RecordKey struct {
	// Revision is the digest of the content to which the clusters were admitted.
	Revision string `json:"revision"`
	// Stage in which the clusters were admitted; empty if no stage selected them.
	// +optional
	Stage string `json:"stage,omitempty"`
	// State of the clusters.
	State ClusterState `json:"state"`
	// Failed: the clusters failed with this content before they entered this state. They count as failures until they
	// are Done.
	// +optional
	Failed bool `json:"failed,omitempty"`
	// Excused: the clusters failed with other content, and have verified no content since. If they fail again with
	// content to which a revert moves them, the failure does not count against the budget.
	// +optional
	Excused bool `json:"excused,omitempty"`
	// Reverted: a revert moved the clusters back to this content, and they are not Done yet. They do not
	// soak, because the content is proven.
	// +optional
	Reverted bool `json:"reverted,omitempty"`
	// Reported: when the clusters took their slots, they already reported a failure. That failure is of an earlier
	// admission, and does not count at once.
	// +optional
	Reported bool `json:"reported,omitempty"`
	// Refusal says why the hub refused the last write of the clusters' works; empty: it did not refuse. The works are
	// not written.
	// +optional
	Refusal string `json:"refusal,omitempty"`
}

// RecordTimes are the clusters of a group with equal times. Times are rounded up, so that a soak is never
// shorter than declared: to a second while the clusters are in flight, to a minute otherwise. If the ledger is almost
// full, the precision is lower.
type RecordTimes struct {
	// Admitted is when the clusters took their slot: when they were admitted, or when they returned after they had
	// lost the slot.
	Admitted metav1.Time `json:"admitted"`
	// Since is when the clusters entered their state. Soaks and deadlines start here.
	Since metav1.Time `json:"since"`
	// Ahead is the lastTransitionTime of the condition Available of the ManagedClusters, if it is later than Since.
	// This change has already restarted the soak; only a later change restarts it again.
	// +optional
	Ahead *metav1.Time `json:"ahead,omitempty"`
	// Clusters are positions in the ledger's names, ascending, as ranges: "0-3,7".
	Clusters string `json:"clusters"`
}
