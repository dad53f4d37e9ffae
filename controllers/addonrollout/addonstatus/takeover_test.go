package addonstatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestTakeovers(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const (
		references = `{"f:status":{"f:configReferences":{}}}`
		configured = `{"f:status":{"f:conditions":{"k:{\"type\":\"Configured\"}":{"f:reason":{}}}}}`
		available  = `{"f:status":{"f:conditions":{"k:{\"type\":\"Available\"}":{"f:reason":{}}}}}`
	)
	cases := map[string]struct {
		reason  string
		entries []metav1.ManagedFieldsEntry
		want    []Takeover
	}{
		"NeverOurs": {reason: "what stood there before us is taken over", entries: []metav1.ManagedFieldsEntry{entry("ocm", references)}},
		"Ours":      {reason: "no other manager wrote it", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, references)}},
		"Shared":    {reason: "another manager wrote the same value, which takes nothing over", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, references), entry("ocm", references)}},
		"Taken":     {reason: "the field left our entry for theirs", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, available), entry("ocm", references)}, want: []Takeover{{Manager: "ocm", Field: "configReferences"}}},
		"Before":    {reason: "a condition from before the take-over was never ours, though other fields are", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, references), entry("ocm", configured)}},
		"Part":      {reason: "the key of the condition is still ours when its words are not", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, `{"f:status":{"f:conditions":{"k:{\"type\":\"Configured\"}":{".":{},"f:type":{}}}}}`), entry("ocm", configured)}, want: []Takeover{{Manager: "ocm", Field: "Configured reason"}}},
		"Available": {reason: "the hub writes Available of clusters it cannot reach", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, references), entry("hub", available)}},
		"Unknown":   {reason: "a form we do not know claims nothing", entries: []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, references), entry("ocm", `[]`)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Takeovers(tc.entries)); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}
