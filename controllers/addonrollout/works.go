package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// OCM's texts for a step that failed.
const (
	failedToRender = "failed to get manifest from agent interface"
	failedToBuild  = "failed to build manifestwork"
	failedToApply  = "failed to apply manifestWork"
)

// worksError is the error of a step. words is OCM's text for that step.
type worksError struct {
	words string
	err   error
}

func (e *worksError) Error() string { return e.err.Error() }
func (e *worksError) Unwrap() error { return e.err }

// worksFailed wraps the error of a step; nil stays nil. An interrupted rendering is not wrapped, because it is not an
// error of the cluster and is retried.
func worksFailed(words string, err error) error {
	if err == nil || errors.Is(err, render.ErrInterrupted) {
		return err
	}
	return &worksError{words: words, err: err}
}

// unapplied reports whether a condition of the add-on says that its works could not be written. Then the works are
// written before the status, so that the condition does not change to and fro with each attempt.
func unapplied(addOn *addonv1alpha1.ManagedClusterAddOn) bool {
	c := meta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ManagedClusterAddOnManifestApplied)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == addonv1alpha1.AddonManifestAppliedReasonWorkApplyFailed
}

// setFailure writes into the add-on's conditions why its works could not be written. If this write fails, the error
// is not reported: the next attempt on the cluster writes the conditions again, at once if another writer was faster.
func (d *round) setFailure(ctx context.Context, c *plan.Cluster, cause error) {
	var failed *worksError
	if c.AddOn == nil || c.AddOn.DeletionTimestamp != nil || !errors.As(cause, &failed) {
		return
	}
	addOn := d.addOns.newest(c.AddOn)
	updated := addOn.DeepCopy()
	meta.SetStatusCondition(&updated.Status.Conditions, metav1.Condition{
		Type: addonv1alpha1.ManagedClusterAddOnManifestApplied, Status: metav1.ConditionFalse,
		Reason: addonv1alpha1.AddonManifestAppliedReasonWorkApplyFailed, Message: failed.words + ": " + failed.Error(), LastTransitionTime: d.now,
	})
	if _, err := d.patchStatus(ctx, addOn, updated); fleeting(err) {
		d.deferCluster(c.Name)
	}
}

// writeWorks creates, updates and removes works until they equal the rendered works. It reports whether it wrote any.
func (d *round) writeWorks(ctx context.Context, c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) (bool, error) {
	desired, gone, err := rendered.Works(d.OwnerOf(addOn, c.Planned.Revision), c.Works)
	if err != nil {
		return false, worksFailed(failedToBuild, fmt.Errorf("cannot render works: %w", err))
	}
	if namesTaken(c, desired) {
		return true, nil // the deletion of the old works starts the next turn
	}
	wrote := false
	for _, w := range desired {
		existing, repair := c.Work(w.Namespace, w.Name), ""
		if existing == nil {
			repair = "was missing"
		} else {
			switch render.Compare(w, existing) {
			case render.Same, render.MarksOutdated:
				continue
			case render.MarksMissing:
				// OCM or another version of AddonFlow wrote the same content. The marks are written with the
				// next content. If the cluster is in flight, they are written now, because it cannot be verified
				// without them.
				if !c.Planned.State.InFlight() {
					continue
				}
			case render.Different:
				repair = "differed from the revision"
			}
		}
		if err := d.contested(ctx, w); err != nil {
			return wrote, err
		}
		wrote = true
		if err := d.writeWork(ctx, w, existing); err != nil {
			return wrote, worksFailed(failedToApply, err)
		}
		d.countWrite(c.Name, w)
		if repair != "" && c.Planned.State != rollout.Admitted { // on an Admitted cluster, the ledger shows the move or the repair
			d.did(journal.Repaired, c.Name, c.Planned.Stage, c.Planned.Revision, "work "+w.Name+" "+repair)
		}
	}
	for _, w := range gone {
		wrote = true
		if err := d.Client.Delete(ctx, w, client.Preconditions{UID: &w.UID, ResourceVersion: &w.ResourceVersion}); err != nil {
			return wrote, fmt.Errorf("cannot delete work %s: %w", w.Name, err)
		}
		d.works.forget(client.ObjectKeyFromObject(w))
	}
	return wrote, nil
}

