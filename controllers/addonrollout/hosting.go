package addonrollout

import (
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
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
