package load

import (
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// scope says whether objects of a kind live in a namespace.
type scope int

const (
	// scopeUnknown: only the hub knows.
	scopeUnknown scope = iota
	scopeCluster
	scopeNamespaced
	// scopeNamespace is the scope of the kind Namespace: cluster-scoped, with shorter names.
	scopeNamespace
)

// ownKeys is the prefix of labels and annotations that only AddonFlow may write.
const ownKeys = "addonflow.io/"

// reduceMetadata returns name, namespace, labels and annotations of a declared object, and the errors of its
// metadata. It drops fields that the API server drops or overwrites on a write. It refuses fields that the API server
// would refuse, and fields that would make the object depend on others.
func reduceMetadata(object map[string]any, s scope) (map[string]any, []flaw.Flaw) {
	declared, isObject := object[metadataKey].(map[string]any)
	if !isObject {
		return nil, []flaw.Flaw{{Field: metadataKey, Reason: flaw.ReasonInvalidManifest, Message: flaw.IsRequired, Missing: true, Hint: "give the object a metadata.name"}}
	}
	reduced := map[string]any{}
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(declared)) {
		value, found := reduceField(key, declared[key])
		flaws = append(flaws, found...)
		if value != nil {
			reduced[key] = value
		}
	}
	if s == scopeCluster || s == scopeNamespace {
		delete(reduced, namespaceKey)
	}
	return reduced, flaw.FirstPerField(append(flaws, metadataFlaws(reduced, s)...))
}

// reduceField returns the part of one metadata field that is kept; nil: none.
func reduceField(key string, value any) (any, []flaw.Flaw) {
	at := flaw.Path(metadataKey).Child(key)
	switch {
	case value == nil:
		return nil, nil
	case key == nameKey || key == namespaceKey:
		text, isString := value.(string)
		if !isString {
			return nil, []flaw.Flaw{notAString(at)}
		}
		return text, nil
	case key == labelsKey || key == "annotations":
		return reduceStrings(at, value)
	case key == "creationTimestamp" || key == "generation" || key == "selfLink":
		return nil, nil
	}
	if f, refused := refusedMetadata(at, key); refused && !render.SetsNothing(value) {
		return nil, []flaw.Flaw{f}
	} else if refused {
		return nil, nil
	}
	return nil, []flaw.Flaw{strict.UnknownField(metadataKey, key, []string{nameKey, namespaceKey, labelsKey, "annotations"})}
}

// reduceStrings returns the valid labels or annotations; nil: none.
func reduceStrings(at flaw.Path, value any) (any, []flaw.Flaw) {
	flaws := stringMapFlaws(at, value)
	entries, _ := value.(map[string]any)
	kept := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		own := strings.HasPrefix(key, ownKeys) && !declarable(key)
		if own {
			flaws = append(flaws, ownKeyFlaw(at, key))
		}
		if text, isString := entries[key].(string); !own && (isString || entries[key] == nil) {
			kept[key] = text // null counts as an empty string, as in the API server
		}
	}
	if len(kept) == 0 {
		return nil, flaws
	}
	return kept, flaws
}

// stringMapFlaws refuses labels or annotations whose values are not strings; a null counts as
// an empty string.
func stringMapFlaws(at flaw.Path, value any) []flaw.Flaw {
	entries, isMap := value.(map[string]any)
	if !isMap {
		return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidManifest, Message: "must be a map of strings"}}
	}
	var flaws []flaw.Flaw
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if _, isString := entries[key].(string); !isString && entries[key] != nil {
			flaws = append(flaws, notAString(at.Child(key)))
		}
	}
	return flaws
}

// refusedMetadata returns the flaw of a metadata field that Git must not set on a hub object or on a manifest of a
// template.
func refusedMetadata(at flaw.Path, key string) (flaw.Flaw, bool) {
	f := flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Hint: flaw.RemoveIt}
	switch key {
	case "generateName":
		f.Message, f.Hint = "an object of a commit needs a fixed name", "set metadata.name"
	case "uid", "resourceVersion", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds":
		f.Message = "is set by the API server"
	case "ownerReferences":
		f.Message = "owners cannot be declared: they are known by a uid of one cluster"
	case "finalizers":
		f.Message = "finalizers cannot be declared: no controller would remove them"
	default:
		return flaw.Flaw{}, false
	}
	return f, true
}

// metadataFlaws validates reduced metadata as the API server would.
func metadataFlaws(reduced map[string]any, s scope) []flaw.Flaw {
	meta := objectMeta(reduced)
	name := apivalidation.ValidateNameFunc(apivalidation.NameIsDNSSubdomain)
	if s == scopeNamespace {
		name = apivalidation.ValidateNamespaceName
	}
	namespaced := s == scopeNamespaced || s == scopeUnknown && meta.Namespace != ""
	var flaws []flaw.Flaw
	for _, err := range apivalidation.ValidateObjectMeta(&meta, namespaced, name, field.NewPath(metadataKey)) {
		f := flaw.Flaw{Field: flaw.Path(err.Field), Reason: flaw.ReasonInvalidManifest, Message: err.ErrorBody()}
		if err.Type == field.ErrorTypeRequired {
			f.Message, f.Missing = flaw.IsRequired, true
		}
		flaws = append(flaws, f)
	}
	return flaws
}

func objectMeta(reduced map[string]any) metav1.ObjectMeta {
	name, _ := reduced[nameKey].(string)
	namespace, _ := reduced[namespaceKey].(string)
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace,
		Labels: stringMap(reduced[labelsKey]), Annotations: stringMap(reduced["annotations"]),
	}
}

func stringMap(value any) map[string]string {
	entries, _ := value.(map[string]any)
	if len(entries) == 0 {
		return nil
	}
	typed := make(map[string]string, len(entries))
	for key, value := range entries {
		text, _ := value.(string)
		typed[key] = text
	}
	return typed
}

// notAString is the flaw of metadata that is a number or boolean where a string belongs.
func notAString(at flaw.Path) flaw.Flaw {
	return flaw.Flaw{Field: at, Reason: flaw.ReasonInvalidManifest, Message: "must be a string", Hint: "quote it"}
}
