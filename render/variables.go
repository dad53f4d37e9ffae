package render

import (
	"fmt"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// maxVariableValue is how many characters a value may have, as in the schema of
// AddOnDeploymentConfig.
const maxVariableValue = 1024

// hubKubeconfigPath is the value of HUB_KUBECONFIG in OCM's renderer.
const hubKubeconfigPath = "/managed/hub-kubeconfig/kubeconfig"

type envVariable struct {
	name, value string
}

// variables has the variables that a template can use, and those that every container gets.
type variables struct {
	values map[string]string
	// env is in OCM's order: defaults sorted, then built-ins sorted. Customised variables are
	// for the template only.
	env []envVariable
}

// newVariables merges three sources; a later one overrides: defaults (only with a registration block, of any type),
// customised variables, built-ins.
func newVariables(t *parsedTemplate, d *agentConfig, cluster string) variables {
	v := variables{values: map[string]string{}}
	if t.registers {
		v.values[variable.HubKubeconfig] = hubKubeconfigPath
		v.env = append(v.env, envVariable{name: variable.HubKubeconfig})
	}
	for _, custom := range d.variables {
		v.values[custom.Name] = custom.Value
	}
	v.values[variable.ClusterName] = cluster
	v.env = append(v.env, envVariable{name: variable.ClusterName})
	if d.namespace != "" {
		v.values[variable.InstallNamespace] = d.namespace
		v.env = append(v.env, envVariable{name: variable.InstallNamespace})
	}
	for i := range v.env {
		v.env[i].value = v.values[v.env[i].name]
	}
	return v
}

// variableFlaws finds variables that the schema of AddOnDeploymentConfig refuses, and customised variables that a
// built-in would silently replace.
func variableFlaws(list []addonv1alpha1.CustomizedVariable, namespace string) []flaw.Flaw {
	var flaws []flaw.Flaw
	add := func(at flaw.Path, reason problem.Reason, hint, message string, about ...any) {
		flaws = append(flaws, flaw.Flaw{Field: at, Reason: reason, Message: fmt.Sprintf(message, about...), Hint: hint})
	}
	var seen []string
	for i, v := range list {
		at := flaw.Path("spec.customizedVariables").Index(i)
		switch {
		case !variable.IsName(v.Name) || len(v.Name) > variable.MaxName:
			add(at.Child(nameKey), flaw.ReasonInvalidVariable, "use letters, digits and _, no digit first, at most 255", "%.40q is not a name of a variable", v.Name)
		case slices.Contains(seen, v.Name):
			add(at.Child(nameKey), flaw.ReasonDuplicateVariable, "", "variable %q is set twice", v.Name)
		case v.Name == variable.ClusterName, v.Name == variable.InstallNamespace && namespace != "":
			add(at.Child(nameKey), flaw.ReasonReservedVariable, "choose another name", "variable %q is built in", v.Name)
		}
		if length := len([]rune(v.Value)); length > maxVariableValue {
			add(at.Child("value"), flaw.ReasonInvalidVariable, "use at most 1024", "the value of %q has %d characters", v.Name, length)
		}
		if HasNUL(v.Value) {
			add(at.Child("value"), flaw.ReasonInvalidVariable, "", "the value of %q contains NUL", v.Name)
		}
		seen = append(seen, v.Name)
	}
	return flaws
}
