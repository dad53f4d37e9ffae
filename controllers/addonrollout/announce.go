package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/journal"
)

// Keys of the metadata of events. Flux's notification-controller passes these keys on.
const (
	revisionMetadata = "event.toolkit.fluxcd.io/revision"
	stageMetadata    = "addonflow.io/stage"
)

// notice is the event of a decision.
type notice struct {
	kind, reason string
	// text begins the message; the commit and the reason follow.
	text string
}

// noticeOf is the event of a decision; false: the decision is only in log and journal.
func noticeOf(d journal.Decision) (notice, bool) {
	normal, warning := corev1.EventTypeNormal, corev1.EventTypeWarning
	switch d.Kind {
	case journal.Started:
		return notice{normal, v1alpha1.RolloutProgressingReason, "Started the rollout of"}, true
	case journal.Reverted:
		return notice{normal, v1alpha1.RolloutRevertedReason, "Started the revert to"}, true
	case journal.RollbackStarted:
		return notice{warning, v1alpha1.RollingBackReason, "Rolling back to"}, true
	case journal.RolledBack:
		return notice{warning, v1alpha1.RolledBackReason, "Rolled back to"}, true
	case journal.StageStarted:
		return notice{normal, v1alpha1.StageStartedReason, "Started stage " + d.Stage + " of"}, true
	case journal.GateWaits:
		return notice{normal, v1alpha1.GateWaitingReason, "Stage " + d.Stage + " waits for a gate in the rollout of"}, true
	case journal.GatePassed:
		return notice{normal, v1alpha1.GatePassedReason, "A gate of stage " + d.Stage + " passed in the rollout of"}, true
	case journal.GateFailed:
		return notice{warning, v1alpha1.GateFailedReason, "A gate of stage " + d.Stage + " failed in the rollout of"}, true
	case journal.GateError:
		return notice{warning, v1alpha1.GateErrorReason, "A gate of stage " + d.Stage + " cannot be evaluated in the rollout of"}, true
	case journal.Halted:
		return notice{warning, v1alpha1.RolloutFailedReason, "Halted the rollout of"}, true
	case journal.Held:
		return notice{normal, v1alpha1.RolloutHeldReason, "Held the rollout of"}, true
	case journal.Succeeded:
		return notice{normal, v1alpha1.RolloutSucceededReason, "Completed the rollout of"}, true
	case journal.RemovalStarted:
		return notice{normal, v1alpha1.RemovalStartedReason, "Started the removal that follows from"}, true
	case journal.RemovalEnded:
		return notice{normal, v1alpha1.RemovalEndedReason, "Completed the removal that follows from"}, true
	case journal.Repaired:
		text := "Repaired " + brief.Count(d.Count, "cluster")
		if d.Stage != "" {
			text += " of stage " + d.Stage
		}
		return notice{normal, v1alpha1.RepairedReason, text + " with the content of"}, true
	case journal.ClockStepped:
		return notice{warning, v1alpha1.ClockSteppedReason, "The operator's clock was set during the rollout of"}, true
	case journal.WriteRefused:
		return notice{warning, v1alpha1.WriteRefusedReason, "The hub refused a write in the rollout of"}, true
	default:
		return notice{}, false
	}
}

// announce makes the decisions of a stored plan known: in the log and as events, on revisions and orders, to the desks
// of gates and commit statuses. It returns when the next turn is due for them; 0: never.
func (r *Reconciler) announce(ctx context.Context, p reserved) (time.Duration, error) {
	log := decisionLog(ctx, p.rollout)
	logClusters(log, p.Decisions.Clusters) // before the writes that may fail, because the next turn does not decide it again
	logSteps(log, p.Decisions.Steps)
	r.sendEvents(p.rollout, p.Plan)
	beside := r.writeBeside(p.mem)
	if err := r.markSuccesses(ctx, p.Plan, beside); err != nil {
		return 0, err
	}
	if err := r.answerOrders(ctx, p.Plan, beside); err != nil {
		return 0, err
	}
	again := beside.end(log, p.Observed)
	r.ask(p.rollout, p.Plan)
	for _, a := range p.Accepted {
		p.mem.authorOf(a.AddOn.UID).Accept(a.AddOn, a.Kind)
	}
	// Before the clusters are written: otherwise a post that the status shows as under way starts 15 s later.
	return clock.Sooner(again, p.book.Deliver()), nil
}

