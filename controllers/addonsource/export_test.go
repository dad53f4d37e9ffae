package addonsource

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Stop ends the errand of a source.
func (r *Reconciler) Stop(source types.NamespacedName) { r.errands.stop(source) }

// Await waits for the errand of a source, for tests that run the passes themselves. It returns
// false if there is none.
func (r *Reconciler) Await(source types.NamespacedName) bool {
	r.errands.mu.Lock()
	sent := r.errands.of[source]
	r.errands.mu.Unlock()
	if sent == nil {
		return false
	}
	<-sent.done
	return true
}

// StatusOfOthers is the predicate of that name.
func (r *Reconciler) StatusOfOthers() predicate.Predicate { return r.statusOfOthers() }
