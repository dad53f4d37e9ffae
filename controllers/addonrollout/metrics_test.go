package addonrollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// gathered are the metrics of rollouts that are not 0, as "name{state or phase} value".
func (s *scene) gathered() []string {
	s.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.reconciler.gauges.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if value := m.GetGauge().GetValue(); value != 0 {
				out = append(out, fmt.Sprintf("%s{%s} %g", family.GetName(), strings.Join(labels, ","), value))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestMetricsFollowTheRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.turns(2)
	const of = "name=hello,namespace=team,"
	want := []string{"addonflow_rollout_clusters{" + of + "state=in_flight} 2", "addonflow_rollout_phase{" + of + "phase=Progressing} 1"}
	if diff := cmp.Diff(want, s.gathered()); diff != "" {
		t.Errorf("under way (-want +got):\n%s", diff)
	}
	s.settle()
	want = []string{"addonflow_rollout_clusters{" + of + "state=updated} 2", "addonflow_rollout_phase{" + of + "phase=Succeeded} 1"}
	if diff := cmp.Diff(want, s.gathered()); diff != "" {
		t.Errorf("done, and in one phase only (-want +got):\n%s", diff)
	}
	s.reconciler.forget(s.key)
	if got := s.gathered(); len(got) > 0 {
		t.Errorf("a rollout that is gone still has %v", got)
	}
}
