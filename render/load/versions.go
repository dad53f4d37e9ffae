package load

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// versioned reports whether the add-on lists AddOnHubConfig. Then its content has every version.
func versioned(supported []addonv1alpha1.ConfigGroupResource) bool {
	return slices.Contains(supported, addonv1alpha1.ConfigGroupResource{Group: addonGroup, Resource: render.HubConfigResource})
}

// takeVersions adds the templates of the commit that have a version. It adds them even if no configuration in the
// commit selects them, because the configuration of a ManagedClusterAddOn may.
func (l *loader) takeVersions(d *draft, c *render.Content) {
	if !versioned(c.Supported) {
		return
	}
	for _, o := range l.objects {
		if o.role != roleTemplate {
			continue
		}
		declared := o.GetUnstructured()
		owner, _ := valueAt(declared.Object, specKey, "addonName").(string)
		if owner == d.Name && declared.GetLabels()[hubconfigv1alpha1.VersionLabel] != "" {
			l.take(d, c, referring{ConfigReference: render.ConfigReference{Group: addonGroup, Resource: render.TemplateResource, Name: declared.GetName()}})
		}
	}
}
