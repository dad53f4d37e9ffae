package addonrollout

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

// install creates the ManagedClusterAddOn as OCM's addon-manager would, with the cluster's add-on
// annotations and AddonFlow's label.
func (d *round) install(ctx context.Context, c *plan.Cluster) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if d.Observed.Owner == nil || d.Observed.Owner.DeletionTimestamp != nil {
		return nil, errOwnerMissing
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Name: d.rollout.Name, Namespace: c.Name, Finalizers: d.firstFinalizers(c),
		Labels:          map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue},
		Annotations:     selectedBy(addOnAnnotations(c.Member), c.Planned.SelectedBy),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d.Observed.Owner, ownerKind())},
	}}
	ctx, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	if err := d.Client.Create(ctx, addOn); err != nil {
		return nil, fmt.Errorf("cannot install: %w", err)
	}
	d.addOns.create(addOn)
	d.madeNew()
	return addOn, nil
}

// firstFinalizers are the finalizers with which a ManagedClusterAddOn is created. They save a write, and are
// corrected before the first work is written.
func (d *round) firstFinalizers(c *plan.Cluster) []string {
	renderer, err := d.Observed.Renderer(d.Observed.Target.Digest)
	if err != nil {
		return nil
	}
	rendered, err := renderer.Render(c.RenderInput())
	if err != nil {
		return nil
	}
	return rendered.Finalizers()
}

var errOwnerMissing = errors.New("cannot install: the ClusterManagementAddOn does not exist")

// remove deletes a ManagedClusterAddOn that AddonFlow created; the garbage collector deletes
// its works. A hand-made ManagedClusterAddOn is never deleted, even if the plan asks for it.
func (d *round) remove(ctx context.Context, c *plan.Cluster) error {
	if plan.Installation(c.AddOn) != rollout.Ours {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clusterFor)
	defer cancel()
	err := d.Client.Delete(ctx, c.AddOn, client.Preconditions{UID: &c.AddOn.UID, ResourceVersion: &c.AddOn.ResourceVersion})
	if err != nil {
		return fmt.Errorf("cannot remove: %w", err)
	}
	d.addOns.forget(client.ObjectKeyFromObject(c.AddOn))
	why, _ := d.Planned.Why(c.Name)
	d.did(journal.Removed, c.Name, "", c.Running(), why.Reason)
	return nil
}

