package addonrollout

import (
	"context"
	"fmt"
	"strings"

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
	seen := map[v1alpha1.PlacementReference]bool{}
	for _, p := range ro.Spec.Placements() {
		if seen[p] {
			continue
		}
		seen[p] = true
		within := client.InNamespace(p.Namespace)
		all = append(
			all,
			cachedList{&clusterv1beta1.PlacementList{}, []client.ListOption{within}},
			cachedList{&clusterv1beta1.PlacementDecisionList{}, []client.ListOption{within, client.MatchingLabels{clusterv1beta1.PlacementLabel: p.Name}}},
		)
	}
	return all
}

// behind names an object that the watch cache shows in an older version than the hub has; "": there is none. The
// caller read the rollout before.
//
// A turn is planned from the ledger, which is read uncached, and from objects of the watch cache. A process never sees
// an object in an older version than before, so its own ledger is as old as its cache, or older. The ledger of another
// process can be newer: after a handover, or if two operators run, the cache may not show yet what that ledger was made
// from. With such a cache, a cluster that is done would look as if it still had to be written, and a cluster in flight
// as if it had left. So a turn with the ledger of another process first waits until the cache shows everything that
// the hub has now.
func (r *Reconciler) behind(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory) (string, error) {
	if mem.plan.Stored(ro.Status.Ledger) {
		return "", nil
	}
	for _, l := range cachedLists(ro) {
		what, err := r.listBehind(ctx, l)
		if err != nil || what != "" {
			return what, err
		}
	}
	return "", nil
}

// listBehind names an object of a list that the watch cache shows in an older version than the hub has.
func (r *Reconciler) listBehind(ctx context.Context, l cachedList) (string, error) {
	kind, err := apiutil.GVKForObject(l.list, r.Client.Scheme())
	if err != nil {
		return "", fmt.Errorf("cannot compare the watch cache with the hub: %w", err)
	}
	stored := &metav1.PartialObjectMetadataList{}
	stored.SetGroupVersionKind(kind)
	if err := r.Live.List(ctx, stored, l.options...); err != nil {
		return "", fmt.Errorf("cannot compare the watch cache with the hub: %w", err)
	}
	if err := r.Client.List(ctx, l.list, append(l.options, client.UnsafeDisableDeepCopy)...); err != nil {
		return "", fmt.Errorf("cannot compare the watch cache with the hub: %w", err)
	}
	cached := map[client.ObjectKey]client.Object{}
	err = meta.EachListItem(l.list, func(o runtime.Object) error {
		object, ok := o.(client.Object)
		if ok {
			cached[client.ObjectKeyFromObject(object)] = object
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("cannot read the watch cache: %w", err)
	}
	for i := range stored.Items {
		o := &stored.Items[i]
		key := client.ObjectKeyFromObject(o)
		if c, ok := cached[key]; !ok || olderVersion(c, o) {
			return strings.TrimSuffix(kind.Kind, "List") + " " + key.String(), nil
		}
		delete(cached, key)
	}
	for key, c := range cached {
		if !olderThan(stored.ResourceVersion, c.GetResourceVersion()) { // otherwise it was created after the list
			return strings.TrimSuffix(kind.Kind, "List") + " " + key.String() + ", which is deleted", nil
		}
	}
	return "", nil
}
