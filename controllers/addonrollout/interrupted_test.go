package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// killed is an engine whose child is killed from outside while on is true.
type killed struct {
	chart.InProcess
	on bool
}

func (k *killed) For(string) chart.Engine { return k }

func (k *killed) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	if k.on {
		return nil, fmt.Errorf("%w: killed", chart.ErrInterrupted)
	}
	return k.InProcess.Render(s, in)
}

// packaged is content that is a package with one ConfigMap of the name.
func packaged(name string) render.Content {
	return render.Content{AddOn: "hello", Package: &render.Package{
		Name: "hello", Engine: chart.ManifestsFolder,
		Files: []render.PackageFile{{Path: "a.yaml", Text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: agents}\n"}},
	}}
}

// TestInterruptedRendering_HoldsBackNoCluster: a turn in which a rendering was interrupted decides
// nothing and says so, and the next turn continues.
func TestInterruptedRendering_HoldsBackNoCluster(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	engine := &killed{on: true}
	s.reconciler.renderers.charts = engine
	s.targetOf(packaged("a"), "v1")
	s.advance(time.Second)
	_, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
	if !errors.Is(err, render.ErrInterrupted) {
		t.Errorf("got %v, want an interruption", err)
	}
	if after := s.rollout().Status; after.Target != nil {
		t.Errorf("the turn decided something: %+v", after)
	}
	if ro := s.rollout(); conditions.GetReason(ro, meta.ReconcilingCondition) != v1alpha1.RenderInterruptedReason || !strings.Contains(conditions.GetMessage(ro, meta.ReadyCondition), "killed; it is tried again") {
		t.Errorf("the rollout says %+v", ro.Status.Conditions)
	}
	engine.on = false
	s.turns(6)
	if got := conditions.GetReason(s.rollout(), meta.ReadyCondition); got != v1alpha1.RolloutProgressingReason {
		t.Errorf("after the interruption Ready has reason %s", got)
	}
	works := &workv1.ManifestWorkList{}
	if err := s.hub.List(t.Context(), works); err != nil || len(works.Items) != 2 {
		t.Errorf("%d works, %v; want one of each cluster", len(works.Items), err)
	}
}

// viewed is an engine that a page asks while a turn renders: the rendering for the page is interrupted.
type viewed struct {
	chart.InProcess
	view    func()
	viewing bool
}

func (e *viewed) For(string) chart.Engine { return e }

func (e *viewed) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	if e.viewing {
		return nil, fmt.Errorf("%w: killed", chart.ErrInterrupted)
	}
	e.viewing = true
	e.view()
	e.viewing = false
	return e.InProcess.Render(s, in)
}

// TestInterruptedRenderingForAPageCostsNoTurn: pages use what the turns of the operator rendered.
func TestInterruptedRenderingForAPageCostsNoTurn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	page := s.reconciler.Inspector(s.hub, s.key)
	engine, interrupted := &viewed{}, 0
	engine.view = func() {
		if _, err := page.Inspect(t.Context()); errors.Is(err, render.ErrInterrupted) {
			interrupted++
		}
	}
	s.reconciler.renderers.charts = engine
	s.targetOf(packaged("a"), "v1")
	s.advance(time.Second)
	if _, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key}); err != nil {
		t.Errorf("the turn got %v", err)
	}
	if interrupted == 0 {
		t.Error("the page was not interrupted")
	}
}

// refusing is an engine that refuses every package for one cluster, and counts how often it was asked to render there.
type refusing struct {
	chart.InProcess
	cluster    string
	renderings atomic.Int32
}

func (e *refusing) For(string) chart.Engine { return e }

func (e *refusing) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	if in.BuiltIns["clusterName"] == e.cluster {
		e.renderings.Add(1)
		return nil, &chart.Error{Message: "it used 10s of CPU time"}
	}
	return e.InProcess.Render(s, in)
}

// TestRefusedClusterIsRenderedOnce: a package that reaches a limit on one cluster uses all of the limit each time it is
// rendered there. No turn renders it again, neither for a cluster without a work nor for one that can get neither the
// target nor what it runs.
func TestRefusedClusterIsRenderedOnce(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	engine := &refusing{cluster: "c2"}
	s.reconciler.renderers.charts = engine
	release := func(revision string) {
		s.targetOf(packaged(revision), revision)
		s.turns(8)
	}
	release("v1")
	if n := engine.renderings.Load(); n != 1 {
		t.Errorf("it is rendered %d times for a cluster without a work", n)
	}
	engine.cluster = "c1"
	engine.renderings.Store(0)
	c1 := s.addOn("c1")
	c1.Annotations = map[string]string{"addon.open-cluster-management.io/values": "{}"}
	s.update(c1)
	release("v2")
	if n := engine.renderings.Load(); n != 2 {
		t.Errorf("two revisions are rendered %d times for a cluster whose values changed", n)
	}
}

// queued is an engine whose renderings wait for a turn, longer than a hub may take.
type queued struct{ chart.InProcess }

func (e queued) For(string) chart.Engine { return e }

func (e queued) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	<-time.After(2 * clusterFor)
	return e.InProcess.Render(s, in)
}

// TestWaitForARenderingIsNotTheHubs: the time limit of the requests of a cluster does not begin before it is rendered.
func TestWaitForARenderingIsNotTheHubs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return c.Create(ctx, obj, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
			},
		}, "c1")
		s.reconciler.renderers.charts = queued{}
		s.targetOf(packaged("a"), "v1")
		s.turns(6)
		if works := s.works(); len(works) != 1 {
			t.Errorf("it is not written: %s", s.says(meta.ReadyCondition))
		}
	})
}
