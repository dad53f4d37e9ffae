package load

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// ErrUnusableConfig means that an object on the hub cannot be used as the named configuration. A retry does not help.
var ErrUnusableConfig = errors.New("unusable configuration")

// LiveConfig reads an object of the hub as a configuration of the add-on, for Cluster.Configs. It normalises, hashes
// and checks the object like the configurations of a commit. live is not changed and not kept.
//
// The error is ErrUnusableConfig with all errors of the object.
func LiveConfig(addOn string, reference render.ConfigReference, live *unstructured.Unstructured) (render.Config, error) {
	resource := schema.GroupResource{Group: reference.Group, Resource: reference.Resource}
	if why := refusedConfiguration(resource); why != "" {
		return render.Config{}, fmt.Errorf("%w: %s", ErrUnusableConfig, why)
	}
	role := roleOf(live.GroupVersionKind(), map[schema.GroupResource]bool{resource: true})
	schemas, err := compiledSchemas()
	if err != nil {
		return render.Config{}, err
	}
	object, err := schemas.stored(live, role)
	if err != nil {
		return render.Config{}, fmt.Errorf("%w: %s: %w", ErrUnusableConfig, reference, err)
	}
	flaws := valueFlaws(object, role)
	if owner, _ := valueAt(object.Object, specKey, "addonName").(string); role == roleTemplate && owner != addOn {
		flaws = append(flaws, flaw.Flaw{Field: "spec.addonName", Message: fmt.Sprintf("belongs to add-on %q", owner)})
	}
	if len(flaws) > 0 {
		return render.Config{}, unusable(reference, flaws)
	}
	hash, err := render.SpecHash(object)
	if err != nil {
		return render.Config{}, fmt.Errorf("%w: %s: %w", ErrUnusableConfig, reference, err)
	}
	c := render.Config{
		ConfigReference: reference, APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		SpecHash: hash, Body: render.HashedFields(object.Object),
	}
	if role == roleTemplate {
		// templateFlaws parsed both before.
		c.Typed, _ = variable.ParseTyped(object.GetAnnotations()[variable.TypedAnnotation])
		c.FromConfigs, _ = variable.ParseFromConfigs(object.GetAnnotations()[variable.FromConfigsAnnotation])
	}
	return c, nil
}

// unusable joins all errors of an object into one error.
func unusable(reference render.ConfigReference, flaws []flaw.Flaw) error {
	err := fmt.Errorf("%w: %s", ErrUnusableConfig, reference)
	for _, f := range flaws {
		err = fmt.Errorf("%w: %s: %s", err, f.Field, f.Message)
	}
	return err
}
