package addonsource

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// report ends a pass: first one status write, if the status changed; then the event; then the commit statuses. Only
// report converts a halt into conditions and a requeue.
func (p *pass) report(ctx context.Context, out outcome, err error) (ctrl.Result, error) {
	p.noteRollouts()
	h, err := haltOf(err)
	if err != nil {
		return ctrl.Result{}, err
	}
	if h != nil && apierrors.IsConflict(h.cause) {
		// Another writer changed the source meanwhile. It is read again, and nothing is
		// reported.
		return ctrl.Result{RequeueAfter: firstWait}, nil
	}
	p.remember(out, h)
	p.mark(out, h)
	if out.reached != unanswered {
		p.markHandled()
	}
	p.setWebhookPath()
	book, err := p.openBook(ctx, out, h)
	if err != nil {
		return ctrl.Result{}, err
	}
	book.Address(ctx, p.source)
	p.source.Status.CommitStatuses = book.Stored()
	book.SetConditions(p.source)
	p.setRevertProposed()
	if err := p.setOverridden(ctx); err != nil {
		return ctrl.Result{}, err
	}
	if err := p.store(ctx); err != nil {
		if apierrors.IsConflict(err) {
			return ctrl.Result{RequeueAfter: firstWait}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	p.announce(h)
	return p.requeue(h, book.Deliver())
}

// haltOf returns the halt in an error; other errors go to the queue unchanged.
func haltOf(err error) (*halt, error) {
	var h *halt
	if err == nil || errors.As(err, &h) {
		return h, nil
	}
	return nil, err
}

// remember stores the verdict on a refused commit. The status has the verdict, so that the commit is not read again.
// The memory has its text, so that it can be repeated. The verdict stays until the commit is found valid. If a pass
// checks the commit again and reaches no verdict, the text is dropped, and the next pass checks the commit.
func (p *pass) remember(out outcome, h *halt) {
	if out.reached >= judged {
		p.memory.refusal = nil
	}
	if out.reached >= valid && p.source.Status.LastAttemptedSpec == refusedUnder(p.spec) {
		p.source.Status.LastAttemptedSpec = ""
	}
	if h == nil || h.kind != refused {
		return
	}
	p.source.Status.LastAttemptedRevision, p.source.Status.LastAttemptedSpec = p.head.String(), refusedUnder(p.spec)
	p.memory.attempted = p.head.String()
	p.memory.refusal, p.memory.refusedRevision, p.memory.refusedSpec = h, p.head.String(), p.spec
	p.memory.failures, p.memory.forced = 0, false
}

// mark sets Ready, Reconciling and Stalled in the form of kstatus.
func (p *pass) mark(out outcome, h *halt) {
	applied := "Applied revision " + p.head.String() // the head is on the hub
	switch {
	case h == nil && out.unchanged():
	case h == nil && suspended(p.source) && p.source.DeletionTimestamp.IsZero():
		p.markSuspended()
	case h == nil && out.reached == steady && p.showsReady(applied):
	case h == nil:
		conditions.Delete(p.source, fluxmeta.ReconcilingCondition)
		conditions.Delete(p.source, fluxmeta.StalledCondition)
		conditions.MarkTrue(p.source, fluxmeta.ReadyCondition, fluxmeta.ReconciliationSucceededReason, "%s", strings.Join(append([]string{applied}, out.notes...), "; "))
	case h.kind == stalled || h.kind == refused:
		conditions.MarkStalled(p.source, h.reason, "%s", h.text)
		conditions.MarkFalse(p.source, fluxmeta.ReadyCondition, h.reason, "%s", h.text)
	default:
		conditions.MarkReconciling(p.source, h.reason, "%s", h.text)
		conditions.MarkFalse(p.source, fluxmeta.ReadyCondition, h.reason, "%s", h.text)
	}
}

// markSuspended says how the source is suspended, and that the applied objects stay. A source that was ready stays
// ready, because it has no error.
func (p *pass) markSuspended() {
	text := "suspended by spec.suspend: the repository is not read"
	if !p.source.Spec.Suspend {
		text = "suspended by the annotation " + v1alpha1.SuspendAnnotation + ": the repository is not read"
	}
	conditions.Delete(p.source, fluxmeta.ReconcilingCondition)
	conditions.Delete(p.source, fluxmeta.StalledCondition)
	applied := p.source.Status.LastAppliedRevision
	if applied != "" && applied == p.source.Status.LastAttemptedRevision && !p.source.Status.Refused() {
		conditions.MarkTrue(p.source, fluxmeta.ReadyCondition, v1alpha1.SuspendedReason, "%s, %s stays applied", text, applied)
		return
	}
	conditions.MarkFalse(p.source, fluxmeta.ReadyCondition, v1alpha1.SuspendedReason, "%s", text)
}

// setOverridden says which add-ons of the source do not run what Git declares, because they were rolled back.
func (p *pass) setOverridden(ctx context.Context) error {
	rollouts, err := p.cachedRollouts(ctx)
	if err != nil {
		return err
	}
	reason, texts := v1alpha1.RolledBackReason, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(rollouts)) {
		why, text := overriddenBy(rollouts[name])
		if why == "" {
			continue
		}
		texts = append(texts, name+": "+text)
		if why != v1alpha1.RolledBackReason {
			reason = why
		}
	}
	if len(texts) == 0 {
		conditions.Delete(p.source, v1alpha1.OverriddenCondition)
		return nil
	}
	const shown = 3
	if more := len(texts) - shown; more > 0 {
		texts = append(texts[:shown], fmt.Sprintf("%d more", more))
	}
	conditions.MarkTrue(p.source, v1alpha1.OverriddenCondition, reason, "%s", strings.Join(texts, "; "))
	return nil
}

// overriddenBy is the reason for which a rollout does not run the content of Git, with its text; "": it runs that
// content, or is being removed.
func overriddenBy(ro *v1alpha1.AddOnRollout) (reason, text string) {
	switch {
	case !ro.Status.Override.Returns() || ro.Spec.Removal != nil:
		return "", ""
	case ro.Status.Phase != v1alpha1.PhaseRolledBack:
		return v1alpha1.RollingBackReason, ro.Status.Message
	}
	return v1alpha1.RolledBackReason, ro.Status.Message
}

// showsReady reports whether the conditions already say that the head is applied. The notes after the text need a
// compiled commit, so they are not compared.
func (p *pass) showsReady(text string) bool {
	ready := conditions.Get(p.source, fluxmeta.ReadyCondition)
	return conditions.IsReady(p.source) && ready.Reason == fluxmeta.ReconciliationSucceededReason &&
		ready.ObservedGeneration == p.source.Generation && strings.HasPrefix(ready.Message, text)
}

// showsRefusal reports whether the conditions still have the verdict on a commit. After a restart the text of the
// verdict may be lost. If the conditions do not have it either, the commit is read once more for the text. Nothing
// else depends on this.
func (p *pass) showsRefusal() bool {
	stalled := conditions.Get(p.source, fluxmeta.StalledCondition)
	if stalled == nil {
		return false
	}
	switch stalled.Reason {
	case v1alpha1.BuildFailedReason, v1alpha1.ValidationFailedReason, v1alpha1.LimitExceededReason,
		v1alpha1.VerificationFailedReason, v1alpha1.NonFastForwardReason:
		return true
	default:
		return false
	}
}

// markHandled acknowledges spec and annotations.
func (p *pass) markHandled() {
	p.source.Status.ObservedGeneration = p.source.Generation
	if requestedAt, ok := fluxmeta.ReconcileAnnotationValue(p.source.Annotations); ok {
		p.source.Status.LastHandledReconcileAt = requestedAt
	}
	if forceAt, ok := p.source.Annotations[fluxmeta.ForceRequestAnnotation]; ok {
		p.source.Status.LastHandledForceAt = forceAt
	}
}

// setWebhookPath gives a source with spec.webhook a path that cannot be guessed. It removes the path from any other
// source.
func (p *pass) setWebhookPath() {
	switch {
	case p.source.Spec.Webhook == nil:
		p.source.Status.WebhookPath = ""
	case p.source.Status.WebhookPath == "":
		random := make([]byte, 16)
		_, _ = rand.Read(random) // it never fails
		p.source.Status.WebhookPath = v1alpha1.WebhookPathPrefix + hex.EncodeToString(random)
	}
}

// storeTries bounds how often one pass writes its status.
const storeTries = 5

// store writes the status if it changed. It does not use fluxcd's SerialPatcher, which needs a read and separate
// requests for conditions and the rest; only this controller writes the status. The precondition of the patch is the
// status from which it was computed, so that two operators cannot lose each other's marks of commit statuses. Any
// other change of the object, such as an annotation that requests a reconcile, must not make the patch fail, because
// the commit is already on the hub and only this status stores that.
func (p *pass) store(ctx context.Context) error {
	if equality.Semantic.DeepEqual(p.before.Status, p.source.Status) {
		return nil
	}
	base := p.before
	for tries := storeTries; ; tries-- {
		stored := p.source.DeepCopy()
		stored.ResourceVersion = base.ResourceVersion
		err := p.Client.Status().Patch(ctx, stored, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), client.FieldOwner(v1alpha1.FieldManager))
		if err == nil {
			p.source.ResourceVersion = stored.ResourceVersion
			p.writes.put(sourceKey(p.key().NamespacedName), written{resourceVersion: stored.ResourceVersion})
			return nil
		}
		if !apierrors.IsConflict(err) || tries == 1 {
			return fmt.Errorf("cannot write the status: %w", err)
		}
		live := &v1alpha1.AddOnSource{}
		if err := p.Live.Get(ctx, client.ObjectKeyFromObject(p.source), live); err != nil {
			return fmt.Errorf("cannot read the source again: %w", err)
		}
		if live.UID != p.before.UID || !equality.Semantic.DeepEqual(live.Status, p.before.Status) {
			return fmt.Errorf("cannot write the status: %w", err)
		}
		base = p.before.DeepCopy()
		base.ResourceVersion = live.ResourceVersion
	}
}

