package addonstatus

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/registration"
)

// Access is how the agent on one cluster gets access to the hub. The zero value belongs to an
// add-on without registration.
type Access struct {
	// Registrations are the credentials that the klusterlet requests.
	Registrations []addonv1alpha1.RegistrationConfig
	// Permissions is the state of the agent's roles on the hub.
	Permissions registration.Outcome
}

// speaks reports whether RegistrationApplied needs a write of its own. In the middle of a move a
// success can wait for the write at the end of the move.
func (a Access) speaks(state State) bool {
	return state != Started || a.Permissions.State == registration.Failed
}

// conditions is RegistrationApplied with OCM's text. It is empty while permissions are pending,
// which saves a write per move. An add-on without registration has no pending permissions; OCM uses
// the same text for it.
func (a Access) conditions() []metav1.Condition {
	c := metav1.Condition{
		Type: registrationApplied, Status: metav1.ConditionTrue,
		Reason: "SetPermissionApplied", Message: "Registration of the addon agent is configured",
	}
	if len(a.Registrations) == 0 {
		return []metav1.Condition{c}
	}
	switch a.Permissions.State {
	case registration.Failed:
		c.Status, c.Reason = metav1.ConditionFalse, "SetPermissionFailed"
		c.Message = "Failed to set permission for hub agent: " + a.Permissions.Message
	case registration.Pending:
		return nil
	case registration.Applied:
	}
	return []metav1.Condition{c}
}
