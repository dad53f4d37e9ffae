package addonrollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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
	first, err := contentAt("v1").Digest()
	if err != nil {
		t.Fatal(err)
	}
	i, err := NewInspector(s.hub, s.key, chart.InProcess{}).Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, after, err := i.Change(t.Context(), "c3", first)
	if err != nil || image(t, before) != "example.com/hello:v1" || image(t, after) != "example.com/hello:v2" {
		t.Errorf("against an earlier revision: %v, %v, %v", before, after, err)
	}
	if got, err := ChangeOn(t.Context(), s.hub, s.key, "c3", chart.InProcess{}); err != nil || got.Cluster != "c3" {
		t.Errorf("on a cluster that runs the target: %+v, %v", got, err)
	}
	if _, err := ChangeOn(t.Context(), s.hub, s.key, "c4", chart.InProcess{}); err == nil {
		t.Error("a cluster that the rollout does not have has a change")
	}
	if _, _, err := i.Change(t.Context(), "c4", first); err == nil {
		t.Error("a cluster that the plan does not have has a change")
	}
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
