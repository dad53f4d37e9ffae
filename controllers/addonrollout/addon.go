package addonrollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// moveOf derives the facts for the add-on's status.
func (d *round) moveOf(m *member, p *rollout.ClusterPlan, addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) addonstatus.Move {
	mv := d.moveTo(addOn, rendered)
	mv.Waits = d.waits(p)
	mv.Reverting = d.o.rollout.Status.Reverting && d.isTarget(p.Revision)
	mv.Reason = p.Reason
	mv.Mode = d.o.prober.Mode()
	mv.UnknownCluster = clusterCondition(m) == corev1.ConditionUnknown
	mv.Hosting = m.hosting
	current := m.health.Digest == rendered.Digest
	if current {
		mv.Refused, mv.HostingRefused = m.worksRefused(d.o.rollout.Name)
	}
	switch {
	case p.State == rollout.Failed || p.State == rollout.TimedOut:
		mv.State = addonstatus.Failed
	case current && (m.health.Verified || !admitted(p) && mv.AppliedAlready(addOn.Status.ConfigReferences)):
		// Unverified is done only where it was verified before, and fell ill since.
		mv.State = addonstatus.Done
	}
	mv.Available = d.o.prober.NotApplied()
	if mv.State != addonstatus.Started {
		mv.Available = d.o.prober.Available(m.report(d.o.rollout.Name))
	}
	return mv
}

// moveTo is a move as far as what is rendered and the add-on itself tell.
func (r *Reconciler) moveTo(addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) addonstatus.Move {
	return addonstatus.Move{Rendered: rendered, HidesTemplateHash: r.HidesTemplateHash, OwnTemplate: namesTemplate(addOn)}
}

// clusterCondition is the hub's word on the cluster.
func clusterCondition(m *member) corev1.ConditionStatus {
	if m.cluster != nil {
		for i := range m.cluster.Status.Conditions {
			if m.cluster.Status.Conditions[i].Type == clusterv1.ManagedClusterConditionAvailable {
				return corev1.ConditionStatus(m.cluster.Status.Conditions[i].Status)
			}
		}
	}
	return corev1.ConditionUnknown
}

// writeStatus writes the add-on's status where it differs, preconditioned on the
// version it was read at, and returns the add-on as it is now.
func (d *round) writeStatus(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, m addonstatus.Move) (*addonv1alpha1.ManagedClusterAddOn, error) {
	next, changed := addonstatus.Next(addOn, m, d.now)
	if !changed {
		return addOn, nil
	}
	updated := addOn.DeepCopy()
	updated.Status = next
	return d.patchStatus(ctx, addOn, updated)
}

// patchStatus writes what differs, preconditioned on the version that was read.
// It returns the add-on as it is now.
func (d *round) patchStatus(ctx context.Context, addOn, updated *addonv1alpha1.ManagedClusterAddOn) (*addonv1alpha1.ManagedClusterAddOn, error) {
	if equality.Semantic.DeepEqual(addOn.Status, updated.Status) {
		return addOn, nil
	}
	body, err := addonstatus.Patch(addOn, updated)
	if err != nil {
		return nil, err
	}
	// Only its new version is asked for in return: the precondition held, so the status
	// is what was sent, and decoding it again would cost more than the write.
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: updated.Name, Namespace: updated.Namespace}}
	answer.SetGroupVersionKind(addOnKind())
	if err := d.Client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, body)); err != nil {
		return nil, fmt.Errorf("cannot write the add-on's status: %w", err)
	}
	updated.ObjectMeta = answer.ObjectMeta
	d.addOns.put(updated)
	d.foreign.wrote(updated)
	return updated, nil
}

// hinder says in the add-on's conditions what keeps the cluster from being given
// anything. Its works stay as they are.
func (d *round) hinder(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn, h hindrance) error {
	updated := addOn.DeepCopy()
	for _, c := range h.conditions() {
		c.LastTransitionTime = d.now
		meta.SetStatusCondition(&updated.Status.Conditions, c)
	}
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}

// waits reports whether the cluster's add-on says Configured=False: the target changes
// something there, and it is not its turn. Beside OCM's
// addon-manager waiting clusters are not written at all.
func (r *Reconciler) waits(p *rollout.ClusterPlan) bool {
	return r.replacing() && (p.State == rollout.Waiting || p.State == rollout.Parked)
}

// await says of a cluster that it waits, and nothing else: it runs nothing yet, or
// what it runs is not to be touched.
func (d *round) await(ctx context.Context, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	c := addonstatus.Waiting()
	if said := meta.FindStatusCondition(addOn.Status.Conditions, c.Type); said != nil && said.Status == c.Status && said.Message == c.Message {
		return nil
	}
	updated := addOn.DeepCopy()
	c.LastTransitionTime = d.now
	meta.SetStatusCondition(&updated.Status.Conditions, c)
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}

// writeValidity tells that the hosting cluster cannot be used. Nothing else is
// written: what runs goes on running, on either cluster, until the annotation is mended.
func (d *round) writeValidity(ctx context.Context, m *member, addOn *addonv1alpha1.ManagedClusterAddOn) error {
	updated := addOn.DeepCopy()
	condition := *m.hosting.Condition()
	condition.LastTransitionTime = d.now
	meta.SetStatusCondition(&updated.Status.Conditions, condition)
	_, err := d.patchStatus(ctx, addOn, updated)
	return err
}
