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

// gathered returns the rollout metrics whose value is not 0, as "name{state or phase} value". For
// a histogram, the value is its number of observations.
func (s *scene) gathered() []string {
	s.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.reconciler.course)
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
			value := m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			if value != 0 {
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
	const of = "name=hello,namespace=team"
	want := []string{
		"addonflow_rollout_clusters{" + of + ",state=in_flight} 2", "addonflow_rollout_phase{" + of + ",phase=Progressing} 1",
		"addonflow_rollout_stage_phase{" + of + ",phase=Progressing,stage=all} 1",
	}
	if diff := cmp.Diff(want, s.gathered()); diff != "" {
		t.Errorf("under way (-want +got):\n%s", diff)
	}
	s.settle()
	want = []string{
		"addonflow_rollout_clusters{" + of + ",state=updated} 2",
		"addonflow_rollout_duration_seconds{" + of + ",result=succeeded} 1", "addonflow_rollout_lead_time_seconds{" + of + "} 1",
		"addonflow_rollout_phase{" + of + ",phase=Succeeded} 1",
		"addonflow_rollout_stage_phase{" + of + ",phase=Complete,stage=all} 1",
		"addonflow_stage_duration_seconds{" + of + ",result=succeeded,stage=all} 1",
	}
	if diff := cmp.Diff(want, s.gathered()); diff != "" {
		t.Errorf("done, and in one phase only (-want +got):\n%s", diff)
	}
	s.reconciler.forget(s.key)
	if got := s.gathered(); len(got) > 0 {
		t.Errorf("a rollout that is gone still has %v", got)
	}
}

// TestMetricsOfARollback: what failed and what was rolled back are counted apart, and the time to
// restore once.
func TestMetricsOfARollback(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.failed()
	s.rolledBack()
	const of = "name=hello,namespace=team"
	var got []string
	for _, line := range s.gathered() {
		if strings.Contains(line, "_rollout_duration") || strings.Contains(line, "_restore") {
			got = append(got, line)
		}
	}
	want := []string{
		"addonflow_rollout_duration_seconds{" + of + ",result=failed} 1", "addonflow_rollout_duration_seconds{" + of + ",result=rolled_back} 1",
		"addonflow_rollout_duration_seconds{" + of + ",result=succeeded} 1", "addonflow_rollout_time_to_restore_seconds{" + of + "} 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
