package addonrollout

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/rollout/clock"
)

// addFinalizer adds AddonFlow's finalizer to a rollout before it writes to any cluster.
func (r *Reconciler) addFinalizer(ctx context.Context, ro *v1alpha1.AddOnRollout) error {
	if ro.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(ro, v1alpha1.Finalizer) {
		return nil
	}
	base := ro.DeepCopy()
	controllerutil.AddFinalizer(ro, v1alpha1.Finalizer)
	return r.Client.Patch(ctx, ro, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// end carries out the next step of a release or a deletion. It reports whether the turn is complete after it.
func (r *Reconciler) end(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory, as rights) (bool, ctrl.Result, error) {
	if ro.Releasing() && as.denied == nil {
		if through, result, err := r.release(ctx, ro, mem); through || err != nil {
			return through, result, err
		}
	}
	if ro.DeletionTimestamp != nil {
		return r.finalize(ctx, ro)
	}
	return false, ctrl.Result{}, nil
}

// finalize ends a rollout that is being deleted, after the add-on was removed from all clusters. Until then the
// rollout continues. It reports whether the rollout is ending: then nothing is planned, because a plan would install
// the add-on again.
//
// ManagedClusterAddOns are read uncached. A watch that lags does not show ManagedClusterAddOns that were just
// created, and their works would stay for ever.
func (r *Reconciler) finalize(ctx context.Context, ro *v1alpha1.AddOnRollout) (bool, ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(ro, v1alpha1.Finalizer) {
		return true, ctrl.Result{}, nil
	}
	var list addonv1alpha1.ManagedClusterAddOnList
	if err := r.Live.List(ctx, &list, client.MatchingFields{indexName: ro.Name}, client.Limit(1)); err != nil {
		return false, ctrl.Result{}, err
	}
	if len(list.Items) > 0 {
		return false, ctrl.Result{}, nil
	}
	if remaining, err := r.finishStatuses(ctx, ro, ro.DeletionTimestamp.Time); remaining > 0 || err != nil {
		return true, ctrl.Result{RequeueAfter: remaining}, err
	}
	base := ro.DeepCopy()
	controllerutil.RemoveFinalizer(ro, v1alpha1.Finalizer)
	return true, ctrl.Result{}, r.Client.Patch(ctx, ro, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// finishStatuses delivers the remaining commit statuses of a rollout that ends. It returns how long the rollout must be
// kept for them; 0: it can be deleted. The marks are deleted with the rollout, and the source after its last
// rollout. since is when the rollout started to end. After forge.KeptFor, the statuses are given up, because a
// forge that never answers must not block a deletion.
func (r *Reconciler) finishStatuses(ctx context.Context, ro *v1alpha1.AddOnRollout, since time.Time) (time.Duration, error) {
	source, err := r.readSource(ctx, ro)
	if err != nil || source == nil {
		return 0, err
	}
	before := ro.Status.DeepCopy()
	book := r.Desk.Open(bookKey(client.ObjectKeyFromObject(ro)), source, ro.Status.CommitStatuses)
	conclusion := "ended: the rollout was deleted"
	switch before, after := ro.Status.Target, ro.Spec.Target; {
	case ro.Releasing():
		conclusion = "ended: the add-on was released"
	case source.DeletionTimestamp != nil:
		conclusion = "ended: its source was deleted"
	case !ro.Status.Override.Returns() && before != nil && after != nil && v1alpha1.CommitOf(before.Commit) != v1alpha1.CommitOf(after.Commit):
		book.Supersede(v1alpha1.CommitOf(before.Commit), v1alpha1.CommitOf(after.Commit))
	}
	book.EndAll(conclusion)
	book.Address(ctx, source)
	remaining := since.Add(forge.KeptFor).Sub(r.Clock.Now())
	if !book.Owes() || remaining <= 0 {
		return 0, nil
	}
	ro.Status.CommitStatuses = book.Stored()
	book.SetConditions(ro)
	if !equality.Semantic.DeepEqual(*before, ro.Status) {
		if err := r.store(ctx, ro); err != nil {
			return remaining, err
		}
	}
	return clock.Sooner(remaining, book.Deliver()), nil
}
