package load

import (
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// unknownFields returns a flaw for every field that is not in the schema, if the API server would prune it. Names are
// case-sensitive, as in the API server. The metadata of the object and of embedded resources is checked elsewhere.
func unknownFields(object map[string]any, root *structuralschema.Structural) []flaw.Flaw {
	embedded := *root
	embedded.XEmbeddedResource = true // the root has apiVersion, kind and metadata, too
	return unknownIn("", object, &embedded)
}

func unknownIn(at flaw.Path, value any, s *structuralschema.Structural) []flaw.Flaw {
	if s == nil {
		return nil
	}
	var flaws []flaw.Flaw
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			flaws = append(flaws, unknownKey(at, key, value[key], s)...)
		}
	case []any:
		for i, item := range value {
			flaws = append(flaws, unknownIn(at.Index(i), item, s.Items)...)
		}
	}
	return flaws
}

func unknownKey(at flaw.Path, key string, value any, s *structuralschema.Structural) []flaw.Flaw {
	if s.XEmbeddedResource && (key == apiVersionKey || key == kindKey || key == metadataKey) {
		return nil
	}
	if property, known := s.Properties[key]; known {
		return unknownIn(at.Child(key), value, &property)
	}
	switch {
	case s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil:
		return unknownIn(at.Child(key), value, s.AdditionalProperties.Structural)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Bool, s.XPreserveUnknownFields:
		return nil
	}
	known := slices.Collect(maps.Keys(s.Properties))
	if at == "" {
		known = slices.DeleteFunc(known, func(name string) bool { return name == statusKey })
	}
	f := strict.UnknownField(at, key, known)
	if deeper := below(key, s); deeper != "" && flaw.Closest(key, known) == "" && strict.ProposedHint(f.Field, known) == "" {
		f.Hint = "did you mean " + deeper + "?"
	}
	return []flaw.Flaw{f}
}

// below returns parent.name for the field that has a child with the given name; "": there is none, or more than one.
func below(name string, s *structuralschema.Structural) string {
	var found []string
	for parent, property := range s.Properties {
		if _, known := property.Properties[name]; known {
			found = append(found, strings.Join([]string{parent, name}, "."))
		}
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}