// namesTaken reports whether a work to write has the name of a work that is being deleted. Then no
// work is written: an object that moves from one work to another must be in the new work before it
// leaves the old one, or the work agent deletes it.
func namesTaken(c *plan.Cluster, desired []*workv1.ManifestWork) bool {
	return slices.ContainsFunc(desired, func(w *workv1.ManifestWork) bool {
		existing := c.Work(w.Namespace, w.Name)
		return existing != nil && existing.DeletionTimestamp != nil
	})
}

// writeWork creates a work, or updates the existing one, and puts it into the overlay. It sends a copy, because the
// client decodes the answer into the sent object, and rendered works of several clusters share memory.
func (d *round) writeWork(ctx context.Context, rendered, existing *workv1.ManifestWork) error {
	work := rendered.DeepCopy()
	if existing != nil {
		if err := d.Client.Update(ctx, work); err != nil {
			return fmt.Errorf("cannot update work %s: %w", work.Name, err)
		}
		work.Status = render.StatusOf(existing) // valid: the write was preconditioned on its version
		d.works.put(work)
		return nil
	}
	err := d.Client.Create(ctx, work)
	if apierrors.IsAlreadyExists(err) {
		return d.alreadyThere(ctx, rendered, err)
	}
	if err != nil {
		return fmt.Errorf("cannot create work %s: %w", work.Name, err)
	}
	d.works.create(work)
	d.madeNew()
	return nil
}

// errHidden: another work has the name of a work to create. The watch does not show that work, because it has no
// label, and its owner is not the ManagedClusterAddOn.
var errHidden = errors.New("a work of that name exists, and neither the label " + addOnNameLabel + " nor its owner assigns it to the add-on; delete it or restore the label")

// alreadyThere says why a work could not be created: cause if the watch will show the existing work soon, errHidden
// if it never will. A work without the label whose owner is the add-on's ManagedClusterAddOn is put into the overlay:
// the next turn sees it and repairs the label as drift.
func (d *round) alreadyThere(ctx context.Context, rendered *workv1.ManifestWork, cause error) error {
	found, err := d.liveWork(ctx, client.ObjectKeyFromObject(rendered))
	if err == nil && found != nil && addOnOfWork(found) != d.rollout.Name {
		if !slices.ContainsFunc(rendered.OwnerReferences, func(r metav1.OwnerReference) bool { return hasOwner(found, r.UID) }) {
			return fmt.Errorf("cannot create work %s: %w", rendered.Name, errHidden)
		}
		d.works.create(found)
	}
	return fmt.Errorf("cannot create work %s: %w", rendered.Name, errors.Join(cause, err))
}

// deploys reports whether a work belongs to the add-on: by OCM's label, or by its name and owner.
func deploys(w *workv1.ManifestWork, addOn string) bool {
	return addOnOfWork(w) == addOn || render.IsDeployWork(w, addOn)
}

// refusal says which object the hub refused to write, and why; "": the write failed for a reason that may be over at
// the next attempt. Works that cannot be built, and a work of another owner, count as refused, too.
func refusal(err error) string {
	var failed *worksError
	if errors.Is(err, errHidden) || errors.As(err, &failed) && failed.words != failedToApply {
		return err.Error()
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return ""
	}
	switch code := answer.Status().Code; {
	case code < http.StatusBadRequest || code >= http.StatusInternalServerError,
		code == http.StatusUnauthorized, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, fleeting(err):
		return ""
	}
	text := answer.Status().Message
	why := text
	for _, named := range []string{`" is forbidden: `, `" is invalid: `} { // err already names the object
		if _, rest, ok := strings.Cut(why, named); ok {
			why = rest
		}
	}
	return strings.Replace(err.Error(), text, denials.ReplaceAllString(why, "$3 ($1 $2)"), 1)
}

// denials match the API server's text for an admission plugin that denied a request. The reason is put first,
// because a commit status has little room.
var denials = regexp.MustCompile(`^(ValidatingAdmissionPolicy|admission webhook) ['"]([^'"]+)['"].*? denied (?:the )?request: (.+)$`)

// fleeting reports whether a write failed because the cache was old. The next turn sees the present state. A missing
// namespace is not fleeting, because it may never be created.
func fleeting(err error) bool {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) {
		details := status.Status().Details
		return details == nil || details.Kind != "namespaces"
	}
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)
}
