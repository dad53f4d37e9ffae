package addonrollout

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

func targetOf(revision, commit string) v1alpha1.Target {
	return v1alpha1.Target{Source: "fleet", Revision: revision, Digest: "v1:sha256:" + revision, Commit: commit}
}

func TestAdvance(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	now := metav1.NewTime(then.Add(time.Hour))
	a, b := targetOf("a", "main@sha1:1"), targetOf("b", "main@sha1:2")
	running := v1alpha1.AddOnRolloutStatus{
		Target: &a, TargetSince: &then, Phase: v1alpha1.PhaseProgressing, Stable: &b,
		Ledger:  v1alpha1.Ledger{Records: []v1alpha1.RecordGroup{{Revision: a.Digest}}},
		History: []v1alpha1.HistoryEntry{{Target: a, Phase: v1alpha1.PhaseProgressing, Started: then}},
	}
	t.Run("SameTarget", func(t *testing.T) {
		if got := advance(running, a, nil, now); !sameStatus(got, running) {
			t.Errorf("the same target changes nothing, got %+v", got)
		}
	})
	t.Run("NewTarget", func(t *testing.T) {
		got := advance(running, b, succeeded{{name: "b", digest: b.Digest, at: "2026-01-01T00:00:00Z"}}, now)
		if *got.Target != b || !got.TargetSince.Equal(&now) || got.Phase != "" {
			t.Errorf("a new target starts its own clock: %+v", got)
		}
		if len(got.Ledger.Records) != 1 {
			t.Error("clusters in flight keep their slots across targets")
		}
		if !got.Reverting {
			t.Error("content that succeeded here before is gone back to")
		}
		if h := got.History; len(h) != 2 || h[1].SupersededBy != b.Commit || h[1].Finished == nil {
			t.Errorf("the overtaken rollout is closed, naming by whom: %+v", h)
		}
	})
	t.Run("SameContentOtherCommit", func(t *testing.T) {
		moved := targetOf("a", "main@sha1:9")
		got := advance(running, moved, nil, now)
		if got.Target.Commit != moved.Commit || !got.TargetSince.Equal(&then) || got.Phase != running.Phase {
			t.Errorf("equal content goes on under its new commit: %+v", got)
		}
	})
	t.Run("LostStatus", func(t *testing.T) {
		s := succeeded{{name: "b", digest: b.Digest, at: "2026-01-02T00:00:00Z"}, {name: "c", digest: "x", at: "2026-01-01T00:00:00Z"}}
		got := advance(v1alpha1.AddOnRolloutStatus{}, a, s, now)
		if got.Stable == nil || got.Stable.Digest != b.Digest {
			t.Errorf("stable is what succeeded last, got %+v", got.Stable)
		}
	})
}

func TestConcludeIsIdempotent(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status := advance(v1alpha1.AddOnRolloutStatus{}, targetOf("a", "main@sha1:1"), nil, now)
	plan := rollout.Plan{Phase: v1alpha1.PhaseSucceeded, Message: "24 of 24", Succeeded: true, Counts: v1alpha1.Counts{Total: 24, Updated: 24}}
	first := conclude(status, plan, now)
	plan.Succeeded = false
	second := conclude(first, plan, metav1.NewTime(now.Add(time.Hour)))
	if !sameStatus(first, second) {
		t.Errorf("an identical reconcile an hour later writes nothing:\n%+v\n%+v", first, second)
	}
	if first.Stable == nil || first.Stable.Revision != "a" || first.History[0].Finished == nil {
		t.Errorf("a success makes the target stable and ends its history entry: %+v", first)
	}
}

