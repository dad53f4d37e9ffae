package addonsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/ssa"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/contest"
	"github.com/addonflow/addonflow/render"
)

// apply takes add-ons over, or writes the objects that differ: Namespaces, AddOnRevisions, configurations,
// ClusterManagementAddOns, and last the AddOnRollouts, whose targets then exist. If the commit edits placements, OCM
// decides about them before the AddOnRollouts are written.
//
// While passes claim objects, only one pass of a process runs at a time: if two sources declare the same add-on, the
// first one gets all of its objects. Leader election excludes other processes.
func (p *pass) apply(ctx context.Context, todo plan) error {
	if changes := todo.changes(); slices.ContainsFunc(changes, p.isClaim) {
		p.claims.Lock()
		defer p.claims.Unlock()
		if err := p.recheck(ctx, changes); err != nil {
			return err
		}
	}
	if err := p.takeOver(ctx, todo); err != nil {
		return err
	}
	if err := p.writeAll(ctx, todo.namespaces); err != nil {
		return err
	}
	for _, addOn := range todo.revisions {
		if err := p.ensureRevision(ctx, p.Client, addOn); err != nil {
			return retry(v1alpha1.ApplyFailedReason, err)
		}
	}
	if err := p.writeAll(ctx, todo.objects); err != nil {
		return err
	}
	if err := p.writeAll(ctx, todo.addOnObjects); err != nil {
		return err
	}
	if err := p.awaitDecisions(todo); err != nil {
		return err
	}
	return p.writeAll(ctx, todo.rollouts)
}