// requeue returns the time of the next pass: the next look at the repository, or earlier if the pass waits or owes a
// status to a forge. Events cause further passes.
func (p *pass) requeue(h *halt, forge time.Duration) (ctrl.Result, error) {
	if h != nil && h.kind == retried {
		return ctrl.Result{}, h
	}
	after := p.nextLook()
	if h != nil && h.kind == stalled && h.reason == v1alpha1.InvalidURLReason || suspended(p.source) && p.source.DeletionTimestamp.IsZero() {
		after = 0
	}
	if _, waits := p.errands.waitsSince(p.key().NamespacedName); waits {
		after = clock.Sooner(after, p.timeout())
	}
	switch {
	case h != nil && h.kind == waiting:
		after = clock.Sooner(after, h.after)
	case h != nil && h.kind == stalled && h.reason == v1alpha1.OwnershipConflictReason:
		after = clock.Sooner(after, ownerAgain)
	}
	return ctrl.Result{RequeueAfter: clock.Sooner(after, forge)}, nil
}

// ownerAgain is the time between two reads of the owner of an object while another source owns it, because no event
// wakes the waiting source.
const ownerAgain = time.Minute

// nextLook returns the time until the next look at the repository.
func (p *pass) nextLook() time.Duration {
	if after := p.memory.nextLook.Sub(p.now); after > 0 {
		return after
	}
	return p.source.Spec.Interval.Duration
}
