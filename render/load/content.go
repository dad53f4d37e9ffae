package load

import (
	"cmp"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
)

// sortContent brings content into its canonical order. Placements and what they assign
// stay as declared, because later placements and earlier configurations win.
func sortContent(c *render.Content) {
	slices.SortFunc(c.Supported, func(a, b addonv1alpha1.ConfigGroupResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	slices.SortFunc(c.Defaults, compareConfigReferences)
	slices.SortFunc(c.Templates, func(a, b render.Template) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Configs, func(a, b render.Config) int {
		return compareConfigReferences(a.ConfigReference, b.ConfigReference)
	})
}

func compareConfigReferences(a, b render.ConfigReference) int {
	return cmp.Or(
		strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource),
		strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name),
	)
}
