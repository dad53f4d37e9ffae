package addonrollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/journal"
)

// ownerAgain is the time between two checks while another source has the add-on, or the policy of
// tenants denies it: no event wakes the rollout when that ends.
const ownerAgain = time.Minute

// retryAfter is the pause after a failed write.
const retryAfter = 15 * time.Second

// heldFor is the time between two reads of a missing revision while it holds clusters.
const heldFor = 10 * time.Minute

// watchedEvery is the longest time between two turns of a rollout with a running clock. If the operator's clock is
// set, a timer for the next deadline is wrong by as much.
const watchedEvery = time.Minute

// report writes the result of the writes to the rollout, and the status for OCM's tools. It returns when the next turn
// is due. announced is when that is for the decisions.
func (r *Reconciler) report(ctx context.Context, p reserved, announced time.Duration, wrote applied) (ctrl.Result, error) {
	if err := r.complete(ctx, p, wrote); err != nil {
		return ctrl.Result{}, err
	}
	again := clock.Sooner(announced, r.again(p, wrote))
	switch err := r.publish(ctx, p); {
	case apierrors.IsConflict(err):
		again = clock.Sooner(again, r.Pace) // the watch does not show the last write yet
	case err != nil:
		ctrl.LoggerFrom(ctx).Error(err, "Cannot publish the status for OCM's tools")
		again = clock.Sooner(again, retryAfter)
	}
	for _, other := range p.Yielding {
		r.wake(other)
	}
	return ctrl.Result{RequeueAfter: again}, nil
}

// again returns when the plan or its writes need another turn; 0: never. No error is returned to the queue, because
// its backoff for one cluster would delay all others.
func (r *Reconciler) again(p reserved, wrote applied) time.Duration {
	after, at := time.Duration(0), p.Planned.RecheckAt
	if !at.IsZero() {
		after = max(at.Sub(p.Observed.Look.Wall), r.Pace)
	}
	if counts := p.rollout.Status.Counts; counts.InFlight > 0 || counts.Removing > 0 || !at.IsZero() {
		after = clock.Sooner(after, watchedEvery)
	}
	if len(wrote.unfinished) > 0 {
		after = clock.Sooner(after, r.Pace)
	}
	if wrote.created || p.Observed.Unseen {
		after = clock.Sooner(after, unseenFor)
	}
	if p.Retries() {
		after = clock.Sooner(after, configRetry)
	}
	if p.Observed.Approvals.Unproven != nil {
		after = clock.Sooner(after, watchedEvery) // no event says that the policy exists
	}
	if !p.AcceptsAt.IsZero() {
		after = clock.Sooner(after, max(p.AcceptsAt.Sub(p.Observed.Look.Wall), r.Pace))
	} else if errors.Is(p.Err, plan.ErrOwnership) || errors.Is(p.Err, plan.ErrTenantDenied) {
		after = clock.Sooner(after, ownerAgain)
	}
	for _, t := range wrote.troubles {
		if t.reason == v1alpha1.ApplyFailedReason {
			return clock.Sooner(after, retryAfter)
		}
	}
	if len(wrote.troubles) > 0 {
		after = clock.Sooner(after, heldFor) // an event says when a body is restored; this is for other causes
	}
	return after
}

// complete writes the result of the round to the status: the clusters that could not be written, and the request that
// was carried out. A request stays open until a round reaches its end, because an open request lifts a conflict:
// without it, the conflict would stop the turn that continues the round. A turn that may write nothing does not
// answer the request. A healthy turn without a request writes nothing.
func (r *Reconciler) complete(ctx context.Context, p reserved, wrote applied) error {
	ro := p.rollout
	before := conditions.Get(ro, v1alpha1.ClustersWrittenCondition).DeepCopy()
	if !wrote.skipped {
		markWritten(ro, p.mem.enter(&wrote), len(wrote.unfinished) == 0)
	}
	after := conditions.Get(ro, v1alpha1.ClustersWrittenCondition)
	done := plan.RequestedAt(ro) != "" && !wrote.skipped && len(wrote.unfinished) == 0
	if done {
		ro.Status.SetLastHandledReconcileRequest(ro.Annotations[meta.ReconcileRequestAnnotation])
	}
	same := sameWords(before, after)
	did := r.carriedOut(ctx, ro, wrote.did)
	if same && !done && len(did) == 0 {
		return nil
	}
	ro.Status.Journal = journal.Append(ro.Status.Journal, metav1.NewTime(r.Clock.Now()).Rfc3339Copy(), did)
	if err := r.store(ctx, ro); err != nil {
		p.mem.plan.Unwritten = append(p.mem.plan.Unwritten, did...)
		return err
	}
	if after != nil && !same {
		r.Recorder.Event(ro, corev1.EventTypeWarning, after.Reason, after.Message)
	}
	return nil
}

