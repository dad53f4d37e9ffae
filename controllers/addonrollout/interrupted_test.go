package addonrollout

import (
	"errors"
	"fmt"
	"testing"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestInterruptedRendering_HoldsBackNoCluster: a turn in which a rendering was interrupted decides
// nothing, and the next turn continues.
func TestInterruptedRendering_HoldsBackNoCluster(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	engine := &killed{on: true}
	s.reconciler.renderers.charts = engine
	s.targetOf(render.Content{AddOn: "hello", Package: &render.Package{
		Name: "hello", Engine: chart.ManifestsFolder,
		Files: []render.PackageFile{{Path: "a.yaml", Text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: agents}\n"}},
	}}, "v1")
	s.advance(time.Second)
	_, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key})
	if !errors.Is(err, render.ErrInterrupted) {
		t.Errorf("got %v, want an interruption", err)
	}
	if after := s.rollout().Status; after.Target != nil {
		t.Errorf("the turn decided something: %+v", after)
	}
	engine.on = false
	s.turns(6)
	works := &workv1.ManifestWorkList{}
	if err := s.hub.List(t.Context(), works); err != nil || len(works.Items) != 2 {
		t.Errorf("%d works, %v; want one of each cluster", len(works.Items), err)
	}
}
