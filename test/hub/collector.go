package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

const (
	collectorWorkers = 4
	// ownerIndex finds an owner's dependents by its UID.
	ownerIndex = "owner"
)

// DefaultCollected lists what a Hub's collector watches: OCM's kinds that own
// or are owned, and the few core kinds that add-ons create on a hub.
func DefaultCollected() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{
		resource(addonv1alpha1.GroupVersion, "clustermanagementaddons"),
		resource(addonv1alpha1.GroupVersion, "managedclusteraddons"),
		resource(clusterv1.GroupVersion, "managedclusters"),
		resource(clusterv1beta1.GroupVersion, "placements"),
		resource(clusterv1beta1.GroupVersion, "placementdecisions"),
		resource(workv1.GroupVersion, "manifestworks"),
		rbacv1.SchemeGroupVersion.WithResource("roles"),
		rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
		corev1.SchemeGroupVersion.WithResource("configmaps"),
		corev1.SchemeGroupVersion.WithResource("secrets"),
	}
}

func resource(gv metav1.GroupVersion, name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: gv.Group, Version: gv.Version, Resource: name}
}

func namespaces() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("namespaces")
}

// Collector deletes objects whose owners are all gone, as the garbage collector of a
// kube-controller-manager does. Owners are identified by UID, a cluster-scoped owner of a
// namespaced object counts, and dependents are deleted with policy Background. If an object is
// deleted with policy Foreground, its dependents are deleted first, and its finalizer is
// removed when none is left; with policy Orphan they lose their reference to it instead.
//
// A deleted Namespace is emptied, of every kind, and finalized.
//
// Only the listed resources are collected. Resources of their owners are watched as they
// appear.
type Collector struct {
	metadata  metadata.Interface
	mapper    meta.RESTMapper
	factory   metadatainformer.SharedInformerFactory
	queue     workqueue.TypedRateLimitingInterface[item]
	finisher  *finisher
	resources []schema.GroupVersionResource

	mu      sync.Mutex
	watched map[schema.GroupVersionResource]cache.SharedIndexInformer
}

// item is one object to look at.
type item struct {
	resource  schema.GroupVersionResource
	namespace string
	name      string
}

// NewCollector prepares a collector for the given resources; Run starts it.
func NewCollector(cfg *rest.Config, resources ...schema.GroupVersionResource) (*Collector, error) {
	cfg = rest.CopyConfig(cfg)
	// Emptying a namespace touches deprecated kinds, too; warnings about them do not matter.
	cfg.WarningHandlerWithContext = rest.NoWarnings{}
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot build the collector: %w", err)
	}
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot build the collector: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(cfg, httpClient)
	if err != nil {
		return nil, fmt.Errorf("cannot build the collector: %w", err)
	}
	finisher, err := newFinisher(cfg, client)
	if err != nil {
		return nil, err
	}
	return &Collector{
		metadata:  client,
		mapper:    mapper,
		factory:   metadatainformer.NewSharedInformerFactory(client, 0),
		queue:     workqueue.NewTypedRateLimitingQueue(retrySoon()),
		finisher:  finisher,
		resources: slices.Clone(resources),
		watched:   map[schema.GroupVersionResource]cache.SharedIndexInformer{},
	}, nil
}

// retrySoon suits the pace of a test, which a minute of backoff would exceed.
func retrySoon() workqueue.TypedRateLimiter[item] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[item](5*time.Millisecond, time.Second)
}

// Run collects until ctx ends, and returns its error after all goroutines are
// gone.
func (c *Collector) Run(ctx context.Context) error {
	var workers sync.WaitGroup
	for range collectorWorkers {
		workers.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	for _, r := range append([]schema.GroupVersionResource{namespaces()}, c.resources...) {
		c.watch(ctx, r)
	}
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
	c.factory.Shutdown()
	return ctx.Err()
}

// watch starts an informer for a resource unless there is one.
func (c *Collector) watch(ctx context.Context, r schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched[r] != nil {
		return
	}
	informer := c.factory.ForResource(r).Informer()
	// Both errors mean "already started", which the map rules out.
	_ = informer.AddIndexers(cache.Indexers{ownerIndex: ownerUIDs})
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.seen(r, obj) },
		UpdateFunc: func(old, obj any) { c.changed(r, old, obj) },
		DeleteFunc: c.gone,
	})
	c.watched[r] = informer
	c.factory.Start(ctx.Done())
}

