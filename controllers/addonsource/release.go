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

// releaseRequested reports whether the user wants the add-on to be released instead of removed. Until the release is
// complete, none of its objects are deleted, nor objects that may belong to it.
func (l leaving) releaseRequested() bool { return l.rollout != nil && l.rollout.ReleaseRequested() }

// released reports whether the add-on's clusters were released, so that the objects on the hub may be released. A
// rollout that is being deleted waits for the source instead, because only the rollout stores the release.
func (l leaving) released() bool {
	r := l.rollout
	return r != nil && (r.Released() || r.Releasing() && r.DeletionTimestamp != nil)
}

// releasedNames are the add-ons whose clusters were released.
func releasedNames(gone []leaving) map[string]bool {
	names := map[string]bool{}
	for _, l := range gone {
		if l.released() {
			names[l.addOn] = true
		}
	}
	return names
}

// isReleased reports whether an object that left Git is released together with the released add-ons. A Namespace
// always stays.
func (k objectKey) isReleased(released map[string]bool) bool {
	if k.isAddOn() {
		return released[k.Name]
	}
	return len(released) > 0 && !k.isNamespace()
}

// release releases add-ons whose clusters were released. The objects that the source applied for them stay, without
// the marks of the source and without the fence. Then their rollouts and unused revisions are deleted. It halts until
// these are deleted, so that the next pass reads the new state.
func (p *pass) release(ctx context.Context, todo plan) error {
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
		err := patchExactly(ctx, p.writer(keyOf(live)), live, unmarked(live))
		if client.IgnoreNotFound(err) != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot release %s: %w", keyOf(live), err))
		}
		p.writes.drop(keyOf(live))
		ctrl.LoggerFrom(ctx).Info("Released the object", "object", keyOf(live).String())
	}
	return p.deleteRollouts(ctx, gone)
}

// unmarked returns a stored object without the marks of its source.
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
