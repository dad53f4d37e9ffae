package addonrollout

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unseenFor is how long a created object counts as existing although the watch does not show it. After that, the
// object is read uncached: if another writer deleted it at once, the watch never shows it, and no event wakes a
// turn.
const unseenFor = 5 * time.Second

// overlay keeps the objects that this process wrote until the watch shows them. Without it, the next turn would plan
// with the old state and get a conflict. It only saves such turns: even without it no write would be wrong, because
// every write is preconditioned.
type overlay[T client.Object] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	written map[client.ObjectKey]write[T]
}

// write is an object as the API server returned it, and the time of the write.
type write[T client.Object] struct {
	object T
	at     time.Time
	// created: the watch has not shown the object yet. An object that the watch showed before and
	// does not show now is deleted, because a watch never goes back in time.
	created bool
}

func newOverlay[T client.Object](c clock.PassiveClock) *overlay[T] {
	return &overlay[T]{clock: c, written: map[client.ObjectKey]write[T]{}}
}

// create remembers an object that was created, as the API server returned it.
func (o *overlay[T]) create(obj T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written[client.ObjectKeyFromObject(obj)] = write[T]{object: obj, at: o.clock.Now(), created: true}
}

// put remembers an object that was changed, as the API server returned it.
func (o *overlay[T]) put(obj T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := client.ObjectKeyFromObject(obj)
	o.written[key] = write[T]{object: obj, at: o.clock.Now(), created: o.written[key].created}
}

// forget drops an object whose stored version is wrong.
func (o *overlay[T]) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.written, key)
}

// forgetThose drops the objects of a deleted add-on, which no later turn compares with the
// watch.
func (o *overlay[T]) forgetThose(mine func(T) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.written, func(_ client.ObjectKey, w write[T]) bool { return mine(w.object) })
}

// newest returns the newer of the watched object and the written one. It forgets the written object if the watched
// one is not older.
func (o *overlay[T]) newest(watched T) T {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := client.ObjectKeyFromObject(watched)
	mine, ok := o.written[key]
	if !ok {
		return watched
	}
	if mine.object.GetUID() != watched.GetUID() || !olderVersion(watched, mine.object) {
		delete(o.written, key)
		return watched
	}
	if mine.created {
		mine.created = false
		o.written[key] = mine
	}
	return mine.object
}

// unseen returns the written objects that the watch does not show. fresh objects were created within unseenFor.
// doubtful objects are older: the caller reads them uncached, and then enters the result with create or forgets the
// object.
func (o *overlay[T]) unseen(shown map[client.ObjectKey]bool, mine func(T) bool) (fresh, doubtful []T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, w := range o.written {
		switch {
		case shown[key] || !mine(w.object):
		case !w.created:
			delete(o.written, key)
		case o.clock.Since(w.at) > unseenFor:
			doubtful = append(doubtful, w.object)
		default:
			fresh = append(fresh, w.object)
		}
	}
	return fresh, doubtful
}

// confirmed returns the objects that exist although the watch does not show them. It reads
// doubtful objects with live, which returns nil for an object that does not exist.
func (o *overlay[T]) confirmed(shown map[client.ObjectKey]bool, mine func(T) bool, live func(client.ObjectKey) (T, error)) ([]T, error) {
	var none T
	there, doubtful := o.unseen(shown, mine)
	for _, d := range doubtful {
		key := client.ObjectKeyFromObject(d)
		found, err := live(key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot look for %s: %w", key, err)
		case client.Object(found) == client.Object(none) || !mine(found):
			o.forget(key)
		default:
			o.create(found)
			there = append(there, found)
		}
	}
	return there, nil
}

// olderVersion reports whether a is an older version of the same object than b.
func olderVersion(a, b client.Object) bool {
	return olderThan(a.GetResourceVersion(), b.GetResourceVersion())
}

// olderThan reports whether a resource version is older than another one of the same resource. They are ordered numbers
// (Kubernetes 1.35, KEP-5504). A version that does not parse never counts as older; at worst this costs a conflict.
func olderThan(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
