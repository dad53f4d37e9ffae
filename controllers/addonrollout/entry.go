package addonrollout

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	agents "github.com/addonflow/addonflow/controllers/registration"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
)

// entry is how one cluster's agent gets to the hub.
type entry struct {
	// registrations are the credentials the klusterlet is to ask for.
	registrations []addonv1alpha1.RegistrationConfig
	// permissions says how far the agent's roles on the hub are.
	permissions agents.Outcome
}

// entryOf enters into the book what the rendered template asks for, before anything
// is written that has the agent ask, and returns what the add-on's status says of it.
func (d *round) entryOf(m *member, addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) (entry, error) {
	found := registration.Found{Registrations: addOn.Status.Registrations, Driver: addOn.Status.KubeClientDriver}
	registrations, err := registration.Registrations(rendered.Registration, addOn.Name, m.name, found)
	if err != nil {
		return entry{}, fmt.Errorf("cannot register: %w", err)
	}
	outcome := d.Agents.Declare(d.agentOf(m), rendered.Registration)
	return entry{registrations: registrations, permissions: outcome}, nil
}

// agentOf names the member's agent in the book.
func (d *round) agentOf(m *member) agents.Key {
	return agents.Key{Cluster: m.name, AddOn: d.o.rollout.Name}
}

// ofAgents wakes the rollout of an add-on whose agents' permissions were decided on.
func (r *Reconciler) ofAgents(ctx context.Context, addOn string) []reconcile.Request {
	return r.rollouts(ctx, client.MatchingFields{indexName: addOn})
}

// speaks reports whether RegistrationApplied is worth a write of its own: not good
// news in the middle of a move, whose end is written anyway.
func (e entry) speaks(state moveState) bool {
	return state != moveStarted || e.permissions.State == agents.Failed
}

// conditions is RegistrationApplied in OCM's words (OCM behaviour, row 81); nothing
// while permissions are pending, so that a move is not written once more for it. An
// add-on without registration has none pending, and OCM's words for it are the same.
func (e entry) conditions() []metav1.Condition {
	c := metav1.Condition{
		Type: conditionRegistrationApplied, Status: metav1.ConditionTrue,
		Reason: "SetPermissionApplied", Message: "Registration of the addon agent is configured",
	}
	if len(e.registrations) == 0 {
		return []metav1.Condition{c}
	}
	switch e.permissions.State {
	case agents.Failed:
		c.Status, c.Reason = metav1.ConditionFalse, "SetPermissionFailed"
		c.Message = "Failed to set permission for hub agent: " + e.permissions.Message
	case agents.Pending:
		return nil
	case agents.Applied:
	}
	return []metav1.Condition{c}
}
