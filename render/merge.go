package render

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
)

// mergedConfigs merges all AddOnDeploymentConfigs of a level in their order. Lists are joined and objects merged. If
// two configurations set a variable or value, the later one counts. An install namespace that the hub filled in as a
// default overrides no other. The result has the name of the first configuration.
func mergedConfigs(configs []Config) Config {
	out := configs[0]
	body := map[string]any{}
	for _, c := range configs {
		mergeObject(body, runtime.DeepCopyJSON(c.Body), "")
	}
	out.Body = body
	return out
}

// mergeObject merges from into to. at is the field with these objects.
func mergeObject(to, from map[string]any, at string) {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		value, before := from[key], to[key]
		switch v := value.(type) {
		case map[string]any:
			if b, isObject := before.(map[string]any); isObject {
				mergeObject(b, v, key)
				continue
			}
		case []any:
			if b, isList := before.([]any); isList {
				to[key] = joined(b, v, key)
				continue
			}
		case string:
			if before != nil && at == specKey && key == "agentInstallNamespace" && v == defaultInstallNamespace {
				continue
			}
		}
		to[key] = value
	}
}

// joined appends a list to another. A variable replaces the variable of the same name. An item that the list already
// has is not added again.
func joined(to, from []any, field string) []any {
	for _, item := range from {
		i := slices.IndexFunc(to, func(other any) bool {
			if field == "customizedVariables" {
				return valueAtName(other) == valueAtName(item)
			}
			return equality.Semantic.DeepEqual(other, item)
		})
		if i >= 0 && field == "customizedVariables" {
			to[i] = item
		} else {
			if i >= 0 {
				to = slices.Delete(to, i, i+1) // the last of a list counts, so it moves to the end
			}
			to = append(to, item)
		}
	}
	return to
}

// valueAtName is the name of a list's item.
func valueAtName(item any) any {
	fields, _ := item.(map[string]any)
	return fields[nameKey]
}
