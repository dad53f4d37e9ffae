package addonsource

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestPlacementDigest_ChangesWithWhatOCMDecidesBy: the placements of the policy and the bindings
// in their namespaces.
func TestPlacementDigest_ChangesWithWhatOCMDecidesBy(t *testing.T) {
	object := func(group, kind, namespace, name, spec string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1beta1", "kind": kind, "spec": map[string]any{"x": spec}}}
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	const group = "cluster.open-cluster-management.io"
	refs := []v1alpha1.PlacementReference{{Namespace: "team", Name: "all"}}
	all, bound := object(group, "Placement", "team", "all", "1"), object(group, "ManagedClusterSetBinding", "team", "global", "1")
	digest := func(objects ...*unstructured.Unstructured) string { return placementDigest(objects, refs) }
	before := digest(all, bound)
	for name, c := range map[string]struct {
		after string
		same  bool
	}{
		"another placement":        {digest(all, bound, object(group, "Placement", "team", "other", "1")), true},
		"another namespace":        {digest(all, bound, object(group, "Placement", "other", "all", "1"), object(group, "ManagedClusterSetBinding", "other", "x", "1")), true},
		"another kind of the name": {digest(all, bound, object("example.com", "Placement", "team", "all", "1")), true},
		"the placement":            {digest(object(group, "Placement", "team", "all", "2"), bound), false},
		"the binding":              {digest(all, object(group, "ManagedClusterSetBinding", "team", "global", "2")), false},
		"no binding":               {digest(all), false},
	} {
		if (c.after == before) != c.same {
			t.Errorf("%s: %q, before %q", name, c.after, before)
		}
	}
	if got := digest(object(group, "Placement", "team", "other", "1")); got != "" {
		t.Errorf("Git declares none of the policy: %q", got)
	}
}
