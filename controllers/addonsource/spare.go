package addonsource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// guarded reports whether a ClusterManagementAddOn has AddonFlow's finalizer; it is true for all other objects. If a
// finalizer was removed, neither the digest of the stored object nor a dry run shows it.
func guarded(live *unstructured.Unstructured) bool {
	return live == nil || !keyOf(live).isAddOn() || controllerutil.ContainsFinalizer(live, v1alpha1.Finalizer)
}

// guard adds the finalizer to a ClusterManagementAddOn that lost it.
func (p *pass) guard(ctx context.Context, live *unstructured.Unstructured) error {
	if guarded(live) {
		return nil
	}
	after := live.DeepCopy()
	controllerutil.AddFinalizer(after, v1alpha1.Finalizer)
	return patchMetadata(ctx, p.writer(keyOf(live)), live, after)
}

// unguard removes the finalizer, and returns the updated object.
func (p *pass) unguard(ctx context.Context, hub client.Writer, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after := live.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer) {
		return live, nil
	}
	return after, patchMetadata(ctx, hub, live, after)
}

// patchMetadata writes after, bound to the version that was read.
func patchMetadata(ctx context.Context, hub client.Writer, live, after *unstructured.Unstructured) error {
	if err := patchExactly(ctx, hub, live, after); client.IgnoreNotFound(err) != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot write the finalizers of %s: %w", keyOf(live), err))
	}
	return nil
}

// spare keeps agents running when a user deletes a ClusterManagementAddOn. After its deletion, the garbage collector
// would delete every ManagedClusterAddOn with an owner reference to it, and so the add-on. The finalizer holds the
// ClusterManagementAddOn until every reference is removed; then its deletion may finish. The commit that declares it
// applies it again, and the rollout restores the references. This needs no access to the repository, whose head may
// be refused or unreachable.
//
// A foreground deletion deletes the ManagedClusterAddOns first and cannot be stopped.
func (p *pass) spare(ctx context.Context) error {
	list := &metav1.PartialObjectMetadataList{} // from the watch: a pass without changes costs no request
	list.SetGroupVersionKind(addOnGVK().GroupVersion().WithKind(addOnKind + "List"))
	if err := p.Client.List(ctx, list); err != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot list ClusterManagementAddOns: %w", err))
	}
	for i := range list.Items {
		if seen := &list.Items[i]; seen.DeletionTimestamp == nil || seen.Annotations[v1alpha1.SourceAnnotation] != p.name() {
			continue
		}
		live := &unstructured.Unstructured{}
		live.SetGroupVersionKind(addOnGVK())
		err := p.Live.Get(ctx, client.ObjectKey{Name: list.Items[i].Name}, live)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err == nil && isGoing(live) && guarded(live) && ownerOf(live) == p.name() {
			err = p.spareOne(ctx, live)
		}
		if err != nil {
			return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot finish the deletion of %s: %w", live.GetName(), err))
		}
	}
	return nil
}

// spareOne removes the references to one ClusterManagementAddOn, then its finalizer.
func (p *pass) spareOne(ctx context.Context, live *unstructured.Unstructured) error {
	for range disownings {
		owned, err := Disown(ctx, p.Live, p.Client, live)
		if err != nil {
			return err
		}
		if owned == 0 {
			return p.finishDeletion(ctx, live)
		}
	}
	return fmt.Errorf("cannot finish the deletion of %s: another writer restores owner references to it", keyOf(live))
}

// disownings is how often references are removed before the rest is left to the next pass, because another writer may
// restore references meanwhile.
const disownings = 3

