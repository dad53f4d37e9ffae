package addonrollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/fluxcd/pkg/runtime/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// trouble is why one cluster could not be brought to what the plan says.
type trouble struct {
	// reason is RevisionMissing, ApplyFailed or ObjectConflict.
	reason string
	text   string
}

// rounds remembers, for each rollout, where a round of writes that ran out of time is to
// be taken up, and which clusters are in trouble: a round may not get to all of them.
// Losing it costs one round.
type rounds struct {
	mu sync.Mutex
	of map[client.ObjectKey]roundMemory
}

// roundMemory is what is remembered of one rollout's rounds.
type roundMemory struct {
	// next is the first cluster that the last round did not get to; "" for none.
	next     string
	troubles map[string]trouble
}

// newRounds returns an empty memory.
func newRounds() *rounds { return &rounds{of: map[client.ObjectKey]roundMemory{}} }

// next is the cluster to begin with.
func (r *rounds) next(key client.ObjectKey) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[key].next
}

// enter notes how a round went and returns every cluster in trouble: those it found, and
// of those it did not get to the ones that were in trouble before.
func (r *rounds) enter(key client.ObjectKey, wrote applied) map[string]trouble {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := roundMemory{next: wrote.next, troubles: maps.Clone(wrote.troubles)}
	for _, name := range wrote.left {
		if t, ok := r.of[key].troubles[name]; ok {
			if m.troubles == nil {
				m.troubles = map[string]trouble{}
			}
			m.troubles[name] = t
		}
	}
	r.of[key] = m
	return m.troubles
}

// forget drops a rollout that is gone.
func (r *rounds) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}

// markWritten says in ClustersWritten which clusters could not be brought to what they are
// to run, and why; its reason is that of the gravest. The
// condition is there only while there are any; complete tells whether every cluster was
// looked at, without which it is not taken back.
func markWritten(ro *v1alpha1.AddOnRollout, troubles map[string]trouble, complete bool) {
	if len(troubles) == 0 {
		if complete {
			conditions.Delete(ro, v1alpha1.ClustersWrittenCondition)
		}
		return
	}
	said := map[string][]v1alpha1.ClusterReason{}
	for name, t := range troubles {
		said[t.reason] = append(said[t.reason], v1alpha1.ClusterReason{Cluster: name, Reason: t.text})
	}
	first := ""
	var parts []string
	for _, t := range []struct{ reason, what string }{
		{v1alpha1.ApplyFailedReason, "cannot write "},
		{v1alpha1.RevisionMissingReason, "held "},
		{v1alpha1.ObjectConflictReason, "overruled on "},
	} {
		if clusters := said[t.reason]; len(clusters) > 0 {
			first, parts = cmp.Or(first, t.reason), append(parts, t.what+named(clusters))
		}
	}
	conditions.MarkFalse(ro, v1alpha1.ClustersWrittenCondition, first, "%s", strings.Join(parts, "; "))
}

// named counts clusters and names the first of them with the reason, in order, so
// that the same clusters give the same text.
func named(clusters []v1alpha1.ClusterReason) string {
	sorted := slices.SortedFunc(slices.Values(clusters), func(a, b v1alpha1.ClusterReason) int { return strings.Compare(a.Cluster, b.Cluster) })
	parts := make([]string, 0, brief.Shown)
	for _, c := range sorted[:min(brief.Shown, len(sorted))] {
		parts = append(parts, c.Cluster+": "+c.Reason)
	}
	return counted(len(sorted)) + ": " + brief.ReasonsOf(len(sorted), parts)
}

// inOrder returns the positions of clusters, given by name in order, in the order they
// are written: departures first, which free what others wait for; then those with an
// action; then the rest, which are looked at for drift. Each kind begins at next, so
// that what did not fit into a round comes first in the one after it.
func inOrder(names []string, next string, urgency func(name string) int) []int {
	start, _ := slices.BinarySearch(names, next)
	order := make([]int, 0, len(names))
	for i := range names {
		order = append(order, (start+i)%len(names))
	}
	slices.SortStableFunc(order, func(a, b int) int { return urgency(names[a]) - urgency(names[b]) })
	return order
}
