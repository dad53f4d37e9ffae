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

// release lets go of the clusters of an add-on that the user wants back:
// no work is written and nothing is deleted. Our label and the finalizers of hooks and
// hosted mode come off the ManagedClusterAddOns and the label off the agents' bindings,
// so that whatever comes of the rollout takes none of them away; last our finalizer, by
// which the source knows that the rest is its own to let go of. It reports whether there
// is nothing else to do for the rollout in this turn.
//
// A ManagedClusterAddOn that is being deleted comes first: its hooks run as ever, and
// the rollout goes on, suspended, until it is gone.
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
	if err := r.letGoOfAddOns(ctx, addOns.Items); err != nil {
		return true, ctrl.Result{}, err
	}
	// The controller that binds roles may have started before it saw the release. Only a turn
	// that finds no binding continues.
	if found, err := r.letGoOfBindings(ctx, ro.Name); found > 0 || err != nil {
		return true, ctrl.Result{RequeueAfter: r.Pace}, err
	}
	if claimed, err := r.claimed(ctx, ro); claimed || err != nil {
		return true, ctrl.Result{RequeueAfter: r.Pace}, err
	}
	if mem.releasing.IsZero() {
		mem.releasing = r.Clock.Now()
	}
	if left, err := r.takeLeave(ctx, ro, mem.releasing); left > 0 || err != nil {
		return true, ctrl.Result{RequeueAfter: left}, err
	}
	base := ro.DeepCopy()
	controllerutil.RemoveFinalizer(ro, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, ro, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, ctrl.Result{}, err
	}
	r.Recorder.Eventf(ro, corev1.EventTypeNormal, v1alpha1.ReleasedReason, "Let go of %s on %d clusters, where it goes on running", ro.Name, len(addOns.Items))
	return true, ctrl.Result{}, nil
}

// claimed reports whether a rollout that is being deleted has to wait for its source, which
// would hold what it applied for a removal if it never saw the release.
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

// letGoOfAddOns takes off ManagedClusterAddOns what is ours on them, one write each. From
// then on nothing on them tells that AddonFlow created them.
func (r *Reconciler) letGoOfAddOns(ctx context.Context, addOns []addonv1alpha1.ManagedClusterAddOn) error {
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

// letGoOfBindings takes our label off the roles that the add-on's agents have, and returns
// how many the watch cache showed to have it.
func (r *Reconciler) letGoOfBindings(ctx context.Context, addOn string) (int, error) {
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
