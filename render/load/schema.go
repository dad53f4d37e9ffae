package load

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/manifests"
)

// crds are OCM's CRDs, copied from the pinned open-cluster-management.io/api, which does not
// embed them. A test compares the copies with the module.
//
//go:embed crds/*.yaml
var crds embed.FS

// compiledSchemas compiles the embedded CRDs once. The result is shared and must not be changed. An error is a
// mistake in the program, not in an input.
var compiledSchemas = sync.OnceValues(compileEmbedded)

// kindSchema is one served version of one CRD.
type kindSchema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	// rules returns the values that the schema's CEL rules refuse. The rules are compiled at the first call.
	rules      func(object map[string]any) field.ErrorList
	namespaced bool
	// storage is the version that the hub stores. Every object is normalised to it.
	storage string
	// converted: a webhook converts between versions, and its result is not known here.
	converted bool
}

type schemaSet map[schema.GroupVersionKind]kindSchema

// compileEmbedded reads and compiles the CRDs of OCM, and those CRDs of AddonFlow whose objects a commit can have.
func compileEmbedded() (schemaSet, error) {
	set := schemaSet{}
	for _, from := range []struct {
		files   embed.FS
		pattern string
	}{{crds, "crds/*.yaml"}, {manifests.CRDs, "crds/*_addonhubconfigs.yaml"}, {manifests.CRDs, "crds/*_addonrollouts.yaml"}} {
		names, err := fs.Glob(from.files, from.pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := set.read(from.files, name); err != nil {
				return nil, fmt.Errorf("cannot compile the embedded CRDs: %w", err)
			}
		}
	}
	return set, nil
}

func (s schemaSet) read(files embed.FS, name string) error {
	text, err := files.ReadFile(name)
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &crd); err != nil {
		return fmt.Errorf("cannot decode %s: %w", name, err)
	}
	return s.add(&crd)
}

func (s schemaSet) add(crd *apiextensionsv1.CustomResourceDefinition) error {
	storage := ""
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			storage = version.Name
		}
	}
	for _, version := range crd.Spec.Versions {
		if version.Schema == nil || version.Schema.OpenAPIV3Schema == nil {
			continue
		}
		kind := schema.GroupVersionKind{Group: crd.Spec.Group, Version: version.Name, Kind: crd.Spec.Names.Kind}
		compiled, err := compile(version.Schema.OpenAPIV3Schema)
		if err != nil {
			return fmt.Errorf("cannot compile the schema of %s: %w", kind, err)
		}
		compiled.namespaced = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
		compiled.storage = storage
		compiled.converted = crd.Spec.Conversion != nil && crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter
		s[kind] = compiled
	}
	return nil
}

func compile(properties *apiextensionsv1.JSONSchemaProps) (kindSchema, error) {
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(properties, &internal, nil); err != nil {
		return kindSchema{}, err
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		return kindSchema{}, err
	}
	validator, _, err := validation.NewSchemaValidator(&internal)
	if err != nil {
		return kindSchema{}, err
	}
	compiled := sync.OnceValue(func() *cel.Validator { return cel.NewValidator(structural, true, celconfig.PerCallLimit) })
	rules := func(object map[string]any) field.ErrorList {
		found, _ := compiled().Validate(context.Background(), nil, structural, object, nil, celconfig.RuntimeCELCostBudget)
		return found
	}
	return kindSchema{structural: structural, validator: validator, rules: rules}, nil
}

// complete completes an object as the API server does when it stores one: it fills in defaults,
// and drops unknown fields and nulls. It changes object.
func (k kindSchema) complete(object map[string]any) {
	defaulting.Default(object, k.structural)
	pruning.Prune(object, k.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, k.structural)
}
