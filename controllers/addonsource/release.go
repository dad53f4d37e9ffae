package addonsource

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// releaseRequested tells whether the user wants the add-on let go of, not removed. Until
// that is done nothing of it, nor what may be part of it, is deleted.
func (l leaving) releaseRequested() bool { return l.rollout != nil && l.rollout.ReleaseRequested() }

// released tells whether its clusters were let go of, so that the hub's objects may be. A
// rollout that is being deleted waits for us instead: without it nobody would know.
func (l leaving) released() bool {
	r := l.rollout
	return r != nil && (r.Released() || r.Releasing() && r.DeletionTimestamp != nil)
}

// releasedNames are the add-ons whose clusters were let go of.
func releasedNames(gone []leaving) map[string]bool {
	names := map[string]bool{}
	for _, l := range gone {
		if l.released() {
			names[l.addOn] = true
		}
	}
	return names
}

// isLetGo tells whether an object that left Git is let go of, with the add-ons that are
// released. A Namespace is kept whatever happens.
func (k objectKey) isLetGo(released map[string]bool) bool {
	if k.isAddOn() {
		return released[k.Name]
	}
	return len(released) > 0 && !k.isNamespace()
}

// letGo lets go of add-ons whose clusters were let go of: what the source
// applied for them stays, without the marks that make it the source's, and without the
// fence; then their rollouts and revisions are deleted, on which nobody depends any more.
// It halts until they are gone, so that the next pass reads what is left.
func (p *pass) letGo(ctx context.Context, todo plan) error {
	var gone []leaving
	for _, l := range todo.leaving {
		if l.released() {
			gone = append(gone, l)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	for _, live := range todo.released {
		patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
		err := p.Client.Patch(ctx, unmarked(live), patch, client.FieldOwner(v1alpha1.FieldManager))
		if client.IgnoreNotFound(err) != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot release %s: %w", keyOf(live), err))
		}
		p.writes.drop(keyOf(live))
		ctrl.LoggerFrom(ctx).Info("Let go of the object", "object", keyOf(live).String())
	}
	return p.deleteRollouts(ctx, gone)
}

// unmarked returns an object as it was stored, without what makes it a source's.
func unmarked(live *unstructured.Unstructured) *unstructured.Unstructured {
	u := live.DeepCopy()
	labels, annotations := u.GetLabels(), unclaimed(u.GetAnnotations())
	delete(labels, v1alpha1.ManagedByLabel)
	delete(annotations, v1alpha1.FencedAtAnnotation)
	if annotations[v1alpha1.LifecycleAnnotation] == v1alpha1.LifecycleValue {
		delete(annotations, v1alpha1.LifecycleAnnotation)
	}
	u.SetLabels(labels)
	u.SetAnnotations(annotations)
	controllerutil.RemoveFinalizer(u, v1alpha1.Finalizer)
	return u
}