// sameWords reports whether two conditions, which may be absent, have the same content.
func sameWords(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// markWritten sets ClustersWritten, which names the clusters whose plan could not be carried out, and why. Its reason
// is the most serious one. The condition exists only while there are such clusters. It is removed only after a
// complete round, which reached every cluster.
func markWritten(ro *v1alpha1.AddOnRollout, troubles map[string]trouble, complete bool) {
	if len(troubles) == 0 {
		if complete {
			conditions.Delete(ro, v1alpha1.ClustersWrittenCondition)
		}
		return
	}
	said := map[string][]v1alpha1.ClusterReason{}
	for name, t := range troubles {
		said[t.reason] = append(said[t.reason], v1alpha1.ClusterReason{Cluster: name, Reason: t.text})
	}
	first := ""
	var parts []string
	for _, t := range []struct{ reason, what string }{
		{v1alpha1.ApplyFailedReason, "cannot write "},
		{v1alpha1.RevisionMissingReason, "held "},
		{v1alpha1.ObjectConflictReason, "overruled on "},
		{v1alpha1.OwnershipConflictReason, "contested on "},
	} {
		if clusters := said[t.reason]; len(clusters) > 0 {
			first, parts = cmp.Or(first, t.reason), append(parts, t.what+named(clusters))
		}
	}
	conditions.MarkFalse(ro, v1alpha1.ClustersWrittenCondition, first, "%s", strings.Join(parts, "; "))
}

// named counts clusters and names the first of them with their reasons, in order, so that the same clusters give the
// same text.
func named(clusters []v1alpha1.ClusterReason) string {
	sorted := slices.SortedFunc(slices.Values(clusters), func(a, b v1alpha1.ClusterReason) int { return strings.Compare(a.Cluster, b.Cluster) })
	parts := make([]string, 0, brief.Shown)
	for _, c := range sorted[:min(brief.Shown, len(sorted))] {
		parts = append(parts, c.Cluster+": "+c.Reason)
	}
	return brief.Count(len(sorted), "cluster") + ": " + brief.ReasonsOf(len(sorted), parts)
}

// publish writes the status of the ClusterManagementAddOn for OCM's tools, if there is a plan. It does so in replace
// mode only: otherwise OCM's addon-manager would overwrite it.
func (r *Reconciler) publish(ctx context.Context, p reserved) error {
	owner, now := p.Observed.Owner, metav1.NewTime(p.Observed.Look.Wall)
	if r.HidesTemplateHash || owner == nil || p.rollout.Spec.Removal != nil {
		return nil
	}
	want, ok := p.Published()
	if !ok {
		return nil
	}
	next := owner.DeepCopy()
	if next.Status = addonstatus.Timed(want, owner.Status, now); equality.Semantic.DeepEqual(owner.Status, next.Status) {
		return nil
	}
	patch := client.MergeFromWithOptions(owner, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, next, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot publish the status of ClusterManagementAddOn %s: %w", next.Name, err)
	}
	return nil
}

// reportInterruption shows on the rollout that its content cannot be rendered now, for a reason outside of the
// content. If the rollout is stalled, it keeps that reason.
func (r *Reconciler) reportInterruption(ctx context.Context, ro *v1alpha1.AddOnRollout, cause error) error {
	if !errors.Is(cause, render.ErrInterrupted) || conditions.IsStalled(ro) {
		return nil
	}
	before := ro.Status.DeepCopy()
	conditions.MarkReconciling(ro, v1alpha1.RenderInterruptedReason, "%s; it is tried again", cause)
	conditions.MarkUnknown(ro, meta.ReadyCondition, v1alpha1.RenderInterruptedReason, "%s; it is tried again", cause)
	if equality.Semantic.DeepEqual(*before, ro.Status) {
		return nil
	}
	return r.store(ctx, ro)
}
