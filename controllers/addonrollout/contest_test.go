package addonrollout

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/contest"
	"github.com/addonflow/addonflow/show"
)

// fights runs turns. After each, another client does the same to the work of c1, if AddonFlow wrote it in that turn. It
// returns how often AddonFlow did.
func (s *scene) fights(turns int, foreign func(*workv1.ManifestWork)) (writes int) {
	s.t.Helper()
	before := s.versions()["c1"]
	for range turns {
		s.turn()
		w := s.works()["c1"]
		if w == nil || w.ResourceVersion == before {
			continue
		}
		writes++
		foreign(w)
		before = s.versions()["c1"]
	}
	return writes
}

// otherwise changes a work as another controller would that has other content for it.
func (s *scene) otherwise(w *workv1.ManifestWork) {
	s.t.Helper()
	w.Spec.Workload.Manifests[0].Raw = []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"y"}}`)
	s.update(w)
}

// TestClientThatUndoesEveryWriteOfAWorkHoldsTheRollout: AddonFlow stops writing the work after a few attempts, names
// the cluster, and admits no other. A request of the user, who stopped the client, repairs the work.
func TestClientThatUndoesEveryWriteOfAWorkHoldsTheRollout(t *testing.T) {
	for name, foreign := range map[string]func(*scene) func(*workv1.ManifestWork){
		"changes": func(s *scene) func(*workv1.ManifestWork) { return s.otherwise },
		"restores the former work": func(s *scene) func(*workv1.ManifestWork) {
			former := s.works()["c1"].DeepCopy()
			return func(w *workv1.ManifestWork) {
				w.Annotations, w.Spec = former.DeepCopy().Annotations, former.DeepCopy().Spec
				s.update(w)
			}
		},
		"deletes": func(s *scene) func(*workv1.ManifestWork) {
			return func(w *workv1.ManifestWork) { s.delete(w) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
			s.reporting()
			s.oneByOne()
			v1 := s.target("v1")
			s.settle()
			undo := foreign(s)
			v2 := s.target("v2")
			if writes := s.fights(90, undo); writes > contest.Writes {
				t.Errorf("the work of c1 was written %d times in 90 turns", writes)
			}
			s.named("work c1/addon-hello-deploy-0")
			if got := s.reported(); !strings.HasSuffix(got, ": stop the client; addonflow reconcile rollout hello -n team") {
				t.Errorf("the commit names no way out: %q", got)
			}
			for _, cluster := range []string{"c2", "c3"} {
				if got := s.works()[cluster].Annotations[v1alpha1.RevisionAnnotation]; got != v1 {
					t.Errorf("%s was admitted while c1 is contested: at %s", cluster, got)
				}
			}
			c2 := s.works()["c2"]
			s.otherwise(c2)
			s.turn()
			if got := s.works()["c2"]; strings.Contains(string(got.Spec.Workload.Manifests[0].Raw), "ConfigMap") {
				t.Error("c2, which no client contests, is not repaired")
			}
			ro := s.rollout()
			ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
			s.update(ro)
			s.settle()
			if got := s.works()["c1"].Annotations[v1alpha1.RevisionAnnotation]; got != v2 {
				t.Errorf("c1 is at %s after the client was stopped, want %s", got, v2)
			}
		})
	}
}

// TestContestEndsWhenTheWorkHasItsContentAgain: the client restores what AddonFlow wrote, and no user needs to ask.
func TestContestEndsWhenTheWorkHasItsContentAgain(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	good := s.works()["c1"].DeepCopy()
	s.otherwise(s.works()["c1"])
	if writes := s.fights(20, s.otherwise); writes > contest.Writes {
		t.Errorf("the work of c1 was written %d times", writes)
	}
	if got := s.says(meta.StalledCondition); !strings.Contains(got, "work c1/addon-hello-deploy-0") {
		t.Fatalf("a work of a fleet at rest is contested as well: Stalled says %q", got)
	}
	w := s.works()["c1"]
	w.Spec = good.Spec
	s.update(w)
	s.settle()
	s.target("v2") // at once: what another client did with other content does not count
	s.settle()
}

// TestContestedClusterIsNotUpdated: the operator does not know what a contested work holds, so that no report about it
// counts, and the cluster is not updated. It is verified again after the conflict.
func TestContestedClusterIsNotUpdated(t *testing.T) {
	image := func(s *scene) func(*workv1.ManifestWork) {
		return func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.ReplaceAll(string(w.Spec.Workload.Manifests[0].Raw), "hello:v", "hello:other-v"))
			s.update(w)
		}
	}
	ends := func(s *scene) {
		ro := s.rollout()
		ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
		s.update(ro)
		s.settle()
		if got := s.reported(); !strings.HasPrefix(got, "success: ") {
			s.t.Errorf("the commit says %q after the conflict", got)
		}
	}
	t.Run("InFlight", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
		s.reporting()
		s.oneByOne()
		s.target("v1")
		s.settle()
		s.target("v2")
		s.fights(20, image(s))
		s.report("c1")
		s.turns(3)
		if c := s.rollout().Status.Counts; c.Updated != 0 || c.InFlight != 1 {
			t.Errorf("c1 has other content than v2: %+v", c)
		}
		ends(s)
	})
	t.Run("AtRest", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
		s.reporting()
		s.target("v1")
		s.settle()
		image(s)(s.works()["c1"])
		s.fights(20, image(s))
		s.report("c1")
		s.turns(3)
		if ro := s.rollout(); ro.Status.Counts.Updated != 2 || ro.Status.Message != "now 2/3 updated, 1 to update" {
			t.Errorf("c1 has other content than v1: %s, %+v", ro.Status.Message, ro.Status.Counts)
		}
		if version := s.rollout().ResourceVersion; s.turn().RequeueAfter == 0 || s.rollout().ResourceVersion != version {
			t.Error("a conflict costs a write a turn")
		}
		ends(s)
	})
}

// TestCommitIsGreenAgainWhenTheContestedClusterIsVerified: the user ends a conflict about a fleet at rest. Until the
// cluster is verified again, neither the commit nor addonflow reconcile --wait has a success, and its counts are right.
func TestCommitIsGreenAgainWhenTheContestedClusterIsVerified(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.target("v1")
	s.settle()
	s.otherwise(s.works()["c1"])
	s.fights(20, s.otherwise)
	if got := s.reported(); !strings.HasPrefix(got, "failure: ownership conflict: ") {
		t.Fatalf("the commit says %q", got)
	}
	s.accepted()
	ro := s.rollout()
	ro.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	s.update(ro)
	s.turn()
	if got := s.reported(); got != "pending: resumed: now 2/3 updated, 1 to update" {
		t.Errorf("the commit says %q while c1 is not verified", got)
	}
	if ro := s.rollout(); ro.Status.LastHandledReconcileAt != "now" || show.OutcomeOf(ro) != show.Running {
		t.Errorf("request %q, %s: %s", ro.Status.LastHandledReconcileAt, show.OutcomeOf(ro), ro.Status.Message)
	}
	s.settle()
	if got := s.reported(); got != "success: 3/3 updated" {
		t.Errorf("the commit says %q", got)
	}
	if got := show.OutcomeOf(s.rollout()); got != show.Succeeded {
		t.Errorf("the outcome is %s", got)
	}
}

// TestContestOutlivesTheStatus: a status that is lost during a conflict is rebuilt, and the conflict ends as otherwise.
func TestContestOutlivesTheStatus(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.oneByOne()
	v1 := s.target("v1")
	s.settle()
	good := s.works()["c1"].DeepCopy()
	s.otherwise(s.works()["c1"])
	s.fights(20, s.otherwise)
	ro := s.rollout()
	ro.Status = v1alpha1.AddOnRolloutStatus{}
	if err := s.hub.Status().Update(t.Context(), ro); err != nil {
		t.Fatal(err)
	}
	s.target("v2")
	s.turns(3)
	s.runs(v1, "c1", "c2")
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseHeld || !strings.Contains(got.Message, "work c1/addon-hello-deploy-0") {
		t.Errorf("%s: %s", got.Phase, got.Message)
	}
	w := s.works()["c1"]
	w.Spec = good.Spec
	s.update(w)
	s.settle()
}

// TestHandEditsAreRepairedHoweverManyThereAre: a user who edits a work now and then is no other owner.
func TestHandEditsAreRepairedHoweverManyThereAre(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	for range 3 * contest.Writes {
		s.otherwise(s.works()["c1"])
		s.turn()
		if got := s.works()["c1"]; strings.Contains(string(got.Spec.Workload.Manifests[0].Raw), "ConfigMap") {
			t.Fatalf("the work is not repaired: %s", s.says(meta.StalledCondition))
		}
		s.advance(contest.Within + time.Second)
	}
}
