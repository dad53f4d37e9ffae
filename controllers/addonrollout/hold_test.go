package addonrollout

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

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

// hold annotates the ManagedCluster of a cluster; "" takes the annotation off. It returns whether
// the change wakes rollouts.
func (s *scene) hold(name, until string) bool {
	s.t.Helper()
	c := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Name: name}, c); err != nil {
		s.t.Fatal(err)
	}
	before := c.DeepCopy()
	c.Annotations = map[string]string{v1alpha1.HoldUntilAnnotation: until}
	if until == "" {
		c.Annotations = nil
	}
	s.update(c)
	return clusterChange().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: c})
}

// TestHeldClusterIsLeftAloneUntilItsHoldIsOver: a hold wakes the rollouts of the cluster. The held cluster keeps its
// content, and drift is repaired there. It blocks no other cluster, and is moved when the hold is over.
func TestHeldClusterIsLeftAloneUntilItsHoldIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		until, reason string
		end           func(*scene)
	}{
		"a time": {
			until: "2026-01-02T10:00:00+01:00",
			end:   func(s *scene) { s.advance(6 * time.Hour) },
		},
		"without end": {
			until: "true", reason: "held by annotation addonflow.io/hold-until of its ManagedCluster",
			end: func(s *scene) { s.hold("c1", "") },
		},
		"a time that cannot be read": {
			until: "tomorrow", reason: `held by annotation addonflow.io/hold-until of its ManagedCluster; its value "tomorrow" is neither "true" nor a time such as 2026-01-02T15:04:05Z`,
			end: func(s *scene) { s.hold("c1", "2026-01-01T00:00:00Z") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2")
			s.oneByOne()
			first := s.target("v1")
			s.settle()
			if !s.hold("c1", tc.until) {
				t.Error("the hold wakes no rollout")
			}
			s.target("v2")
			s.settle()
			// why plans at the time of the machine, at which the time of the hold has passed.
			if state, reason := s.why(); tc.reason != "" && (state != rollout.Held || reason != tc.reason) {
				t.Errorf("c1 is %s: %s", state, reason)
			}
			status := s.rollout().Status
			message := "1/2 updated, 1 held by annotation (c1)"
			if tc.until == "tomorrow" {
				message = `1/2 updated, 1 held by annotation (c1: its value "tomorrow" is neither "true" nor a time such as 2026-01-02T15:04:05Z)`
			}
			if status.Counts.Held != 1 || status.Stages[0].Counts.Held != 1 || status.Message != message {
				t.Errorf("%+v, stage %+v: %s", status.Counts, status.Stages[0].Counts, status.Message)
			}
			w := s.works()["c1"]
			w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"y"}}`)
			s.update(w)
			s.turns(3)
			if w := s.works()["c1"]; w.Annotations[v1alpha1.RevisionAnnotation] != first || !strings.Contains(string(w.Spec.Workload.Manifests[0].Raw), "hello:v1") {
				t.Errorf("what a held cluster has is not repaired: %s", w.Spec.Workload.Manifests[0].Raw)
			}
			if wake := s.turn().RequeueAfter; name == "a time" && (wake <= 0 || wake > time.Minute) {
				t.Errorf("of a hold of hours, the next look is in %s", wake)
			}
			tc.end(s)
			s.settle()
			if got := s.rollout().Status.Message; got != "2/2 updated" || s.works()["c1"].Annotations[v1alpha1.RevisionAnnotation] == first {
				t.Errorf("after the hold: %s", got)
			}
		})
	}
}
