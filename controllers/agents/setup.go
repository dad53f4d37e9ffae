package agents

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
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
	"github.com/addonflow/addonflow/registration"
)

// Fields that open requests are indexed by.
const (
	agentIndex   = "agent"
	clusterIndex = "cluster"
)

// Selector selects the requests and role bindings of add-ons, so that the cache holds no
// others.
func Selector() labels.Selector {
	s, err := labels.Parse(addonv1alpha1.AddonLabelKey)
	if err != nil {
		return labels.Everything() // the label is a constant and parses
	}
	return s
}

// RoleSelector selects the roles that an admin allows by label; changes of other roles do not
// matter.
func RoleSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{registration.AllowLabel: "true"})
}

// TokenSelector selects the objects behind the tokens of agents.
func TokenSelector() labels.Selector {
	return labels.SelectorFromSet(labels.Set{registration.InfrastructureLabel: registration.InfrastructureValue})
}

// SetupWithManager registers the reconciler of requests with its watches: requests, and the objects that Facts are
// read from. Set up addonrollout too: it creates the indexes that this reconciler uses.
func (r *Requests) SetupWithManager(ctx context.Context, mgr ctrl.Manager, options controller.Options) error {
	for name, value := range map[string]func(Key) string{agentIndex: Key.String, clusterIndex: func(k Key) string { return k.Cluster }} {
		err := mgr.GetFieldIndexer().IndexField(ctx, &certificatesv1.CertificateSigningRequest{}, name, indexOpen(value))
		if err != nil {
			return fmt.Errorf("cannot index requests by %s: %w", name, err)
		}
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration-requests").
		For(&certificatesv1.CertificateSigningRequest{}).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, handler.EnqueueRequestsFromMapFunc(r.ofAddOn), builder.WithPredicates(comesOrGoes(nil))).
		Watches(&clusterv1.ManagedCluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(comesOrGoes(accepted))).
		WatchesRawSource(r.Book.declarations(r.ofAgent)).
		WithOptions(options).
		Complete(r)
}

// indexOpen indexes the requests that are not finished.
func indexOpen(value func(Key) string) client.IndexerFunc {
	return func(o client.Object) []string {
		csr, ok := o.(*certificatesv1.CertificateSigningRequest)
		if !ok || finished(csr) {
			return nil
		}
		addOn, cluster := registration.AddOnOf(csr)
		return []string{value(Key{Cluster: cluster, AddOn: addOn})}
	}
}

// ofAddOn queues the open requests of the agent of a ManagedClusterAddOn.
func (r *Requests) ofAddOn(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.ofAgent(ctx, Key{Cluster: obj.GetNamespace(), AddOn: obj.GetName()})
}

// ofAgent queues the open requests of an agent.
func (r *Requests) ofAgent(ctx context.Context, key Key) []reconcile.Request {
	return r.open(ctx, client.MatchingFields{agentIndex: key.String()})
}

// ofCluster queues the open requests of a cluster.
func (r *Requests) ofCluster(ctx context.Context, obj client.Object) []reconcile.Request {
	return r.open(ctx, client.MatchingFields{clusterIndex: obj.GetName()})
}

// open lists requests. A read of the watch cache fails only while it starts, and then
// everything is queued anyway.
func (r *Requests) open(ctx context.Context, opts ...client.ListOption) []reconcile.Request {
	var list certificatesv1.CertificateSigningRequestList
	if err := r.Client.List(ctx, &list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil
	}
	requests := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: list.Items[i].Name}})
	}
	return requests
}

