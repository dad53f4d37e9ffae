package load

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// builtInValueFlaws finds values of an AddOnPackage that built-in values replace on every cluster. A value file may
// contain them, for users who render the chart by hand.
func builtInValueFlaws(spec v1alpha1.AddOnPackageSpec, declared map[string]any) []flaw.Flaw {
	names := render.BuiltInValues(spec.Registration)
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

// isEmpty is the message about an empty field that must have a value.
const isEmpty = "is empty"

// valueName is a path into values: names separated by dots.
var valueName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z_][A-Za-z0-9_-]*)*$`)

func packageFlaws(object *unstructured.Unstructured) []flaw.Flaw {
	var declared declaredPackage
	if err := strict.Convert(object.Object, &declared); err != nil {
		return []flaw.Flaw{{Field: specKey, Reason: flaw.ReasonInvalidPackage, Message: err.Error()}}
	}
	spec := declared.Spec
	var flaws []flaw.Flaw
	if spec.AddOn == "" {
		flaws = append(flaws, flaw.Flaw{Field: "spec.addOn", Reason: flaw.ReasonInvalidPackage, Message: isEmpty, Hint: "name the ClusterManagementAddOn it belongs to"})
	}
	switch {
	case spec.Helm == nil && spec.Manifests == nil:
		flaws = append(flaws, flaw.Flaw{Field: specKey, Reason: flaw.ReasonInvalidPackage, Message: "names nothing to render", Hint: "set helm.path, helm.oci or manifests.path"})
	case spec.Helm != nil && spec.Manifests != nil:
		flaws = append(flaws, flaw.Flaw{Field: "spec.manifests", Reason: flaw.ReasonInvalidPackage, Message: "cannot be given with helm", Hint: "use a package and an add-on for each"})
	}
	if spec.Manifests != nil && spec.Manifests.Path == "" {
		flaws = append(flaws, flaw.Flaw{Field: "spec.manifests.path", Reason: flaw.ReasonInvalidPackage, Message: isEmpty, Hint: folderHint})
	}
	if spec.Helm != nil {
		flaws = append(flaws, chartFlaws(*spec.Helm)...)
	}
	flaws = append(flaws, contentAnnotationFlaws(object.GetAnnotations())...)
	flaws = append(flaws, packageVariableFlaws(spec.Variables)...)
	flaws = append(flaws, builtInValueFlaws(spec, object.Object)...)
	flaws = append(flaws, registrationFlaws(spec.Registration)...)
	return flaw.FirstPerField(append(flaws, conditionRuleFlaws("spec.manifestConfigs", spec.ManifestConfigs)...))
}

// folderHint is for a path that is empty.
const folderHint = "name the folder, relative to this file"

// chartFlaws checks the location of a chart.
func chartFlaws(chart v1alpha1.PackageChart) []flaw.Flaw {
	switch {
	case chart.OCI == "" && chart.Path == "":
		return []flaw.Flaw{{Field: "spec.helm.path", Reason: flaw.ReasonInvalidPackage, Message: isEmpty, Hint: folderHint}}
	case chart.OCI == "":
		return nil
	case chart.Path != "":
		return []flaw.Flaw{{Field: ociField, Reason: flaw.ReasonInvalidPackage, Message: "cannot be given with path", Hint: "keep one of them"}}
	}
	if _, err := v1alpha1.ParseChartReference(chart.OCI); err != nil {
		return []flaw.Flaw{{
			Field: ociField, Reason: flaw.ReasonInvalidPackage, Message: fmt.Sprintf("%.200q %s", chart.OCI, err),
			Hint: "addonflow vendor --digest writes the digest of a version",
		}}
	}
	return nil
}

func packageVariableFlaws(variables []v1alpha1.PackageVariable) []flaw.Flaw {
	var flaws []flaw.Flaw
	seen := map[string]bool{}
	for i, v := range variables {
		at := flaw.Path("spec.variables").Index(i)
		invalid := func(field, message, hint string) {
			flaws = append(flaws, flaw.Flaw{Field: at.Child(field), Reason: flaw.ReasonInvalidVariable, Message: message, Hint: hint})
		}
		switch {
		case !variable.IsName(v.Name):
			invalid(nameKey, fmt.Sprintf("%.40q is not a name of a variable", v.Name), "use letters, digits and _, no digit first")
		case seen[v.Name]:
			invalid(nameKey, fmt.Sprintf("variable %q is listed twice", v.Name), "keep one of them")
		}
		if !valueName.MatchString(v.Value) {
			invalid("value", fmt.Sprintf("%.80q is not a place among values", v.Value), "write names separated by dots, such as agent.replicas")
		}
		if !slices.Contains([]string{"", "string", variable.TypeInteger, variable.TypeNumber, variable.TypeBoolean}, v.Type) {
			invalid("type", fmt.Sprintf("%.40q is not a type", v.Type), "use string, integer, number or boolean")
		}
		seen[v.Name] = true
	}
	return flaws
}

// conditionRuleFlaws checks manifestConfigs of an AddOnPackage. For an AddOnTemplate, the API server checks the same
// rule in CEL, but an AddOnPackage has no CRD.
func conditionRuleFlaws(at flaw.Path, configs []workv1.ManifestConfigOption) []flaw.Flaw {
	var flaws []flaw.Flaw
	for i, config := range configs {
		for j, rule := range config.ConditionRules {
			if rule.Type == workv1.CelConditionExpressionsType && rule.Condition == "" {
				flaws = append(flaws, flaw.Flaw{
					Field:  at.Index(i).Child("conditionRules").Index(j).Child("condition"),
					Reason: flaw.ReasonInvalidTemplate, Message: "Condition is required for CEL rules",
				})
			}
		}
	}
	return flaws
}
