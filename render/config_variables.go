package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// ConfigVariable is a variable whose value stands in a configuration of some kind.
type ConfigVariable struct {
	Name string `json:"name"`
	// Group and Resource of the configuration; of several of the kind the first is read.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Path is a JSONPath in braces that names one string, number or boolean.
	Path string `json:"path"`
}

// configVariablesAt is where ConfigVariablesAnnotation stands.
const configVariablesAt = "metadata.annotations[" + ConfigVariablesAnnotation + "]"

// configVariablesHint is how to write it.
const configVariablesHint = "write lines of NAME=resource.group{.path}, such as LEVEL=configmaps{.data.level}"

// ParseConfigVariables reads the value of ConfigVariablesAnnotation, one variable a
// line, as NAME=<resource>[.<group>]{JSONPath}. The result is sorted by name.
//
//	LOG_LEVEL=configmaps{.data.level}
//	REGION=regions.example.com{.spec.zones[0]['name']}
func ParseConfigVariables(value string) ([]ConfigVariable, error) {
	var list []ConfigVariable
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, from, _ := strings.Cut(line, "=")
		brace := strings.Index(from, "{")
		if !variableName.MatchString(name) || len(name) > maxVariableName || brace <= 0 {
			return nil, fmt.Errorf("cannot read variables of configurations: %.80q is no NAME=resource.group{.path}", line)
		}
		v := ConfigVariable{Name: name, Path: from[brace:]}
		v.Resource, v.Group, _ = strings.Cut(from[:brace], ".")
		if _, err := parseJSONPath(v.Path); err != nil {
			return nil, fmt.Errorf("cannot read variables of configurations: %s: %w", name, err)
		}
		if builtIn(name) {
			return nil, fmt.Errorf("cannot read variables of configurations: %s is built in", name)
		}
		if slices.ContainsFunc(list, func(other ConfigVariable) bool { return other.Name == name }) {
			return nil, fmt.Errorf("cannot read variables of configurations: %s is declared twice", name)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b ConfigVariable) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// builtIn reports whether a variable has a meaning of its own.
func builtIn(name string) bool {
	return name == hubKubeconfigVariable || name == clusterNameVariable || name == installNamespaceVariable || clusterGives(name)
}

// clusterGives reports whether a variable is a label or claim of the cluster.
func clusterGives(name string) bool {
	return strings.HasPrefix(name, clusterLabelPrefix) || strings.HasPrefix(name, clusterClaimPrefix)
}

// readVariables gives an assignment the values that the template takes from
// configurations. A kind of which none is assigned gives none: whoever refers to the
// variable says that it has no value, of a cluster and not of the commit.
func (r *Renderer) readVariables(a *assignment, byKind map[groupResource][]ConfigReference) {
	if a.template == nil {
		return
	}
	for _, v := range a.template.fromConfigs {
		wrong := func(message, hint string) {
			a.found.add(Finding{Template: a.template.name, Field: configVariablesAt, Reason: ReasonInvalidVariable, Message: v.Name + ": " + message, Hint: hint})
		}
		if !slices.Contains(r.content.Supported, addonv1alpha1.ConfigGroupResource{Group: v.Group, Resource: v.Resource}) {
			wrong(resourceName(v.Group, v.Resource)+" is no configuration of the add-on", "list it in spec.supportedConfigs of the ClusterManagementAddOn")
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
			a.unassigned[v.Name] = resourceName(v.Group, v.Resource)
			continue
		}
		body, ok := r.bodyOf(a, references[0])
		if !ok {
			continue // take said that it is missing
		}
		value, err := v.read(body)
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

// read returns the value that the variable has in a configuration.
func (v ConfigVariable) read(body map[string]any) (string, error) {
	path, err := parseJSONPath(v.Path)
	if err != nil {
		return "", err
	}
	value, err := path.text(body)
	if err != nil {
		return "", err
	}
	if c := forbiddenCharacter(value); c != "" {
		return "", fmt.Errorf("contains %s", c)
	}
	return value, nil
}

// sets reports whether the configuration sets a variable.
func (a *agentConfig) sets(name string) bool {
	return slices.ContainsFunc(a.variables, func(v addonv1alpha1.CustomizedVariable) bool { return v.Name == name })
}
