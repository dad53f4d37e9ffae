package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
		if !isVariableName(name) || len(name) > maxVariableName || brace <= 0 {
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

// read returns the value that the variable has in a configuration.
func (v ConfigVariable) read(body map[string]any) (string, error) {
	path, err := parseJSONPath(v.Path)
	if err != nil {
		return "", err
	}
	return path.text(body)
}

// ConfigVariablesAnnotation on an AddOnTemplate or AddOnPackage takes variables from configurations of
// any kind; see ParseConfigVariables.
const ConfigVariablesAnnotation = "addonflow.io/config-variables"
