package addonrollout

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// wrote is what a manager owns: one annotation of the prefix.
func wrote(manager, name string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(
		`{"f:metadata":{"f:annotations":{".":{},"f:` + addOnAnnotationPrefix + name + `":{}}}}`,
	)}
}

func annotated(pairs ...string) map[string]string {
	out := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		out[addOnAnnotationPrefix+pair[0]] = pair[1]
	}
	return out
}

// TestAnnotationsOfTheClusterAreCopiedAndNobodyElsesRemoved is row 25, mended (C14).
func TestAnnotationsOfTheClusterAreCopiedAndNobodyElsesRemoved(t *testing.T) {
	ours, users := wrote(v1alpha1.FieldManager, "key"), wrote("kubectl", "key")
	cases := map[string]struct {
		reason        string
		cluster, have map[string]string
		managers      []metav1.ManagedFieldsEntry
		want          map[string]string
	}{
		"new on the cluster":      {"copied", annotated("key", "1"), nil, nil, annotated("key", "1")},
		"changed on the cluster":  {"we wrote the old one", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, annotated("key", "2")},
		"removed on the cluster":  {"we wrote it", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, map[string]string{}},
		"the user's own":          {"OCM removes it: the cluster does not have it", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{users}, nil},
		"the user's other value":  {"written on purpose, over the cluster's", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{users}, nil},
		"changed by a user since": {"both own it now", annotated("key", "2"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours, users}, nil},
		"in step":                 {"nothing to write", annotated("key", "1"), annotated("key", "1"), []metav1.ManagedFieldsEntry{ours}, nil},
		"of nobody we know":       {"fields that cannot be read claim nothing", nil, annotated("key", "1"), []metav1.ManagedFieldsEntry{{Manager: v1alpha1.FieldManager, FieldsV1: metav1.NewFieldsV1("[]")}}, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Annotations: c.have, ManagedFields: c.managers}}
			if diff := cmp.Diff(c.want, annotationsInStep(c.cluster, addOn)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}