func ownerUIDs(obj any) ([]string, error) {
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	var uids []string
	for _, owner := range object.GetOwnerReferences() {
		uids = append(uids, string(owner.UID))
	}
	return uids, nil
}

func (c *Collector) seen(r schema.GroupVersionResource, obj any) {
	object, err := meta.Accessor(obj)
	if err != nil || !c.concerns(r, object) {
		return
	}
	c.queue.Add(item{resource: r, namespace: object.GetNamespace(), name: object.GetName()})
}

// changed queues objects only if ownership or deletion changed: status updates of a fleet must
// not cause reads of the collector.
func (c *Collector) changed(r schema.GroupVersionResource, old, obj any) {
	before, err := meta.Accessor(old)
	if err != nil {
		return
	}
	after, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	if before.GetDeletionTimestamp() == nil && after.GetDeletionTimestamp() != nil ||
		!slices.EqualFunc(before.GetOwnerReferences(), after.GetOwnerReferences(), sameOwner) {
		c.seen(r, obj)
	}
}

func sameOwner(a, b metav1.OwnerReference) bool { return a.UID == b.UID }

// concerns keeps the many objects without owners out of the queue.
func (c *Collector) concerns(r schema.GroupVersionResource, object metav1.Object) bool {
	if r == namespaces() {
		return object.GetDeletionTimestamp() != nil
	}
	return len(object.GetOwnerReferences()) > 0 || awaited(object) != ""
}

// gone queues everything that the deleted object owned, and its owners: one of them may have
// waited for it.
func (c *Collector) gone(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	for _, dependent := range c.dependents(object.GetUID()) {
		c.queue.Add(dependent)
	}
	for _, owner := range object.GetOwnerReferences() {
		if found, err := c.ownerItem(owner, object.GetNamespace()); err == nil {
			c.queue.Add(found)
		}
	}
}

// dependents lists the collected objects that name uid as an owner.
func (c *Collector) dependents(uid types.UID) []item {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found []item
	for r, informer := range c.watched {
		objects, err := informer.GetIndexer().ByIndex(ownerIndex, string(uid))
		if err != nil {
			continue
		}
		for _, obj := range objects {
			if object, err := meta.Accessor(obj); err == nil {
				found = append(found, item{resource: r, namespace: object.GetNamespace(), name: object.GetName()})
			}
		}
	}
	return found
}

func (c *Collector) next(ctx context.Context) bool {
	it, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(it)
	if err := c.collect(ctx, it); err != nil && ctx.Err() == nil {
		c.queue.AddRateLimited(it)
		return true
	}
	c.queue.Forget(it)
	return true
}

// collect deletes one object if it has owners and all are gone. An owner in the cache is enough
// to keep the object. Before a deletion, everything is read from the server: a collector that
// trusts a stale cache deletes objects that must stay.
func (c *Collector) collect(ctx context.Context, it item) error {
	if c.ownedInCache(it) {
		return nil
	}
	object, err := c.metadata.Resource(it.resource).Namespace(it.namespace).Get(ctx, it.name, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	if it.resource == namespaces() && object.DeletionTimestamp != nil {
		return c.finisher.finish(ctx, it.name)
	}
	if finalizer := awaited(object); finalizer != "" {
		return c.finishDependents(ctx, it, object, finalizer)
	}
	if object.DeletionTimestamp != nil || len(object.OwnerReferences) == 0 || !slices.Contains(c.resources, it.resource) {
		return nil
	}
	for _, owner := range object.OwnerReferences {
		exists, err := c.exists(ctx, owner, object.Namespace)
		if err != nil || exists {
			return err
		}
	}
	return c.deleteBackground(ctx, it, object.UID)
}

func (c *Collector) ownedInCache(it item) bool {
	object := c.cached(it)
	if object == nil || object.GetDeletionTimestamp() != nil {
		return false
	}
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		found, err := c.ownerItem(owner, object.GetNamespace())
		if err != nil {
			return false
		}
		cached := c.cached(found)
		return cached != nil && cached.GetUID() == owner.UID
	})
}

