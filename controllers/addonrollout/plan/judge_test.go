package plan

import (
	"testing"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
)

// TestStatusShowsWhichContentAClusterWithoutWorksRan: the status has the configurations that the works
// had before they were deleted.
func TestStatusShowsWhichContentAClusterWithoutWorksRan(t *testing.T) {
	group := addonv1alpha1.GroupName
	ref := func(resource, name, hash string) addonv1alpha1.ConfigReference {
		last := &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: name}, SpecHash: hash}
		return addonv1alpha1.ConfigReference{ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource}, LastAppliedConfig: last}
	}
	named := func(resource, name, hash string) render.Config {
		return render.Config{ConfigReference: render.ConfigReference{Group: group, Resource: resource, Name: name}, SpecHash: hash}
	}
	const adcs, templates = "addondeploymentconfigs", "addontemplates"
	cases := map[string]struct {
		reason string
		refs   []addonv1alpha1.ConfigReference
		config render.Config
		want   bool
	}{
		"Same":     {"it was like that", []addonv1alpha1.ConfigReference{ref(templates, "hello", ""), ref(adcs, "a", "1")}, named(adcs, "a", "1"), false},
		"Changed":  {"it was changed", []addonv1alpha1.ConfigReference{ref(adcs, "a", "1")}, named(adcs, "a", "2"), true},
		"Another":  {"another was named", []addonv1alpha1.ConfigReference{ref(adcs, "a", "1")}, named(adcs, "b", "1"), true},
		"New":      {"none was named", []addonv1alpha1.ConfigReference{ref(templates, "hello", "")}, named(adcs, "a", "1"), true},
		"Fresh":    {"it ran nothing yet", nil, named(adcs, "a", "1"), false},
		"Template": {"a template's hash is not to be seen beside OCM's addon-manager", []addonv1alpha1.ConfigReference{ref(adcs, "a", "1")}, named(templates, "own", "2"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &Member{AddOn: &addonv1alpha1.ManagedClusterAddOn{}, Configs: []render.Config{tc.config}}
			m.AddOn.Status.ConfigReferences = tc.refs
			if got := m.ranOtherwise(); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
