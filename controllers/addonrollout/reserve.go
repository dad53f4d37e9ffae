package addonrollout

import (
	"cmp"
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/rollout"
)

// reserved is a plan whose ledger is stored. Only such a plan may be carried out.
type reserved struct {
	*plan.Plan
	// rollout as stored.
	rollout *v1alpha1.AddOnRollout
	mem     *memory
	// book has the commit statuses, as the rollout stores them.
	book *forge.Book
}

// reserve writes the status, and the ledger in it, before any work is written. The write carries the version that was
// read: of two operators one fails and drops its plan.
func (r *Reconciler) reserve(ctx context.Context, ro *v1alpha1.AddOnRollout, mem *memory, p *plan.Plan) (reserved, error) {
	if err := r.trace(p); err != nil {
		return reserved{}, err
	}
	book := r.openBook(p)
	ro.Status = p.Next
	ro.Status.ObservedGeneration = ro.Generation
	ro.Status.ParkAfter = &metav1.Duration{Duration: r.ParkAfter}
	ro.Status.RemovalGracePeriod = &metav1.Duration{Duration: r.RemovalGrace}
	ro.Status.TargetBounds = (*v1alpha1.TargetBounds)(p.Observed.Bounds)
	setConditions(ro, p.Verdict)
	if p.Observed.Source != nil {
		book.Address(ctx, p.Observed.Source)
	}
	ro.Status.CommitStatuses = book.Stored()
	book.SetConditions(ro)
	if !equality.Semantic.DeepEqual(p.Observed.Rollout.Status, ro.Status) {
		if err := r.store(ctx, ro); err != nil {
			return reserved{}, err
		}
	}
	r.course.Stored(&p.Observed.Rollout.Status, ro, p.Observed.Look.Wall)
	mem.plan, mem.comparison = p.Memory, nil
	return reserved{Plan: p, rollout: ro, mem: mem, book: book}, nil
}

// store writes the status, bound to the version that was read.
func (r *Reconciler) store(ctx context.Context, ro *v1alpha1.AddOnRollout) error {
	if err := r.Client.Status().Update(ctx, ro); err != nil {
		return err
	}
	r.memories.wrote(ro)
	return nil
}

// setConditions writes Ready, Reconciling and Stalled in the form that kstatus reads:
// Reconciling and Stalled exist only while they are True, and exclude each other. An unchanged
// condition keeps its time.
func setConditions(ro *v1alpha1.AddOnRollout, v plan.Verdict) {
	s := &ro.Status
	if waits := plan.Postponed(s); waits != "" && s.Phase != v1alpha1.PhaseSuspended && !v.BlamesOthers() {
		// The phase is that of other content, not a verdict on the declared content.
		v = plan.Verdict{Waiting: cmp.Or(v.Waiting, v1alpha1.RolloutProgressingReason), Message: waits + "; " + cmp.Or(v.Text(), s.Message)}
	}
	switch {
	case v.Stalled != "":
		conditions.MarkStalled(ro, v.Stalled, "%s", v.Text())
		conditions.MarkFalse(ro, meta.ReadyCondition, v.Stalled, "%s", v.Text())
	case v.Waiting != "":
		conditions.MarkReconciling(ro, v.Waiting, "%s", v.Text())
		conditions.MarkUnknown(ro, meta.ReadyCondition, v.Waiting, "%s", v.Text())
	case s.Phase == v1alpha1.PhaseSucceeded && s.Outcome != string(rollout.Pending), s.Phase == v1alpha1.PhaseRemoved:
		atRest(ro)
		conditions.MarkTrue(ro, meta.ReadyCondition, v1alpha1.RolloutSucceededReason, "%s", s.Message)
	case s.Phase == v1alpha1.PhaseRolledBack:
		conditions.MarkStalled(ro, v1alpha1.RolledBackReason, "%s", s.Message)
		conditions.MarkFalse(ro, meta.ReadyCondition, v1alpha1.RolledBackReason, "%s", s.Message)
	case s.Phase == v1alpha1.PhaseHeld && s.Outcome != string(rollout.Success):
		atRest(ro)
		conditions.MarkUnknown(ro, meta.ReadyCondition, v1alpha1.RolloutHeldReason, "%s", s.Message)
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

// atRest removes Reconciling and Stalled.
func atRest(ro *v1alpha1.AddOnRollout) {
	conditions.Delete(ro, meta.ReconcilingCondition)
	conditions.Delete(ro, meta.StalledCondition)
}
