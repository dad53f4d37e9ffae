package addonrollout

import (
	"strconv"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlayFor bounds how long a write is remembered that the watch never shows, such
// as that of an object somebody deleted at once.
const overlayFor = 30 * time.Second

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
}

// newOverlay returns an empty overlay.
func newOverlay[T client.Object](c clock.PassiveClock) *overlay[T] {
	return &overlay[T]{clock: c, written: map[client.ObjectKey]write[T]{}}
}

// put remembers an object as the API server returned it.
func (o *overlay[T]) put(obj T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written[client.ObjectKeyFromObject(obj)] = write[T]{object: obj, at: o.clock.Now()}
}

// forget drops an object that turned out not to be what was remembered.
func (o *overlay[T]) forget(key client.ObjectKey) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.written, key)
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
	return mine.object
}

// unseen returns the objects written that are not among those the watch showed:
// created so lately that it has not told of them.
func (o *overlay[T]) unseen(shown map[client.ObjectKey]bool, mine func(T) bool) []T {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []T
	for key, w := range o.written {
		switch {
		case shown[key] || !mine(w.object):
		case o.clock.Since(w.at) > overlayFor:
			delete(o.written, key)
		default:
			out = append(out, w.object)
		}
	}
	return out
}

// olderVersion reports whether a is an older version of the same object than b.
// Resource versions of one resource are ordered numbers (Kubernetes 1.35, KEP-5504);
// one that does not parse is never called older, which costs a conflict at worst.
func olderVersion(a, b client.Object) bool {
	va, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && va < vb
}
