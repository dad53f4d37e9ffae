package addonrollout

import (
	"context"
	"fmt"
	"maps"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// release stops managing the clusters of an add-on that the user releases: no work is written
// and nothing is deleted. AddonFlow's label and the finalizers of hooks and hosted mode are
// removed from the ManagedClusterAddOns, and the label from the agents' bindings, so that the
// deletion of the rollout deletes none of them. AddonFlow's finalizer is removed last; it shows
// the source that it can release its own objects. release reports whether the turn is complete.
//
// ManagedClusterAddOns that are being deleted come first: their hooks run, and the rollout
// continues, suspended, until they are deleted.
func (r *Reconciler) release(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory) (bool, ctrl.Result, error) {
	if ro.Released() {
		return true, ctrl.Result{}, nil
	}
	// The controller that binds roles reads the watch cache. It must see the release before this
	// code removes its labels.
	var seen v1alpha1.AddOnRollout
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(ro), &seen); err != nil || !seen.Releasing() {
		return true, ctrl.Result{RequeueAfter: r.Pace}, client.IgnoreNotFound(err)
	}
	var addOns addonv1alpha1.ManagedClusterAddOnList
	if err := r.Live.List(ctx, &addOns, client.MatchingFields{indexName: ro.Name}); err != nil {
		return false, ctrl.Result{}, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", ro.Name, err)
	}
	for i := range addOns.Items {
		if addOns.Items[i].DeletionTimestamp != nil {
			return false, ctrl.Result{}, nil
		}
	}
	if err := r.releaseAddOns(ctx, addOns.Items); err != nil {
		return true, ctrl.Result{}, err
	}
	// The controller that binds roles may have started before it saw the release. Only a turn
	// that finds no binding continues.
	if found, err := r.releaseBindings(ctx, ro.Name); found > 0 || err != nil {
		return true, ctrl.Result{RequeueAfter: r.Pace}, err
	}
	if claimed, err := r.claimed(ctx, ro); claimed || err != nil {
		return true, ctrl.Result{RequeueAfter: r.Pace}, err
	}
	if mem.releasing.IsZero() {
		mem.releasing = r.Clock.Now()
	}
	if remaining, err := r.finishStatuses(ctx, ro, mem.releasing); remaining > 0 || err != nil {
		return true, ctrl.Result{RequeueAfter: remaining}, err
	}
	base := ro.DeepCopy()
	controllerutil.RemoveFinalizer(ro, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, ro, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, ctrl.Result{}, err
	}
	r.Recorder.Eventf(ro, corev1.EventTypeNormal, v1alpha1.ReleasedReason, "Released %s on %d clusters, where it keeps running", ro.Name, len(addOns.Items))
	return true, ctrl.Result{}, nil
}

// claimed reports whether a rollout that is being deleted must wait for its source. A source
// that never saw the release would treat the deletion as a removal of the add-on.
func (r *Reconciler) claimed(ctx context.Context, ro *v1alpha1.AddOnRollout) (bool, error) {
	if ro.DeletionTimestamp == nil {
		return false, nil
	}
	owner, err := readOwner(ctx, r.Live, ro.Name)
	if err != nil || owner == nil {
		return false, err
	}
	return owner.Annotations[v1alpha1.SourceAnnotation] == ro.Annotations[v1alpha1.SourceAnnotation], nil
}

// releaseAddOns removes AddonFlow's label and finalizers from ManagedClusterAddOns, one write
// each. After that they count as hand-made.
func (r *Reconciler) releaseAddOns(ctx context.Context, addOns []addonv1alpha1.ManagedClusterAddOn) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Workers)
	for i := range addOns {
		group.Go(func() error {
			before := &addOns[i]
			after := before.DeepCopy()
			delete(after.Labels, v1alpha1.ManagedByLabel)
			delete(after.Annotations, v1alpha1.SelectedByAnnotation)
			after.Finalizers = render.WithoutFinalizers(after.Finalizers, nil)
			created := v1alpha1.Created(before)
			if created {
				after.ManagedFields = v1alpha1.Disowned(before.ManagedFields)
			}
			if !created && maps.Equal(after.Labels, before.Labels) && maps.Equal(after.Annotations, before.Annotations) && len(after.Finalizers) == len(before.Finalizers) {
				return nil
			}
			patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
			if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot release the add-on on cluster %s: %w", before.Namespace, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// releaseBindings removes AddonFlow's label from the bindings of the add-on's agents. It returns
// how many bindings with the label the watch cache showed.
func (r *Reconciler) releaseBindings(ctx context.Context, addOn string) (int, error) {
	var list rbacv1.RoleBindingList
	ours := client.MatchingLabels{addOnNameLabel: addOn, v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	if err := r.Client.List(ctx, &list, ours); err != nil {
		return 0, fmt.Errorf("cannot list role bindings of %s: %w", addOn, err)
	}
	for i := range list.Items {
		before := &list.Items[i]
		after := before.DeepCopy()
		delete(after.Labels, v1alpha1.ManagedByLabel)
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.Client.Patch(ctx, after, patch); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("cannot release role binding %s/%s: %w", before.Namespace, before.Name, err)
		}
	}
	return len(list.Items), nil
}
