package addonrollout

import (
	"context"
	"fmt"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/render"
)

// holdBack puts on the ManagedClusterAddOn the finalizers that what was rendered asks
// for, before any work is written: from then on a deletion waits for the hooks.
func (d *round) holdBack(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, wanted []string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	return d.setFinalizers(ctx, addOn, render.WithFinalizers(addOn.Finalizers, wanted))
}

// letGo takes off those that are no longer asked for, after the works were written.
func (d *round) letGo(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, wanted []string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	return d.setFinalizers(ctx, addOn, render.WithoutFinalizers(addOn.Finalizers, wanted))
}

// setFinalizers writes finalizers where they differ, preconditioned on the version
// they were read at, and returns the ManagedClusterAddOn as it is now.
func (d *round) setFinalizers(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, finalizers []string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if slices.Equal(addOn.Finalizers, finalizers) {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	updated.Finalizers = slices.Clone(finalizers)
	patch := client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})
	if err := d.Client.Patch(ctx, updated, patch); err != nil {
		return nil, fmt.Errorf("cannot write the add-on's finalizers: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// firstFinalizers are those a new ManagedClusterAddOn gets with its creation, which
// saves a write; what they lack, or have too much, is mended before its first work.
func (d *round) firstFinalizers(ctx context.Context, m *member) []string {
	renderer, err := d.o.revisions.get(ctx, d.o.rollout.Spec.Target.Digest)
	if err != nil {
		return nil
	}
	rendered, err := renderer.Render(m.renderInput())
	if err != nil {
		return nil
	}
	return rendered.Finalizers()
}