func (c *Collector) cached(it item) metav1.Object {
	c.mu.Lock()
	informer := c.watched[it.resource]
	c.mu.Unlock()
	if informer == nil {
		return nil
	}
	key := cache.ObjectName{Namespace: it.namespace, Name: it.name}.String()
	obj, found, err := informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return nil
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil
	}
	return object
}

// exists asks the server for the owner. The reference's UID decides: a new owner of the same
// name is another object.
func (c *Collector) exists(ctx context.Context, owner metav1.OwnerReference, namespace string) (bool, error) {
	it, err := c.ownerItem(owner, namespace)
	if err != nil {
		return false, err
	}
	c.watch(ctx, it.resource)
	object, err := c.metadata.Resource(it.resource).Namespace(it.namespace).Get(ctx, it.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && object.UID == owner.UID, err
}

// ownerItem locates an owner: in the dependent's namespace, or in none.
func (c *Collector) ownerItem(owner metav1.OwnerReference, namespace string) (item, error) {
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return item{}, err
	}
	mapping, err := c.mapper.RESTMapping(gv.WithKind(owner.Kind).GroupKind(), gv.Version)
	if err != nil {
		return item{}, err
	}
	it := item{resource: mapping.Resource, namespace: namespace, name: owner.Name}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		it.namespace = ""
	}
	return it, nil
}

func (c *Collector) deleteBackground(ctx context.Context, it item, uid types.UID) error {
	policy := metav1.DeletePropagationBackground
	err := c.metadata.Resource(it.resource).Namespace(it.namespace).Delete(ctx, it.name, metav1.DeleteOptions{
		PropagationPolicy: &policy,
		Preconditions:     &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// awaited is the collector's finalizer of an object that is being deleted, "" without one.
func awaited(object metav1.Object) string {
	for _, finalizer := range []string{metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents} {
		if object.GetDeletionTimestamp() != nil && slices.Contains(object.GetFinalizers(), finalizer) {
			return finalizer
		}
	}
	return ""
}

// errDependents: an object that is being deleted still has dependents.
var errDependents = errors.New("dependents are still there")

// finishDependents deletes or orphans the dependents and, once none is left, removes the
// finalizer.
func (c *Collector) finishDependents(ctx context.Context, it item, object *metav1.PartialObjectMetadata, finalizer string) error {
	left := c.dependents(object.UID)
	for _, dependent := range left {
		found, err := c.metadata.Resource(dependent.resource).Namespace(dependent.namespace).Get(ctx, dependent.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if finalizer == metav1.FinalizerOrphanDependents {
			owners := slices.DeleteFunc(found.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == object.UID })
			err = c.patch(ctx, dependent, found, "ownerReferences", owners)
		} else {
			err = c.deleteBackground(ctx, dependent, found.UID)
		}
		if err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return errDependents
	}
	kept := slices.DeleteFunc(slices.Clone(object.Finalizers), func(name string) bool { return name == finalizer })
	return c.patch(ctx, it, object, "finalizers", kept)
}

// patch writes one list of an object's metadata, bound to the version that was read.
func (c *Collector) patch(ctx context.Context, it item, read *metav1.PartialObjectMetadata, field string, list any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: list, "resourceVersion": read.ResourceVersion}})
	if err != nil {
		return err
	}
	_, err = c.metadata.Resource(it.resource).Namespace(it.namespace).Patch(ctx, it.name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreNotFound(err)
}
