package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Installed reports whether AddonFlow installed the add-on that a ManagedClusterAddOn
// stands for: it has AddonFlow's label, or it lost it and Created holds. Any other is made
// by hand and is never deleted.
func Installed(addOn metav1.Object) bool {
	return addOn.GetLabels()[ManagedByLabel] == ManagedByValue || Created(addOn)
}

// Created reports whether the managed fields of a ManagedClusterAddOn show that AddonFlow
// created or applied it. Of one that it did not create AddonFlow writes metadata and status,
// never a spec; the spec of one that it created stays its field when labels and owner
// references are taken away.
func Created(addOn metav1.Object) bool {
	for _, e := range addOn.GetManagedFields() {
		if !writtenByOperator(e) {
			continue
		}
		var set struct {
			Spec json.RawMessage `json:"f:spec"`
		}
		if e.Operation == metav1.ManagedFieldsOperationApply ||
			e.FieldsV1 != nil && json.Unmarshal(e.FieldsV1.GetRawBytes(), &set) == nil && set.Spec != nil {
			return true
		}
	}
	return false
}

// Disowned returns managed fields that do not show that AddonFlow created the object.
func Disowned(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if !writtenByOperator(e) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		// The API server takes no entry for no change, and one empty entry for none.
		return []metav1.ManagedFieldsEntry{{}}
	}
	return out
}

// writtenByOperator reports whether an entry is AddonFlow's and not one of a subresource.
func writtenByOperator(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Subresource == ""
}
