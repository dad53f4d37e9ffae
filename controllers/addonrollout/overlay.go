package addonrollout

import (
	"strconv"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// overlay remembers what this process wrote until the watch has caught up, so
// that the next look at a cluster does not plan on the state before the write and
// meet a conflict. It is an optimisation only: every write is preconditioned.
type overlay[T client.Object] struct {
	mu      sync.Mutex
	written map[client.ObjectKey]T
}

// newOverlay returns an empty overlay.
func newOverlay[T client.Object]() *overlay[T] {
	return &overlay[T]{written: map[client.ObjectKey]T{}}
}

// put remembers an object as the API server returned it.
func (o *overlay[T]) put(obj T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written[client.ObjectKeyFromObject(obj)] = obj
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
	if mine.GetUID() != watched.GetUID() || !olderVersion(watched, mine) {
		delete(o.written, key)
		return watched
	}
	return mine
}

// olderVersion reports whether a is an older version of the same object than b.
// Resource versions of one resource are ordered numbers (Kubernetes 1.35, KEP-5504);
// one that does not parse is never called older, which costs a conflict at worst.
func olderVersion(a, b client.Object) bool {
	va, errA := strconv.ParseUint(a.GetResourceVersion(), 10, 64)
	vb, errB := strconv.ParseUint(b.GetResourceVersion(), 10, 64)
	return errA == nil && errB == nil && va < vb
}
