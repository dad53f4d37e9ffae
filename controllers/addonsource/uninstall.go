package addonsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/uninstalling"
)

// uninstall is the pass over a source that is being deleted. The finalizer stays until its add-ons are removed from
// the fleet. spec.prune or an annotation must approve the removal.
func (p *pass) uninstall(ctx context.Context) (ctrl.Result, error) {
	if err := p.withdraw(ctx); err != nil {
		return p.report(ctx, outcome{}, err)
	}
	if err := p.finishStatuses(ctx); err != nil {
		return p.report(ctx, outcome{}, err)
	}
	patch := client.MergeFromWithOptions(p.source.DeepCopy(), client.MergeFromWithOptimisticLock{})
	controllerutil.RemoveFinalizer(p.source, v1alpha1.Finalizer)
	if err := p.Client.Patch(ctx, p.source, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("cannot remove the finalizer: %w", err)
	}
	p.forget(ctrl.Request{NamespacedName: p.key().NamespacedName})
	return ctrl.Result{}, nil
}

// finishStatuses waits until the forge has accepted the commit statuses of the source, because their marks are deleted
// with the source. It waits at most forge.KeptFor after all other work; a new process starts this time again. The
// rollouts have delivered their statuses before, because they wait in the same way.
func (p *pass) finishStatuses(ctx context.Context) error {
	book, err := p.openBook(ctx, outcome{}, nil)
	if err != nil {
		return err
	}
	if p.memory.withdrawn.IsZero() {
		p.memory.withdrawn = p.now
	}
	remaining := forge.KeptFor - p.now.Sub(p.memory.withdrawn)
	if p.source.Spec.CommitStatus == nil || !book.Owes() || remaining <= 0 {
		return nil
	}
	return wait(fluxmeta.ProgressingReason, remaining, "waiting for the forge to accept the last commit statuses")
}

// withdraw removes all objects of the source from the hub, as far as approved; nil: there is nothing left to wait
// for.
func (p *pass) withdraw(ctx context.Context) error {
	if err := p.mayImpersonate(ctx); err != nil {
		return err
	}
	seen := newObservation()
	if err := p.seeRollouts(ctx, seen); err != nil {
		return err
	}
	if err := p.seeInventory(ctx, seen); err != nil {
		return err
	}
	if err := p.seeLeaving(ctx, seen, nil); err != nil {
		return err
	}
	cause, err := uninstalling.Cause(ctx, p.Live, p.source.Namespace)
	if err != nil {
		return retry(v1alpha1.ApplyFailedReason, err)
	}
	in := p.planInput(&attempt{}, seen)
	in.commitSHA, in.deleting = p.lastCommit(), v1alpha1.AddOnSourceKind+"/"+p.source.Name
	if cause != "" {
		in.approved, in.deleting = notApproved, cause
	}
	todo, err := newPlan(in)
	if err != nil {
		return err
	}
	if err := p.writeAll(ctx, todo.rollouts); err != nil {
		return err
	}
	if err := p.release(ctx, todo); err != nil {
		return err
	}
	if err := p.finishRemovals(ctx, todo); err != nil {
		return err
	}
	if slices.ContainsFunc(todo.leaving, func(l leaving) bool { return l.installed() || !l.left() }) {
		return wait(v1alpha1.DeletionGuardReason, p.source.Spec.Interval.Duration, "%s", strings.Join(todo.notes(), "; "))
	}
	if err := p.prune(ctx, todo); err != nil {
		return err
	}
	return p.deleteRollouts(ctx, todo.leaving)
}

// lastCommit returns the sha of the last commit that the source saw. Approvals name it.
func (p *pass) lastCommit() string {
	return cmp.Or(v1alpha1.CommitOf(p.source.Status.LastAttemptedRevision), v1alpha1.CommitOf(p.source.Status.LastAppliedRevision))
}

// deleteRollouts deletes the rollouts, whose work is done, and the unused revisions. It waits until the rollouts are
// deleted.
func (p *pass) deleteRollouts(ctx context.Context, gone []leaving) error {
	waiting := false
	for _, l := range gone {
		if l.rollout != nil {
			waiting = true
			err := p.Client.Delete(ctx, l.rollout, client.Preconditions{UID: &l.rollout.UID})
			if client.IgnoreNotFound(err) != nil {
				return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot delete rollout %s: %w", l.addOn, err))
			}
			p.writes.drop(rolloutKey(l.rollout.Namespace, l.addOn))
		}
		revisions, err := p.revisionsOf(ctx, l.addOn)
		if err != nil {
			return retry(v1alpha1.ApplyFailedReason, err)
		}
		for _, revision := range revisions {
			if revision.Annotations[v1alpha1.SourceAnnotation] != p.name() {
				continue // another source of the namespace has the add-on now
			}
			err := p.Client.Delete(ctx, &revision, client.Preconditions{UID: &revision.UID})
			if client.IgnoreNotFound(err) != nil {
				return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot delete revision %s: %w", revision.Name, err))
			}
		}
	}
	if waiting {
		return wait(fluxmeta.ProgressingReason, firstWait, "waiting for the rollouts to be deleted")
	}
	return nil
}
