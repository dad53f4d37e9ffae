package load

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// normalise returns a declared object as the hub stores it: in the storage version, with defaults, with reduced
// metadata. If there are flaws, the object is returned without the flawed fields, so that other checks can find more
// flaws.
func (s schemaSet) normalise(declared *unstructured.Unstructured, r role) (*unstructured.Unstructured, []flaw.Flaw) {
	object, err := plainJSON(declared.Object)
	if err != nil {
		return nil, []flaw.Flaw{{Reason: flaw.ReasonInvalidManifest, Message: err.Error()}}
	}
	delete(object, statusKey)
	metadata, flaws := reduceMetadata(object, s.scopeOf(declared, r))
	flaws = append(flaws, misplacedKeys(declared.GetLabels(), declared.GetAnnotations(), r)...)
	var found []flaw.Flaw
	switch r {
	case roleNamespace:
		object, found = normaliseNamespace(object)
	case roleConfigMap:
		object, found = normaliseConfigMap(object)
	case roleRollout:
		found = append(strictTopLevel(object, reflect.TypeFor[v1alpha1.AddOnRollout]()), paceFlaws(specKey, object[specKey])...)
		dropNulls(object)
	case rolePackage:
		found = normalisePackage(object)
	case roleHub: // the hub knows its schema
	case roleOther:
		found = s.completeOther(object, declared)
	default:
		object, found = s.normaliseBySchema(object, declared, r)
	}
	object[metadataKey] = metadata
	return &unstructured.Unstructured{Object: object}, flaw.FirstPerField(append(flaws, found...))
}

// normaliseBySchema normalises objects of kinds whose CRD is embedded.
func (s schemaSet) normaliseBySchema(object map[string]any, declared *unstructured.Unstructured, r role) (map[string]any, []flaw.Flaw) {
	k, known := s[declared.GroupVersionKind()]
	if !known {
		return object, []flaw.Flaw{{Reason: flaw.ReasonUnsupportedKind, Message: "has no known schema"}}
	}
	flaws := unknownFields(object, k.structural)
	if r == roleAddOn {
		flaws = append(flaws, paceFlaws("spec.installStrategy", valueAt(object, specKey, "installStrategy"))...)
	}
	if r == roleConfig {
		flaws = append(flaws, declaredVariableFlaws(object)...)
	}
	var manifests []flaw.Flaw
	if r == roleTemplate {
		manifests = manifestFlaws(object)
		flaws = append(flaws, manifests...)
	}
	k.complete(object)
	for _, f := range schemaFlaws(object, k, r) {
		// For manifests, the check of the schema is less precise, so its flaw is dropped.
		if !slices.ContainsFunc(manifests, func(m flaw.Flaw) bool { return f.Field.Under(manifestOf(m.Field)) || m.Field.Under(f.Field) }) {
			flaws = append(flaws, f)
		}
	}
	object = toStorage(object, r, k)
	s.storageSchema(declared, k).complete(object)
	return object, flaws
}

// policyFlaws returns the flaws for which the API server would refuse an AddOnRollout after it fills in the CRD's
// defaults. The object does not change.
func (s schemaSet) policyFlaws(object map[string]any) []flaw.Flaw {
	k := s[v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind)]
	completed := runtime.DeepCopyJSON(object)
	k.complete(completed)
	return schemaFlaws(completed, k, roleRollout)
}

// storageSchema returns the schema of the version in which the hub stores an object, because a converted object gets
// that version's defaults when the hub reads it.
func (s schemaSet) storageSchema(object *unstructured.Unstructured, k kindSchema) kindSchema {
	kind := object.GroupVersionKind()
	kind.Version = k.storage
	return s[kind]
}

