package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// noteSuccess writes succeeded-at onto the target's revision.
func (r *Reconciler) noteSuccess(ctx context.Context, ro *v1alpha1.AddOnRollout) error {
	rev := &metav1.PartialObjectMetadata{}
	rev.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRevisionKind))
	rev.Namespace, rev.Name = ro.Namespace, ro.Spec.Target.Revision
	at := r.Clock.Now().UTC().Format(time.RFC3339)
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.SucceededAtAnnotation, at)
	if err := r.Client.Patch(ctx, rev, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		return fmt.Errorf("cannot note the success of revision %s: %w", rev.Name, err)
	}
	return nil
}

// report shows what the turn came to, and returns when to look again; 0: nothing waits for time.
func (r *Reconciler) report(o *observation, t turn, wrote applied, now time.Time) time.Duration {
	r.gauges.set(o.rollout)
	after := time.Duration(0)
	if !t.plan.RecheckAt.IsZero() {
		after = sooner(after, max(t.plan.RecheckAt.Sub(now), r.Pace))
	}
	if o.unseen {
		after = sooner(after, unseenFor)
	}
	if wrote.unfinished {
		after = sooner(after, r.Pace)
	}
	if wrote.created {
		after = sooner(after, unseenFor)
	}
	if o.retries() {
		after = sooner(after, configRetry)
	}
	after = sooner(after, againAfter(wrote.troubles))
	if errors.Is(t.err, errOwnership) {
		after = sooner(after, ownerAgain)
	}
	return after
}

// sooner returns the shorter of two waits, where 0 means that there is none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 {
		return b
	}
	if b <= 0 {
		return a
	}
	return min(a, b)
}

// ownerAgain is how long whose the add-on is goes without a look while another source
// has it: nothing wakes a rollout when that ends.
const ownerAgain = time.Minute

// retryAfter is how long after a failed write it is tried again.
const retryAfter = 15 * time.Second

// heldFor is how long clusters are held before the missing revision is looked for again.
const heldFor = 10 * time.Minute

// againAfter is when clusters in trouble are tried again; 0 without any. Nothing is
// returned to the queue as an error: backing off for one cluster would hold the clocks
// of all others.
func againAfter(troubles map[string]trouble) time.Duration {
	after := time.Duration(0)
	for _, t := range troubles {
		if t.reason == v1alpha1.ApplyFailedReason {
			return retryAfter
		}
		after = heldFor // the body may be restored, which wakes us; this is for the rest
	}
	return after
}
