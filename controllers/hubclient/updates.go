package hubclient

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// Updates passes the updates of objects of one kind for which changed is true, and no other event.
func Updates[T client.Object](changed func(before, after T) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(T)
			after, also := e.ObjectNew.(T)
			return ok && also && changed(before, after)
		},
	}
}

// NewestCommitChanged passes a source whose newest commit changed: it applied or refused another commit, or the same
// commit from another path. It passes a source that began or stopped to refuse its commit.
func NewestCommitChanged() predicate.Predicate {
	return Updates(func(before, after *v1alpha1.AddOnSource) bool {
		return before.Status.LastAppliedRevision != after.Status.LastAppliedRevision ||
			before.Status.LastAttemptedRevision != after.Status.LastAttemptedRevision || before.Status.Refused() != after.Status.Refused() ||
			!slices.Equal(before.Status.AddOns, after.Status.AddOns)
	})
}

// FinalizerTaken passes an object that lost AddonFlow's finalizer. Its next reconcile adds the finalizer again.
// Without the finalizer, an object without changes would be deleted while clusters have its add-ons, and a release
// would look finished.
func FinalizerTaken() predicate.Predicate {
	return Updates(func(before, after client.Object) bool {
		return controllerutil.ContainsFinalizer(before, v1alpha1.Finalizer) && !controllerutil.ContainsFinalizer(after, v1alpha1.Finalizer)
	})
}
