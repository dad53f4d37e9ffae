package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemovalRecord is the ledger's record of clusters that leave the add-on. Its times have a
// precision of a second and are rounded up, so that no grace period is shortened.
type RemovalRecord struct {
	// Commit that removed the add-on from Git. Empty while single clusters leave.
	// +optional
	Commit string `json:"commit,omitempty"`
	// Total is the number of the add-on's ManagedClusterAddOns when the removal began. The
	// budget is a share of it.
	// +optional
	Total int32 `json:"total,omitempty"`
	// Leaving are the clusters whose ManagedClusterAddOn is to be deleted, oldest first.
	// +optional
	Leaving []LeavingClusters `json:"leaving,omitempty"`
	// UsedApproval is the commit of an approval that was used and is still set. It removes
	// no further cluster.
	// +optional
	UsedApproval string `json:"usedApproval,omitempty"`
	// Spent is how many removals count against the budget in addition to the reserved ones.
	// +optional
	Spent int32 `json:"spent,omitempty"`
	// SpentAt is when the operator saw the last of these removals finish. The budget is free again one grace period
	// later.
	// +optional
	SpentAt *metav1.Time `json:"spentAt,omitempty"`
}

// LeavingClusters are clusters that leave and have equal records.
type LeavingClusters struct {
	// Since is when the operator first saw that the clusters must leave.
	Since metav1.Time `json:"since"`
	// Approved: an approval lifts grace period and budget for these clusters.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// Reserved: the operator decided to delete the ManagedClusterAddOns and has not seen the
	// deletion yet.
	// +optional
	Reserved bool `json:"reserved,omitempty"`
	// Clusters are positions in the ledger's names, ascending, as ranges: "0-3,7".
	Clusters string `json:"clusters"`
}
