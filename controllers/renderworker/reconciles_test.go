package renderworker

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/addonflow/addonflow/render/chart"
)

// stuck are engines whose renderings wait until the channel is closed.
type stuck struct {
	chart.InProcess
	free chan struct{}
}

func (e stuck) For(string) chart.Engine { return e }

func (e stuck) Render(*chart.Source, chart.Input) ([]chart.Manifest, error) {
	<-e.free
	return nil, nil
}

// rollouts is a controller under a limit. Its reconciles render charts or compute, by the name of the request.
type rollouts struct {
	reconcile.Reconciler
	reconciles *Reconciles
	engines    chart.Engines
	free       chan struct{} // ends the renderings
	compute    chan struct{} // ends what needs no chart
	begun      chan string
	charts     int // of a reconcile that renders, at once
}

func newRollouts(n int) *rollouts {
	c := &rollouts{reconciles: NewReconciles(n), free: make(chan struct{}), compute: make(chan struct{}), begun: make(chan string, 100), charts: 3}
	c.engines = c.reconciles.Engines(stuck{free: c.free})
	c.Reconciler, _ = c.reconciles.Limit(reconcile.Request.String, reconcile.Func(c.turn), controller.Options{})
	return c
}

func (c *rollouts) turn(_ context.Context, req reconcile.Request) (ctrl.Result, error) {
	c.begun <- req.Name
	if req.Namespace == "charts" {
		ended := make(chan struct{})
		for range c.charts {
			go func() {
				_, _ = c.engines.For(req.String()).Render(nil, chart.Input{})
				ended <- struct{}{}
			}()
		}
		for range c.charts {
			<-ended
		}
	}
	<-c.compute
	return ctrl.Result{}, nil
}

// start reconciles a request in the background.
func (c *rollouts) start(t *testing.T, namespace, name string) {
	t.Helper()
	go func() {
		_, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}()
	synctest.Wait()
}

// TestReconciles_SlowChartsHoldNoPlace: while the reconciles of many rollouts wait for their charts, others run, as
// many as the limit allows.
func TestReconciles_SlowChartsHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRollouts(2)
		for i := range 10 {
			c.start(t, "charts", fmt.Sprint("slow", i))
		}
		if n := len(c.begun); n != 10 {
			t.Errorf("%d of 10 reconciles wait for their charts; the others wait for a place", n)
		}
		for i := range 3 {
			c.start(t, "none", fmt.Sprint("quick", i))
		}
		if n := len(c.begun); n != 12 {
			t.Errorf("%d reconciles without charts run beside them, want 2 of 3", n-10)
		}
		close(c.free)
		synctest.Wait()
		if n := len(c.begun); n != 12 {
			t.Errorf("%d reconciles began while more than the limit run", n-12)
		}
		close(c.compute)
		synctest.Wait()
		if n := len(c.begun); n != 13 {
			t.Errorf("the last reconcile has not begun")
		}
		if len(c.reconciles.places) != 0 || c.reconciles.above != 0 || len(c.reconciles.active) != 0 {
			t.Errorf("after the end of all, %d places are taken, %d above the limit", len(c.reconciles.places), c.reconciles.above)
		}
	})
}

// TestReconciles_APageEndsAfterTheReconcile: a page that still renders with the engine of a reconcile that has ended
// neither keeps a place nor takes one.
func TestReconciles_APageEndsAfterTheReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRollouts(1)
		c.start(t, "none", "a")
		go func() { _, _ = c.engines.For("none/a").Render(nil, chart.Input{}) }()
		synctest.Wait()
		close(c.compute)
		synctest.Wait()
		if n := len(c.reconciles.places); n != 0 {
			t.Errorf("%d places are taken after the reconcile", n)
		}
		close(c.free)
		synctest.Wait()
		if n := len(c.reconciles.places); n != 0 || c.reconciles.above != 0 {
			t.Errorf("%d places are taken after the page, %d above the limit", n, c.reconciles.above)
		}
	})
}

// TestReconciles_EndWithTheOperator: a reconcile that waits for a place ends with its context.
func TestReconciles_EndWithTheOperator(t *testing.T) {
	r := NewReconciles(1)
	end, ok := r.begin(t.Context(), "a")
	if !ok {
		t.Fatal("it got no place")
	}
	defer end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := r.begin(ctx, "b"); ok {
		t.Error("it got a place that is taken")
	}
}