// stored returns an object of the hub in the form that normalise returns. It relies on the hub's validation. The
// object may have a served version that is not the stored one.
func (s schemaSet) stored(live *unstructured.Unstructured, r role) (*unstructured.Unstructured, error) {
	object, err := plainJSON(live.Object)
	if err != nil {
		return nil, err
	}
	delete(object, statusKey)
	metadata, _ := reduceMetadata(object, scopeUnknown)
	if k, known := s[live.GroupVersionKind()]; known {
		k.complete(object)
		object = toStorage(object, r, k)
		s.storageSchema(live, k).complete(object)
	}
	object[metadataKey] = metadata
	return &unstructured.Unstructured{Object: object}, nil
}

// scopeOf returns the scope of a kind.
func (s schemaSet) scopeOf(object *unstructured.Unstructured, r role) scope {
	switch r {
	case roleNamespace:
		return scopeNamespace
	case roleConfigMap:
		return scopeNamespaced
	case roleRollout, rolePackage, roleOther, roleHub:
		return scopeUnknown // an AddOnRollout is applied in its source's namespace
	default:
	}
	if s[object.GroupVersionKind()].namespaced {
		return scopeNamespaced
	}
	return scopeCluster
}

// normaliseNamespace keeps only the metadata of a Namespace. Its spec has finalizers, which belong to the hub.
func normaliseNamespace(object map[string]any) (map[string]any, []flaw.Flaw) {
	flaws := strictTopLevel(object, reflect.TypeFor[corev1.Namespace]())
	if finalizers := valueAt(object, specKey, "finalizers"); finalizers != nil {
		flaws = append(flaws, flaw.Flaw{Field: "spec.finalizers", Reason: flaw.ReasonInvalidManifest, Message: "finalizers cannot be declared: no controller would remove them", Hint: flaw.RemoveIt})
	}
	return map[string]any{apiVersionKey: object[apiVersionKey], kindKey: object[kindKey]}, flaws
}

// normaliseConfigMap writes a ConfigMap as the API server does: an entry without a value
// becomes an empty string, and a field without entries is dropped.
func normaliseConfigMap(object map[string]any) (map[string]any, []flaw.Flaw) {
	flaws := strictTopLevel(object, reflect.TypeFor[corev1.ConfigMap]())
	if len(flaws) > 0 {
		return object, flaws
	}
	var typed struct {
		Data       map[string]string `json:"data,omitempty"`
		BinaryData map[string][]byte `json:"binaryData,omitempty"`
		Immutable  *bool             `json:"immutable,omitempty"`
	}
	written := map[string]any{}
	if err := errors.Join(strict.Convert(object, &typed), strict.Convert(typed, &written)); err != nil {
		return object, []flaw.Flaw{{Reason: flaw.ReasonInvalidManifest, Message: err.Error()}}
	}
	written[apiVersionKey], written[kindKey] = object[apiVersionKey], object[kindKey]
	return written, nil
}

// dropNulls removes null fields, as the API server does if a field is not nullable.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, field any) bool { return field == nil })
		for _, field := range value {
			dropNulls(field)
		}
	case []any:
		for _, item := range value {
			dropNulls(item)
		}
	}
}

// strictTopLevel returns the strict.Flaws of every field but the metadata, which reduceMetadata
// checks.
func strictTopLevel(object map[string]any, want reflect.Type) []flaw.Flaw {
	body := make(map[string]any, len(object))
	for key, value := range object {
		if key != metadataKey {
			body[key] = value
		}
	}
	return strict.Flaws("", body, want)
}

// plainJSON returns a deep copy with the value types of decoded JSON: int64, float64, []any and
// map[string]any. Every whole number is an int64.
func plainJSON(object map[string]any) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("cannot be written as JSON: %w", err)
	}
	copied := map[string]any{}
	if err := utiljson.Unmarshal(text, &copied); err != nil {
		return nil, fmt.Errorf("cannot be read as JSON: %w", err)
	}
	return copied, nil
}

// valueAt returns a nested value; nil: there is none.
func valueAt(object map[string]any, keys ...string) any {
	value := any(object)
	for _, key := range keys {
		parent, isObject := value.(map[string]any)
		if !isObject {
			return nil
		}
		value = parent[key]
	}
	return value
}
