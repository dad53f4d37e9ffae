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

// comparison is the result of comparing the watch cache with the hub for the ledger of another process.
type comparison struct {
	ledger v1alpha1.Ledger
	// unseen are the objects that the watch cache did not show yet as the hub had them.
	unseen []unseen
	// again: they were looked for once more.
	again bool
}

// unseen is an object that the watch cache has to show in a version, or a newer one.
type unseen struct {
	cachedList
	kind    string
	key     client.ObjectKey
	version string
	// deleted: the hub does not have the object. version is that of the whole list.
	deleted bool
}

// shows reports whether the watch cache shows the object as the hub had it, or newer.
func (u unseen) shows(cached map[client.ObjectKey]client.Object) bool {
	c, ok := cached[u.key]
	if u.deleted {
		return !ok || olderThan(u.version, c.GetResourceVersion())
	}
	return ok && !olderThan(c.GetResourceVersion(), u.version)
}

func (u unseen) String() string {
	if u.deleted {
		return u.kind + " " + u.key.String() + " is deleted"
	}
	return u.kind + " " + u.key.String()
}

// catchUp compares the watch cache with the hub, if another process wrote the ledger. The caller read the rollout
// before. The error is errBehind, with the first object that differs, or one of the reads. The next call looks only for
// the objects that were behind, because a fleet in flight changes all the time; the call after it compares everything
// again, because such an object may have been deleted meanwhile.
//
// A turn is planned from the ledger, which is read uncached, and from objects of the watch cache. A process never sees
// an object in an older version than before, so that its cache always shows what its own ledger was made from. The
// ledger of another process can be newer: after a handover, or while two operators run, the cache may lag behind what
// that process had seen. A cluster that is done would look as if it still had to be written, and a cluster in flight as
// if it had left.
func (r *Reconciler) catchUp(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory) error {
	if r.inspects || mem.plan.Stored(ro.Status.Ledger) || r.memories.own(ro) {
		return nil
	}
	last := mem.comparison
	switch {
	case last == nil || !equality.Semantic.DeepEqual(last.ledger, ro.Status.Ledger) || last.again && len(last.unseen) > 0:
		last = &comparison{ledger: *ro.Status.Ledger.DeepCopy()}
		for _, l := range cachedLists(ro) {
			more, err := r.compare(ctx, l)
			if err != nil {
				return err
			}
			last.unseen = append(last.unseen, more...)
		}
	case len(last.unseen) > 0:
		still, err := r.lookAgain(ctx, last.unseen)
		if err != nil {
			return err
		}
		last = &comparison{ledger: last.ledger, unseen: still, again: true}
	}
	if mem.comparison = last; len(last.unseen) > 0 {
		return fmt.Errorf("%w: %s", errBehind, last.unseen[0])
	}
	return nil
}

// lookAgain returns the objects that the watch cache still does not show.
func (r *Reconciler) lookAgain(ctx context.Context, before []unseen) (still []unseen, err error) {
	cached := map[client.ObjectList]map[client.ObjectKey]client.Object{}
	for _, u := range before {
		if cached[u.list] == nil {
			if cached[u.list], err = r.cached(ctx, u.cachedList); err != nil {
				return nil, err
			}
		}
		if !u.shows(cached[u.list]) {
			still = append(still, u)
		}
	}
	return still, nil
}

// compare returns the objects of one list that the watch cache does not show as the hub has them.
func (r *Reconciler) compare(ctx context.Context, l cachedList) ([]unseen, error) {
	list, err := apiutil.GVKForObject(l.list, r.Client.Scheme())
	if err != nil {
		return nil, fmt.Errorf("cannot compare the watch cache with the hub: %w", err)
	}
	kind := strings.TrimSuffix(list.Kind, "List")
	stored := &metav1.PartialObjectMetadataList{}
	stored.SetGroupVersionKind(list)
	next := func() error {
		options := append(slices.Clone(l.options), client.Limit(comparedAtOnce), client.Continue(stored.Continue))
		if err := r.Live.List(ctx, stored, options...); err != nil {
			return fmt.Errorf("cannot list the metadata of every %s: %w", kind, err)
		}
		return nil
	}
	if err := next(); err != nil { // before the cache is read: what changes meanwhile is newer in the cache
		return nil, err
	}
	cached, err := r.cached(ctx, l)
	if err != nil {
		return nil, err
	}
	var behind []unseen
	for {
		for i := range stored.Items {
			o := &stored.Items[i]
			u := unseen{cachedList: l, kind: kind, key: client.ObjectKeyFromObject(o), version: o.ResourceVersion}
			if !u.shows(cached) {
				behind = append(behind, u)
			}
			delete(cached, u.key)
		}
		if stored.Continue == "" {
			break
		}
		if err := next(); err != nil {
			return nil, err
		}
	}
	for key := range cached {
		u := unseen{cachedList: l, kind: kind, key: key, version: stored.ResourceVersion, deleted: true}
		if !u.shows(cached) {
			behind = append(behind, u)
		}
	}
	return behind, nil
}

// cached returns the objects of a list in the watch cache.
func (r *Reconciler) cached(ctx context.Context, l cachedList) (map[client.ObjectKey]client.Object, error) {
	all := map[client.ObjectKey]client.Object{}
	err := r.Client.List(ctx, l.list, append(slices.Clone(l.options), client.UnsafeDisableDeepCopy)...)
	if err == nil {
		err = meta.EachListItem(l.list, func(o runtime.Object) error {
			object, ok := o.(client.Object)
			if ok {
				all[client.ObjectKeyFromObject(object)] = object
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the watch cache: %w", err)
	}
	return all, nil
}