// reclaim restores the label of a ManagedClusterAddOn that AddonFlow created, and its owner
// reference to the present ClusterManagementAddOn. Another writer may have removed them, and a
// ClusterManagementAddOn that was deleted and applied again has another UID. It returns the
// updated add-on.
//
// The owner is read live. The watch may still show a deleted owner, and the garbage collector
// deletes objects that refer to it.
func (d *round) reclaim(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	labelled := addOn.Labels[v1alpha1.ManagedByLabel] == v1alpha1.ManagedByValue
	owned := d.Observed.Owner == nil || ownedBy(addOn, d.Observed.Owner)
	if plan.Installation(addOn) != rollout.Ours || labelled && owned {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	metav1.SetMetaDataLabel(&updated.ObjectMeta, v1alpha1.ManagedByLabel, v1alpha1.ManagedByValue)
	if !owned {
		owner, err := d.liveOwner()
		if err != nil {
			return addOn, err
		}
		if owner != nil && owner.DeletionTimestamp == nil && !ownedBy(addOn, owner) {
			own(updated, owner)
		} else if labelled {
			return addOn, nil
		}
	}
	if err := d.Client.Patch(ctx, updated, client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})); err != nil {
		return addOn, fmt.Errorf("cannot give the add-on its label and owner back: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// own replaces the owner references to a former ClusterManagementAddOn by a reference to the owner.
func own(addOn *addonv1alpha1.ManagedClusterAddOn, owner *addonv1alpha1.ClusterManagementAddOn) {
	reference := *metav1.NewControllerRef(owner, ownerKind())
	addOn.OwnerReferences = slices.DeleteFunc(addOn.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.Kind == reference.Kind && r.Name == reference.Name
	})
	if metav1.GetControllerOf(addOn) != nil {
		reference.Controller = nil
	}
	addOn.OwnerReferences = append(addOn.OwnerReferences, reference)
}

func ownedBy(addOn *addonv1alpha1.ManagedClusterAddOn, owner *addonv1alpha1.ClusterManagementAddOn) bool {
	return hasOwner(addOn, owner.UID)
}

func hasOwner(o client.Object, uid types.UID) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// setFinalizers writes the finalizers if they differ, preconditioned on the version that was read. It
// returns the updated ManagedClusterAddOn.
func (d *round) setFinalizers(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, finalizers []string) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if slices.Equal(addOn.Finalizers, finalizers) {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	updated.Finalizers = slices.Clone(finalizers)
	patch := client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})
	if err := d.Client.Patch(ctx, updated, patch); err != nil {
		return nil, fmt.Errorf("cannot write the add-on's finalizers: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// syncAnnotations copies the annotations of the cluster to a ManagedClusterAddOn that AddonFlow created, and notes
// which selection selects the cluster. Annotations of other writers stay, even if the cluster has another value or
// none; OCM would remove them. It returns the updated add-on.
func (d *round) syncAnnotations(ctx context.Context, c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if plan.Installation(addOn) != rollout.Ours || c.Cluster == nil || c.Cluster.DeletionTimestamp != nil {
		return addOn, nil
	}
	next := annotationsInStep(addOnAnnotations(c.Member), addOn)
	if addOn.Annotations[v1alpha1.SelectedByAnnotation] != string(c.Planned.SelectedBy) {
		if next == nil {
			next = maps.Clone(addOn.Annotations)
		}
		next = selectedBy(next, c.Planned.SelectedBy)
	}
	if next == nil {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	updated.Annotations = next
	if err := d.Client.Patch(ctx, updated, client.MergeFromWithOptions(addOn, client.MergeFromWithOptimisticLock{})); err != nil {
		return addOn, fmt.Errorf("cannot write the add-on's annotations: %w", err)
	}
	d.addOns.put(updated)
	return updated, nil
}

// writeStatus writes the add-on's status if it differs, preconditioned on the version that was read.
// It returns the updated add-on.
func (d *round) writeStatus(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, m addonstatus.Move) (*addonv1alpha1.ManagedClusterAddOn, error) {
	next, changed := addonstatus.Next(addOn, m, d.now)
	if !changed {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	updated.Status = next
	return d.patchStatus(ctx, addOn, updated)
}

// patchStatus writes the difference of the statuses, preconditioned on the version that was read. It
// returns the updated add-on.
func (d *round) patchStatus(ctx context.Context, addOn, updated *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if equality.Semantic.DeepEqual(addOn.Status, updated.Status) {
		return addOn, nil
	}
	body, err := addonstatus.Patch(addOn, updated)
	if err != nil {
		return nil, err
	}
	// The answer is reduced to metadata. The precondition held, so the status on the hub is the sent one, and
	// decoding it would cost more than the write.
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: updated.Name, Namespace: updated.Namespace}}
	answer.SetGroupVersionKind(addOnKind())
	if err := d.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, body)); err != nil {
		return nil, fmt.Errorf("cannot write the add-on's status: %w", err)
	}
	updated.ObjectMeta = answer.ObjectMeta
	d.addOns.put(updated)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mem.authorOf(updated.UID).Wrote(updated)
	return updated, nil
}

// setConditions writes conditions that say why nothing can be written to the cluster. Its works stay unchanged.
func (d *round) setConditions(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, said ...metav1.Condition) error {
	updated := addOn.DeepCopy()
	for _, c := range said {
		c.LastTransitionTime = d.now
		meta.SetStatusCondition(&updated.Status.Conditions, c)
	}
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}

// await writes only the condition that the cluster waits. The cluster runs nothing yet, or its works must not be
// changed.
func (d *round) await(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	c := addonstatus.Waiting()
	if said := meta.FindStatusCondition(addOn.Status.Conditions, c.Type); said != nil && said.Status == c.Status && said.Message == c.Message {
		return nil
	}
	return d.setConditions(ctx, addOn, c)
}

// accessOf declares to Agents which credentials the rendered template requests, and returns the access part of the
// status. It must run before the status is written, because the agent requests its certificate after that write.
func (d *round) accessOf(c *plan.Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) (addonstatus.Access, error) {
	found := registration.Found{Registrations: addOn.Status.Registrations, Driver: addOn.Status.KubeClientDriver}
	registrations, err := registration.Registrations(rendered.Registration, addOn.Name, c.Name, found)
	if err != nil {
		return addonstatus.Access{}, fmt.Errorf("cannot register: %w", err)
	}
	outcome := d.Agents.Declare(d.agentOf(c), rendered.Registration)
	return addonstatus.Access{Registrations: registrations, Permissions: outcome}, nil
}

func (d *round) agentOf(c *plan.Cluster) agents.Key {
	return agents.Key{Cluster: c.Name, AddOn: d.rollout.Name}
}
