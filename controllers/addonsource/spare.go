package addonsource

import (
	"context"
	"fmt"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// guarded reports whether a ClusterManagementAddOn has AddonFlow's finalizer; other objects
// need none. Neither the digest of what is stored nor a dry run notices a finalizer that was
// taken off.
func guarded(live *unstructured.Unstructured) bool {
	return live == nil || !keyOf(live).isAddOn() || controllerutil.ContainsFinalizer(live, v1alpha1.Finalizer)
}

// guard puts the finalizer on a ClusterManagementAddOn that lost it.
func (p *pass) guard(ctx context.Context, live *unstructured.Unstructured) error {
	if guarded(live) {
		return nil
	}
	after := live.DeepCopy()
	controllerutil.AddFinalizer(after, v1alpha1.Finalizer)
	return p.patchMetadata(ctx, live, after)
}

// unguard takes the finalizer off, and returns the object as it is then.
func (p *pass) unguard(ctx context.Context, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after := live.DeepCopy()
	if !controllerutil.RemoveFinalizer(after, v1alpha1.Finalizer) {
		return live, nil
	}
	return after, p.patchMetadata(ctx, live, after)
}

// patchMetadata writes after, bound to the version that was read.
func (p *pass) patchMetadata(ctx context.Context, live, after *unstructured.Unstructured) error {
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := p.Client.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager)); client.IgnoreNotFound(err) != nil {
		return retry(v1alpha1.ApplyFailedReason, fmt.Errorf("cannot write the finalizers of %s: %w", keyOf(live), err))
	}
	return nil
}

// spare keeps agents running when a user deletes a ClusterManagementAddOn. The garbage
// collector deletes every ManagedClusterAddOn with an owner reference to it, and the add-on
// with them, as soon as it is gone. The finalizer holds it until every reference is off; then
// it may go. The next pass applies it anew, and the rollout puts references back.
//
// A foreground deletion deletes the ManagedClusterAddOns first and cannot be stopped.
func (p *pass) spare(ctx context.Context, seen *observation) error {
	var deleted []objectKey
	for key, live := range seen.live {
		if key.isAddOn() && live != nil && live.GetDeletionTimestamp() != nil && ownerOf(live) == p.name() {
			deleted = append(deleted, key)
		}
	}
	if len(deleted) == 0 {
		return nil
	}
	slices.SortFunc(deleted, objectKey.compare)
	for _, key := range deleted {
		if err := p.spareOne(ctx, seen.live[key]); err != nil {
			return err
		}
	}
	return wait(fluxmeta.ProgressingReason, firstWait, "waiting for %s to be gone, which was deleted on the hub", deleted[0])
}

// spareOne takes the references to one ClusterManagementAddOn off, and lets it go.
func (p *pass) spareOne(ctx context.Context, live *unstructured.Unstructured) error {
	if !guarded(live) {
		return nil
	}
	owned, err := Disown(ctx, p.Live, p.Client, live)
	if err != nil {
		return retry(v1alpha1.ApplyFailedReason, err)
	}
	if owned > 0 {
		// Another writer may put one back meanwhile: the next pass looks again.
		text := "so that no agent is removed"
		if slices.Contains(live.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			text = "but a foreground deletion cannot be stopped: agents that it removes are installed again at the pace of the rollout"
		}
		p.warn("%s was deleted on the hub. Owner references to it were taken off %d ManagedClusterAddOns, %s", keyOf(live), owned, text)
		return nil
	}
	if _, err := p.unguard(ctx, live); err != nil {
		return err
	}
	p.warn("%s was deleted on the hub, and no ManagedClusterAddOn refers to it any more. It is applied again if Git declares it; "+
		"agents that a foreground deletion removed are installed again at the pace of the rollout", keyOf(live))
	return nil
}

// warn sends an event about a ClusterManagementAddOn that was deleted.
func (p *pass) warn(format string, args ...any) {
	p.Events.AnnotatedEventf(p.source, p.eventMetadata(), corev1.EventTypeWarning, v1alpha1.AddOnDeletedReason, format, args...)
}

// Disown takes the owner references to one ClusterManagementAddOn off every
// ManagedClusterAddOn, hand-made ones included, and returns how many had one. Without a
// reference they stay when the ClusterManagementAddOn is gone.
func Disown(ctx context.Context, live client.Reader, hub client.Writer, owner client.Object) (int, error) {
	owned, err := ownedBy(ctx, live, owner)
	if err != nil {
		return 0, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelWrites)
	for i := range owned {
		group.Go(func() error {
			after := owned[i].DeepCopy()
			after.OwnerReferences = slices.DeleteFunc(after.OwnerReferences, refersTo(owner))
			patch := client.MergeFromWithOptions(&owned[i], client.MergeFromWithOptimisticLock{})
			err := hub.Patch(ctx, after, patch, client.FieldOwner(v1alpha1.FieldManager))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot take the owner off ManagedClusterAddOn %s/%s: %w", after.Namespace, after.Name, err)
			}
			return nil
		})
	}
	return len(owned), group.Wait()
}

// ownedBy lists the ManagedClusterAddOns with an owner reference to a ClusterManagementAddOn.
func ownedBy(ctx context.Context, live client.Reader, owner client.Object) ([]metav1.PartialObjectMetadata, error) {
	var owned []metav1.PartialObjectMetadata
	version := addOnGVK().GroupVersion()
	for next := ""; ; {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(version.WithKind("ManagedClusterAddOnList"))
		err := live.List(ctx, list, client.MatchingFields{"metadata.name": owner.GetName()}, client.Limit(pageSize), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("cannot list ManagedClusterAddOns of %s: %w", owner.GetName(), err)
		}
		for _, addOn := range list.Items {
			if slices.ContainsFunc(addOn.OwnerReferences, refersTo(owner)) {
				addOn.SetGroupVersionKind(version.WithKind("ManagedClusterAddOn"))
				owned = append(owned, addOn)
			}
		}
		if next = list.Continue; next == "" {
			return owned, nil
		}
	}
}

// refersTo matches owner references to one ClusterManagementAddOn.
func refersTo(owner client.Object) func(metav1.OwnerReference) bool {
	return func(r metav1.OwnerReference) bool {
		return strings.HasPrefix(r.APIVersion, addonv1alpha1.GroupName+"/") && r.Kind == addOnKind && r.Name == owner.GetName() && r.UID == owner.GetUID()
	}
}
