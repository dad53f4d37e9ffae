package addonrollout

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// refuse makes the agent of a cluster report that it could not apply its work.
func (s *scene) refuse(cluster, why string) {
	s.t.Helper()
	w := s.works()[cluster]
	w.Status = workv1.ManifestWorkStatus{Conditions: []metav1.Condition{
		{Type: workv1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: w.Generation, Message: why},
	}}
	if err := s.hub.Status().Update(s.t.Context(), w); err != nil {
		s.t.Fatal(err)
	}
}

// TestWhatAnAgentCouldNotApplyIsNamed: without a deadline the commit stays pending. The message, the
// stage and the commit status name the cluster and the reason.
func TestWhatAnAgentCouldNotApplyIsNamed(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.reporting()
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(3)
	s.report("c3")
	s.refuse("c2", "Deployment.apps \"imm\" is invalid:\nfield is immutable")
	s.turns(2)
	const standing = `1/3, 2 in flight, 1 not applied (c2: Deployment.apps "imm" is invalid: field is immutable)`
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseProgressing || ro.Status.Message != "all "+standing || len(ro.Status.Failing) != 0 {
		t.Errorf("%s: %q, failing %+v", ro.Status.Phase, ro.Status.Message, ro.Status.Failing)
	}
	if got := ro.Status.Stages[0].Message; got != standing {
		t.Errorf("tree says %q", got)
	}
	if got := s.reported(); got != "pending: all "+standing {
		t.Errorf("the commit says %q", got)
	}
	version := ro.ResourceVersion
	s.turns(2)
	if got := s.rollout().ResourceVersion; got != version {
		t.Error("it costs a write while nothing happens")
	}
	s.refuse("c1", "no namespace")
	s.turns(2)
	if got, want := s.rollout().Status.Message, "all 1/3, 2 in flight, 2 not applied (c1: no namespace; and 1 more)"; got != want {
		t.Errorf("two of them: %q, want %q", got, want)
	}
	s.settle() // what they lacked came
	if got := s.reported(); got != "success: 3/3 updated" {
		t.Errorf("the commit says %q", got)
	}
}

// TestApplyErrorThatLastsIsAFailure: it is one if two looks a minute apart see it, at least ten minutes after the works
// were written. No deadline is needed. An error that goes away is not a failure.
func TestApplyErrorThatLastsIsAFailure(t *testing.T) {
	for name, strategy := range map[string]func(*v1alpha1.AddOnRolloutSpec){
		"stages": func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.Stages = []v1alpha1.Stage{{Name: "everyone", Placement: spec.Install.Placements[0].PlacementReference, ProgressDeadline: "None"}}
		},
		"All": func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyUpdateAll}
		},
		"Progressive": func(spec *v1alpha1.AddOnRolloutSpec) {
			spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressive}
		},
		"a pace per placement": func(*v1alpha1.AddOnRolloutSpec) {},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			s.reporting()
			ro := s.rollout()
			strategy(&ro.Spec)
			s.update(ro)
			s.target("v1")
			s.turns(3) // its works are written
			pending := func(look string, again time.Duration) {
				t.Helper()
				after := s.turn().RequeueAfter
				if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseProgressing || len(ro.Status.Failing) != 0 || !strings.HasPrefix(s.reported(), "pending: ") {
					t.Fatalf("%s: %s: %q, the commit says %q", look, ro.Status.Phase, ro.Status.Message, s.reported())
				}
				if after <= 0 || after > again {
					t.Errorf("%s: the next look is in %s", look, after)
				}
			}
			s.refuse("c1", "field is immutable")
			pending("in the first ten minutes", time.Minute)
			s.advance(time.Minute)
			pending("in the first ten minutes, a minute later", time.Minute)
			w := s.works()["c1"]
			w.Status = workv1.ManifestWorkStatus{}
			if err := s.hub.Status().Update(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			s.advance(10 * time.Minute)
			pending("it was seen for a moment", time.Minute)
			s.refuse("c1", "field is immutable")
			pending("the first look", time.Minute)
			s.advance(58 * time.Second)
			pending("59 seconds later", time.Second)
			s.turn()
			const reason = "1 failed (c1: not applied: field is immutable)"
			ro = s.rollout()
			if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, reason) || len(ro.Status.Failing) != 1 {
				t.Errorf("a minute later: %s: %q, failing %+v", ro.Status.Phase, ro.Status.Message, ro.Status.Failing)
			}
			if got := s.reported(); !strings.HasPrefix(got, "failure: ") || !strings.Contains(got, reason) {
				t.Errorf("the commit says %q", got)
			}
		})
	}
}
