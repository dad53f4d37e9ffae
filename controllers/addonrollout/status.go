package addonrollout

import (
	"errors"
	"slices"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// historyKept bounds status.history.
const historyKept = 10

// advance returns the status to plan with: the stored one, moved to the target of
// spec where that changed. A new target keeps the ledger, because the clusters in
// it hold their slots, and starts its own clock; an empty status finds its stable
// revision again in what succeeded here before; it is rebuilt, never started over.
func advance(stored v1alpha1.AddOnRolloutStatus, target v1alpha1.Target, s succeeded, now metav1.Time) v1alpha1.AddOnRolloutStatus {
	next := *stored.DeepCopy()
	if next.Target != nil && *next.Target == target {
		return next
	}
	if next.Target == nil {
		next.Stable = rediscovered(target, s)
	}
	if next.Target != nil && next.Target.Digest == target.Digest {
		// The same content by another commit, such as a rewritten history: the
		// rollout goes on, and reports where the content now stands in Git.
		next.Target = &target
		return next
	}
	next.History = supersede(next, target, now)
	next.Reverting = s.has(target.Revision)
	next.Target, next.TargetSince = &target, &now
	// The phase belongs to the rollout of a target; the new one has none yet.
	next.Phase = ""
	return next
}

// rediscovered is the stable revision of a rollout whose status was lost; nil when
// nothing ever succeeded. Its commit is unknown unless it is the target's.
func rediscovered(target v1alpha1.Target, s succeeded) *v1alpha1.Target {
	newest := s.newest()
	switch newest.name {
	case "":
		return nil
	case target.Revision:
		return &target
	}
	return &v1alpha1.Target{Source: target.Source, Revision: newest.name, Digest: newest.digest}
}

// supersede closes the history entry of a rollout that the new target overtook.
func supersede(s v1alpha1.AddOnRolloutStatus, by v1alpha1.Target, now metav1.Time) []v1alpha1.HistoryEntry {
	h := slices.Clone(s.History)
	if len(h) > 0 && h[0].Finished == nil {
		h[0].Finished, h[0].SupersededBy = &now, by.Commit
	}
	h = slices.Insert(h, 0, v1alpha1.HistoryEntry{Target: by, Phase: v1alpha1.PhaseProgressing, Started: now})
	return h[:min(len(h), historyKept)]
}

// conclude returns the status that says what the plan decided. It is a function of
// its arguments alone, so that an identical reconcile writes nothing.
func conclude(previous v1alpha1.AddOnRolloutStatus, plan rollout.Plan, now metav1.Time) v1alpha1.AddOnRolloutStatus {
	next := *previous.DeepCopy()
	next.Phase, next.Message = plan.Phase, plan.Message
	next.Counts, next.Stages, next.Failing = plan.Counts, plan.Stages, plan.Failing
	next.Ledger = plan.Ledger
	if plan.Succeeded {
		next.Stable = next.Target
	}
	next.History = recorded(next, now)
	return next
}

// recorded keeps the newest history entry in step with the rollout it is about.
func recorded(s v1alpha1.AddOnRolloutStatus, now metav1.Time) []v1alpha1.HistoryEntry {
	h := slices.Clone(s.History)
	if len(h) == 0 || s.Target == nil || h[0].Target.Digest != s.Target.Digest {
		return h
	}
	ended := s.Phase == v1alpha1.PhaseSucceeded || s.Phase == v1alpha1.PhaseFailed || s.Phase == v1alpha1.PhaseHeld
	if h[0].Finished != nil && h[0].Phase == s.Phase {
		return h
	}
	h[0].Phase, h[0].Counts, h[0].Finished = s.Phase, s.Counts, nil
	detail(&h[0], s, now)
	if ended {
		h[0].Finished = &now
	}
	return h
}

// verdict is what stands in the conditions besides the phase.
type verdict struct {
	// stalled is the reason of something only the user can change; "" when nothing is.
	stalled string
	// waiting is the reason of something that passes by itself; "" when nothing is.
	waiting string
	message string
}

// verdictOf turns an error of observing or planning into what the user is told.
func verdictOf(err error) (verdict, bool) {
	switch {
	case errors.Is(err, rollout.ErrInvalidStrategy), errors.Is(err, rollout.ErrUnknownDecisionGroup):
		return verdict{stalled: v1alpha1.InvalidRolloutStrategyReason, message: err.Error()}, true
	case errors.Is(err, render.ErrInvalidHealth):
		return verdict{stalled: v1alpha1.InvalidHealthReason, message: err.Error()}, true
	case errors.Is(err, rollout.ErrCorruptLedger):
		return verdict{stalled: v1alpha1.InvalidLedgerReason, message: err.Error()}, true
	case errors.Is(err, errOwnership):
		return verdict{stalled: v1alpha1.OwnershipConflictReason, message: err.Error()}, true
	}
	return verdict{}, false
}

// guardMessage says what holds a removal back, and how to lift it.
func guardMessage(p rollout.Plan) string {
	if p.GuardHint == "" {
		return p.Guard
	}
	return p.Guard + "; " + p.GuardHint
}

// setConditions writes Ready, Reconciling and Stalled as kstatus reads them:
// Reconciling and Stalled are there only while they are True. One that is said again
// stays, with its time: each of the two takes the other away.
func setConditions(ro *v1alpha1.AddOnRollout, v verdict) {
	s := &ro.Status
	switch {
	case v.stalled != "":
		conditions.MarkStalled(ro, v.stalled, "%s", v.message)
		conditions.MarkFalse(ro, meta.ReadyCondition, v.stalled, "%s", v.message)
	case v.waiting != "":
		conditions.MarkReconciling(ro, v.waiting, "%s", v.message)
		conditions.MarkUnknown(ro, meta.ReadyCondition, v.waiting, "%s", v.message)
	case s.Phase == v1alpha1.PhaseSucceeded, s.Phase == v1alpha1.PhaseRemoved:
		atRest(ro)
		conditions.MarkTrue(ro, meta.ReadyCondition, v1alpha1.RolloutSucceededReason, "%s", s.Message)
	case s.Phase == v1alpha1.PhaseHeld:
		atRest(ro)
		conditions.MarkTrue(ro, meta.ReadyCondition, v1alpha1.RolloutHeldReason, "%s", s.Message)
	case s.Phase == v1alpha1.PhaseFailed:
		conditions.MarkStalled(ro, v1alpha1.RolloutFailedReason, "%s", s.Message)
		conditions.MarkFalse(ro, meta.ReadyCondition, v1alpha1.RolloutFailedReason, "%s", s.Message)
	case s.Phase == v1alpha1.PhaseSuspended:
		atRest(ro)
		conditions.MarkUnknown(ro, meta.ReadyCondition, v1alpha1.SuspendedReason, "%s", s.Message)
	default:
		conditions.MarkReconciling(ro, v1alpha1.RolloutProgressingReason, "%s", s.Message)
		conditions.MarkUnknown(ro, meta.ReadyCondition, v1alpha1.RolloutProgressingReason, "%s", s.Message)
	}
}

// atRest takes Reconciling and Stalled away.
func atRest(ro *v1alpha1.AddOnRollout) {
	conditions.Delete(ro, meta.ReconcilingCondition)
	conditions.Delete(ro, meta.StalledCondition)
}

// sameStatus reports whether two statuses say the same, so that nothing is written
// at rest.
func sameStatus(a, b v1alpha1.AddOnRolloutStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}
