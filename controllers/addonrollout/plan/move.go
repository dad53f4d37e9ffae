package plan

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// Move says what the status of a cluster's add-on is derived from: the facts for
// addonstatus.Next, but for what the agent asks for.
func (p *Plan) Move(c *Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, renderer *render.Renderer, rendered render.Rendered) addonstatus.Move {
	o := p.Observed
	mv := o.moveTo(addOn, rendered)
	mv.Supported = renderer.Supported()
	mv.Waits = p.Waits(c)
	mv.Reverting = p.Next.Reverting && p.IsTarget(c.Planned.Revision)
	mv.Reason = c.Planned.Reason
	mv.Mode = o.Prober.Mode()
	mv.UnknownCluster = clusterCondition(c.Cluster) == corev1.ConditionUnknown
	mv.Hosting = c.Hosting
	mv.Adopted = c.Planned.Revision == rollout.Foreign
	current := c.Health.Digest == rendered.Digest
	if current || mv.Adopted {
		mv.Refused, mv.HostingRefused = c.worksRefused(o.Rollout.Name)
	}
	switch {
	case mv.Adopted:
		mv.State = addonstatus.Done
	case c.Planned.State == rollout.Failed || c.Planned.State == rollout.TimedOut:
		mv.State = addonstatus.Failed
	case current && (c.Health.Verified || !c.Admitted() && mv.AppliedAlready(addOn.Status.ConfigReferences)):
		// Unverified is done only where it was verified before, and fell ill since.
		mv.State = addonstatus.Done
	}
	mv.Available = o.Prober.NotApplied()
	if mv.State != addonstatus.Started {
		mv.Available = o.Prober.Available(c.Report(o.Rollout.Name))
	}
	return mv
}

// moveTo is a move as far as what is rendered and the add-on itself say.
func (o *Observation) moveTo(addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) addonstatus.Move {
	named := slices.ContainsFunc(addOn.Spec.Configs, func(c addonv1alpha1.AddOnConfig) bool { return addonstatus.IsTemplate(c.Group, c.Resource) })
	return addonstatus.Move{Rendered: rendered, HidesTemplateHash: o.HidesTemplateHash, OwnTemplate: named}
}

// clusterCondition is what the hub says of the cluster.
func clusterCondition(c *clusterv1.ManagedCluster) corev1.ConditionStatus {
	if c != nil {
		if available := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); available != nil {
			return corev1.ConditionStatus(available.Status)
		}
	}
	return corev1.ConditionUnknown
}

// worksRefused reports whether an agent could not apply works of the add-on as they are now:
// the cluster's own, and the hosting cluster's.
func (m *Member) worksRefused(addOn string) (own, hosting bool) {
	for _, w := range m.Works {
		applied := apimeta.FindStatusCondition(w.Status.Conditions, workv1.WorkApplied)
		switch {
		case applied == nil || applied.Status != metav1.ConditionFalse || applied.ObservedGeneration != w.Generation:
		case render.IsHostingWork(w, addOn):
			hosting = true
		default:
			own = true
		}
	}
	return own, hosting
}

// OwnerOf says what the works of an add-on belong to.
func (p *Plan) OwnerOf(addOn *addonv1alpha1.ManagedClusterAddOn, revision string) render.Owner {
	return render.Owner{
		Name: addOn.Name, Namespace: addOn.Namespace, UID: addOn.UID,
		Source: p.Observed.SourceName(), Revision: revision,
	}
}

// Mark names everything that the writes of one cluster depend on: an object's version stands
// for its content. permissions is what became of what its agent asks for.
func (p *Plan) Mark(c *Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, permissions ...string) string {
	parts := make([]string, 0, 11+len(c.Works)+2*len(c.SelectedBy))
	parts = append(parts, p.Observed.Target.Digest, c.Planned.Revision, string(c.Planned.State), c.Planned.Reason,
		p.Observed.Policy, string(addOn.UID), addOn.ResourceVersion)
	parts = append(parts, permissions...)
	for _, w := range c.Works {
		parts = append(parts, w.ResourceVersion)
	}
	for _, s := range c.SelectedBy {
		parts = append(parts, s.Namespace, s.Name)
	}
	for i := range c.Configs {
		parts = append(parts, c.Configs[i].String(), c.Configs[i].SpecHash)
	}
	if c.Cluster != nil {
		parts = append(parts, c.Cluster.ResourceVersion)
	}
	if c.Hosting.Hosted {
		parts = append(parts, c.Hosting.Mark())
	}
	return strings.Join(parts, "\x00")
}
