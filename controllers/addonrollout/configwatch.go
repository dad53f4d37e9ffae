package addonrollout

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kindWatch watches the kinds whose objects ManagedClusterAddOns name as configurations. Each kind has one informer,
// which is stopped when no ManagedClusterAddOn names the kind any more. It watches metadata only, because a hub may
// have thousands of ConfigMaps of which an add-on names one.
type kindWatch struct {
	informers cache.Cache
	// wake requests a turn of a rollout; it may be called from any goroutine.
	wake func(client.ObjectKey)

	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]cache.Informer
	// rollouts has the objects that their ManagedClusterAddOns name.
	rollouts map[client.ObjectKey]map[namedObject]bool
}

type namedObject struct {
	kind schema.GroupVersionKind
	key  client.ObjectKey
}

// newKindWatch returns a watch without kinds. informers must be a separate cache, because
// kinds that are not used any more are removed from it.
func newKindWatch(informers cache.Cache, wake func(client.ObjectKey)) *kindWatch {
	return &kindWatch{
		informers: informers, wake: wake,
		kinds:    map[schema.GroupVersionKind]cache.Informer{},
		rollouts: map[client.ObjectKey]map[namedObject]bool{},
	}
}

// use sets the objects that a rollout's ManagedClusterAddOns name now. If a kind cannot be watched, its objects are
// read instead.
func (w *kindWatch) use(ctx context.Context, of client.ObjectKey, wanted []namedConfig) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	objects := make(map[namedObject]bool, len(wanted))
	for _, n := range wanted {
		if n.err == nil {
			objects[namedObject{n.kind, n.key}] = true
		}
	}
	if w.rollouts[of] = objects; len(objects) == 0 {
		delete(w.rollouts, of)
	}
	used := map[schema.GroupVersionKind]bool{}
	for _, objects := range w.rollouts {
		for o := range objects {
			used[o.kind] = true
		}
	}
	for kind := range used {
		if w.kinds[kind] == nil {
			w.start(ctx, kind)
		}
	}
	for kind := range w.kinds {
		if !used[kind] {
			w.stop(ctx, kind)
		}
	}
}

// start begins to watch a kind. The lock is held.
func (w *kindWatch) start(ctx context.Context, kind schema.GroupVersionKind) {
	informer, err := w.informers.GetInformer(ctx, metadataOf(kind), cache.BlockUntilSynced(false))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { w.changed(kind, o) },
			UpdateFunc: func(_, o any) { w.changed(kind, o) },
			DeleteFunc: func(o any) { w.changed(kind, o) },
		})
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot watch a kind of configuration; its objects are read at every turn", "kind", kind.String())
		return
	}
	w.kinds[kind] = informer
}

// stop ends the watch of a kind. The lock is held.
func (w *kindWatch) stop(ctx context.Context, kind schema.GroupVersionKind) {
	if err := w.informers.RemoveInformer(ctx, metadataOf(kind)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Cannot stop watching a kind of configuration", "kind", kind.String())
		return
	}
	delete(w.kinds, kind)
}

// changed wakes the rollouts whose ManagedClusterAddOns name the object.
func (w *kindWatch) changed(kind schema.GroupVersionKind, object any) {
	if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	w.mu.Lock()
	var woken []client.ObjectKey
	for of, objects := range w.rollouts {
		if objects[namedObject{kind, client.ObjectKeyFromObject(o)}] {
			woken = append(woken, of)
		}
	}
	w.mu.Unlock()
	for _, of := range woken {
		w.wake(of)
	}
}

// version returns the version of an object that the watch shows; "": there is no object. known
// is false if the kind is not watched, or the watch has not listed yet.
func (w *kindWatch) version(ctx context.Context, n namedConfig) (version string, known bool) {
	if w == nil {
		return "", false
	}
	w.mu.Lock()
	informer := w.kinds[n.kind]
	w.mu.Unlock()
	if informer == nil || !informer.HasSynced() {
		return "", false
	}
	object := metadataOf(n.kind)
	err := w.informers.Get(ctx, n.key, object)
	if apierrors.IsNotFound(err) {
		return "", true
	}
	return versionOf(object), err == nil
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	return o
}
