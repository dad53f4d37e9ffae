package show

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Outcome is the outcome of a rollout for a script.
type Outcome string

const (
	// Running: the rollout continues by itself.
	Running Outcome = "Running"
	// Succeeded: the target is rolled out, or the add-on is removed as requested.
	Succeeded Outcome = "Succeeded"
	// Failed: the rollout halted, and continues only after a change by the user.
	Failed Outcome = "Failed"
	// Waiting: the rollout is suspended, held until the user decides, or rolled back to content that Git does not
	// declare.
	Waiting Outcome = "Waiting"
)

// OutcomeOf returns the outcome of a rollout's current target. The exit codes of status and reconcile --wait
// follow from it. If the status is about an older spec or target, the outcome is Running. If a suspended rollout failed,
// it is Failed. In the phases Held, Suspended and RolledBack it is Waiting, even if the commit status is green; if a
// hold ends without the user, it is Running. While the target waits for the rollout of other content, phase and counts
// are about that content, and the outcome is Running, or Waiting if suspended. In the phase Succeeded it is also Running
// if the commit status is pending again, or if most clusters have lost the content.
func OutcomeOf(r *v1alpha1.AddOnRollout) Outcome {
	if !Current(r) {
		return Running
	}
	if r.Status.Phase != v1alpha1.PhaseRolledBack && apimeta.IsStatusConditionTrue(r.Status.Conditions, meta.StalledCondition) {
		return Failed
	}
	if r.Status.Override.Waits() {
		if suspended(r) {
			return Waiting
		}
		return Running
	}
	switch r.Status.Phase {
	case v1alpha1.PhaseSucceeded:
		if lost(r.Status.Counts) || r.Status.Outcome == string(rollout.Pending) {
			return Running
		}
		return Succeeded
	case v1alpha1.PhaseRemoved:
		return Succeeded
	case v1alpha1.PhaseFailed:
		return Failed
	case v1alpha1.PhaseHeld:
		if heldForAWhile(r) {
			return Running
		}
		return Waiting
	case v1alpha1.PhaseSuspended, v1alpha1.PhaseRolledBack:
		return Waiting
	case v1alpha1.PhaseProgressing, v1alpha1.PhaseRollingBack, v1alpha1.PhaseRemoving:
	}
	return Running
}

// lost reports whether most clusters lost the add-on after a success: more clusters must get the content again than
// have it. A few clusters that join do not change the success. Clusters that only wait do not count, because the user
// may hold them.
func lost(c v1alpha1.Counts) bool { return c.InFlight > 0 && c.InFlight+c.Waiting > c.Updated }

// heldForAWhile reports whether a hold ends without the user: OCM has not decided about a placement yet, a referenced
// object does not exist yet, or another writer that was fenced off may not have stopped yet.
func heldForAWhile(r *v1alpha1.AddOnRollout) bool {
	c := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReconcilingCondition)
	return c != nil && c.Status == metav1.ConditionTrue &&
		(c.Reason == v1alpha1.PlacementUndecidedReason || c.Reason == v1alpha1.ReferenceNotFoundReason || c.Reason == v1alpha1.OwnershipConflictReason)
}

// SourceOutcome returns the outcome of a source. A suspended source can still be Ready for an earlier commit. A
// script must not treat that as the outcome of the commit that it pushed.
func SourceOutcome(s *v1alpha1.AddOnSource) Outcome {
	ready := apimeta.FindStatusCondition(s.Status.Conditions, meta.ReadyCondition)
	switch {
	case s.Spec.Suspend, v1alpha1.SuspendedByAnnotation(s.Annotations):
		return Waiting
	case apimeta.IsStatusConditionTrue(s.Status.Conditions, meta.StalledCondition):
		return Failed
	case ready == nil, ready.Status == metav1.ConditionUnknown, apimeta.IsStatusConditionTrue(s.Status.Conditions, meta.ReconcilingCondition):
		return Running
	case ready.Status == metav1.ConditionTrue:
		return Succeeded
	default:
		return Failed
	}
}

// Refusal says why a source applies no newer commit: it refused the newest commit, or is stalled until the user makes
// a change; "": it continues by itself.
func Refusal(s *v1alpha1.AddOnSource) string {
	c, attempted := s.Status.Conditions, s.Status.LastAttemptedRevision
	stuck, working := apimeta.FindStatusCondition(c, meta.StalledCondition), apimeta.FindStatusCondition(c, meta.ReconcilingCondition)
	switch {
	case stuck != nil && stuck.Status == metav1.ConditionTrue && judged(stuck.Reason):
		return fmt.Sprintf("refused %s: %s", ShortCommit(attempted), FirstLine(stuck.Message))
	case stuck != nil && stuck.Status == metav1.ConditionTrue:
		return "is stalled: " + FirstLine(stuck.Message)
	case attempted == "" || attempted == s.Status.LastAppliedRevision:
	case working == nil, working.Status != metav1.ConditionTrue, unread(working.Reason):
		// After the refusal the source was suspended, or Git became unreachable. The commit is still refused, but the
		// text of the refusal was overwritten.
		return "refused " + ShortCommit(attempted)
	}
	return ""
}

// unread reports whether a reason says that no newer commit could be read.
func unread(reason string) bool {
	switch reason {
	case v1alpha1.FetchFailedReason, v1alpha1.InvalidCredentialsReason, v1alpha1.RefNotFoundReason, v1alpha1.LimitExceededReason:
		return true
	}
	return false
}

