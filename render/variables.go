package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
)

// TypedVariablesAnnotation on an AddOnTemplate declares variables that are no
// strings, as NAME=type pairs: "REPLICAS=integer,DEBUG=boolean". Where a string of
// the template is exactly "{{NAME}}" it becomes a value of that type; inside a
// longer string the variable stays text. One that is needed as a string as well
// (an environment value, say) takes a second variable.
const TypedVariablesAnnotation = "addonflow.io/typed-variables"

// Types a variable can be declared with.
const (
	TypeInteger = "integer"
	TypeNumber  = "number"
	TypeBoolean = "boolean"
)

// Names and values that OCM's renderer defines (OCM behaviour, row 65).
const (
	hubKubeconfigVariable    = "HUB_KUBECONFIG"
	clusterNameVariable      = "CLUSTER_NAME"
	installNamespaceVariable = "INSTALL_NAMESPACE"

	hubKubeconfigPath = "/managed/hub-kubeconfig/kubeconfig"
)

// Limits of a variable, those of the AddOnDeploymentConfig schema.
const (
	maxVariableName  = 255
	maxVariableValue = 1024
)

// emptyValueHint is how to ask for an empty value.
const emptyValueHint = `write "" for an empty one`

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ParseTypedVariables reads the value of TypedVariablesAnnotation: name to type.
func ParseTypedVariables(value string) (map[string]string, error) {
	if strings.TrimSpace(value) == "" {
		return nil, nil
	}
	typed := map[string]string{}
	for entry := range strings.SplitSeq(value, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(entry), "=")
		switch {
		case !variableName.MatchString(name):
			return nil, fmt.Errorf("cannot read typed variables: %q is no NAME=type", entry)
		case kind != TypeInteger && kind != TypeNumber && kind != TypeBoolean:
			return nil, fmt.Errorf("cannot read typed variables: type %q of %s is none of %s, %s, %s",
				kind, name, TypeInteger, TypeNumber, TypeBoolean)
		case typed[name] != "":
			return nil, fmt.Errorf("cannot read typed variables: %s is declared twice", name)
		case name == clusterNameVariable || name == installNamespaceVariable:
			return nil, fmt.Errorf("cannot read typed variables: %s is a string", name)
		}
		typed[name] = kind
	}
	return typed, nil
}

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
		case !variableName.MatchString(v.Name) || len(v.Name) > maxVariableName:
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

// declaredVariableFlaws judges the variables of a declared AddOnDeploymentConfig
// before it is decoded, when a value that is missing can still be told from an
// empty one. An empty value that was written is a value; one that was not is
// never what was meant.
func declaredVariableFlaws(object map[string]any) []flaw {
	const list fieldPath = "spec.customizedVariables"
	declared, _ := valueAt(object, specKey, "customizedVariables").([]any)
	seen := map[string]bool{}
	var flaws []flaw
	for i, item := range declared {
		fields, isObject := item.(map[string]any)
		name, isString := fields[nameKey].(string)
		if !isObject || !isString {
			continue // the schema has the words
		}
		value, present := fields["value"]
		at := list.index(i)
		switch {
		case seen[name]:
			flaws = append(flaws, flaw{field: at, reason: ReasonDuplicateVariable, message: fmt.Sprintf("variable %q is set twice", shown(name)), hint: "keep one of them"})
		case !present && len(fields) == 1: // else the field is there, under a name nobody knows
			flaws = append(flaws, flaw{field: at.child("value"), reason: ReasonInvalidVariable, message: fmt.Sprintf("variable %q has no value", shown(name)), hint: emptyValueHint})
		case present && value == nil:
			flaws = append(flaws, flaw{field: at.child("value"), reason: ReasonInvalidType, message: "must be a string", hint: "quote it; " + emptyValueHint})
		}
		seen[name] = true
	}
	return flaws
}
