package addonrollout

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/runtime/predicates"
	"github.com/prometheus/client_golang/prometheus"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/hubclient"
	"github.com/addonflow/addonflow/render"
)

// addOnNameLabel is OCM's label that names the add-on of a work.
const addOnNameLabel = addonv1alpha1.AddonLabelKey

// WorkSelector selects the works of add-ons. Other works are not kept in memory.
func WorkSelector() labels.Selector {
	s, err := labels.Parse(addOnNameLabel)
	if err != nil {
		return labels.Everything() // the label is a constant and parses
	}
	return s
}

// TrimManagedCluster removes the fields of a ManagedCluster that rollouts do not read.
func TrimManagedCluster(in any) any {
	if c, ok := in.(*clusterv1.ManagedCluster); ok {
		c.ManagedFields = nil
		c.Spec.ManagedClusterClientConfigs = nil
		c.Status.Allocatable, c.Status.Capacity, c.Status.ManagedNamespaces = nil, nil, nil
		available := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable)
		c.Status.Conditions = nil
		if available != nil {
			c.Status.Conditions = []metav1.Condition{*available}
		}
	}
	return in
}

// TrimWork removes the parts of a ManifestWork that rollouts do not read. The rest of its manifests can be compared,
// but not written.
func TrimWork(in any, manifests *render.Abridger) any {
	w, ok := in.(*workv1.ManifestWork)
	if !ok {
		return in
	}
	w.ManagedFields = nil
	manifests.Abridge(w)
	untimed(w.Status.Conditions)
	for i := range w.Status.ResourceStatus.Manifests {
		untimed(w.Status.ResourceStatus.Manifests[i].Conditions)
	}
	return in
}

// untimed removes the times of conditions, so that clusters whose conditions differ only in them can share them.
func untimed(conditions []metav1.Condition) {
	for i := range conditions {
		conditions[i].LastTransitionTime = metav1.Time{}
	}
}

// SetupWithManager registers the reconciler, its indexes and its watches: the rollout itself, and
// every kind that observe reads.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options, metrics prometheus.Registerer) error {
	if err := addIndexes(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := metrics.Register(r.course); err != nil {
		return fmt.Errorf("cannot register metrics: %w", err)
	}
	woken, err := r.watchConfigs(mgr)
	if err != nil {
		return err
	}
	limited, options := r.Reconciles.Limit(reconcile.Request.String, r, options)
	ownChange := predicate.Or(predicate.GenerationChangedPredicate{}, predicates.ReconcileRequestedPredicate{}, predicate.AnnotationChangedPredicate{}, r.statusOfOthers(), hubclient.FinalizerTaken())
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.AddOnRollout{}, builder.WithPredicates(ownChange)).
		Watches(&v1alpha1.AddOnRollout{}, handler.EnqueueRequestsFromMapFunc(r.ofDependency), builder.WithPredicates(dependencyChanged())).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(r.ofAddOn(client.Object.GetName))).
		Watches(&workv1.ManifestWork{}, handler.EnqueueRequestsFromMapFunc(r.ofAddOn(addOnOfWork))).
		Watches(&addonv1alpha1.ClusterManagementAddOn{}, handler.EnqueueRequestsFromMapFunc(r.ofAddOn(client.Object.GetName)), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(r.ofPlacement(client.Object.GetName))).
		Watches(&clusterv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(r.ofPlacement(placementOfDecision))).
		Watches(&clusterv1.ManagedCluster{}, r.clusterEvents()).
		Watches(&v1alpha1.AddOnSource{}, handler.EnqueueRequestsFromMapFunc(r.ofSource), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.AddOnSource{}, handler.EnqueueRequestsFromMapFunc(r.ofNewestCommit), builder.WithPredicates(hubclient.NewestCommitChanged())).
		WatchesMetadata(&v1alpha1.AddOnRevision{}, handler.EnqueueRequestsFromMapFunc(r.ofNamed), builder.WithPredicates(contentChanged())).
		Watches(&v1alpha1.AddOnOrder{}, handler.EnqueueRequestsFromMapFunc(r.ofNamed)).
		Watches(&v1alpha1.AddOnApproval{}, handler.EnqueueRequestsFromMapFunc(r.ofNamed)).
		Watches(&admissionregistrationv1.ValidatingAdmissionPolicy{}, handler.EnqueueRequestsFromMapFunc(r.ofProof), builder.WithPredicates(proofChanged())).
		Watches(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{}, handler.EnqueueRequestsFromMapFunc(r.ofProof), builder.WithPredicates(proofChanged())).
		WatchesRawSource(r.Desk.Outcomes(v1alpha1.AddOnRolloutKind)).
		WatchesRawSource(r.Gates.Outcomes()).
		WatchesRawSource(woken).
		WatchesRawSource(r.Agents.Outcomes(r.ofAgents)).
		WithOptions(options).
		Complete(limited)
}

// watchConfigs gives the reader of configurations a watch with a cache of its own. The returned
// source wakes the rollouts whose configurations change.
func (r *Reconciler) watchConfigs(mgr ctrl.Manager) (source.Source, error) {
	informers, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: trimMetadata,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot watch configurations: %w", err)
	}
	if err := mgr.Add(informers); err != nil {
		return nil, fmt.Errorf("cannot watch configurations: %w", err)
	}
	// Buffered, so that a burst of events does not block the watch.
	events := make(chan event.TypedGenericEvent[client.ObjectKey], 1024)
	r.wake = func(of client.ObjectKey) { events <- event.TypedGenericEvent[client.ObjectKey]{Object: of} }
	r.configs.watch = newKindWatch(informers, r.wake)
	return source.TypedChannel(events, handler.TypedEnqueueRequestsFromMapFunc(
		func(_ context.Context, of client.ObjectKey) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: of}}
		})), nil
}

// trimMetadata keeps only the fields of an object that identify its version.
func trimMetadata(in any) (any, error) {
	if o, ok := in.(client.Object); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(nil)
		o.SetLabels(nil)
	}
	return in, nil
}

// addIndexes adds the indexes with which observe reads one add-on, so that its cost does not grow
// with the number of add-ons.
func addIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	for obj, name := range map[client.Object]func(client.Object) string{
		&addonv1alpha1.ManagedClusterAddOn{}: client.Object.GetName,
		&v1alpha1.AddOnRollout{}:             client.Object.GetName,
	} {
		err := indexer.IndexField(ctx, obj, indexName, func(o client.Object) []string { return []string{name(o)} })
		if err != nil {
			return fmt.Errorf("cannot index %T: %w", obj, err)
		}
	}
	return nil
}
