package addonrollout

import (
	"cmp"
	"context"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// hostingName reads the annotation of the ManagedClusterAddOn, and before there is one
// that of the ManagedCluster, which will be copied to it.
func (m *member) hostingName() (name string, hosted bool) {
	switch {
	case m.addOn != nil:
		name, hosted = m.addOn.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	case m.cluster != nil:
		name, hosted = m.cluster.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	}
	return name, hosted
}

// hostingOf is where the member is to run, given all clusters by name.
func hostingOf(m *member, clusters map[string]*clusterv1.ManagedCluster) addonstatus.Hosting {
	name, hosted := m.hostingName()
	if !hosted {
		return addonstatus.Hosting{}
	}
	return addonstatus.Hosting{Hosted: true, Name: name, Cluster: clusters[name]}
}

// host notes whose content has anything for the hosting cluster, or has works there. The
// annotation alone, which every add-on of a cluster may have got from its ManagedCluster,
// makes nobody depend on that one.
func (o *observation) host(ctx context.Context, target, stable content) error {
	for _, m := range o.members {
		if !m.hosting.Hosted {
			continue
		}
		has, err := o.has(ctx, m, stable)
		if err != nil {
			return err
		}
		m.hosts = m.worksAt(o.rollout.Name) != "" || target.hosts(m) || has.hosts(m)
	}
	return nil
}

// hosts reports whether the revision renders anything for the member's hosting cluster.
// An annotation that is empty names nobody; what would be hosted is the same anywhere.
func (c content) hosts(m *member) bool {
	if c.renderer == nil {
		return false
	}
	in := m.renderInput()
	in.Hosting = cmp.Or(in.Hosting, m.name)
	hosts, err := c.renderer.Hosts(in)
	return err == nil && hosts
}

// hostingProblem says why nothing can be written to the hosting cluster that something is
// to be written to; "" where nothing is in the way.
func (m *member) hostingProblem() string {
	if !m.hosts {
		return ""
	}
	return m.hosting.Problem()
}

// awaitHost says that the member is to wait for its hosting cluster where that is not
// available.
func (m *member) awaitHost(c *rollout.Cluster) {
	if !c.Reachable || !m.hosts || m.hosting.Cluster == nil {
		return
	}
	c.Reachable, c.AvailableChanged = reachable(m.hosting.Cluster)
	if !c.Reachable {
		c.Away = "hosting cluster " + m.hosting.Name + " is not available"
	}
}

// worksAt is the hosting cluster whose namespace has deploy works of the member that
// are not being deleted, "" for none. It is where the add-on really is hosted, which
// an annotation that was just changed, or mistyped, does not say.
func (m *member) worksAt(addOn string) string {
	for _, w := range m.works {
		if w.DeletionTimestamp == nil && render.IsHostingWork(w, addOn) {
			return w.Namespace
		}
	}
	return ""
}
