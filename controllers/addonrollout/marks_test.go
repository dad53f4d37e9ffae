package addonrollout

import (
	"bytes"
	"testing"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// remark changes every work, as by another hand.
func (s *scene) remark(change func(*workv1.ManifestWork)) {
	s.t.Helper()
	for _, w := range s.works() {
		change(w)
		s.update(w)
	}
}

// versions of the works, by cluster.
func (s *scene) versions() map[string]string {
	out := map[string]string{}
	for name, w := range s.works() {
		out[name] = w.ResourceVersion
	}
	return out
}

// Decision 0016.
func TestOperatorUpgradeRewritesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.remark(func(w *workv1.ManifestWork) {
		w.Annotations[render.MarksAnnotation] = "former"
		paths := w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
		w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths = paths[:len(paths)-1]
	})
	before := s.versions()
	s.restart()
	s.turns(3)
	for name, version := range s.versions() {
		if version != before[name] {
			t.Errorf("the work of %s was rewritten for marks alone", name)
		}
	}
	s.target("v2")
	s.settle()
	for name, w := range s.works() {
		if w.Annotations[render.MarksAnnotation] == "former" {
			t.Errorf("the marks of %s come with the next content", name)
		}
	}
}

func TestMarksThatVerificationNeedsAreWrittenInFlight(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2)
	s.remark(func(w *workv1.ManifestWork) {
		delete(w.Annotations, render.MarksAnnotation)
		w.Spec.ManifestConfigs = nil
	})
	s.turn()
	if got := s.works()["c1"].Spec.ManifestConfigs; len(got) == 0 {
		t.Error("without feedback rules a cluster in flight would be verified for being available")
	}
}

// DESIGN section 6: equal content writes no work, and the marks come with the next.
func TestTakenOverContentIsUpToDateAndMovedWithTheNext(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	digest := s.target("v1")
	s.settle()
	s.remark(func(w *workv1.ManifestWork) {
		mark := []byte(`"annotations":{"addonflow.io/digest":"` + w.Annotations[v1alpha1.DigestAnnotation] + `"},`)
		raw := w.Spec.Workload.Manifests[0].Raw
		w.Spec.Workload.Manifests[0].Raw = bytes.Replace(raw, mark, nil, 1)
		if len(raw) == len(w.Spec.Workload.Manifests[0].Raw) {
			t.Fatalf("%s has no %s", raw, mark)
		}
		for key := range w.Annotations {
			if key != workv1.ManifestConfigSpecHashAnnotationKey {
				delete(w.Annotations, key)
			}
		}
		delete(w.Labels, v1alpha1.ManagedByLabel)
		w.Spec.ManifestConfigs = nil
		w.Status = workv1.ManifestWorkStatus{}
	})
	ro := s.rollout()
	ro.Status = v1alpha1.AddOnRolloutStatus{} // as in a take-over: nothing was ever rolled out here
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	before := s.versions()
	s.restart()
	s.turns(3)
	for name, version := range s.versions() {
		if version != before[name] {
			t.Errorf("the work of %s was written, with equal content", name)
		}
	}
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || got.Counts.Updated != 2 || got.Stable == nil || got.Stable.Digest != digest {
		t.Errorf("nothing is to be moved: %s, %s", got.Phase, got.Message)
	}
	s.target("v2")
	s.settle()
	for name, w := range s.works() {
		if w.Annotations[render.MarksAnnotation] == "" {
			t.Errorf("%s is moved with our marks", name)
		}
	}
}
