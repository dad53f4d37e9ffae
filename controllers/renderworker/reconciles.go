package renderworker

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/render/chart"
)

// waitingAtOnce is how many reconciles of a controller may wait for renderings besides those that run. Each keeps a
// worker of the queue and what it has read, and they take turns with the child: their number limits the memory, and how
// long one of them waits.
const waitingAtOnce = 12

// Reconciles limits how many reconciles of one controller run at once. A reconcile that waits for a rendering does not
// count, so that slow charts do not delay reconciles that need no chart. It continues at once when it has the rendering,
// even above the limit: otherwise it would wait once for every cluster.
type Reconciles struct {
	// places has one element for each reconcile that runs within the limit.
	places chan struct{}

	mu sync.Mutex
	// above is how many reconciles run above the limit.
	above int
	// active are the reconciles that have begun, by their owners.
	active map[string]*activity
}

// activity is one reconcile. waits is how many renderings it waits for; while there are any, it has no place.
type activity struct{ waits int }

// NewReconciles returns a limit of n reconciles, and of one if n is lower. A nil *Reconciles is no limit.
func NewReconciles(n int) *Reconciles {
	return &Reconciles{places: make(chan struct{}, max(1, n)), active: map[string]*activity{}}
}

// Limit puts the reconciles of a controller under the limit. The controller needs the returned options: they have more
// workers than places. owner is the owner of the charts that the reconcile of a request renders.
func (r *Reconciles) Limit(owner func(reconcile.Request) string, inner reconcile.Reconciler, o controller.Options) (reconcile.Reconciler, controller.Options) {
	if r == nil {
		return inner, o
	}
	o.MaxConcurrentReconciles = cap(r.places) + waitingAtOnce
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
		end, ok := r.begin(ctx, owner(req))
		if !ok {
			return ctrl.Result{}, nil // the operator ends
		}
		defer end()
		return inner.Reconcile(ctx, req)
	}), o
}

// Engines returns engines for which a reconcile waits without a place.
func (r *Reconciles) Engines(charts chart.Engines) chart.Engines {
	if r == nil {
		return charts
	}
	return waiting{reconciles: r, charts: charts}
}

// begin waits for a place; false: the context has ended. The caller calls end.
func (r *Reconciles) begin(ctx context.Context, owner string) (end func(), ok bool) {
	select {
	case r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	a := &activity{}
	r.active[owner] = a
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.active, owner)
		if a.waits == 0 {
			r.leave()
		}
	}, true
}

// Wait calls render, for which the reconcile of the owner waits without a place. If no reconcile of the owner runs, it
// only calls render: pages of the dashboard use the same engines, and may end their wait after the reconcile.
func (r *Reconciles) Wait(owner string, render func()) {
	if r == nil {
		render()
		return
	}
	r.mu.Lock()
	a := r.active[owner]
	if a != nil {
		if a.waits++; a.waits == 1 {
			r.leave()
		}
	}
	r.mu.Unlock()
	render()
	r.mu.Lock()
	defer r.mu.Unlock()
	if a != nil {
		if a.waits--; a.waits == 0 && r.active[owner] == a {
			r.enter()
		}
	}
}

// leave gives a place back. The lock is held.
func (r *Reconciles) leave() {
	if r.above > 0 {
		r.above--
		return
	}
	<-r.places
}

// enter takes a place, above the limit if none is free. The lock is held.
func (r *Reconciles) enter() {
	select {
	case r.places <- struct{}{}:
	default:
		r.above++
	}
}

// waiting are engines for which a reconcile waits without a place.
type waiting struct {
	reconciles *Reconciles
	charts     chart.Engines
}

func (w waiting) For(owner string) chart.Engine {
	return waitingEngine{w.reconciles, owner, w.charts.For(owner)}
}

type waitingEngine struct {
	reconciles *Reconciles
	owner      string
	inner      chart.Engine
}

func (e waitingEngine) Admits(s *chart.Source, versions []string) (version string, err error) {
	e.reconciles.Wait(e.owner, func() { version, err = e.inner.Admits(s, versions) })
	return version, err
}

func (e waitingEngine) Verify(s *chart.Source, in chart.Input) (err error) {
	e.reconciles.Wait(e.owner, func() { err = e.inner.Verify(s, in) })
	return err
}

func (e waitingEngine) Render(s *chart.Source, in chart.Input) (manifests []chart.Manifest, err error) {
	e.reconciles.Wait(e.owner, func() { manifests, err = e.inner.Render(s, in) })
	return manifests, err
}
