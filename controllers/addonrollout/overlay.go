package addonrollout

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// unseenFor is how long an object created is believed in that the watch does not show.
// After that it is looked for live: another writer may have deleted it at once, so that the
// watch never shows it and nothing wakes us for it.
const unseenFor = 5 * time.Second

// overlay remembers what this process wrote until the watch has caught up, so
// that the next look at a cluster does not plan on the state before the write and
// meet a conflict. It is an optimisation only: every write is preconditioned.
type overlay[T client.Object] struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	written map[client.ObjectKey]write[T]
}

// write is an object as the API server returned it, and when.
type write[T client.Object] struct {
	object T
	at     time.Time
	// created: the watch has not shown the object yet. An object that the watch showed before and
	// does not show now is deleted, because a watch never goes back in time.
	created bool
}

// newOverlay returns an empty overlay.
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

// forget drops an object that turned out not to be what was remembered.
func (o *overlay[T]) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.written, key)
}

// forgetThose drops the objects of an add-on that is gone: no watch will be looked at for
// them any more.
func (o *overlay[T]) forgetThose(mine func(T) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.written, func(_ client.ObjectKey, w write[T]) bool { return mine(w.object) })
}

// newest returns the newer of the watched object and the one written. What the
// watch has caught up with is forgotten.
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

// unseen returns the objects written that are not among those the watch showed: fresh
// ones were created so lately that it has not told of them; doubtful ones it should
// have told of by now, so that the caller looks for them live, and then puts what it
// finds with create or forgets it.
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

// confirmed returns the objects that are there although the watch does not show them.
// Those in doubt are asked for with live, which returns nil for what does not exist.
func (o *overlay[T]) confirmed(shown map[client.ObjectKey]bool, mine func(T) bool, live func(client.ObjectKey) (T, error)) ([]T, error) {
	var none T
	there, doubtful := o.unseen(shown, mine)
	for _, d := range doubtful {
		key := client.ObjectKeyFromObject(d)
		found, err := live(key)
		switch {
		case err != nil:
			return nil, fmt.Errorf("cannot look for %s: %w", key, err)
		case client.Object(found) == client.Object(none):
			o.forget(key)
		default:
			o.create(found)
			there = append(there, found)
		}
	}
	return there, nil
}

// olderVersion reports whether a is an older version of the same object than b.
// Resource versions of one resource are ordered numbers (Kubernetes 1.35, KEP-5504);
// one that does not parse is never called older, which costs a conflict at worst.
func olderVersion(a, b client.Object) bool {
	va, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && va < vb
}
