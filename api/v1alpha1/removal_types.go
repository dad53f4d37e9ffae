package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RemovalRecord is what the ledger remembers of clusters that leave the add-on. Its times
// have a precision of a second and are rounded up, so that no grace period is shortened.
type RemovalRecord struct {
	// Commit that left the add-on out of Git. Empty while single clusters leave.
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
	// Spent is how many removals count against the budget besides those that are reserved.
	// +optional
	Spent int32 `json:"spent,omitempty"`
	// SpentAt is when the operator saw the newest of them carried out. A grace period later
	// the budget is free again.
	// +optional
	SpentAt *metav1.Time `json:"spentAt,omitempty"`
}

// LeavingClusters are clusters that leave and share what is remembered of them.
type LeavingClusters struct {
	// Since is when the operator first saw that the clusters are to leave.
	Since metav1.Time `json:"since"`
	// Approved: an approval lifts grace period and budget for these clusters.
	// +optional
	Approved bool `json:"approved,omitempty"`
	// Reserved: the deletion of the ManagedClusterAddOns is decided and was not seen yet.
	// +optional
	Reserved bool `json:"reserved,omitempty"`
	// Clusters are positions in the ledger's names, ascending, as ranges: "0-3,7".
	Clusters string `json:"clusters"`
}