// What is said again keeps its time: a write at each turn is one too many, and since when
// a rollout is stalled is worth knowing.
func TestConditionsSaidAgainKeepTheirTime(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	cases := map[string]struct {
		phase   v1alpha1.Phase
		verdict verdict
	}{
		"Progressing": {phase: v1alpha1.PhaseProgressing},
		"Failed":      {phase: v1alpha1.PhaseFailed},
		"Stalled":     {verdict: verdict{stalled: "X", message: "m"}},
		"Waiting":     {phase: v1alpha1.PhaseProgressing, verdict: verdict{waiting: "X", message: "m"}},
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
			if !sameStatus(before, ro.Status) {
				t.Errorf("said again:\n%+v, before\n%+v", ro.Status.Conditions, before.Conditions)
			}
			setConditions(ro, verdict{})
			ro.Status.Phase = v1alpha1.PhaseSucceeded
			setConditions(ro, verdict{})
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
		verdict                     verdict
		ready, reconciling, stalled metav1.ConditionStatus
	}{
		"Progressing": {reason: "kstatus: in progress", phase: v1alpha1.PhaseProgressing, ready: "Unknown", reconciling: "True"},
		"Succeeded":   {reason: "kstatus: current", phase: v1alpha1.PhaseSucceeded, ready: "True"},
		"Held":        {reason: "what the strategy asked for is done", phase: v1alpha1.PhaseHeld, ready: "True"},
		"Failed":      {reason: "kstatus: failed, only the user can go on", phase: v1alpha1.PhaseFailed, ready: "False", stalled: "True"},
		"Suspended":   {reason: "neither done nor failed", phase: v1alpha1.PhaseSuspended, ready: "Unknown"},
		"Stalled":     {reason: "a strategy that cannot be planned", verdict: verdict{stalled: "X", message: "m"}, ready: "False", stalled: "True"},
		"Waiting":     {reason: "something that passes by itself", phase: v1alpha1.PhaseSucceeded, verdict: verdict{waiting: "X", message: "m"}, ready: "Unknown", reconciling: "True"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ro := &v1alpha1.AddOnRollout{Status: v1alpha1.AddOnRolloutStatus{Phase: tc.phase, Message: "m"}}
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

func TestVerdictOf(t *testing.T) {
	for err, want := range map[error]string{
		rollout.ErrInvalidStrategy:      v1alpha1.InvalidRolloutStrategyReason,
		rollout.ErrUnknownDecisionGroup: v1alpha1.InvalidRolloutStrategyReason,
		rollout.ErrCorruptLedger:        v1alpha1.InvalidLedgerReason,
		errOwnership:                    v1alpha1.OwnershipConflictReason,
	} {
		v, known := verdictOf(fmt.Errorf("wrapped: %w", err))
		if !known || v.stalled+v.waiting != want {
			t.Errorf("%v: got %+v, want reason %s", err, v, want)
		}
	}
	if _, known := verdictOf(fmt.Errorf("boom")); known {
		t.Error("an error of the network is retried, not told as the user's")
	}
}

// TestPublishedFlags: a tool that plans takes the operator's flags from the status.
func TestPublishedFlags(t *testing.T) {
	if got := published(nil, DefaultParkAfter); got != DefaultParkAfter {
		t.Errorf("a status that names no flag gives %s", got)
	}
	if got := published(&metav1.Duration{Duration: 4 * time.Second}, DefaultParkAfter); got != 4*time.Second {
		t.Errorf("a status that names 4s gives %s", got)
	}
}

// TestEmptyFleetProvesNothing: content that nobody was there for is judged when somebody
// comes, like any other; before that, there is nothing to wait for.
func TestEmptyFleetProvesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.reporting()
	s.within(0, "1m")
	s.selects()
	s.target("v1")
	s.turns(2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Stable != nil || s.told() != "success: no cluster to roll out to" {
		t.Fatalf("nobody is there: %s, stable %v, told %q", ro.Status.Phase, ro.Status.Stable, s.told())
	}
	s.selects("c1", "c2")
	s.turns(2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseProgressing || !strings.HasPrefix(s.told(), "pending: everyone 0/2, 1 in flight") {
		t.Errorf("the first two are there: %s, told %q", ro.Status.Phase, s.told())
	}
	s.advance(time.Minute)
	s.turn()
	ro := s.rollout()
	if h := ro.Status.History[0]; ro.Status.Phase != v1alpha1.PhaseFailed || h.Phase != v1alpha1.PhaseFailed || !strings.HasPrefix(s.told(), "failure: halted in everyone: 1 failed (c1: ") {
		t.Errorf("and it fails there: %s, history %s, told %q", ro.Status.Phase, h.Phase, s.told())
	}
	s.report()
	for range 6 {
		s.settleOnce()
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Stable == nil || s.told() != "success: 2/2 updated" {
		t.Errorf("proven at last: %s, told %q", ro.Status.Phase, s.told())
	}
}
