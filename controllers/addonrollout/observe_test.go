package addonrollout

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
)

// TestPlan_IsAFunctionOfWhatWasObserved: a second plan from the same observation equals the first one.
// It changes neither the observation nor the first plan.
func TestPlan_IsAFunctionOfWhatWasObserved(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.target("v2")
	o, err := s.reconciler.observe(t.Context(), s.rollout(), newMemory(), rights{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(what any) string {
		raw, err := json.Marshal(what)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	read := func() string {
		all := []any{o.Rollout, o.Owner, o.Placements, o.Members[0].AddOn}
		for _, w := range o.Members[0].Works { // an abridged work has no JSON
			all = append(all, w.ObjectMeta, fmt.Sprintf("%s", w.Spec.Workload.Manifests), w.Spec.ManifestConfigs, w.Status)
		}
		return text(all)
	}
	before := read()
	var plans []string
	for range 2 {
		p, err := plan.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Planned.Actions) == 0 || !p.Clusters[0].Move {
			t.Fatalf("nothing is planned: %+v", p.Planned)
		}
		plans = append(plans, text([]any{p.Planned, p.Next, p.Verdict, p.Decisions}))
	}
	if diff := cmp.Diff(plans[0], plans[1]); diff != "" {
		t.Errorf("the second plan differs (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("the observation was changed (-before +after):\n%s", diff)
	}
}