// SetupWithManager registers the reconciler of role bindings with its watches: a binding; an
// add-on that is created, deleted or changes its driver; a rollout that is deleted; an agent
// that requests something new; and, by metadata, a role that RoleSelector selects or no longer
// selects, or that changes.
func (r *Bindings) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request { return ofName(o.GetName()) })
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return ofName(o.GetLabels()[addonv1alpha1.AddonLabelKey])
	})
	forget := handler.Funcs{DeleteFunc: r.forget}
	return ctrl.NewControllerManagedBy(mgr).
		Named("registration-bindings").
		Watches(&rbacv1.RoleBinding{}, byLabel).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, byName, builder.WithPredicates(comesOrGoes(driver))).
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, forget).
		Watches(&v1alpha1.AddOnRollout{}, byName, builder.WithPredicates(comesOrGoes(nil))).
		WatchesMetadata(&rbacv1.ClusterRole{}, handler.EnqueueRequestsFromMapFunc(r.ofRole)).
		WatchesMetadata(&rbacv1.Role{}, handler.EnqueueRequestsFromMapFunc(r.ofRole)).
		WatchesRawSource(r.Book.declarations(func(_ context.Context, key Key) []reconcile.Request { return ofName(key.AddOn) })).
		WithOptions(options).
		Complete(r)
}

// ofRole queues the add-ons that request a role.
func (r *Bindings) ofRole(_ context.Context, role client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, addOn := range r.Book.asking(role.GetNamespace(), role.GetName()) {
		out = append(out, ofName(addOn)...)
	}
	return out
}

// SetupWithManager registers the reconciler of the objects behind tokens with its watches: one
// of these objects, an add-on that is created or changes its driver or condition, and an agent
// that requests something new. objects is a cache of what TokenSelector selects; its creator
// adds it to mgr.
func (r *Tokens) SetupWithManager(mgr ctrl.Manager, objects cache.Cache, options controller.Options) error {
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return ofAddOn(Key{Cluster: o.GetNamespace(), AddOn: o.GetLabels()[registration.InfrastructureAddOnLabel]})
	})
	byKey := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return ofAddOn(Key{Cluster: o.GetNamespace(), AddOn: o.GetName()})
	})
	r.Objects = objects
	b := ctrl.NewControllerManagedBy(mgr).
		Named("registration-tokens").
		Watches(&addonv1alpha1.ManagedClusterAddOn{}, byKey, builder.WithPredicates(comesOrGoes(tokenState))).
		WatchesRawSource(r.Book.declarations(func(_ context.Context, key Key) []reconcile.Request { return ofAddOn(key) })).
		WithOptions(options)
	for _, object := range []client.Object{&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		b.WatchesRawSource(source.Kind(objects, object, byLabel))
	}
	return b.Complete(r)
}

// ofAddOn makes the request of an add-on on a cluster. A label may be empty, and then there is no request.
func ofAddOn(key Key) []reconcile.Request {
	if key.AddOn == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: key.Cluster, Name: key.AddOn}}}
}

// tokenState is how an add-on's agent authenticates, and the condition about its token.
func tokenState(o client.Object) string {
	a, ok := o.(*addonv1alpha1.ManagedClusterAddOn)
	if !ok {
		return ""
	}
	return a.Status.KubeClientDriver + " " + tokenCondition(a.Status.Conditions)
}

// ofName makes the request of an add-on. A label may be empty, and then there is no request.
func ofName(addOn string) []reconcile.Request {
	if addOn == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: addOn}}}
}

// forget drops what an agent requested if its add-on is deleted and not created again; it
// queues nothing.
func (r *Bindings) forget(ctx context.Context, e event.DeleteEvent, _ queue) {
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(e.Object), &addonv1alpha1.ManagedClusterAddOn{})
	if apierrors.IsNotFound(err) {
		r.Book.forget(Key{Cluster: e.Object.GetNamespace(), AddOn: e.Object.GetName()})
	}
}

// comesOrGoes passes events of objects that were created or deleted, that are being deleted, or
// for which fact changed.
func comesOrGoes(fact func(client.Object) string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if (e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil) {
			return true
		}
		return fact != nil && fact(e.ObjectOld) != fact(e.ObjectNew)
	}}
}

func accepted(o client.Object) string {
	if c, ok := o.(*clusterv1.ManagedCluster); ok {
		return fmt.Sprint(c.Spec.HubAcceptsClient)
	}
	return ""
}

// driver returns how an add-on's agent authenticates.
func driver(o client.Object) string {
	if a, ok := o.(*addonv1alpha1.ManagedClusterAddOn); ok {
		return a.Status.KubeClientDriver
	}
	return ""
}
