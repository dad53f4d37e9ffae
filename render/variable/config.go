package variable

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// FromConfig is a variable whose value is in a configuration of some kind.
type FromConfig struct {
	Name string `json:"name"`
	// Group and Resource of the configuration; if several of the kind are assigned, the first
	// is read.
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource"`
	// Path is a JSONPath in braces that names one string, number or boolean.
	Path string `json:"path"`
}

// FromConfigsField is the field of FromConfigsAnnotation.
const FromConfigsField = "metadata.annotations[" + FromConfigsAnnotation + "]"

// FromConfigsHint is the hint about its syntax.
const FromConfigsHint = "write lines of NAME=resource.group{.path}, such as LEVEL=configmaps{.data.level}"

// ParseFromConfigs reads the value of FromConfigsAnnotation, one variable a
// line, as NAME=<resource>[.<group>]{JSONPath}. The result is sorted by name.
//
//	LOG_LEVEL=configmaps{.data.level}
//	REGION=regions.example.com{.spec.zones[0]['name']}
func ParseFromConfigs(value string) ([]FromConfig, error) {
	var list []FromConfig
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		name, from, _ := strings.Cut(line, "=")
		brace := strings.Index(from, "{")
		if !IsName(name) || len(name) > MaxName || brace <= 0 || from[0] == '.' {
			return nil, fmt.Errorf("cannot read variables of configurations: %.80q is not NAME=resource.group{.path}", line)
		}
		v := FromConfig{Name: name, Path: from[brace:]}
		v.Resource, v.Group, _ = strings.Cut(from[:brace], ".")
		if _, err := parseJSONPath(v.Path); err != nil {
			return nil, fmt.Errorf("cannot read variables of configurations: %s: %w", name, err)
		}
		if BuiltIn(name) {
			return nil, fmt.Errorf("cannot read variables of configurations: %s is built in", name)
		}
		if slices.ContainsFunc(list, func(other FromConfig) bool { return other.Name == name }) {
			return nil, fmt.Errorf("cannot read variables of configurations: %s is declared twice", name)
		}
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b FromConfig) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

// Read returns the value of the variable in a configuration.
func (v FromConfig) Read(body map[string]any) (string, error) {
	path, err := parseJSONPath(v.Path)
	if err != nil {
		return "", err
	}
	return path.text(body)
}

// FromConfigsAnnotation on an AddOnTemplate or AddOnPackage takes variables from configurations of
// any kind; see ParseFromConfigs.
const FromConfigsAnnotation = "addonflow.io/config-variables"
