package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// manifestsAt is where an AddOnTemplate has what it deploys.
const manifestsAt fieldPath = "spec.agentSpec.workload.manifests"

// manifestFlaws checks the manifests of a declared AddOnTemplate before variables
// are put in: that each is one object the work agent could apply. Names and values
// with a variable in them are checked when rendered.
func manifestFlaws(object map[string]any) []flaw {
	manifests, present := manifestsOf(object)
	if !present {
		return nil // the schema says which of the parents is missing or wrong
	}
	if len(manifests) == 0 {
		return []flaw{{
			field: manifestsAt, reason: ReasonInvalidManifest,
			message: isEmpty, hint: "a template deploys at least one object", missing: true,
		}}
	}
	var flaws []flaw
	seen := map[identity]int{}
	variables := declaredVariables(object)
	for i, manifest := range manifests {
		at := manifestsAt.index(i)
		content, isObject := manifest.(map[string]any)
		if !isObject {
			flaws = append(flaws, flaw{field: at, reason: ReasonInvalidManifest, message: fmt.Sprintf("manifest %d must be an object", i)})
			continue
		}
		found := firstPerField(append(oneManifestFlaws(at, i, content), typedManifestFlaws(at, content, variables)...))
		flaws = append(flaws, found...)
		if len(found) > 0 {
			continue
		}
		id := identityOf(content).object()
		if first, twice := seen[id]; twice {
			flaws = append(flaws, flaw{field: at, reason: ReasonInvalidManifest, message: fmt.Sprintf("%s is manifest %d already", id, first)})
			continue
		}
		seen[id] = i
	}
	return flaws
}

// manifestsOf returns the list of manifests; present is false where something
// above it is absent or no object. An absent list is an empty one.
func manifestsOf(object map[string]any) (manifests []any, present bool) {
	value := any(object)
	for _, key := range []string{specKey, "agentSpec"} {
		parent, isObject := value.(map[string]any)
		if !isObject {
			return nil, false
		}
		value = parent[key]
	}
	agent, isObject := value.(map[string]any)
	if !isObject {
		return nil, false
	}
	workload, isObject := agent["workload"].(map[string]any)
	if !isObject {
		return nil, agent["workload"] == nil
	}
	manifests, isList := workload["manifests"].([]any)
	return manifests, isList || workload["manifests"] == nil
}

func oneManifestFlaws(at fieldPath, i int, manifest map[string]any) []flaw {
	var flaws []flaw
	for _, key := range []string{apiVersionKey, kindKey} {
		if text, isString := manifest[key].(string); !isString || text == "" {
			flaws = append(flaws, flaw{field: at.child(key), reason: ReasonInvalidManifest, message: fmt.Sprintf("manifest %d has no %s", i, key), missing: true})
		}
	}
	if len(flaws) > 0 {
		return flaws
	}
	if f, wrong := apiVersionFlaw(at.child(apiVersionKey), manifest); wrong {
		return []flaw{f}
	}
	if manifest[kindKey] == "List" {
		return []flaw{{field: at, reason: ReasonInvalidManifest, message: "a List cannot be deployed", hint: "write its items as manifests of their own"}}
	}
	metadata, isObject := manifest[metadataKey].(map[string]any)
	if !isObject {
		return []flaw{{field: at.child(metadataKey), reason: ReasonInvalidManifest, message: fmt.Sprintf("manifest %d has no metadata.name", i), missing: true}}
	}
	return append(flaws, manifestMetadataFlaws(at.child(metadataKey), i, manifest, metadata)...)
}

// apiVersionFlaw holds a group and version to the names the API server serves; the
// schema of embedded resources counts their slashes only.
func apiVersionFlaw(at fieldPath, manifest map[string]any) (flaw, bool) {
	text, _ := manifest[apiVersionKey].(string)
	if strings.Contains(text, "{{") {
		return flaw{}, false
	}
	parsed, err := schema.ParseGroupVersion(text)
	if err == nil && len(validation.IsDNS1035Label(parsed.Version)) == 0 &&
		(!strings.Contains(text, "/") || len(validation.IsDNS1123Subdomain(parsed.Group)) == 0) {
		return flaw{}, false
	}
	return flaw{
		field: at, reason: ReasonInvalidManifest,
		message: fmt.Sprintf("%q is no apiVersion", shown(text)), hint: "write group/version as in apps/v1, or v1",
	}, true
}

func manifestMetadataFlaws(at fieldPath, i int, manifest, metadata map[string]any) []flaw {
	var flaws []flaw
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := metadata[key]
		if f, refused := refusedMetadata(at.child(key), key); refused && value != nil {
			flaws = append(flaws, f)
		}
		if (key == labelsKey || key == "annotations") && value != nil {
			flaws = append(flaws, stringMapFlaws(at.child(key), value)...)
		}
	}
	if _, isString := metadata[namespaceKey].(string); metadata[namespaceKey] != nil && !isString {
		flaws = append(flaws, notAString(at.child(namespaceKey)))
	}
	if metadata["generateName"] != nil {
		return flaws
	}
	name, isString := metadata[nameKey].(string)
	switch {
	case metadata[nameKey] == nil || isString && name == "":
		flaws = append(flaws, flaw{field: at.child(nameKey), reason: ReasonInvalidManifest, message: fmt.Sprintf("manifest %d has no name", i), missing: true})
	case !isString:
		flaws = append(flaws, notAString(at.child(nameKey)))
	default:
		flaws = append(flaws, manifestNameFlaws(at.child(nameKey), manifest, name)...)
	}
	return flaws
}

// declaredVariables reads which variables a declared AddOnTemplate gives a type.
func declaredVariables(object map[string]any) *manifestVariables {
	annotations, _ := valueAt(object, metadataKey, "annotations").(map[string]any)
	text, _ := annotations[TypedVariablesAnnotation].(string)
	types, err := ParseTypedVariables(text)
	v := &manifestVariables{types: types, unread: err != nil}
	for key := range annotations {
		v.unread = v.unread || !declarable(key) && meantKey(key) == TypedVariablesAnnotation
	}
	return v
}
