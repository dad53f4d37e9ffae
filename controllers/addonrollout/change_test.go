package addonrollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
)

// TestChangeOfAStage: what the target changes is shown on the first cluster that does not run it,
// against the stable revision, or on a given cluster against a given one.
func TestChangeOfAStage(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	for _, step := range []struct {
		what          string
		do            func()
		cluster       string
		clusters      int
		before, after string
	}{
		{"a first install", func() { s.target("v1") }, "c1", 3, "", "example.com/hello:v1"},
		{"nothing to change", s.settle, "", 0, "", ""},
		{"an update", func() { s.target("v2") }, "c1", 3, "example.com/hello:v1", "example.com/hello:v2"},
		{"c1 runs the target", s.settleOnce, "c2", 2, "example.com/hello:v1", "example.com/hello:v2"},
	} {
		step.do()
		got, err := ChangeOf(t.Context(), s.hub, s.key, "everyone", chart.InProcess{})
		if err != nil {
			t.Fatal(err)
		}
		if got.Cluster != step.cluster || got.Clusters != step.clusters || image(t, got.Before) != step.before || image(t, got.After) != step.after {
			t.Errorf("%s: %+v", step.what, got)
		}
		if got, err := ChangeOn(t.Context(), s.hub, s.key, "", chart.InProcess{}); err != nil || got.Cluster != step.cluster || image(t, got.After) != step.after {
			t.Errorf("%s, of the whole rollout: %+v, %v", step.what, got, err)
		}
	}
	s.settle() // the stable revision is the target
	i, err := NewInspector(s.hub, s.key, chart.InProcess{}).Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := i.Change(t.Context(), v1alpha1.Target{Digest: "v1:sha256:absent"}); err != nil || got.Cluster != "" {
		t.Errorf("content that no cluster got changes %+v, %v", got, err)
	}
	if got, err := ChangeOn(t.Context(), s.hub, s.key, "c3", chart.InProcess{}); err != nil || got.Cluster != "c3" {
		t.Errorf("on a cluster that runs the target: %+v, %v", got, err)
	}
	if _, err := ChangeOn(t.Context(), s.hub, s.key, "c4", chart.InProcess{}); !errors.Is(err, ErrNoSuchCluster) {
		t.Error("a cluster that the rollout does not have has a change")
	}
}

// changes compares the change by the target on clusters, and the one that the page about content shows, with what the
// clusters ran and run: v1 to v2.
func (s *scene) changes(about v1alpha1.Target, page string, clusters map[string]string) {
	s.t.Helper()
	text := func(c Change) string {
		before, after := image(s.t, c.Before), image(s.t, c.After)
		return strings.ReplaceAll(before+" to "+after, "example.com/hello:", "")
	}
	for name, want := range clusters {
		if got, err := ChangeOn(s.t.Context(), s.hub, s.key, name, chart.InProcess{}); err != nil || text(got) != want {
			s.t.Errorf("%s: %s, %v, want %s", name, text(got), err, want)
		}
	}
	i, err := NewInspector(s.hub, s.key, chart.InProcess{}).Inspect(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if got, err := i.Change(s.t.Context(), about); err != nil || got.Cluster+": "+text(got) != page {
		s.t.Errorf("the page: %s: %s, %v, want %s", got.Cluster, text(got), err, page)
	}
}

// What content changes is seen on a cluster that got it, against what this cluster ran before.
func TestChange_IsFromWhatTheClusterRanBefore(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.failed()
	s.rolledBack() // c1 had v2
	back := s.rollout().Status
	s.changes(back.Override.Leaves(), "c1: v1 to v2", map[string]string{"c1": "v2 to v1", "c2": "v1 to v1"})
	s.changes(*back.Target, "c1: v2 to v1", nil)

	s.advance(time.Minute)
	s.targetOf(contentAt("v1"), "reverted")
	s.settle()
	s.changes(*s.rollout().Spec.Target, "c1: v1 to v1", map[string]string{"c1": "v1 to v1", "c2": "v1 to v1"})

	s.advance(time.Minute)
	s.target("v3")
	s.changes(*s.rollout().Spec.Target, "c1: v1 to v3", map[string]string{"c3": "v1 to v3"}) // no turn has seen it yet
	s.settle()
	s.changes(*s.rollout().Spec.Target, "c1: v1 to v3", map[string]string{"c3": "v1 to v3"})
}

func TestChange_OfARevertIsOnAClusterThatMoves(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.canary("c3")
	s.target("v1")
	s.settle()
	s.advance(time.Minute)
	s.target("v2")
	s.turns(3) // c3 never reports
	s.changes(*s.rollout().Spec.Target, "c1: v1 to v2", map[string]string{"c1": "v1 to v2", "c3": "v1 to v2"})
	s.advance(time.Minute)
	s.targetOf(contentAt("v1"), "reverted")
	s.settle()
	s.changes(*s.rollout().Spec.Target, "c3: v2 to v1", map[string]string{"c1": "v1 to v1", "c3": "v2 to v1"})
	s.advance(time.Minute)
	s.target("v3")
	s.settle()
	s.changes(*s.rollout().Spec.Target, "c1: v1 to v3", map[string]string{"c1": "v1 to v3"})
}

// image is that of the first object's first container; "" without objects.
func image(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	if len(objects) == 0 {
		return ""
	}
	containers, _, err := unstructured.NestedSlice(objects[0].Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		t.Fatalf("no container in %v: %v", objects[0].Object, err)
	}
	first, _ := containers[0].(map[string]any)
	name, _ := first["image"].(string)
	return name
}
