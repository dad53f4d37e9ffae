package addonstatus

import (
	"encoding/json"
	"fmt"
	"maps"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/equality"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Patch returns the JSON merge patch from the status of before to the status of after, with
// the version of before as precondition. client.MergeFrom would encode and decode both whole
// objects, whose managed fields alone are larger than their status. The operator writes this
// patch twice per cluster and change, and it was its most expensive operation.
func Patch(before, after *addonv1alpha1.ManagedClusterAddOn) ([]byte, error) {
	former, latter, lists := before.Status, after.Status, map[string]any{}
	replaceList(lists, "conditions", &former.Conditions, &latter.Conditions)
	replaceList(lists, "configReferences", &former.ConfigReferences, &latter.ConfigReferences)
	replaceList(lists, "registrations", &former.Registrations, &latter.Registrations)
	replaceList(lists, "supportedConfigs", &former.SupportedConfigs, &latter.SupportedConfigs)
	was, err := json.Marshal(former)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status: %w", err)
	}
	is, err := json.Marshal(latter)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status: %w", err)
	}
	text, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the status: %w", err)
	}
	var difference map[string]any
	if err := json.Unmarshal(text, &difference); err != nil {
		return nil, fmt.Errorf("cannot compare the status: %w", err)
	}
	maps.Copy(difference, lists)
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": before.ResourceVersion},
		"status":   difference,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch: %w", err)
	}
	return body, nil
}

// replaceList enters a list that differs into the difference and removes it from both statuses. A
// merge patch replaces whole lists, so that the former list need not be encoded.
func replaceList[T any](difference map[string]any, name string, was, is *[]T) {
	if !equality.Semantic.DeepEqual(*was, *is) {
		difference[name] = nil // removes the field
		if len(*is) > 0 {
			difference[name] = *is
		}
	}
	*was, *is = nil, nil
}
