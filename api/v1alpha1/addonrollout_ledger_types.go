package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
