package gatechecks

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/gates/measure"
)

// Options of a Desk.
type Options struct {
	// Secrets reads Secrets, by name only: the manager's API reader, so that none is cached.
	Secrets client.Reader
	// Measure says what measurements may call.
	Measure measure.Options
	Clock   clock.Clock
}

// Desk measures the gates of all rollouts of a process. It is safe for concurrent use.
type Desk struct {
	options Options
	// changed wakes the scheduler.
	changed chan struct{}

	mu       sync.Mutex
	rollouts map[types.NamespacedName]map[identity]*job
	// running counts measurements, of counts them by namespace of the rollout, at by host.
	running int
	of, at  map[string]int
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// NewDesk returns a desk that measures nothing until Start.
func NewDesk(o Options) *Desk {
	return &Desk{
		options:  o,
		changed:  make(chan struct{}, 1),
		rollouts: map[types.NamespacedName]map[identity]*job{},
		of:       map[string]int{},
		at:       map[string]int{},
	}
}

// Ask replaces the measurements of a rollout; nil: none. seen are the results that the turn read. Call Ask in every
// turn, after the write of the status with these results. A gate is measured again only if its newest result is one
// of seen.
func (d *Desk) Ask(key types.NamespacedName, asks []gates.Measure, seen []gates.Measured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before, now := d.rollouts[key], d.options.Clock.Now()
	after := make(map[identity]*job, len(asks))
	for _, ask := range asks {
		id := identityOf(ask)
		j := before[id]
		if j == nil || !j.sameGate(ask) {
			j = &job{rollout: key, host: measure.Host(ask.Gate), due: now}
		}
		j.ask, after[id] = ask, j
		if j.result == nil || slices.Contains(seen, *j.result) {
			j.asked = true
		}
	}
	for id, j := range before {
		if after[id] != j {
			j.drop()
		}
	}
	if d.rollouts[key] = after; len(after) == 0 {
		delete(d.rollouts, key)
	}
	d.schedule()
}

// Results returns the newest result of each measured gate of a rollout, and keeps it. The turns of dependent add-ons
// call Results too.
func (d *Desk) Results(key types.NamespacedName) []gates.Measured {
	d.mu.Lock()
	defer d.mu.Unlock()
	var results []gates.Measured
	for _, j := range d.rollouts[key] {
		if j.result != nil {
			results = append(results, *j.result)
		}
	}
	return results
}

// Forget drops everything about a deleted rollout.
func (d *Desk) Forget(key types.NamespacedName) { d.Ask(key, nil, nil) }

// Outcomes is the source of reconcile requests for rollouts with a new result. One controller
// watches it.
func (d *Desk) Outcomes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.queue = queue
		return nil
	})
}

// Start measures until the context ends, and returns when all measurements have ended. It is a
// manager's Runnable, and as such runs on the leader only.
func (d *Desk) Start(ctx context.Context) error {
	var measuring sync.WaitGroup
	defer measuring.Wait()
	timer := d.options.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		if next := d.begin(ctx, &measuring); !next.IsZero() {
			timer.Reset(next.Sub(d.options.Clock.Now()))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-d.changed:
		case <-timer.C():
		}
	}
}
