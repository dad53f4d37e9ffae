package render

import (
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// hidesContent reports whether what is wrong with an AddOnPackage leaves open what it would
// render: that would be judged for mistakes that nobody made.
func hidesContent(o *loaded) bool {
	return o.doubt.open("spec.values") || o.doubt.open(configVariablesAt) || slices.ContainsFunc(
		[]fieldPath{"spec.helm", "spec.manifests", "spec.valueFiles", "spec.variables", registrationAt}, o.doubt.explains)
}

// builtInValueFlaws finds values of an AddOnPackage that the built-in ones replace on
// every cluster. A value file may have them, for whoever renders the chart by hand.
func builtInValueFlaws(spec v1alpha1.AddOnPackageSpec, declared map[string]any) []flaw {
	names := builtInNames(len(spec.Registration) > 0)
	const message, hint = "is built in: this value would never be used", "remove it, or choose another name"
	values, _ := valueAt(declared, specKey, "values").(map[string]any)
	var flaws []flaw
	for _, name := range names {
		if _, overridden := values[name]; overridden {
			flaws = append(flaws, flaw{field: fieldPath("spec.values").child(name), reason: ReasonInvalidPackage, message: message, hint: hint})
		}
	}
	for i, v := range spec.Variables {
		if name, _, _ := strings.Cut(v.Value, "."); slices.Contains(names, name) {
			flaws = append(flaws, flaw{field: fieldPath("spec.variables").index(i).child("value"), reason: ReasonInvalidVariable, message: message, hint: hint})
		}
	}
	return flaws
}
