package addonrollout

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/rollout"
)

// syncOwner gives a ManagedClusterAddOn of ours the owner reference to the
// ClusterManagementAddOn that is there now: one that was deleted and applied again is
// another object. It returns the add-on as it is then.
//
// The owner is read live. The garbage collector deletes what refers to an object that is
// gone, and the watch may still show that one.
func (d *round) syncOwner(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if installation(addOn) != rollout.Ours || d.o.owner == nil || ownedBy(addOn, d.o.owner) {
		return addOn, nil
	}
	owner, err := d.liveOwner()
	if err != nil {
		return addOn, err
	}
	if owner == nil || owner.DeletionTimestamp != nil || ownedBy(addOn, owner) {
		return addOn, nil
	}
	reference := *metav1.NewControllerRef(owner, ownerKind())
	updated := addOn.DeepCopy()
	updated.OwnerReferences = slices.DeleteFunc(updated.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == reference.Kind && r.Name == reference.Name
	})
	if metav1.GetControllerOf(updated) != nil {
		reference.Controller = nil
	}
	updated.OwnerReferences = append(updated.OwnerReferences, reference)
	if err := d.Client.Patch(ctx, updated, client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})); err != nil {
		return addOn, fmt.Errorf("cannot write the add-on's owner: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// ownedBy reports whether an add-on has an owner reference to the ClusterManagementAddOn.
func ownedBy(addOn *addonv1alpha1.ManagedClusterAddOn, owner *addonv1alpha1.ClusterManagementAddOn) bool {
	return slices.ContainsFunc(addOn.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == owner.UID })
}
