package load

import (
	"slices"
	"strings"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// hidesContent reports whether what is wrong with an AddOnPackage leaves open what it would
// render: that would be judged for mistakes that nobody made.
func hidesContent(o *loaded) bool {
	return o.doubt.open("spec.values") || o.doubt.open(variable.FromConfigsField) || slices.ContainsFunc(
		[]flaw.Path{"spec.helm", "spec.manifests", "spec.valueFiles", "spec.variables", registrationAt}, o.doubt.explains)
}

// builtInValueFlaws finds values of an AddOnPackage that the built-in ones replace on
// every cluster. A value file may have them, for whoever renders the chart by hand.
func builtInValueFlaws(spec v1alpha1.AddOnPackageSpec, declared map[string]any) []flaw.Flaw {
	names := render.BuiltInValues(len(spec.Registration) > 0)
	const message, hint = "is built in: this value would never be used", "remove it, or choose another name"
	values, _ := valueAt(declared, specKey, "values").(map[string]any)
	var flaws []flaw.Flaw
	for _, name := range names {
		if _, overridden := values[name]; overridden {
			flaws = append(flaws, flaw.Flaw{Field: flaw.Path("spec.values").Child(name), Reason: flaw.ReasonInvalidPackage, Message: message, Hint: hint})
		}
	}
	for i, v := range spec.Variables {
		if name, _, _ := strings.Cut(v.Value, "."); slices.Contains(names, name) {
			flaws = append(flaws, flaw.Flaw{Field: flaw.Path("spec.variables").Index(i).Child("value"), Reason: flaw.ReasonInvalidVariable, Message: message, Hint: hint})
		}
	}
	return flaws
}
