package load

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/render/flaw"
)

// betaAddOns draws ClusterManagementAddOns in v1beta1.
func betaAddOns() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		spec := map[string]any{}
		if rapid.Bool().Draw(t, "meta") {
			spec["addOnMeta"] = map[string]any{"displayName": "x"}
		}
		var defaults []any
		for i := range rapid.IntRange(0, 3).Draw(t, "defaults") {
			entry := map[string]any{"resource": fmt.Sprintf("things%d", i)}
			if rapid.Bool().Draw(t, "group") {
				entry["group"] = "example.com"
			}
			entry["name"] = rapid.SampledFrom([]string{"a", addonv1beta1.ReservedNoDefaultConfigName}).Draw(t, "name")
			if rapid.Bool().Draw(t, "in a namespace") {
				entry["namespace"] = rapid.SampledFrom([]string{"", "b"}).Draw(t, "namespace")
			}
			defaults = append(defaults, entry)
		}
		if len(defaults) > 0 {
			spec["defaultConfigs"] = defaults
		}
		if rapid.Bool().Draw(t, "strategy") {
			spec["installStrategy"] = map[string]any{"type": "Placements", "placements": []any{map[string]any{
				"namespace": "a", "name": "b",
				"configs":         []any{map[string]any{"resource": "things0", "name": "c"}},
				"rolloutStrategy": map[string]any{"type": "Progressive", "progressive": map[string]any{"maxConcurrency": "25%", "minSuccessTime": "5m"}},
			}}}
		}
		return map[string]any{
			"apiVersion": addonGroup + "/" + betaVersion, "kind": addOnKind,
			"metadata": map[string]any{"name": "a"}, "spec": spec,
		}
	})
}

// TestConversionAgreesWithTheModule compares typed results: the module's own result has empty
// structs and reformatted durations.
func TestConversionAgreesWithTheModule(t *testing.T) {
	schemas := schemasForTest(t)
	rapid.Check(t, func(t *rapid.T) {
		declared := &unstructured.Unstructured{Object: betaAddOns().Draw(t, "add-on")}
		object, flaws := schemas.normalise(declared, roleAddOn)
		if len(flaws) > 0 {
			t.Fatalf("unexpected flaws: %v", flaws)
		}
		var got, want addonv1alpha1.ClusterManagementAddOn
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &got); err != nil {
			t.Fatal(err)
		}
		completed := declared.DeepCopy()
		schemas[declared.GroupVersionKind()].complete(completed.Object)
		var beta addonv1beta1.ClusterManagementAddOn
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(completed.Object, &beta); err != nil {
			t.Fatal(err)
		}
		if err := addonv1beta1.Convert_v1beta1_ClusterManagementAddOn_To_v1alpha1_ClusterManagementAddOn(&beta, &want, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want.Spec, got.Spec, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("converted spec (-module +ours):\n%s", diff)
		}
	})
}

func TestAsDeclaredBeta(t *testing.T) {
	cases := map[flaw.Path]flaw.Path{
		"spec.supportedConfigs":                       "spec.defaultConfigs",
		"spec.supportedConfigs[1]":                    "spec.defaultConfigs[1]",
		"spec.supportedConfigs[1].resource":           "spec.defaultConfigs[1].resource",
		"spec.supportedConfigs[1].defaultConfig":      "spec.defaultConfigs[1]",
		"spec.supportedConfigs[1].defaultConfig.name": "spec.defaultConfigs[1].name",
		"spec.installStrategy.placements[0]":          "spec.installStrategy.placements[0]",
		"metadata.name":                               "metadata.name",
	}
	for in, want := range cases {
		if got := asDeclaredBeta(in); got != want {
			t.Errorf("asDeclaredBeta(%s) = %s, want %s", in, got, want)
		}
	}
}
