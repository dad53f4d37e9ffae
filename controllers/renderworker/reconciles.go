package renderworker

import (
	"context"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/render/chart"
)

// waitingPerPlace is how many workers of the queue there are for each place. A reconcile that waits for a rendering has
// a worker and what it has read, so their number limits the memory.
const waitingPerPlace = 16

// Reconciles limits how many reconciles of one controller run at once. A reconcile that waits for a rendering does not
// count, so that charts that are slow on every cluster delay no reconcile that needs no chart. It continues at once
// when it has the rendering, even above the limit: otherwise it would wait once for every cluster.
type Reconciles struct {
	// places has one element for each reconcile that runs within the limit.
	places chan struct{}

	mu sync.Mutex
	// above is how many reconciles run above the limit.
	above   int
	running map[string]*running
}

// running is one reconcile. waits is how many renderings it waits for; while there are any, it has no place.
type running struct{ waits int }

// NewReconciles returns a limit of n reconciles. A nil *Reconciles is no limit.
func NewReconciles(n int) *Reconciles {
	return &Reconciles{places: make(chan struct{}, n), running: map[string]*running{}}
}

// Limit puts the reconciles of a controller under the limit. The controller needs the returned options: they have more
// workers than places. owner is the owner of the charts that the reconcile of a request renders.
func (r *Reconciles) Limit(owner func(reconcile.Request) string, inner reconcile.Reconciler, o controller.Options) (reconcile.Reconciler, controller.Options) {
	if r == nil {
		return inner, o
	}
	o.MaxConcurrentReconciles = cap(r.places) * waitingPerPlace
	return reconcile.Func(func(ctx context.Context, req reconcile.Request) (ctrl.Result, error) {
		end, err := r.begin(ctx, owner(req))
		if err != nil {
			return ctrl.Result{}, err
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

// begin waits for a place. The caller calls end.
func (r *Reconciles) begin(ctx context.Context, owner string) (end func(), err error) {
	select {
	case r.places <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &running{}
	r.running[owner] = one
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.running, owner)
		if one.waits == 0 {
			r.leave()
		}
	}, nil
}

// wait calls render. If a reconcile of the owner runs, it has no place meanwhile. A page that uses the engine may end
// its wait after the reconcile.
func (r *Reconciles) wait(owner string, render func()) {
	r.mu.Lock()
	one := r.running[owner]
	if one != nil {
		if one.waits++; one.waits == 1 {
			r.leave()
		}
	}
	r.mu.Unlock()
	render()
	r.mu.Lock()
	defer r.mu.Unlock()
	if one != nil {
		if one.waits--; one.waits == 0 && r.running[owner] == one {
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
	e.reconciles.wait(e.owner, func() { version, err = e.inner.Admits(s, versions) })
	return version, err
}

func (e waitingEngine) Verify(s *chart.Source, in chart.Input) (err error) {
	e.reconciles.wait(e.owner, func() { err = e.inner.Verify(s, in) })
	return err
}

func (e waitingEngine) Render(s *chart.Source, in chart.Input) (manifests []chart.Manifest, err error) {
	e.reconciles.wait(e.owner, func() { manifests, err = e.inner.Render(s, in) })
	return manifests, err
}
