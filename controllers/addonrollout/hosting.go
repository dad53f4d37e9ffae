package addonrollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/render"
)

// hosting is where an add-on runs in hosted mode (OCM behaviour, row 58). The zero
// value is the default mode.
type hosting struct {
	// hosted says that the annotation is there, be it empty.
	hosted bool
	// name of the hosting cluster, as the annotation has it.
	name string
	// cluster is nil when no ManagedCluster of that name exists.
	cluster *clusterv1.ManagedCluster
}

// hostingName reads the annotation of the ManagedClusterAddOn, and before there is one
// that of the ManagedCluster, which will be copied to it.
func (m *member) hostingName() (name string, hosted bool) {
	switch {
	case m.addOn != nil:
		name, hosted = m.addOn.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	case m.cluster != nil:
		name, hosted = m.cluster.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	}
	return name, hosted
}

// hostingOf is where the member is to run, given all clusters by name.
func hostingOf(m *member, clusters map[string]*clusterv1.ManagedCluster) hosting {
	name, hosted := m.hostingName()
	if !hosted {
		return hosting{}
	}
	return hosting{hosted: true, name: name, cluster: clusters[name]}
}

// problem says why nothing can be written to the hosting cluster; "" when it can be,
// and in the default mode.
func (h hosting) problem() string {
	switch {
	case !h.hosted:
		return ""
	case h.cluster == nil:
		return h.invalid()
	case h.cluster.DeletionTimestamp != nil:
		return fmt.Sprintf("hosting cluster %s is being deleted", h.name)
	}
	return ""
}

// invalid is OCM's message about a hosting cluster that does not exist.
func (h hosting) invalid() string {
	return fmt.Sprintf("hosting cluster %s is not a managed cluster of the hub", h.name)
}

// condition is OCM's HostingClusterValidity; nil in the default mode.
func (h hosting) condition() *metav1.Condition {
	if !h.hosted {
		return nil
	}
	c := &metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnHostingClusterValidity, Status: metav1.ConditionTrue,
		Reason:  addonv1alpha1.HostingClusterValidityReasonValid,
		Message: fmt.Sprintf("hosting cluster %s is a managed cluster of the hub", h.name),
	}
	if h.cluster == nil {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, addonv1alpha1.HostingClusterValidityReasonInvalid, h.invalid()
	}
	return c
}

// conditions are what hosted mode adds to a ManagedClusterAddOn that is being moved.
// applied is what the hosting cluster's agent says of the works there.
func (h hosting) conditions(applied metav1.Condition) []metav1.Condition {
	validity := h.condition()
	if validity == nil {
		return nil
	}
	applied.Type = addonv1alpha1.ManagedClusterAddOnHostingManifestApplied
	return []metav1.Condition{*validity, applied}
}

// stale removes, in the default mode, the conditions that only hosted mode has; a
// ManagedClusterAddOn that came back from it would say for ever where it was.
func (h hosting) stale(conditions *[]metav1.Condition) {
	if h.hosted {
		return
	}
	meta.RemoveStatusCondition(conditions, addonv1alpha1.ManagedClusterAddOnHostingClusterValidity)
	meta.RemoveStatusCondition(conditions, addonv1alpha1.ManagedClusterAddOnHostingManifestApplied)
}

// mark is what of the hosting cluster a synced member depends on.
func (h hosting) mark() string { return h.name + "\x00" + h.problem() }

// worksAt is the hosting cluster whose namespace has deploy works of the member that
// are not being deleted, "" for none. It is where the add-on really is hosted, which
// an annotation that was just changed, or mistyped, does not say.
func (m *member) worksAt(addOn string) string {
	for _, w := range m.works {
		if w.DeletionTimestamp == nil && render.IsHostingWork(w, addOn) {
			return w.Namespace
		}
	}
	return ""
}

// writeValidity tells that the hosting cluster cannot be used. Nothing else is
// written: what runs goes on running, on either cluster, until the annotation is mended.
func (d *round) writeValidity(ctx context.Context, m *member, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	updated := addOn.DeepCopy()
	condition := *m.hosting.condition()
	condition.LastTransitionTime = d.now
	meta.SetStatusCondition(&updated.Status.Conditions, condition)
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}
