package plan

import (
	"slices"

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

// Move is the input of addonstatus.Next for a cluster, without the permissions that its agent
// requests.
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
		// A cluster that is not verified counts as done only if it was verified before.
		mv.State = addonstatus.Done
	}
	mv.Available = o.Prober.NotApplied()
	if mv.State != addonstatus.Started {
		mv.Available = o.Prober.Available(c.Report(o.Rollout.Name))
	}
	return mv
}

// moveTo is the part of a move that depends only on the rendered works and the ManagedClusterAddOn.
func (o *Observation) moveTo(addOn *addonv1alpha1.ManagedClusterAddOn, rendered render.Rendered) addonstatus.Move {
	named := slices.ContainsFunc(addOn.Spec.Configs, func(c addonv1alpha1.AddOnConfig) bool { return addonstatus.IsTemplate(c.Group, c.Resource) })
	return addonstatus.Move{Rendered: rendered, HidesTemplateHash: o.HidesTemplateHash, OwnTemplate: named}
}

// clusterCondition is the status of the cluster's Available condition.
func clusterCondition(c *clusterv1.ManagedCluster) corev1.ConditionStatus {
	if c != nil {
		if available := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ManagedClusterConditionAvailable); available != nil {
			return corev1.ConditionStatus(available.Status)
		}
	}
	return corev1.ConditionUnknown
}

// worksRefused reports whether a work agent could not apply the current works of the add-on: own on the cluster
// itself, hosting on the hosting cluster.
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

// OwnerOf is the owner, source and revision that the works of an add-on name.
func (p *Plan) OwnerOf(addOn *addonv1alpha1.ManagedClusterAddOn, revision string) render.Owner {
	return render.Owner{
		Name: addOn.Name, Namespace: addOn.Namespace, UID: addOn.UID,
		Source: p.Observed.SourceName(), Revision: revision,
	}
}

// Fingerprint identifies everything that the writes of one cluster depend on. The resource version of an object
// stands for its content. permissions is the state of the permissions that its agent requests.
func (p *Plan) Fingerprint(c *Cluster, addOn *addonv1alpha1.ManagedClusterAddOn, permissions ...string) Fingerprint {
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
		parts = append(parts, c.Hosting.Fingerprint())
	}
	return fingerprintOf(parts)
}
