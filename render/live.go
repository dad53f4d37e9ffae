package render

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ErrUnusableConfig says that an object on the hub cannot be the configuration it is
// named as. It does not go away by retrying.
var ErrUnusableConfig = errors.New("unusable configuration")

// LiveConfig reads an object of the hub as a configuration of the add-on, for
// Cluster.Configs: normalised and hashed as the configurations of a commit are, and
// judged by the same rules. live is not changed and not kept.
//
// The error is ErrUnusableConfig with everything wrong with the object.
func LiveConfig(addOn string, reference ConfigReference, live *unstructured.Unstructured) (Config, error) {
	resource := schema.GroupResource{Group: reference.Group, Resource: reference.Resource}
	if why := refusedConfiguration(resource); why != "" {
		return Config{}, fmt.Errorf("%w: %s", ErrUnusableConfig, why)
	}
	role := roleOf(live.GroupVersionKind(), map[schema.GroupResource]bool{resource: true})
	schemas, err := compiledSchemas()
	if err != nil {
		return Config{}, err
	}
	object, err := schemas.stored(live, role)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrUnusableConfig, reference, err)
	}
	flaws := valueFlaws(object, role)
	if owner, _ := valueAt(object.Object, specKey, "addonName").(string); role == roleTemplate && owner != addOn {
		flaws = append(flaws, flaw{field: "spec.addonName", message: fmt.Sprintf("belongs to add-on %q", owner)})
	}
	if len(flaws) > 0 {
		return Config{}, unusable(reference, flaws)
	}
	hash, err := SpecHash(object)
	if err != nil {
		return Config{}, fmt.Errorf("%w: %s: %w", ErrUnusableConfig, reference, err)
	}
	c := Config{
		ConfigReference: reference, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		SpecHash: hash, Body: hashedFields(object.Object),
	}
	if role == roleTemplate {
		// Both were read by templateFlaws already.
		c.Typed, _ = ParseTypedVariables(object.GetAnnotations()[TypedVariablesAnnotation])
		c.FromConfigs, _ = ParseConfigVariables(object.GetAnnotations()[ConfigVariablesAnnotation])
	}
	return c, nil
}

// unusable is everything wrong with an object as one error.
func unusable(reference ConfigReference, flaws []flaw) error {
	err := fmt.Errorf("%w: %s", ErrUnusableConfig, reference)
	for _, f := range flaws {
		err = fmt.Errorf("%w: %s: %s", err, f.field, f.message)
	}
	return err
}
