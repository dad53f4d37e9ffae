package addonrollout

import (
	"context"
	"fmt"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	agents "github.com/addonflow/addonflow/controllers/registration"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
)

// accessOf enters into the book what the rendered template asks for, before anything
// is written that has the agent ask, and returns what the add-on's status says of it.
func (d *round) accessOf(c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) (addonstatus.Access, error) {
	found := registration.Found{Registrations: addOn.Status.Registrations, Driver: addOn.Status.KubeClientDriver}
	registrations, err := registration.Registrations(rendered.Registration, addOn.Name, c.Name, found)
	if err != nil {
		return addonstatus.Access{}, fmt.Errorf("cannot register: %w", err)
	}
	outcome := d.Agents.Declare(d.agentOf(c), rendered.Registration)
	return addonstatus.Access{Registrations: registrations, Permissions: outcome}, nil
}

// agentOf names the cluster's agent in the book.
func (d *round) agentOf(c *plan.Cluster) agents.Key {
	return agents.Key{Cluster: c.Name, AddOn: d.rollout.Name}
}

// ofAgents wakes the rollout of an add-on whose agents' permissions were decided on.
func (r *Reconciler) ofAgents(ctx context.Context, addOn string) []reconcile.Request {
	return r.rollouts(ctx, client.MatchingFields{indexName: addOn})
}
