package addonrollout

import (
	"context"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
)

// measure records Flux's metrics of a turn.
func (r *Reconciler) measure(ctx context.Context, ro *v1alpha1.AddOnRollout, started time.Time) {
	r.Metrics.RecordDuration(ctx, ro, started)
	r.Metrics.RecordReadiness(ctx, ro)
	r.Metrics.RecordReconciling(ctx, ro)
	r.Metrics.RecordStalled(ctx, ro)
	r.Metrics.RecordSuspend(ctx, ro, ro.Spec.Suspend || plan.Suspended(ro))
}
