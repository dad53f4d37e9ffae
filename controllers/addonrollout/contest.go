package addonrollout

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/contest"
)

// writtenWork has the writes of one work of a cluster. err is the conflict about the work, after another client undid
// enough of these writes. While err is set, the work is not written and the rollout admits no cluster. It is cleared
// when the work has its content again, or when the user requests a reconcile.
type writtenWork struct {
	cluster string
	writes  contest.Count
	err     error
}

// contested returns the conflict about a work that is to be written; nil: the work may be written.
func (d *round) contested(ctx context.Context, work *workv1.ManifestWork) error {
	key := client.ObjectKeyFromObject(work)
	d.mu.Lock()
	c := d.mem.counts[key]
	d.mu.Unlock()
	if !c.writes.Full(workContent(work)) {
		return nil
	}
	if c.err != nil {
		return c.err
	}
	writer := "another client"
	if live, err := d.liveWork(ctx, key); err != nil {
		return fmt.Errorf("cannot read work %s: %w", key, err)
	} else if live != nil {
		if by := contest.LastWriter(live.ManagedFields); by != "" {
			writer = strconv.Quote(by)
		}
	}
	c.err = fmt.Errorf("%w: %s undoes writes of work %s: stop the client; addonflow reconcile rollout %s -n %s",
		plan.ErrContested, writer, key, d.rollout.Name, d.rollout.Namespace)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.counts[key] = c
	return c.err
}

// countWrite counts a write of a work.
func (d *round) countWrite(cluster string, work *workv1.ManifestWork) {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := client.ObjectKeyFromObject(work)
	d.mem.counts[key] = writtenWork{cluster: cluster, writes: d.mem.counts[key].writes.Written(workContent(work), d.now.Time)}
}

// dropCounts forgets the writes that no client undid in time. While the last round met a conflict about works of
// a cluster, the counts of that cluster stay. If the user requests a reconcile, all counts are forgotten.
func (m *memory) dropCounts(ro *v1alpha1.AddOnRollout, now time.Time) {
	requested := plan.RequestedAt(ro) != ""
	maps.DeleteFunc(m.counts, func(_ client.ObjectKey, c writtenWork) bool {
		lasts := m.troubles[c.cluster].conflict != nil
		return requested || !lasts && c.writes.Quiet(now)
	})
}

// workContent identifies the content of a rendered work.
func workContent(work *workv1.ManifestWork) string {
	return work.Annotations[v1alpha1.RevisionAnnotation] + " " + work.Annotations[v1alpha1.DigestAnnotation]
}
