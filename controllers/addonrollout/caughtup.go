package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// errBehind means that the watch cache shows an object in an older version than the hub has. The next turn compares
// again.
var errBehind = errors.New("the watch cache is behind the hub")

// comparedAtOnce is how many objects one request of a comparison returns.
const comparedAtOnce = 500

// cachedList is a list that observe reads from the watch cache.
type cachedList struct {
	list    client.ObjectList
	options []client.ListOption
}

// cachedLists are the lists from which observe learns which clusters the add-on is on, and what they run.
func cachedLists(ro *v1alpha1.AddOnRollout) []cachedList {
	all := []cachedList{
		{&workv1.ManifestWorkList{}, []client.ListOption{client.MatchingLabels{addOnNameLabel: ro.Name}}},
		{&addonv1alpha1.ManagedClusterAddOnList{}, []client.ListOption{client.MatchingFields{indexName: ro.Name}}},
		{&clusterv1.ManagedClusterList{}, nil},
	}
	var namespaces []string
	for _, p := range ro.Spec.Placements() {
		namespaces = append(namespaces, p.Namespace)
	}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		within := []client.ListOption{client.InNamespace(namespace)}
		all = append(all, cachedList{&clusterv1beta1.PlacementList{}, within}, cachedList{&clusterv1beta1.PlacementDecisionList{}, within})
	}
	return all
}

// catchUp compares the watch cache with the hub, if another process wrote the ledger. The caller read the rollout
// before. The error is errBehind, with the first object that differs, or one of the reads.
//
// A turn is planned from the ledger, which is read uncached, and from objects of the watch cache. A process never sees
// an object in an older version than before, so that its cache always shows what its own ledger was made from. The
// ledger of another process can be newer: after a handover, or while two operators run, the cache may lag behind what
// that process had seen. A cluster that is done would look as if it still had to be written, and a cluster in flight as
// if it had left.
func (r *Reconciler) catchUp(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory) error {
	ledger := ro.Status.Ledger
	if mem.plan.Stored(ledger) || r.memories.own(ro) || mem.compared != nil && equality.Semantic.DeepEqual(*mem.compared, ledger) {
		return nil
	}
	for _, l := range cachedLists(ro) {
		if err := r.compare(ctx, l); err != nil {
			return err
		}
	}
	mem.compared = ledger.DeepCopy()
	return nil
}

// compare compares one list of the watch cache with the hub.
func (r *Reconciler) compare(ctx context.Context, l cachedList) error {
	list, err := apiutil.GVKForObject(l.list, r.Client.Scheme())
	if err != nil {
		return fmt.Errorf("cannot compare the watch cache with the hub: %w", err)
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	stored := &metav1.PartialObjectMetadataList{}
	stored.SetGroupVersionKind(list)
	next := func() error {
		options := append(slices.Clone(l.options), client.Limit(comparedAtOnce), client.Continue(stored.Continue))
		if err := r.Live.List(ctx, stored, options...); err != nil {
			return fmt.Errorf("cannot list each %s on the hub: %w", kind, err)
		}
		return nil
	}
	if err := next(); err != nil { // before the cache is read: what changes meanwhile is newer in the cache
		return err
	}
	cached, err := r.cached(ctx, l)
	if err != nil {
		return fmt.Errorf("cannot list each %s in the watch cache: %w", kind, err)
	}
	for {
		for i := range stored.Items {
			o := &stored.Items[i]
			key := client.ObjectKeyFromObject(o)
			if c, ok := cached[key]; !ok || olderVersion(c, o) {
				return fmt.Errorf("%w: %s %s", errBehind, kind, key)
			}
			delete(cached, key)
		}
		if stored.Continue == "" {
			break
		}
		if err := next(); err != nil {
			return err
		}
	}
	for key, c := range cached {
		if !olderThan(stored.ResourceVersion, c.GetResourceVersion()) { // a newer one was created after the list
			return fmt.Errorf("%w: %s %s is deleted", errBehind, kind, key)
		}
	}
	return nil
}

// cached returns the objects of a list in the watch cache.
func (r *Reconciler) cached(ctx context.Context, l cachedList) (map[client.ObjectKey]client.Object, error) {
	if err := r.Client.List(ctx, l.list, append(slices.Clone(l.options), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	all := map[client.ObjectKey]client.Object{}
	return all, meta.EachListItem(l.list, func(o runtime.Object) error {
		object, ok := o.(client.Object)
		if ok {
			all[client.ObjectKeyFromObject(object)] = object
		}
		return nil
	})
}
