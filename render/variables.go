package render

import (
	"fmt"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
)

// maxVariableValue is how many characters a value may have, as in the schema of
// AddOnDeploymentConfig.
const maxVariableValue = 1024

// hubKubeconfigPath is what OCM's renderer has in HUB_KUBECONFIG (OCM behaviour, row 65).
const hubKubeconfigPath = "/managed/hub-kubeconfig/kubeconfig"

// variable is a name with its value.
type variable struct {
	name, value string
}

// variables are what a template can use, and what every container is given.
type variables struct {
	values map[string]string
	// env is OCM's order: defaults sorted, then built-ins sorted. Customised
	// variables are for the template only (row 67).
	env []variable
}

// newVariables merges, later wins: defaults (only with a registration block,
// whatever its type), customised variables, built-ins (row 65).
func newVariables(t *parsedTemplate, d *agentConfig, cluster string) variables {
	v := variables{values: map[string]string{}}
	if t.registers {
		v.values[hubKubeconfigVariable] = hubKubeconfigPath
		v.env = append(v.env, variable{name: hubKubeconfigVariable})
	}
	for _, custom := range d.variables {
		v.values[custom.Name] = custom.Value
	}
	v.values[clusterNameVariable] = cluster
	v.env = append(v.env, variable{name: clusterNameVariable})
	if d.namespace != "" {
		v.values[installNamespaceVariable] = d.namespace
		v.env = append(v.env, variable{name: installNamespaceVariable})
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
		case !isVariableName(v.Name) || len(v.Name) > maxVariableName:
			add(at+".name", ReasonInvalidVariable, fmt.Sprintf("%.40q is no name of a variable", v.Name),
				"use letters, digits and _, no digit first, at most 255")
		case slices.Contains(seen, v.Name):
			add(at+".name", ReasonDuplicateVariable, fmt.Sprintf("variable %q is set twice", v.Name), "")
		case v.Name == clusterNameVariable, v.Name == installNamespaceVariable && namespace != "":
			add(at+".name", ReasonReservedVariable, fmt.Sprintf("variable %q is built in", v.Name), "choose another name")
		}
		if len([]rune(v.Value)) > maxVariableValue {
			add(at+".value", ReasonInvalidVariable, fmt.Sprintf("the value of %q has %d characters", v.Name, len([]rune(v.Value))), "use at most 1024")
		}
		if c := forbiddenCharacter(v.Value); c != "" {
			add(at+".value", ReasonInvalidVariable, fmt.Sprintf("the value of %q contains %s", v.Name, c), "")
		}
		seen = append(seen, v.Name)
	}
}
