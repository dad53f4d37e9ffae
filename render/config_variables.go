package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// readVariables gives an assignment the values that the template takes from configurations. If no configuration of a
// kind is assigned, the variable has no value. Substitution reports this for the cluster, not for the commit.
func (r *Renderer) readVariables(a *assignment, byKind map[groupResource][]ConfigReference) {
	if a.template == nil {
		return
	}
	for _, v := range a.template.fromConfigs {
		wrong := func(message, hint string) {
			a.found.add(Finding{Template: a.template.name, Field: variable.FromConfigsField, Reason: flaw.ReasonInvalidVariable, Message: v.Name + ": " + message, Hint: hint})
		}
		if !slices.Contains(r.content.Supported, addonv1alpha1.ConfigGroupResource{Group: v.Group, Resource: v.Resource}) {
			wrong(schema.GroupResource{Group: v.Group, Resource: v.Resource}.String()+" is not a configuration of the add-on", "list it in spec.supportedConfigs of the ClusterManagementAddOn")
			continue
		}
		if a.agent.sets(v.Name) {
			wrong("an AddOnDeploymentConfig sets it in customizedVariables, too", "choose another name")
			continue
		}
		references := byKind[groupResource{v.Group, v.Resource}]
		if len(references) == 0 {
			if a.unassigned == nil {
				a.unassigned = map[string]string{}
			}
			a.unassigned[v.Name] = schema.GroupResource{Group: v.Group, Resource: v.Resource}.String()
			continue
		}
		body, ok := r.bodyOf(a, references[0])
		if !ok {
			continue // take reported that it is missing
		}
		value, err := v.Read(body)
		if HasNUL(value) {
			err = errors.New("contains NUL")
		}
		if err != nil {
			wrong(fmt.Sprintf("%s %s: %v", references[0], v.Path, err), "")
			continue
		}
		if a.mapped == nil {
			a.mapped = map[string]string{}
		}
		a.mapped[v.Name] = value
	}
}

func (a *agentConfig) sets(name string) bool {
	return slices.ContainsFunc(a.variables, func(v addonv1alpha1.CustomizedVariable) bool { return v.Name == name })
}
