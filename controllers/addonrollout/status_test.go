package addonrollout

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout"
)

// An unchanged condition keeps its time. Otherwise every turn would write the status, and the user
// would not see since when a rollout is stalled.
func TestUnchangedConditionsKeepTheirTime(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cases := map[string]struct {
		phase   v1alpha1.Phase
		verdict plan.Verdict
	}{
		"Progressing": {phase: v1alpha1.PhaseProgressing},
		"Failed":      {phase: v1alpha1.PhaseFailed},
		"Stalled":     {verdict: plan.Verdict{Stalled: "X", Message: "m"}},
		"Waiting":     {phase: v1alpha1.PhaseProgressing, verdict: plan.Verdict{Waiting: "X", Message: "m"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ro := &v1alpha1.AddOnRollout{Status: v1alpha1.AddOnRolloutStatus{Phase: tc.phase, Message: "m"}}
			setConditions(ro, tc.verdict)
			for i := range ro.Status.Conditions {
				ro.Status.Conditions[i].LastTransitionTime = then
			}
			before := *ro.Status.DeepCopy()
			setConditions(ro, tc.verdict)
			if !equality.Semantic.DeepEqual(before, ro.Status) {
				t.Errorf("said again:\n%+v, before\n%+v", ro.Status.Conditions, before.Conditions)
			}
			setConditions(ro, plan.Verdict{})
			ro.Status.Phase = v1alpha1.PhaseSucceeded
			setConditions(ro, plan.Verdict{})
			if len(ro.Status.Conditions) != 1 {
				t.Errorf("what is over goes: %+v", ro.Status.Conditions)
			}
		})
	}
}

func TestSetConditions(t *testing.T) {
	cases := map[string]struct {
		reason                      string
		phase                       v1alpha1.Phase
		outcome                     rollout.Outcome
		verdict                     plan.Verdict
		ready, reconciling, stalled metav1.ConditionStatus
	}{
		"Progressing": {reason: "kstatus: in progress", phase: v1alpha1.PhaseProgressing, ready: "Unknown", reconciling: "True"},
		"Succeeded":   {reason: "kstatus: current", phase: v1alpha1.PhaseSucceeded, ready: "True"},
		"Held":        {reason: "kstatus: in progress, but only a user, a window or a placement can continue it", phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, ready: "Unknown"},
		"ShareMoved":  {reason: "what the strategy asked for is done", phase: v1alpha1.PhaseHeld, outcome: rollout.Success, ready: "True"},
		"Failed":      {reason: "kstatus: failed, only the user can go on", phase: v1alpha1.PhaseFailed, ready: "False", stalled: "True"},
		"Suspended":   {reason: "neither done nor failed", phase: v1alpha1.PhaseSuspended, ready: "Unknown"},
		"Stalled":     {reason: "a strategy that cannot be planned", verdict: plan.Verdict{Stalled: "X", Message: "m"}, ready: "False", stalled: "True"},
		"Waiting":     {reason: "something that passes by itself", phase: v1alpha1.PhaseSucceeded, verdict: plan.Verdict{Waiting: "X", Message: "m"}, ready: "Unknown", reconciling: "True"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ro := &v1alpha1.AddOnRollout{Status: v1alpha1.AddOnRolloutStatus{Phase: tc.phase, Outcome: string(tc.outcome), Message: "m"}}
			setConditions(ro, tc.verdict)
			for kind, want := range map[string]metav1.ConditionStatus{
				meta.ReadyCondition: tc.ready, meta.ReconcilingCondition: tc.reconciling, meta.StalledCondition: tc.stalled,
			} {
				got := metav1.ConditionStatus("")
				if c := conditions.Get(ro, kind); c != nil {
					got = c.Status
				}
				if got != want {
					t.Errorf("%s: %s is %q, want %q", tc.reason, kind, got, want)
				}
			}
		})
	}
}

// TestPublishedFlags: a tool that plans reads the operator's flags from the status.
func TestPublishedFlags(t *testing.T) {
	if got := published(nil, DefaultParkAfter); got != DefaultParkAfter {
		t.Errorf("a status that names no flag gives %s", got)
	}
	if got := published(&metav1.Duration{Duration: 4 * time.Second}, DefaultParkAfter); got != 4*time.Second {
		t.Errorf("a status that names 4s gives %s", got)
	}
}

// TestEmptyFleetProvesNothing: a rollout without clusters succeeds at once, but does not prove its
// content: the first clusters are judged like any other.
func TestEmptyFleetProvesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.within(0, "1m")
	s.selects()
	s.target("v1")
	s.turns(2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Stable != nil || s.reported() != "success: no cluster to roll out to" {
		t.Fatalf("no cluster is there: %s, stable %v, posted %q", ro.Status.Phase, ro.Status.Stable, s.reported())
	}
	s.selects("c1", "c2")
	s.turns(2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseProgressing || !strings.HasPrefix(s.reported(), "pending: everyone 0/2, 1 in flight") {
		t.Errorf("the first two are there: %s, reported %q", ro.Status.Phase, s.reported())
	}
	s.advance(time.Minute)
	s.turn()
	ro := s.rollout()
	if h := ro.Status.History[0]; ro.Status.Phase != v1alpha1.PhaseFailed || h.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(s.reported(), "failure: halted in everyone: 1 failed (c1: ") {
		t.Errorf("and it fails there: %s, history %s, reported %q", ro.Status.Phase, h.Phase, s.reported())
	}
	s.report()
	for range 6 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Stable == nil || s.reported() != "success: 2/2 updated" {
		t.Errorf("proven at last: %s, reported %q", ro.Status.Phase, s.reported())
	}
}
