package addonrollout

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// What failed on the way to a cluster's works, in OCM's words.
const (
	failedToRender = "failed to get manifest from agent interface"
	failedToBuild  = "failed to build manifestwork"
	failedToApply  = "failed to apply manifestWork"
)

// worksError is the error of a step, which has OCM's words besides.
type worksError struct {
	words string
	err   error
}

func (e *worksError) Error() string { return e.err.Error() }
func (e *worksError) Unwrap() error { return e.err }

// worksFailed wraps the error of a step; nil stays nil. A rendering that was interrupted
// failed for no reason of the cluster, and is tried again.
func worksFailed(words string, err error) error {
	if err == nil || errors.Is(err, render.ErrInterrupted) {
		return err
	}
	return &worksError{words: words, err: err}
}

// worksRefused reports whether an agent could not apply works of the add-on as they are
// now: the cluster's own, and the hosting cluster's.
func (m *member) worksRefused(addOn string) (own, hosting bool) {
	for _, w := range m.works {
		switch {
		case !refused(w):
		case render.IsHostingWork(w, addOn):
			hosting = true
		default:
			own = true
		}
	}
	return own, hosting
}

// refused reports whether the agent could not apply a work as it is now.
func refused(w *workv1.ManifestWork) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
	return c != nil && c.Status == metav1.ConditionFalse && c.ObservedGeneration == w.Generation
}

// unapplied reports whether the add-on says that its works could not be written. Then
// they are written before the status says otherwise, so that trying again does not
// make the condition flap.
func unapplied(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == addonv1alpha1.AddonManifestAppliedReasonWorkApplyFailed
}

// writeMove writes status and works, in this order: what is told of a cluster is true
// of what is written next. It returns the add-on as written, and whether works were.
func (d *round) writeMove(ctx context.Context, m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn, mv addonstatus.Move) (*addonv1alpha1.ManagedClusterAddOn, bool, error) {
	late := unapplied(addOn)
	if late {
		if wrote, err := d.writeWorks(ctx, m, addOn, p, mv.Rendered); err != nil {
			return addOn, wrote, err
		}
	}
	addOn, err := d.writeStatus(ctx, addOn, mv)
	if late || err != nil {
		return addOn, true, err
	}
	wrote, err := d.writeWorks(ctx, m, addOn, p, mv.Rendered)
	return addOn, wrote, err
}

// tellFailure says in the add-on's conditions why its works could not be written. The first
// error is the one that counts: what fails here as well is told when the cluster is next
// tried, at once where somebody was faster.
func (d *round) tellFailure(ctx context.Context, m *member, cause error) {
	var failed *worksError
	if m.addOn == nil || m.addOn.DeletionTimestamp != nil || !errors.As(cause, &failed) {
		return
	}
	addOn := d.addOns.newest(m.addOn)
	updated := addOn.DeepCopy()
	meta.SetStatusCondition(&updated.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.AddonManifestAppliedReasonWorkApplyFailed, Message: failed.words + ": " + failed.Error(), LastTransitionTime: d.now,
	})
	if _, err := d.patchStatus(ctx, addOn, updated); fleeting(err) {
		d.leave(m.name)
	}
}
