package addonrollout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statusPatch is the JSON merge patch that makes the status of before that of after,
// bound to the version of before. client.MergeFrom would encode and decode both objects
// whole, whose managed fields alone are larger than their status; this is written twice
// per cluster and change, and was the dearest thing the operator did.
func statusPatch(before, after *addonv1alpha1.ManagedClusterAddOn) (client.Patch, error) {
	former, latter := apart(before.Status, after.Status)
	was, err := json.Marshal(former)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status: %w", err)
	}
	is, err := json.Marshal(latter)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the status: %w", err)
	}
	difference, err := mergeDifference(was, is)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": before.ResourceVersion},
		"status":   difference,
	})
	if err != nil {
		return nil, fmt.Errorf("cannot encode the patch: %w", err)
	}
	return client.RawPatch(types.MergePatchType, body), nil
}

// apart returns two statuses without those of their larger fields that are equal, which
// then need no encoding. A field that is not looked at here is compared as text.
func apart(a, b addonv1alpha1.ManagedClusterAddOnStatus) (was, is addonv1alpha1.ManagedClusterAddOnStatus) {
	if equality.Semantic.DeepEqual(a.ConfigReferences, b.ConfigReferences) {
		a.ConfigReferences, b.ConfigReferences = nil, nil
	}
	if equality.Semantic.DeepEqual(a.Registrations, b.Registrations) {
		a.Registrations, b.Registrations = nil, nil
	}
	if equality.Semantic.DeepEqual(a.SupportedConfigs, b.SupportedConfigs) {
		a.SupportedConfigs, b.SupportedConfigs = nil, nil
	}
	return a, b
}

// mergeDifference is what RFC 7386 needs to make object a into b: null for what goes,
// lists and scalars whole, objects by what differs in them. Equal values are equal texts,
// because one encoder wrote both.
func mergeDifference(a, b []byte) (map[string]any, error) {
	var was, is map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(a, &was), json.Unmarshal(b, &is)); err != nil {
		return nil, fmt.Errorf("cannot compare: %w", err)
	}
	out := map[string]any{}
	for key := range was {
		if _, ok := is[key]; !ok {
			out[key] = nil
		}
	}
	for key, value := range is {
		former := was[key]
		switch {
		case bytes.Equal(former, value):
		case bytes.HasPrefix(former, []byte("{")) && bytes.HasPrefix(value, []byte("{")):
			inner, err := mergeDifference(former, value)
			if err != nil {
				return nil, err
			}
			out[key] = inner
		default:
			out[key] = value
		}
	}
	return out, nil
}