// sendEvents sends the events of a stored plan. Each message about a decision names the commit, so that events of two
// commits are never merged. If the turn stalls for a reason that only the user can remove, sendEvents sends an event
// that says where the problem is, unless the previous status had the same text.
func (r *Reconciler) sendEvents(ro *v1alpha1.AddOnRollout, p *plan.Plan) {
	for _, d := range p.Decisions.Steps {
		announceStep(r.Recorder, ro, d)
	}
	before := p.Observed.Rollout
	said := conditions.GetReason(before, meta.StalledCondition) + conditions.GetMessage(before, meta.StalledCondition)
	if stalled := p.Verdict.Stalled; stalled != "" && p.Err != nil && said != stalled+p.Verdict.Text() {
		r.Recorder.Event(ro, corev1.EventTypeWarning, stalled, p.Verdict.Text())
	}
	if p.Restored != "" {
		r.Recorder.Event(ro, corev1.EventTypeWarning, v1alpha1.FenceRestoredReason, p.Restored)
	}
}

// announceStep sends the event of a decision. The event has all clusters of the repairs that continue the decision.
func announceStep(recorder record.EventRecorder, ro *v1alpha1.AddOnRollout, d journal.Decision) {
	n, ok := noticeOf(d)
	if !ok || d.Continues {
		return
	}
	about := d.Commit
	if o := ro.Status.Override; n.kind == corev1.EventTypeWarning && o.Returns() {
		about = o.Leaves().Commit // the commit that failed, not the one to which the fleet moves back
	}
	metadata := map[string]string{}
	if about != "" {
		metadata[revisionMetadata] = about
	}
	if d.Stage != "" {
		metadata[stageMetadata] = d.Stage
	}
	message := fmt.Sprintf("%s %s", n.text, d.Commit)
	if d.Reason != "" {
		message += ": " + d.Reason
	}
	recorder.AnnotatedEventf(ro, metadata, n.kind, n.reason, "%s", message)
}

func decisionLog(ctx context.Context, ro *v1alpha1.AddOnRollout) logr.Logger {
	return ctrl.LoggerFrom(ctx).WithValues("rollout", client.ObjectKeyFromObject(ro).String())
}

// logClusters logs decisions about clusters, one line each, at level debug.
func logClusters(log logr.Logger, all []journal.Decision) {
	debug := log.V(1)
	if !debug.Enabled() {
		return
	}
	for _, d := range all {
		debug.Info(string(d.Kind), "commit", d.Commit, "revision", d.Revision, "stage", d.Stage, "cluster", d.Cluster,
			"from", d.From, "to", d.To, "reason", d.Reason)
	}
}

// logSteps logs decisions about stages and the whole rollout.
func logSteps(log logr.Logger, all []journal.Decision) {
	for _, d := range all {
		if d.Continues {
			continue // a repair of the whole fleet would log a line for each batch
		}
		log.Info(string(d.Kind), "commit", d.Commit, "revision", d.Revision, "stage", d.Stage, "clusters", d.Count,
			"from", d.From, "to", d.To, "reason", d.Reason)
	}
}

// carriedOut logs and announces the decisions of a round of writes that are not in the ledger, such as the
// repair of a work. It returns the entries for the journal.
func (r *Reconciler) carriedOut(ctx context.Context, ro *v1alpha1.AddOnRollout, did []journal.Decision) []journal.Decision {
	if len(did) == 0 {
		return nil
	}
	steps := journal.Steps(did, nil, nil, nil)
	plan.NameCommits(did, &ro.Status)
	plan.NameCommits(steps, &ro.Status)
	log := decisionLog(ctx, ro)
	logClusters(log, did)
	logSteps(log, steps)
	for _, d := range steps {
		announceStep(r.Recorder, ro, d)
	}
	return steps
}

// writeLost logs that the rest of a plan was dropped because another writer changed an object first. The next write
// of the status adds this decision to the journal.
func (r *Reconciler) writeLost(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory, conflict error) {
	object := "the object"
	if s, ok := errors.AsType[*apierrors.StatusError](conflict); ok && s.ErrStatus.Details != nil {
		object = s.ErrStatus.Details.Kind + "/" + s.ErrStatus.Details.Name
	}
	d := journal.Decision{Kind: journal.WriteLost, Reason: "another writer changed " + object + " first; the operator plans again"}
	if t := ro.Spec.Target; t != nil {
		d.Commit, d.Revision = t.Commit, t.Digest
	}
	mem.plan.Unwritten = append(mem.plan.Unwritten, d)
	logSteps(decisionLog(ctx, ro), []journal.Decision{d})
}
