package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// manifestsAt is the field of an AddOnTemplate with its manifests.
const manifestsAt flaw.Path = "spec.agentSpec.workload.manifests"

// inManifest reports whether the field is in a manifest.
func inManifest(p flaw.Path) bool {
	return strings.HasPrefix(string(p), string(manifestsAt)+"[")
}

// manifestOf returns the path of the manifest that contains the field; if no manifest contains it, the path of the
// list of manifests.
func manifestOf(p flaw.Path) flaw.Path {
	rest, _ := strings.CutPrefix(string(p), string(manifestsAt))
	return manifestsAt + flaw.Path(rest[:strings.IndexByte(rest, ']')+1])
}

// manifestFlaws checks the manifests of a declared AddOnTemplate before variables are replaced:
// each must be one object that the work agent can apply. Names and values with a variable are
// checked when they are rendered.
func manifestFlaws(object map[string]any) []flaw.Flaw {
	manifests, present := manifestsOf(object)
	if !present {
		return nil // the schema reports which of the parents is missing or wrong
	}
	if len(manifests) == 0 {
		return []flaw.Flaw{{
			Field: manifestsAt, Reason: flaw.ReasonInvalidManifest,
			Message: isEmpty, Hint: "a template deploys at least one object", Missing: true,
		}}
	}
	var flaws []flaw.Flaw
	seen := map[render.Identity]int{}
	declared := declarationsOf(object)
	for i, manifest := range manifests {
		at := manifestsAt.Index(i)
		content, isObject := manifest.(map[string]any)
		if !isObject {
			flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("manifest %d must be an object", i)})
			continue
		}
		found := flaw.FirstPerField(append(oneManifestFlaws(at, i, content), strict.ManifestFlaws(at, content, declared)...))
		flaws = append(flaws, found...)
		if len(found) > 0 {
			continue
		}
		id := render.IdentityOf(content).Object()
		if first, twice := seen[id]; twice {
			flaws = append(flaws, flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("%s is manifest %d already", id, first)})
			continue
		}
		seen[id] = i
	}
	return flaws
}

// manifestsOf returns the list of manifests. present is false if a parent of the list is absent or not an object. If
// only the list is absent, it is empty.
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

func oneManifestFlaws(at flaw.Path, i int, manifest map[string]any) []flaw.Flaw {
	var flaws []flaw.Flaw
	for _, key := range []string{apiVersionKey, kindKey} {
		if text, isString := manifest[key].(string); !isString || text == "" {
			flaws = append(flaws, flaw.Flaw{Field: at.Child(key), Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("manifest %d has no %s", i, key), Missing: true})
		}
	}
	if len(flaws) > 0 {
		return flaws
	}
	if f, wrong := apiVersionFlaw(at.Child(apiVersionKey), manifest); wrong {
		return []flaw.Flaw{f}
	}
	if manifest[kindKey] == "List" {
		return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: "a List cannot be deployed", Hint: "write its items as manifests of their own"}}
	}
	metadata, isObject := manifest[metadataKey].(map[string]any)
	if !isObject {
		return []flaw.Flaw{{Field: at.Child(metadataKey), Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("manifest %d has no metadata.name", i), Missing: true}}
	}
	return append(flaws, manifestMetadataFlaws(at.Child(metadataKey), i, manifest, metadata)...)
}

// apiVersionFlaw checks a group and version against the API server's rules for names. The schema of embedded
// resources only counts their slashes.
func apiVersionFlaw(at flaw.Path, manifest map[string]any) (flaw.Flaw, bool) {
	text, _ := manifest[apiVersionKey].(string)
	if strings.Contains(text, "{{") {
		return flaw.Flaw{}, false
	}
	parsed, err := schema.ParseGroupVersion(text)
	if err == nil && len(validation.IsDNS1035Label(parsed.Version)) == 0 &&
		(!strings.Contains(text, "/") || len(validation.IsDNS1123Subdomain(parsed.Group)) == 0) {
		return flaw.Flaw{}, false
	}
	return flaw.Flaw{
		Field: at, Reason: flaw.ReasonInvalidManifest,
		Message: fmt.Sprintf("%q is not an apiVersion", flaw.Shown(text)), Hint: "write group/version as in apps/v1, or v1",
	}, true
}

func manifestMetadataFlaws(at flaw.Path, i int, manifest, metadata map[string]any) []flaw.Flaw {
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		value := metadata[key]
		if f, refused := refusedMetadata(at.Child(key), key); refused && !render.SetsNothing(value) {
			flaws = append(flaws, f)
		}
		if (key == labelsKey || key == "annotations") && value != nil {
			flaws = append(flaws, stringMapFlaws(at.Child(key), value)...)
		}
	}
	if _, isString := metadata[namespaceKey].(string); metadata[namespaceKey] != nil && !isString {
		flaws = append(flaws, notAString(at.Child(namespaceKey)))
	}
	if generated, _ := metadata["generateName"].(string); generated != "" {
		return flaws
	}
	name, isString := metadata[nameKey].(string)
	switch {
	case metadata[nameKey] == nil || isString && name == "":
		flaws = append(flaws, flaw.Flaw{Field: at.Child(nameKey), Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("manifest %d has no name", i), Missing: true})
	case !isString:
		flaws = append(flaws, notAString(at.Child(nameKey)))
	default:
		flaws = append(flaws, render.ManifestNameFlaws(at.Child(nameKey), manifest, name)...)
	}
	return flaws
}

// declarationsOf reads the declarations of an AddOnTemplate about its manifests.
func declarationsOf(object map[string]any) *strict.Declarations {
	annotations, _ := valueAt(object, metadataKey, "annotations").(map[string]any)
	text, _ := annotations[variable.TypedAnnotation].(string)
	types, err := variable.ParseTyped(text)
	v := &strict.Declarations{Types: types, Unread: err != nil}
	names, _ := annotations[strict.NewerNamesAnnotation].(string)
	v.Newer, _ = strict.ParseNewerNames(names) // templateFlaws reports what is wrong with it
	for key := range annotations {
		v.Unread = v.Unread || !declarable(key) && meantKey(key) == variable.TypedAnnotation
	}
	return v
}
