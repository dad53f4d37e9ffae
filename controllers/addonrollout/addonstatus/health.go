package addonstatus

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// tellsHealth reports whether Available and Degraded are written in this move.
func (m Move) tellsHealth(cs []metav1.Condition) bool {
	if m.Available.Status == "" || m.UnknownCluster {
		return false
	}
	return m.State != Started || meta.FindStatusCondition(cs, addonv1alpha1.ManagedClusterAddOnConditionAvailable) == nil
}

// healthConditions are Available, with OCM's text, and Degraded. OCM defines Degraded, "the
// addon agent is providing degraded service", and never writes it; its reasons are AddonFlow's
// own. An add-on that is not available is not reported as degraded.
func healthConditions(addOn string, a render.Availability) []metav1.Condition {
	degraded := metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnConditionDegraded, Status: metav1.ConditionFalse,
		Reason: v1alpha1.ProbeNotDegraded, Message: addOn + " add-on is not degraded.",
	}
	switch {
	case a.Status != metav1.ConditionTrue:
		degraded.Status, degraded.Reason, degraded.Message = metav1.ConditionUnknown, a.Reason, a.Message
	case a.Degraded != "":
		degraded.Status, degraded.Reason = metav1.ConditionTrue, v1alpha1.ProbeDegraded
		degraded.Message = addOn + " add-on is providing degraded service: " + a.Degraded
	}
	return []metav1.Condition{{
		Type: addonv1alpha1.ManagedClusterAddOnConditionAvailable, Status: a.Status, Reason: a.Reason, Message: a.Message,
	}, degraded}
}
