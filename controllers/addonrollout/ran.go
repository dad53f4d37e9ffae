package addonrollout

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
)

// ranOtherwise reports of a member without works that it ran something, and that what its
// ManagedClusterAddOn names was not what it is now, as its status says. Whatever were
// rendered for it would be new to it, at whichever revision: it does not start at the stable
// one like a joiner, ahead of everybody, but waits for its turn. What renders to something
// else for other reasons, such as a label, leaves no trace and cannot be told.
func (m *member) ranOtherwise() bool {
	if m.addOn == nil || m.hindered != nil || addonstatus.NeverApplied(m.addOn.Status.ConfigReferences) {
		return false
	}
	for i := range m.configs {
		c := &m.configs[i]
		applied := slices.ContainsFunc(m.addOn.Status.ConfigReferences, func(ref addonv1alpha1.ConfigReference) bool {
			last := ref.LastAppliedConfig
			return ref.Group == c.Group && ref.Resource == c.Resource && last != nil && last.Namespace == c.Namespace && last.Name == c.Name &&
				(last.SpecHash == c.SpecHash || last.SpecHash == "")
		})
		if !applied && !addonstatus.IsTemplate(c.Group, c.Resource) {
			return true
		}
	}
	return false
}
