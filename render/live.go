package render

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
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

// String is resource.group/namespace/name, without the namespace of what has none.
func (c ConfigReference) String() string {
	text := resourceName(c.Group, c.Resource) + "/"
	if c.Namespace != "" {
		text += c.Namespace + "/"
	}
	return text + c.Name
}

// Supports reports whether the add-on lists a kind of configuration, so that
// ManagedClusterAddOns may name objects of it (OCM behaviour, row 12).
func (r *Renderer) Supports(group, resource string) bool {
	return slices.Contains(r.content.Supported, addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource})
}

// Supported are the kinds of configuration that the add-on lists, sorted, as
// MCA.status.supportedConfigs has them (OCM behaviour, row 13). The caller must not
// change them.
func (r *Renderer) Supported() []addonv1alpha1.ConfigGroupResource { return r.content.Supported }

// UnsupportedMessage is what OCM says of a configuration that an add-on does not
// list (OCM behaviour, row 12).
func UnsupportedMessage(group, resource string) string {
	return fmt.Sprintf("Configuration with gvr %s/%s is not supported for this addon", group, resource)
}
