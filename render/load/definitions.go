package load

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/render/flaw"
)

const definitionsResource = "customresourcedefinitions"

// Definition reports whether the reference names a CustomResourceDefinition. A nil value in a Lookup means that the
// hub has no such definition. Objects of the kind are then taken as declared.
func (r Reference) Definition() bool {
	return r.Group == apiextensionsv1.GroupName && r.Resource == definitionsResource
}

// DefinitionOf returns the reference to the CustomResourceDefinition of a resource, as used in
// a Lookup.
func DefinitionOf(resource schema.GroupResource) Reference {
	return Reference{Group: apiextensionsv1.GroupName, Resource: definitionsResource, Name: resource.String()}
}

// defined returns the set with the kinds that the CustomResourceDefinitions of a lookup
// define. The embedded ones are never replaced.
func (s schemaSet) defined(hub Lookup) (schemaSet, error) {
	all := maps.Clone(s)
	names := slices.SortedFunc(maps.Keys(hub), func(a, b Reference) int { return strings.Compare(a.Name, b.Name) })
	for _, reference := range names {
		if !reference.Definition() || hub[reference] == nil {
			continue
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(hub[reference].Object, &crd); err != nil {
			return nil, fmt.Errorf("cannot read CustomResourceDefinition %s: %w", reference.Name, err)
		}
		if crd.Spec.Group == addonGroup || crd.Spec.PreserveUnknownFields {
			continue // the schema is embedded, or objects are taken as declared
		}
		if err := all.add(&crd); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// completeOther completes an object as the hub does on a write, if the schema of its kind is known. It returns flaws
// for the fields that the hub would refuse or drop. Without the schema, the object stays as declared. It changes
// object.
func (s schemaSet) completeOther(object map[string]any, declared *unstructured.Unstructured) []flaw.Flaw {
	k, known := s[declared.GroupVersionKind()]
	if !known {
		return nil
	}
	flaws := unknownFields(object, k.structural)
	k.complete(object)
	flaws = append(flaws, schemaFlaws(object, k, roleOther)...)
	if stored := s.storageSchema(declared, k); stored.structural != nil && !k.converted {
		stored.complete(object)
	}
	return flaws
}

// undefined returns the CustomResourceDefinition that should complete an object of a kind that only the hub knows, if
// it is not in the Lookup yet.
func (l *loader) undefined(declared *unstructured.Unstructured, r role) (Reference, bool) {
	kind := declared.GroupVersionKind()
	if _, known := l.schemas[kind]; known || r != roleOther {
		return Reference{}, false
	}
	reference := DefinitionOf(resourceOf(kind))
	_, asked := l.hub[reference]
	return reference, !asked
}
