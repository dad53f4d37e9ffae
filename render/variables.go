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

// hubKubeconfigPath is what OCM's renderer has in HUB_KUBECONFIG.
const hubKubeconfigPath = "/managed/hub-kubeconfig/kubeconfig"

// envVariable is a name with its value.
type envVariable struct {
	name, value string
}

// variables are what a template can use, and what every container is given.
type variables struct {
	values map[string]string
	// env is OCM's order: defaults sorted, then built-ins sorted. Customised
	// variables are for the template only.
	env []envVariable
}

// newVariables merges, later wins: defaults (only with a registration block,
// whatever its type), customised variables, built-ins.
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

// checkVariables refuses what the schema of AddOnDeploymentConfig refuses, and a
// customised variable that a built-in would silently replace.
func checkVariables(list []addonv1alpha1.CustomizedVariable, namespace string, add func(field string, reason problem.Reason, message, hint string)) {
	var seen []string
	for i, v := range list {
		at := fmt.Sprintf("spec.customizedVariables[%d]", i)
		switch {
		case !variable.IsName(v.Name) || len(v.Name) > variable.MaxName:
			add(at+".name", flaw.ReasonInvalidVariable, fmt.Sprintf("%.40q is no name of a variable", v.Name),
				"use letters, digits and _, no digit first, at most 255")
		case slices.Contains(seen, v.Name):
			add(at+".name", flaw.ReasonDuplicateVariable, fmt.Sprintf("variable %q is set twice", v.Name), "")
		case v.Name == variable.ClusterName, v.Name == variable.InstallNamespace && namespace != "":
			add(at+".name", flaw.ReasonReservedVariable, fmt.Sprintf("variable %q is built in", v.Name), "choose another name")
		}
		if len([]rune(v.Value)) > maxVariableValue {
			add(at+".value", flaw.ReasonInvalidVariable, fmt.Sprintf("the value of %q has %d characters", v.Name, len([]rune(v.Value))), "use at most 1024")
		}
		if c := ForbiddenCharacter(v.Value); c != "" {
			add(at+".value", flaw.ReasonInvalidVariable, fmt.Sprintf("the value of %q contains %s", v.Name, c), "")
		}
		seen = append(seen, v.Name)
	}
}
