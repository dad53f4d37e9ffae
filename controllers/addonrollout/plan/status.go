package plan

import (
	"encoding/json"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Limits of status.history: the number of entries, their size as JSON, and the part of it that is kept free for the
// newest entry, which grows.
const (
	historyKept  = 50
	historyBytes = 64 << 10
	newestBytes  = 10 << 10
)

// movedToTarget returns the status to plan with. If the target changed, the status moves to the new one: the ledger
// stays, because its clusters hold slots, and the clock of the target starts again. If the status is empty, the
// stable revision is one of those that succeeded on this hub. An add-on that is declared again after its removal is
// installed anew.
func movedToTarget(stored v1alpha1.AddOnRolloutStatus, o *Observation, now metav1.Time) v1alpha1.AddOnRolloutStatus {
	next, target, s := *stored.DeepCopy(), o.Target, o.Succeeded
	next.Override = o.Override.DeepCopy()
	if next.Stable != nil && next.Stable.Digest != target.Digest {
		if _, barred := o.barredBy(*next.Stable); barred {
			next.Stable = o.rediscovered()
		}
	}
	next.Attempt = max(next.Attempt, 1)
	if next.Target != nil && next.Target.Digest == target.Digest && next.Aborted != nil && declaredBy(stored) != o.Rollout.Spec.Target.Digest {
		next.Aborted = nil // the abort ended a rollout to content that Git did not declare, or no longer declares
		next.Attempt, next.Stages = next.Attempt+1, unjudged(next.Stages)
	}
	removed := next.Phase == v1alpha1.PhaseRemoved && o.Rollout.Spec.Removal == nil
	if next.Target == nil || removed {
		next.Stable = o.rediscovered()
	}
	if next.Target != nil && next.Target.Digest == target.Digest && !removed {
		// Another commit may have the same content, as after a rewritten history: the rollout continues and
		// reports the new commit, because Git may not have the old one any more.
		endedOrMoved := *next.Target != target || len(next.History) > 0 && next.History[0].Finished != nil
		next.Reverting = next.Reverting || next.Override.Returns() // even if the status is older than the content that the clusters leave
		next.Target = &target
		if stored.Override.Returns() != next.Override.Returns() && endedOrMoved { // a rollback and a revert are two rollouts
			next.History = o.withRolledBack(supersede(next, target, now))
		}
		if next.Stable != nil && next.Stable.Digest == target.Digest {
			next.Stable = &target
		}
		if h := next.History; len(h) > 0 && h[0].Target.Digest == target.Digest {
			h[0].Target = target
		}
		return next
	}
	next.History = supersede(next, target, now)
	next.Reverting, next.Returned, next.Aborted = s.Has(target.Revision), false, nil
	records := rollout.NewAttempt
	if next.Reverting {
		records = rollout.NewRevert
	}
	next.Ledger.Records = records(next.Ledger.Records, target.Digest)
	next.Target, next.TargetSince = &target, &now
	next.Attempt = nextAttempt(next.History, o)
	next.Stages = unjudged(next.Stages)
	// The phase was of another target; the new target has none yet.
	next.Phase = ""
	return next
}

// unjudged are the stages without the verdicts of their gates. Other content and another attempt need new verdicts.
func unjudged(stages []v1alpha1.StageStatus) []v1alpha1.StageStatus {
	stages = slices.Clone(stages)
	for i := range stages {
		stages[i].Gates = nil
	}
	return stages
}

// declaredBy is the digest of the content that Git declared when the status was stored.
func declaredBy(s v1alpha1.AddOnRolloutStatus) string {
	if s.Override != nil {
		return s.Override.Declared.Digest
	}
	return s.Target.Digest
}

// nextAttempt is the attempt at the content that becomes the target: 1 for content that was never tried. The number
// is never used twice for the same content, because decisions of users are about one attempt: if the content returns,
// earlier decisions must not count. The history may be lost, or too short. Then the attempt is greater than every
// attempt that a decision names.
func nextAttempt(history []v1alpha1.HistoryEntry, o *Observation) int32 {
	last, digest, uid := int32(0), o.Target.Digest, o.Rollout.UID
	tried := func(attempt int32) { // as far as it can have been: its author writes what it is about
		if attempt < math.MaxInt32/2 {
			last = max(last, attempt)
		}
	}
	for i := range history {
		if h := &history[i]; h.Target.Digest == digest {
			last = max(last, h.Attempt)
		}
	}
	for i := range o.Orders {
		s, state := &o.Orders[i].Spec, o.Orders[i].Status.State
		switch {
		case s.RolloutUID != uid || s.Digest != digest || state == v1alpha1.OrderRefused || s.Verb == v1alpha1.OrderUnblock:
		case s.Verb == v1alpha1.OrderRetry && state == v1alpha1.OrderCarriedOut:
			tried(s.Attempt + 1)
		default:
			tried(s.Attempt)
		}
	}
	for i := range o.Approvals.Counted {
		if s := &o.Approvals.Counted[i].Spec; s.RolloutUID == uid && s.Digest == digest {
			tried(s.Attempt)
		}
	}
	return last + 1
}

// rediscovered is the stable revision if the status was lost, the stable revision is quarantined or blocked, or the
// add-on was removed; nil: no rollout succeeded, or no cluster runs the add-on.
func (o *Observation) rediscovered() *v1alpha1.Target {
	newest := o.Succeeded.newest()
	if newest.Name == "" || !slices.ContainsFunc(o.Members, func(m *Member) bool { return len(m.Works) > 0 }) {
		return nil
	}
	stable := o.known(newest.Digest)
	return &stable
}

// supersede closes the history entry of the rollout that the new target supersedes, and adds an entry for the new
// target.
func supersede(s v1alpha1.AddOnRolloutStatus, by v1alpha1.Target, now metav1.Time) []v1alpha1.HistoryEntry {
	h := slices.Clone(s.History)
	if len(h) > 0 {
		h[0].Attempt, h[0].Stages = s.Attempt, stopped(h[0].Stages)
	}
	if len(h) > 0 && h[0].Finished == nil {
		h[0].Finished, h[0].SupersededBy = &now, by.Commit
	}
	h = slices.Insert(h, 0, v1alpha1.HistoryEntry{Target: by, Phase: v1alpha1.PhaseProgressing, Started: now})
	return bounded(h)
}

// withRolledBack adds the rollout of the content that the fleet leaves, if the history lacks it because the status is
// old, for example from a backup. This is so if the content was quarantined after the newest rollout in the history.
func (o *Observation) withRolledBack(h []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	if !o.Override.Returns() || len(h) < 2 {
		return h
	}
	from, last := o.Override.Leaves(), &h[1]
	q, quarantined := o.quarantine(from.Digest)
	if !quarantined || last.Target.Digest == from.Digest || !q.Time.After(last.Finished.Time) {
		return h
	}
	lost := v1alpha1.HistoryEntry{Target: from, Phase: v1alpha1.PhaseFailed, Reason: q.Reason, Started: q.Time, Finished: &q.Time}
	if o.everSucceeded.Has(from.Revision) {
		lost.Phase = v1alpha1.PhaseSucceeded
	}
	return bounded(slices.Insert(h, 1, lost))
}

// bounded keeps the newest entries. If they are too large, the oldest entries first lose their clusters and stages,
// so that the outcome of each rollout is known for longer.
func bounded(h []v1alpha1.HistoryEntry) []v1alpha1.HistoryEntry {
	h = h[:min(len(h), historyKept)]
	size := newestBytes
	for i := range h[1:] {
		size += bytesOf(h[i+1])
	}
	for i := len(h) - 1; i > 0 && size > historyBytes; i-- {
		size -= bytesOf(h[i])
		h[i].Failing, h[i].Stages = nil, nil
		size += bytesOf(h[i])
	}
	for ; len(h) > 1 && size > historyBytes; h = h[:len(h)-1] {
		size -= bytesOf(h[len(h)-1])
	}
	return h
}

// bytesOf is the size of an entry in a list.
func bytesOf(h v1alpha1.HistoryEntry) int {
	text, err := json.Marshal(h)
	if err != nil {
		return historyBytes // it cannot be stored either
	}
	return len(text) + len(",")
}

// stopped are the times of the stages of a rollout that is over. A stage that did not end is Held for ever.
func stopped(stages []v1alpha1.StageTimes) []v1alpha1.StageTimes {
	stages = slices.Clone(stages)
	for i := range stages {
		if stages[i].Finished == nil {
			stages[i].Phase = rollout.StageHeld
		}
	}
	return stages
}

// statusAfter is the status after a plan. It depends only on its arguments, so an identical turn writes nothing.
func statusAfter(previous v1alpha1.AddOnRolloutStatus, plan rollout.Plan, w way, now metav1.Time) v1alpha1.AddOnRolloutStatus {
	next := *previous.DeepCopy()
	next.Phase, next.Message = plan.Phase, plan.Message
	next.Counts, next.Stages, next.Failing = plan.Counts, plan.Stages, plan.Failing
	next.Ledger = plan.Ledger
	if plan.Succeeded {
		next.Stable, next.Returned = next.Target, true
	}
	if next.Override.Returns() {
		if plan.Phase == v1alpha1.PhaseHeld && plan.Outcome == rollout.Pending {
			next.Phase = v1alpha1.PhaseProgressing // a window holds it: it continues by itself, and is not Ready
		}
		next.Phase = returned(next.Phase)
		next.Message = overridden(next, w)
	}
	next.History = recorded(next, plan.Outcome, now)
	return next
}

// recorded updates the newest history entry if it is about the current target. A held rollout has ended if the
// strategy holds it; its outcome is then success.
func recorded(s v1alpha1.AddOnRolloutStatus, outcome rollout.Outcome, now metav1.Time) []v1alpha1.HistoryEntry {
	h := slices.Clone(s.History)
	if len(h) == 0 || s.Target == nil || h[0].Target.Digest != s.Target.Digest {
		return h
	}
	ended := s.Phase == v1alpha1.PhaseSucceeded || s.Phase == v1alpha1.PhaseRolledBack || s.Phase == v1alpha1.PhaseFailed ||
		s.Phase == v1alpha1.PhaseHeld && outcome == rollout.Success
	if ended && h[0].Finished != nil && h[0].Phase == s.Phase {
		if s.Phase == v1alpha1.PhaseFailed && h[0].Counts.InFlight > 0 { // how these clusters end is decided after the halt
			h[0].Counts = s.Counts
			detail(&h[0], s, now)
		}
		return h
	}
	h[0].Phase, h[0].Counts, h[0].Finished = s.Phase, s.Counts, nil
	detail(&h[0], s, now)
	if ended {
		h[0].Finished = &now
	}
	return h
}

// Bounds of an entry of status.history.
const (
	failingKept = 10
	stagesKept  = 16
)

// detail completes a history entry: the reason of the phase, the clusters that failed, and the
// times of the stages.
func detail(h *v1alpha1.HistoryEntry, s v1alpha1.AddOnRolloutStatus, now metav1.Time) {
	h.Reason = s.Message
	h.Failing = slices.Clone(s.Failing[:min(len(s.Failing), failingKept)])
	h.Stages = stageTimes(h.Stages, s.Stages, now)
}

// stageTimes returns the start and end of every stage that began.
func stageTimes(known []v1alpha1.StageTimes, stages []v1alpha1.StageStatus, now metav1.Time) []v1alpha1.StageTimes {
	times := slices.Clone(known)
	for _, stage := range stages {
		i := slices.IndexFunc(times, func(t v1alpha1.StageTimes) bool { return t.Name == stage.Name })
		ended := stage.Phase == rollout.StageComplete || stage.Phase == rollout.StageFailed
		begun := ended || stage.Phase == rollout.StageProgressing || stage.Phase == rollout.StageSoaking
		switch {
		case i < 0 && !begun:
			continue
		case i < 0:
			times = append(times, v1alpha1.StageTimes{Name: stage.Name, Started: now})
			i = len(times) - 1
		}
		t := &times[i]
		if t.Phase == rollout.StageComplete && stage.Phase == rollout.StageHeld {
			continue // the stage ended, and admits no other cluster now
		}
		t.Phase = stage.Phase
		switch {
		case !ended && stage.Phase != rollout.StageNothingToDo:
			t.Finished = nil
		case t.Finished == nil:
			t.Finished = now.DeepCopy()
		}
	}
	return times[max(0, len(times)-stagesKept):]
}
