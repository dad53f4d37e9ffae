package addonrollout

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/rollout"
)

// waits reports whether the cluster's add-on says Configured=False: the target changes
// something there, and it is not its turn (OCM behaviour, row 29). Beside OCM's
// addon-manager waiting clusters are not written at all (Cost-1).
func (r *Reconciler) waits(p *rollout.ClusterPlan) bool {
	return r.replacing() && (p.State == rollout.Waiting || p.State == rollout.Unreachable || p.State == rollout.HeldBack)
}

// await says of a cluster that it waits, and nothing else: it runs nothing yet, or
// what it runs is not to be touched.
func (d *round) await(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	c := addonstatus.Waiting()
	if said := meta.FindStatusCondition(addOn.Status.Conditions, c.Type); said != nil && said.Status == c.Status && said.Message == c.Message {
		return nil
	}
	updated := addOn.DeepCopy()
	c.LastTransitionTime = d.now
	meta.SetStatusCondition(&updated.Status.Conditions, c)
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}
