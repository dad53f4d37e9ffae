package addonrollout

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// oneByOne makes the rollout move one cluster at a time.
func (s *scene) oneByOne() {
	s.t.Helper()
	one := intstr.FromInt32(1)
	ro := s.rollout()
	ro.Spec.Stages = []v1alpha1.Stage{{
		Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "all"}, MaxConcurrency: &one, ProgressDeadline: "None",
	}}
	s.update(ro)
}

// A cluster that waits is not moved because its works lost a mark: that would be a move without an
// admission.
func TestWorksWithoutMarksWaitForTheirTurn(t *testing.T) {
	for _, mark := range []string{v1alpha1.DigestAnnotation, v1alpha1.RevisionAnnotation} {
		t.Run(mark, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			first := s.target("v1")
			s.settle()
			s.target("v2")
			s.turns(3) // c1 is in flight, and never reports
			if got := s.works()["c2"].Annotations[v1alpha1.RevisionAnnotation]; got != first {
				t.Fatalf("c2 waits at %s, got %s", first, got)
			}
			w := s.works()["c2"]
			delete(w.Annotations, mark)
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"y"}}`)
			s.update(w)
			version := s.works()["c2"].ResourceVersion
			s.turns(3)
			if got := s.works()["c2"].ResourceVersion; got != version {
				t.Errorf("the works of a waiting cluster were written without an admission:\n%v", s.works()["c2"].Annotations)
			}
			plan := s.plan()
			if p, _ := plan.Why("c2"); p.State != rollout.Waiting || p.Revision != rollout.Mixed {
				t.Errorf("the content of the works is not known, and the cluster must wait: got %+v", p)
			}
			s.report("c1")
			s.turns(3)
			if got := s.works()["c2"].Annotations[v1alpha1.RevisionAnnotation]; got == first || got == "" {
				t.Errorf("it is moved, and its marks are back, when its turn comes: got %q", got)
			}
		})
	}
}