// finishDeletion removes the finalizer from a ClusterManagementAddOn that is being deleted. The events and the log
// have the time of the deletion, because a recorder merges events of equal text. They have its propagation
// (background, orphan or foreground) if the object still shows it. No object names the user who deleted it.
func (p *pass) finishDeletion(ctx context.Context, live *unstructured.Unstructured) error {
	rollout := &v1alpha1.AddOnRollout{}
	key := client.ObjectKey{Namespace: p.source.Namespace, Name: live.GetName()}
	if err := p.Client.Get(ctx, key, rollout); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot read AddOnRollout %s: %w", key, err)
	}
	kept, err := addOnsOf(ctx, p.Live, live, func(addOn *metav1.PartialObjectMetadata) bool { return addOn.DeletionTimestamp == nil })
	if err != nil {
		return err
	}
	how := "" // in the background, or its dependents are already deleted
	switch {
	case slices.Contains(live.GetFinalizers(), metav1.FinalizerOrphanDependents):
		how = " with policy Orphan"
	case slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents):
		how = " in the foreground"
	}
	if _, err := p.unguard(ctx, p.Client, live); err != nil {
		return err
	}
	at := live.GetDeletionTimestamp().UTC().Format("15:04:05 UTC")
	text := fmt.Sprintf("%s was deleted on the hub at %s%s. AddonFlow removed the owner references to it, so that from now on no agent is removed with it. "+
		"It is applied again if Git declares it", keyOf(live), at, how)
	if all := int(rollout.Status.Counts.Total); all > len(kept) {
		text += fmt.Sprintf("; %d of %s lost the add-on, as in a foreground deletion; it is installed there again at the pace of the rollout", all-len(kept), brief.Count(all, "cluster"))
	}
	ctrl.LoggerFrom(ctx).Info("The add-on was deleted on the hub", "addOn", live.GetName(), "message", text)
	p.Events.AnnotatedEventf(p.source, p.eventMetadata(), corev1.EventTypeWarning, v1alpha1.AddOnDeletedReason, "%s", text)
	if rollout.UID != "" {
		p.Events.AnnotatedEventf(rollout, p.eventMetadata(), corev1.EventTypeWarning, v1alpha1.AddOnDeletedReason, "%s", text)
	}
	return nil
}

// Disown removes the owner references to one ClusterManagementAddOn from every
// ManagedClusterAddOn, hand-made ones included, and returns how many had one. Without a
// reference they stay when the ClusterManagementAddOn is deleted.
func Disown(ctx context.Context, live client.Reader, hub client.Writer, owner client.Object) (int, error) {
	refers := refersTo(owner)
	owned, err := addOnsOf(ctx, live, owner, func(addOn *metav1.PartialObjectMetadata) bool {
		return slices.ContainsFunc(addOn.OwnerReferences, refers)
	})
	if err != nil {
		return 0, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for i := range owned {
		group.Go(func() error {
			after := owned[i].DeepCopy()
			after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, refers)
			patch := client.MergeFromWithOptions(&owned[i], client.MergeFromWithOptimisticLock{})
			err := hub.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot remove the owner of ManagedClusterAddOn %s/%s: %w", after.Namespace, after.Name, err)
			}
			return nil
		})
	}
	return len(owned), group.Wait()
}

// addOnsOf lists the ManagedClusterAddOns of the add-on of a ClusterManagementAddOn for which kept is true.
func addOnsOf(ctx context.Context, live client.Reader, owner client.Object, kept func(*metav1.PartialObjectMetadata) bool) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	version := addOnGVK().GroupVersion()
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(version.WithKind("ManagedClusterAddOnList"))
		err := live.List(ctx, list, client.MatchingFields{"metadata.name": owner.GetName()}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", owner.GetName(), err)
		}
		for _, addOn := range list.Items {
			if kept(&addOn) {
				addOn.SetGroupVersionKind(version.WithKind("ManagedClusterAddOn"))
				found = append(found, addOn)
			}
		}
		if next = list.Continue; next == "" {
			return found, nil
		}
	}
}

// refersTo matches owner references to one ClusterManagementAddOn.
func refersTo(owner client.Object) func(metav1.OwnerReference) bool {
	return func(r metav1.OwnerReference) bool {
		return strings.HasPrefix(r.APIVersion, addonv1alpha1.GroupName+"/") && r.Kind == addOnKind && r.Name == owner.GetName() && r.UID == owner.GetUID()
	}
}
