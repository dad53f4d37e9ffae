package addonrollout

import (
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// With --default-canary, a rollback moves the failed cluster first. It does not wait for a canary that stays silent.
func TestRollback_OfADefaultCanaryStartsWithTheClusterThatFailed(t *testing.T) {
	all := []string{"c1", "c2", "c3", "c4"}
	s := newScene(t, interceptor.Funcs{}, all...)
	s.declare(func(spec *v1alpha1.AddOnRolloutSpec) { rollsBack(spec); spec.Install.DefaultCanary = true })
	v1 := s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.turns(2)
	canary := s.holding(v2)
	for range 10 {
		if len(s.holding(v2)) == 2 {
			break
		}
		s.report(canary...)
		s.turn()
	}
	failed := slices.DeleteFunc(s.holding(v2), func(name string) bool { return slices.Contains(canary, name) })
	if len(canary) != 1 || len(failed) != 1 {
		t.Fatalf("canary %v, then %v", canary, failed)
	}
	s.turns(2)
	s.advance(2 * time.Hour)
	s.turns(2)
	s.runs(v1, failed...)
	s.runs(v2, canary...)
	s.ticks(14, time.Second, all...)
	s.runs(v1, all...)
}
