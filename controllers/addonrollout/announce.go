package addonrollout

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/journal"
)

// Metadata of events, under the keys that Flux's notification-controller passes on.
const (
	revisionMetadata = "event.toolkit.fluxcd.io/revision"
	stageMetadata    = "addonflow.io/stage"
)

// notice is how a decision is announced.
type notice struct {
	kind, reason string
	// text begins the message: the commit follows, and the reason.
	text string
}

// noticeOf is the event of a decision; false for one that is in log and journal alone.
func noticeOf(d journal.Decision) (notice, bool) {
	normal, warning := corev1.EventTypeNormal, corev1.EventTypeWarning
	switch d.Kind {
	case journal.Started:
		return notice{normal, v1alpha1.RolloutProgressingReason, "Started rolling out"}, true
	case journal.Reverted:
		return notice{normal, v1alpha1.RolloutRevertedReason, "Reverting with"}, true
	case journal.StageStarted:
		return notice{normal, v1alpha1.StageStartedReason, "Started stage " + d.Stage + " of"}, true
	case journal.Halted:
		return notice{warning, v1alpha1.RolloutFailedReason, "Stopped"}, true
	case journal.Held:
		return notice{normal, v1alpha1.RolloutHeldReason, "Held"}, true
	case journal.Succeeded:
		return notice{normal, v1alpha1.RolloutSucceededReason, "Rolled out"}, true
	case journal.RemovalStarted:
		return notice{normal, v1alpha1.RemovalStartedReason, "Started removing, by"}, true
	case journal.RemovalEnded:
		return notice{normal, v1alpha1.RemovalEndedReason, "Removed from the fleet, by"}, true
	case journal.ClockStepped:
		return notice{warning, v1alpha1.ClockSteppedReason, "The operator's clock was set during"}, true
	default:
		return notice{}, false
	}
}

// announce sends the events of decisions. Each message names the commit, so that those of
// two commits are never counted as one.
func (r *Reconciler) announce(ro *v1alpha1.AddOnRollout, steps []journal.Decision) {
	for _, d := range steps {
		n, ok := noticeOf(d)
		if !ok {
			continue
		}
		metadata := map[string]string{}
		if d.Commit != "" {
			metadata[revisionMetadata] = d.Commit
		}
		if d.Stage != "" {
			metadata[stageMetadata] = d.Stage
		}
		message := fmt.Sprintf("%s %s", n.text, d.Commit)
		if d.Reason != "" {
			message += ": " + d.Reason
		}
		r.Recorder.AnnotatedEventf(ro, metadata, n.kind, n.reason, "%s", message)
	}
}

// announceStall sends an event when a turn stalls for a reason that only the user can change,
// and said something else before.
func (r *Reconciler) announceStall(ro *v1alpha1.AddOnRollout, t turn) {
	if stalled := t.verdict.stalled; stalled != "" && t.err != nil && t.announced != stalled+t.verdict.message {
		r.Recorder.Event(ro, corev1.EventTypeWarning, stalled, t.verdict.message)
	}
}