// writeAll applies objects one after the other.
func (p *pass) writeAll(ctx context.Context, changes []change) error {
	for _, c := range changes {
		if err := p.write(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// write applies one object and keeps the API server's answer.
func (p *pass) write(ctx context.Context, c change) error {
	key := keyOf(c.desired)
	hub := &answering{Client: p.writer(key)}
	entry, err := p.resources(hub).Apply(ctx, c.applied(), ssa.DefaultApplyOptions())
	owned := err == nil && entry.Action == ssa.UnchangedAction
	if owned { // AddonFlow becomes the manager of fields that already have the declared value
		err = c.force(ctx, hub)
	}
	switch {
	case apierrors.IsConflict(err):
		return changedMeanwhile(&c)
	case err != nil:
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot apply %s: %w", key, err))
	case owned:
		p.applied[key] = hub.answer
		p.writes.record(key, c.desired, hub.answer, p.now)
		return p.guard(ctx, hub.answer)
	}
	if log := ctrl.LoggerFrom(ctx); p.repairs(c) {
		log.Info("Repaired the object", "object", key.String(), "commit", p.head.Commit, "reason", driftOf(c.live))
	} else {
		log.V(1).Info("Applied the object", "object", key.String(), "commit", p.head.Commit)
	}
	p.applied[key] = hub.answer
	p.writes.record(key, c.desired, hub.answer, p.now)
	return nil
}

// restoring reports whether the head was applied before, so that each write of this pass only restores it.
func (p *pass) restoring() bool {
	return p.source.Status.LastAppliedRevision == p.head.String() && p.source.Status.LastAttemptedSpec == p.spec
}

// repairs reports whether a change only restores an object. It does if the commit was applied before, and if the
// last declaration of the object that this process applied is the same, or this process has applied none.
func (p *pass) repairs(c change) bool {
	before := p.writes.of(keyOf(c.desired)).desired
	return p.restoring() && (before == "" || before == digestOf(c.desired))
}

// driftOf returns why an object differs from what was applied.
func driftOf(live *unstructured.Unstructured) string {
	if live == nil {
		return "it was deleted on the hub"
	}
	return "it was changed on the hub; last by " + lastWriter(live)
}

// lastWriter is the field manager that wrote an object last, besides AddonFlow.
func lastWriter(live *unstructured.Unstructured) string {
	return cmp.Or(contest.LastWriter(live.GetManagedFields()), "a writer without a name")
}

// isClaim reports whether the object did not belong to this source when it was read: it is new, has no owner, or its
// owner does not exist.
func (p *pass) isClaim(c change) bool { return ownerOf(c.live) != p.name() }

// recheck reads the claimed objects again, and halts if one has another owner now. The next pass reports the owner.
func (p *pass) recheck(ctx context.Context, changes []change) error {
	now := newObservation()
	for _, c := range changes {
		if !p.isClaim(c) {
			continue
		}
		if err := p.see(ctx, now, c.desired); err != nil {
			return err
		}
		switch owner := ownerOf(now.live[keyOf(c.desired)]); owner {
		case "", ownerOf(c.live):
		case p.name():
			return wait(fluxmeta.ProgressingReason, firstWait, "%s was applied by another process of AddonFlow meanwhile", keyOf(c.desired))
		default:
			return wait(v1alpha1.OwnershipConflictReason, firstWait, "%s was taken by source %s meanwhile", keyOf(c.desired), owner)
		}
	}
	return nil
}

// errOtherContent says that the name of a revision is taken: ten hexadecimal digits of a digest may collide.
var errOtherContent = errors.New("it holds the content")

// ensureRevision creates an add-on's revision. If a revision of that name exists, it makes sure that the revision has
// the same content, has its marks, which a user may have removed, and names the commit.
func (p *pass) ensureRevision(ctx context.Context, hub client.Writer, addOn revision) error {
	name := render.RevisionName(addOn.Name, addOn.Digest)
	live := &v1alpha1.AddOnRevision{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.source.Namespace, Name: name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return p.createRevision(ctx, hub, addOn)
	case err != nil:
		return fmt.Errorf("cannot read revision %s: %w", name, err)
	case live.Spec.Digest != addOn.Digest:
		return fmt.Errorf("cannot use revision %s: %w %s, not %s", name, errOtherContent, live.Spec.Digest, addOn.Digest)
	}
	base := live.DeepCopy()
	v1alpha1.AddCommit(&live.ObjectMeta, addOn.commit)
	labels, annotations := revisionMarks(p.name(), addOn)
	maps.Copy(labels, live.Labels)
	maps.Copy(annotations, live.Annotations)
	if live.Labels, live.Annotations = labels, annotations; maps.Equal(labels, base.Labels) && maps.Equal(annotations, base.Annotations) {
		return nil
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := hub.Patch(ctx, live, patch, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("cannot record commit %s on revision %s: %w", addOn.commit, name, err)
	}
	return nil
}

// createRevision creates the revision of an add-on's content.
func (p *pass) createRevision(ctx context.Context, hub client.Writer, addOn revision) error {
	revision, err := revisionObject(p.source.Namespace, p.name(), addOn)
	if err != nil {
		return fmt.Errorf("cannot store the content of %s: %w", addOn.Name, err)
	}
	if err := hub.Create(ctx, revision, client.FieldOwner(v1alpha1.FieldManager)); err != nil {
		return fmt.Errorf("cannot create revision %s: %w", revision.Name, err)
	}
	if hub == p.Client {
		ctrl.LoggerFrom(ctx).Info("Created the revision", "revision", revision.Name, "addOn", addOn.Name)
	}
	return nil
}

// delete deletes the object that was read, identified by its UID.
func (p *pass) delete(ctx context.Context, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return nil
	}
	hub := p.writer(keyOf(live))
	err := deleteExactly(ctx, client.NewDryRunClient(hub), live) // a refused object keeps its finalizer
	if err == nil {
		if live, err = p.unguard(ctx, hub, live); err != nil {
			return err
		}
		err = deleteExactly(ctx, hub, live)
	}
	if err != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot delete %s: %w", keyOf(live), err))
	}
	p.writes.drop(keyOf(live))
	p.applied[keyOf(live)] = nil
	return nil
}

// deleteExactly deletes the object in the version that was read, if it exists.
func deleteExactly(ctx context.Context, hub client.Writer, live *unstructured.Unstructured) error {
	uid, version := live.GetUID(), live.GetResourceVersion()
	return client.IgnoreNotFound(hub.Delete(ctx, live, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

// prune deletes objects that left the commit, if their removal is approved.
func (p *pass) prune(ctx context.Context, todo plan) error {
	for _, live := range todo.pruned {
		if err := p.delete(ctx, live); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Pruned the object", "object", keyOf(live).String())
	}
	return nil
}
