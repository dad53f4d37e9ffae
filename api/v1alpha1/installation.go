package v1alpha1

import (
	"bytes"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Installed reports whether AddonFlow installed the add-on of a ManagedClusterAddOn: it has AddonFlow's label, or it
// lost the label and Created is true. Every other ManagedClusterAddOn is hand-made and is never deleted.
func Installed(addOn metav1.Object) bool {
	return addOn.GetLabels()[ManagedByLabel] == ManagedByValue || Created(addOn)
}

// Created reports whether the managed fields of a ManagedClusterAddOn show that AddonFlow created or applied it. If
// AddonFlow created it, AddonFlow owns its spec, even after labels and owner references were removed. Of any other
// ManagedClusterAddOn, AddonFlow writes only metadata and status.
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

// Disowned returns managed fields without AddonFlow's, so that Created is no longer true.
func Disowned(entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if !writtenByOperator(e) {
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		// The API server ignores an empty list. One empty entry clears the managed fields.
		return []metav1.ManagedFieldsEntry{{}}
	}
	return out
}

// writtenByOperator reports whether an entry is of AddonFlow and not for a subresource.
func writtenByOperator(e metav1.ManagedFieldsEntry) bool {
	return e.Manager == FieldManager && e.Subresource == ""
}

// TemplateWriter returns the field manager that lists addontemplates on a ClusterManagementAddOn. If several list
// them and AddonFlow is one of them, it returns AddonFlow.
func TemplateWriter(owner metav1.Object) string {
	writer := "unknown"
	for _, e := range owner.GetManagedFields() {
		if e.Subresource != "" || e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte("addontemplates")) {
			continue
		}
		if writer = e.Manager; writer == FieldManager {
			break
		}
	}
	return writer
}
