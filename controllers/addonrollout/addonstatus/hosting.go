package addonstatus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Hosting is where an add-on runs in hosted mode. The zero value is the default mode.
type Hosting struct {
	// Hosted: the annotation exists; it may be empty.
	Hosted bool
	// Name of the hosting cluster, from the annotation.
	Name string
	// Cluster is nil when no ManagedCluster of that name exists.
	Cluster *clusterv1.ManagedCluster
}

// Problem says why nothing can be written to the hosting cluster; "": it can, or the add-on is in
// the default mode.
func (h Hosting) Problem() string {
	switch {
	case !h.Hosted:
		return ""
	case h.Cluster == nil:
		return h.invalid()
	case h.Cluster.DeletionTimestamp != nil:
		return fmt.Sprintf("hosting cluster %s is being deleted", h.Name)
	}
	return ""
}

// invalid is OCM's message about a hosting cluster that does not exist.
func (h Hosting) invalid() string {
	return fmt.Sprintf("hosting cluster %s is not a managed cluster of the hub", h.Name)
}

// Condition is OCM's HostingClusterValidity; nil in the default mode.
func (h Hosting) Condition() *metav1.Condition {
	if !h.Hosted {
		return nil
	}
	c := &metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnHostingClusterValidity, Status: metav1.ConditionTrue,
		Reason:  addonv1alpha1.HostingClusterValidityReasonValid,
		Message: fmt.Sprintf("hosting cluster %s is a managed cluster of the hub", h.Name),
	}
	if h.Cluster == nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonv1alpha1.HostingClusterValidityReasonInvalid, h.invalid()
	}
	return c
}

// conditions are the conditions that hosted mode adds to a ManagedClusterAddOn in a move. applied is the condition
// about the works on the hosting cluster. hosts: the hosting cluster has works of the add-on.
func (h Hosting) conditions(hosts bool, applied metav1.Condition) []metav1.Condition {
	validity := h.Condition()
	switch {
	case validity == nil:
		return nil
	case !hosts:
		return []metav1.Condition{*validity}
	}
	applied.Type = addonv1alpha1.ManagedClusterAddOnHostingManifestApplied
	return []metav1.Condition{*validity, applied}
}

// stale removes conditions that do not apply any more. In the default mode it removes the
// conditions of hosted mode; otherwise a ManagedClusterAddOn that left hosted mode would keep
// them for ever. If nothing is hosted, it removes the condition about hosted works.
func (h Hosting) stale(hosts bool, conditions *[]metav1.Condition) {
	if !h.Hosted {
		meta.RemoveStatusCondition(conditions, addonv1alpha1.ManagedClusterAddOnHostingClusterValidity)
	}
	if !h.Hosted || !hosts {
		meta.RemoveStatusCondition(conditions, addonv1alpha1.ManagedClusterAddOnHostingManifestApplied)
	}
}

// Fingerprint is a text of the facts about the hosting cluster that the writes of a cluster depend on.
func (h Hosting) Fingerprint() string { return h.Name + "\x00" + h.Problem() }
