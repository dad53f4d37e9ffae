package addonrollout

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// reclaim gives a ManagedClusterAddOn of ours its label, and the owner reference to the
// ClusterManagementAddOn that is there now: another writer may have taken them away, and a
// ClusterManagementAddOn that was deleted and applied again is another object. It returns
// the add-on as it is then.
//
// The owner is read live. The garbage collector deletes what refers to an object that is
// gone, and the watch may still show that one.
func (d *round) reclaim(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	labelled := addOn.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue
	owned := d.o.owner == nil || ownedBy(addOn, d.o.owner)
	if installation(addOn) != rollout.Ours || labelled && owned {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	metav1.SetMetaDataLabel(&updated.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue)
	if !owned {
		owner, err := d.liveOwner()
		if err != nil {
			return addOn, err
		}
		if owner != nil && owner.DeletionTimestamp == nil && !ownedBy(addOn, owner) {
			own(updated, owner)
		} else if labelled {
			return addOn, nil
		}
	}
	if err := d.Client.Patch(ctx, updated, client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})); err != nil {
		return addOn, fmt.Errorf("cannot give the add-on its label and owner back: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// own replaces the owner references to a former ClusterManagementAddOn by one to the owner.
func own(addOn *addonv1alpha1.ManagedClusterAddOn, owner *addonv1alpha1.ClusterManagementAddOn) {
	reference := *metav1.NewControllerRef(owner, ownerKind())
	addOn.OwnerReferences = slices.DeleteFunc(addOn.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == reference.Kind && r.Name == reference.Name
	})
	if metav1.GetControllerOf(addOn) != nil {
		reference.Controller = nil
	}
	addOn.OwnerReferences = append(addOn.OwnerReferences, reference)
}

// ownedBy reports whether an add-on has an owner reference to the ClusterManagementAddOn.
func ownedBy(addOn *addonv1alpha1.ManagedClusterAddOn, owner *addonv1alpha1.ClusterManagementAddOn) bool {
	return hasOwner(addOn, owner.UID)
}

// hasOwner reports whether an object has an owner reference to that UID.
func hasOwner(o client.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}
