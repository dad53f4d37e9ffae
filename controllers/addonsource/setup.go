package addonsource

import (
	"context"
	"reflect"

	"github.com/fluxcd/pkg/runtime/predicates"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/hubclient"
)

// SetupWithManager registers the controller. Besides the sources it watches applied objects, so that drift is
// repaired at once: AddOnRollouts and, by metadata only, ClusterManagementAddOns and AddOnRevisions. Other objects
// are compared once per interval.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.Charts = r.Reconciles.Engines(r.Charts)
	limited, options := r.Reconciles.Limit(func(req reconcile.Request) string { return chartOwnerOf(req.NamespacedName) }, r, options)
	toSource := handler.EnqueueRequestsFromMapFunc(sourceOf)
	return ctrl.NewControllerManagedBy(mgr).
		Named("addonsource").
		For(&v1alpha1.AddOnSource{}, builder.WithPredicates(predicate.Or(
			predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, suspensionChanged(), r.statusOfOthers(), hubclient.FinalizerTaken()))).
		Watches(&v1alpha1.AddOnSource{}, handler.EnqueueRequestsFromMapFunc(r.Desk.Sharing), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.AddOnRollout{}, toSource, builder.WithPredicates(r.movedByOthers(rolloutKindOf))).
		WatchesMetadata(&addonv1alpha1.ClusterManagementAddOn{}, toSource, builder.WithPredicates(r.movedByOthers(addOnKindOf))).
		WatchesMetadata(metadataOf(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind)), toSource, builder.WithPredicates(deleted())).
		WatchesRawSource(r.errands.ends()).
		WatchesRawSource(r.Desk.Outcomes(v1alpha1.AddOnSourceKind)).
		WithOptions(options).
		Complete(limited)
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	return object
}

// sourceOf returns the source in the mark of an object.
func sourceOf(_ context.Context, object client.Object) []reconcile.Request {
	key, ok := namespacedName(object.GetAnnotations()[v1alpha1.SourceAnnotation])
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

func suspensionChanged() predicate.Predicate {
	return hubclient.Updates(func(before, after client.Object) bool {
		return before.GetAnnotations()[v1alpha1.SuspendAnnotation] != after.GetAnnotations()[v1alpha1.SuspendAnnotation]
	})
}

// statusOfOthers passes a status that another writer changed: it was emptied, or restored from a backup. Without it,
// the source would have a wrong status until the next look.
func (r *Reconciler) statusOfOthers() predicate.Predicate {
	return hubclient.Updates(func(before, after *v1alpha1.AddOnSource) bool {
		return !equality.Semantic.DeepEqual(before.Status, after.Status) &&
			r.writes.of(sourceKey(client.ObjectKeyFromObject(after))).resourceVersion != after.ResourceVersion
	})
}

func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// movedByOthers passes deletions, and changes that other writers make to applied objects. The status of a rollout
// changes every second, so only changes of its reported state pass.
func (r *Reconciler) movedByOthers(keyOf func(client.Object) objectKey) predicate.Predicate {
	ownWrite := func(o client.Object) bool {
		return r.writes.of(keyOf(o)).resourceVersion == o.GetResourceVersion()
	}
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return moved(e.ObjectOld, e.ObjectNew) && !ownWrite(e.ObjectNew)
		},
	}
}

// moved reports whether an update changed a field that a source writes, waits for or reports.
func moved(before, after client.Object) bool {
	switch {
	case before.GetGeneration() != after.GetGeneration(),
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero(),
		controllerutil.ContainsFinalizer(before, v1alpha1.Finalizer) && !controllerutil.ContainsFinalizer(after, v1alpha1.Finalizer),
		before.GetAnnotations()[v1alpha1.SourceAnnotation] != after.GetAnnotations()[v1alpha1.SourceAnnotation],
		before.GetAnnotations()[v1alpha1.LifecycleAnnotation] != after.GetAnnotations()[v1alpha1.LifecycleAnnotation],
		before.GetAnnotations()[v1alpha1.ApproveRemovalAnnotation] != after.GetAnnotations()[v1alpha1.ApproveRemovalAnnotation],
		before.GetLabels()[v1alpha1.ManagedByLabel] != after.GetLabels()[v1alpha1.ManagedByLabel]:
		return true
	}
	return !reflect.DeepEqual(reportedStateOf(before), reportedStateOf(after))
}

// reportedState has everything that a source reports of one rollout, or waits for. Counts are rounded, because they
// change every second while clusters move.
type reportedState struct {
	fleet

	target, overridden string
	observed, released bool
	// tenth is how many tenths of the clusters are updated, so that a status is posted at most once per tenth.
	tenth int
}

// reportedStateOf returns the state of a rollout, as the source adds it to its fleet; the zero value for any other
// object.
func reportedStateOf(o client.Object) reportedState {
	r, ok := o.(*v1alpha1.AddOnRollout)
	if !ok || r.Spec.Target == nil {
		return reportedState{}
	}
	s := reportedState{fleet: fleet{counted: true}, observed: !unobserved(r), released: leaving{rollout: r}.released()}
	if r.Status.Target != nil {
		s.target = r.Status.Target.Digest
	}
	reason, text := overriddenBy(r)
	if s.overridden = reason; reason != v1alpha1.RollingBackReason {
		s.overridden += text
	}
	s.add(r, sourced(r), writtenRollout{})
	s.tenth = s.progress() / 10
	s.round(r.Status.Phase)
	return s
}

// round drops the texts and numbers that change with every cluster that moves. The texts and numbers of a failure
// change in this way only in a rollback.
func (f *fleet) round(phase v1alpha1.Phase) {
	f.updated, f.total = 0, 0
	counting := [][]addOnStanding{f.moving, f.partly}
	if phase == v1alpha1.PhaseRollingBack {
		counting = append(counting, f.failed)
	}
	for _, standings := range counting {
		for i := range standings {
			standings[i].text = ""
		}
	}
	for _, c := range f.finishing {
		c.round(phase)
	}
}

func rolloutKindOf(o client.Object) objectKey { return rolloutKey(o.GetNamespace(), o.GetName()) }

func addOnKindOf(o client.Object) objectKey { return addOnKey(o.GetName()) }
