package addonrollout

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
)

// depart carries out the next step of the deletion of a ManagedClusterAddOn: hooks first; after
// all of them completed, the works; then the finalizers of AddonFlow.
func (d *round) depart(ctx context.Context, c *plan.Cluster) error {
	if !c.Departs() {
		return nil // the garbage collector deletes its works
	}
	dep, start, err := d.Depart(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	for _, w := range start {
		if err := d.writeWork(ctx, w, nil); err != nil {
			return err
		}
	}
	addOn := c.AddOn
	if condition, wrong := d.HookCondition(c, dep); condition != nil {
		updated := addOn.DeepCopy()
		condition.LastTransitionTime = d.now
		meta.SetStatusCondition(&updated.Status.Conditions, *condition)
		if addOn, err = d.patchStatus(ctx, c.AddOn, updated); err != nil {
			return err
		}
		if wrong && addOn != c.AddOn {
			d.Recorder.Event(addOn, corev1.EventTypeWarning, v1alpha1.PreDeleteHookOverdueReason, condition.Message)
			d.Recorder.Eventf(d.rollout, corev1.EventTypeWarning, v1alpha1.PreDeleteHookOverdueReason, "Cluster %s: %s", c.Name, condition.Message)
		}
	}
	if !dep.Done() {
		return nil
	}
	for _, w := range slices.Concat(c.Works, c.Hooks) {
		if w.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(d.Client.Delete(ctx, w, client.Preconditions{UID: &w.UID})); err != nil {
			return fmt.Errorf("cannot delete work %s: %w", w.Name, err)
		}
		d.works.forget(client.ObjectKeyFromObject(w))
	}
	for _, why := range dep.Waivers(addOn) {
		d.Recorder.Eventf(addOn, corev1.EventTypeWarning, v1alpha1.PreDeleteHookSkippedReason, "Removed without its pre-delete hook: %s", why)
	}
	_, err = d.setFinalizers(ctx, addOn, render.WithoutFinalizers(addOn.Finalizers, nil))
	return err
}