// judged reports whether a reason is a verdict on a commit.
func judged(reason string) bool {
	switch reason {
	case v1alpha1.BuildFailedReason, v1alpha1.ValidationFailedReason, v1alpha1.LimitExceededReason,
		v1alpha1.VerificationFailedReason, v1alpha1.NonFastForwardReason:
		return true
	}
	return false
}

// Current reports whether the status is about the current spec, and about every order. Until an order is answered,
// the status may be about the content that the order rolls back. Only WithOrders has orders that the operator has not
// read.
func Current(r *v1alpha1.AddOnRollout) bool {
	if r.Status.ObservedGeneration != r.Generation || len(r.Status.CarriedOut) > 0 {
		return false
	}
	want, have := r.Spec.Target, r.Status.Target
	if have == nil && apimeta.IsStatusConditionTrue(r.Status.Conditions, meta.StalledCondition) {
		return true // the first plan failed, so the status has no target
	}
	if o := r.Status.Override; o != nil {
		have = &o.Declared
	}
	return want == nil || have != nil && want.Digest == have.Digest
}

// Line is the state of a rollout in one line:
//
//	⟳ hello main@9f3c2ab Progressing 11/24: stage everyone, 6 in flight
func (s Style) Line(r *v1alpha1.AddOnRollout) string {
	target := cmp.Or(r.Spec.Target, r.Status.Target)
	phase, m := Headline(r)
	text := fmt.Sprintf("%s %s %s %s", s.paint(m.colour, m.Icon), r.Name, commitOf(target), s.paint(m.colour, phase))
	if Current(r) && r.Spec.Removal == nil && !r.Status.Override.Waits() { // a removal updates no cluster
		text += fmt.Sprintf(" %d/%d", r.Status.Counts.Updated, r.Status.Counts.Total)
	}
	if message := Message(r); message != "" {
		text += ": " + message
	}
	return text
}

// Words of the tool for states that are not a phase: the status is about an older spec or target, or the user must
// make a change first.
const (
	pending = "Pending"
	stalled = "Stalled"
	// notYetSeen is the message of a pending rollout that has a target.
	notYetSeen = "the operator has not reconciled it yet"
)

// unseen says what a pending rollout waits for.
func unseen(r *v1alpha1.AddOnRollout) string {
	switch text := unanswered(r.Status.CarriedOut); {
	case r.Spec.Target == nil:
		return "no source has declared the add-on yet"
	case text != "":
		return text
	}
	if c := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReconcilingCondition); c != nil && c.Reason == v1alpha1.RenderInterruptedReason {
		return FirstLine(c.Message)
	}
	return notYetSeen
}

// Headline is the word with which a rollout is shown, and its mark: its phase, or one of the tool's own words.
func Headline(r *v1alpha1.AddOnRollout) (string, Mark) {
	if r.Status.Override.Waits() && OutcomeOf(r) == Running {
		return pending, Mark{"○", dim}
	}
	return PhaseOf(r)
}

// PhaseOf is Headline for the clusters. If the target waits, this is about other content.
func PhaseOf(r *v1alpha1.AddOnRollout) (string, Mark) {
	switch {
	case !Current(r):
		return pending, Mark{"○", dim}
	case r.Status.Phase == v1alpha1.PhaseFailed, r.Status.Phase == v1alpha1.PhaseRolledBack:
		return string(r.Status.Phase), PhaseMark(r.Status.Phase)
	case apimeta.IsStatusConditionTrue(r.Status.Conditions, meta.StalledCondition):
		return stalled, Mark{"✗", red}
	case r.Status.Phase == v1alpha1.PhaseSucceeded && lost(r.Status.Counts):
		return string(r.Status.Phase), PhaseMark(v1alpha1.PhaseProgressing)
	case r.Status.Phase == "":
		return pending, Mark{"○", dim}
	}
	return string(r.Status.Phase), PhaseMark(r.Status.Phase)
}

// suspended reports whether the user suspended the rollout. Its phase may still be Succeeded: a rollout that has
// ended keeps its phase, and a new commit waits.
func suspended(r *v1alpha1.AddOnRollout) bool {
	return r.Spec.Suspend || v1alpha1.SuspendedByAnnotation(r.Annotations) || r.ReleaseRequested()
}

// Message is the first line of the most useful text of a rollout: what it waits for while it is pending, why it is
// stalled, otherwise the message of its phase.
func Message(r *v1alpha1.AddOnRollout) string {
	if !Current(r) {
		return unseen(r)
	}
	text := verdict(r)
	if r.ReleaseRequested() {
		return strings.TrimPrefix(text+"; "+releaseText(r), "; ")
	}
	if suspended(r) && text != "" && r.Status.Phase != v1alpha1.PhaseSuspended {
		text += "; suspended"
	}
	return text
}

// releaseText says what a requested release waits for.
func releaseText(r *v1alpha1.AddOnRollout) string {
	switch {
	case r.Released():
		return "released: it keeps running on every cluster that has it"
	case r.Releasing():
		return "being released: the operator removes its labels and finalizers"
	}
	return "release requested: no cluster is moved; the add-on is released when it leaves Git"
}

// verdict is why a rollout is stalled, why a deleted rollout still exists, or for which rollout the target waits;
// otherwise the meaning of its phase.
func verdict(r *v1alpha1.AddOnRollout) string {
	if c := apimeta.FindStatusCondition(r.Status.Conditions, meta.StalledCondition); c != nil && c.Status == metav1.ConditionTrue {
		return FirstLine(c.Message)
	}
	if c := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReconcilingCondition); c != nil && (r.DeletionTimestamp != nil || r.Status.Override.Waits()) {
		return FirstLine(c.Message)
	}
	return FirstLine(r.Status.Message)
}
