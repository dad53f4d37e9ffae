package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	addOnMetaAt fieldPath = "spec.addOnMeta"

	supportedConfigsKey = "supportedConfigs"
	defaultConfigsKey   = "defaultConfigs"
	installStrategyKey  = "installStrategy"
	rolloutStrategyKey  = "rolloutStrategy"
)

// contentPart is what a ClusterManagementAddOn with flaws still says about its
// content, so that the other objects of the add-on are checked in the same run. It
// is nil where one of the flaws may have hidden a reference: what is then missing
// would be reported as if nobody had written it.
func contentPart(declared, normalised *unstructured.Unstructured, flaws []flaw) *unstructured.Unstructured {
	spec, _ := valueAt(declared.Object, specKey).(map[string]any)
	if normalised == nil || spec[installStrategyKey] == nil || spec[supportedConfigsKey] == nil && spec[defaultConfigsKey] == nil {
		return nil
	}
	if slices.ContainsFunc(flaws, func(f flaw) bool { return !besideContent(f) }) {
		return nil
	}
	part := normalised.DeepCopy()
	unstructured.RemoveNestedField(part.Object, specKey, "addOnMeta")
	placements, _ := valueAt(part.Object, specKey, installStrategyKey, "placements").([]any)
	for _, item := range placements {
		if placement, isObject := item.(map[string]any); isObject {
			delete(placement, rolloutStrategyKey)
		}
	}
	return part
}

// besideContent reports whether a flaw is about what an add-on is called or how
// fast it is rolled out, or about a field directly in the spec that nobody knows.
// The fields that do say what runs are there, so that it is none of them misspelt;
// it may be one of another version.
func besideContent(f flaw) bool {
	field := string(f.field)
	switch {
	case f.field.under(addOnMetaAt), f.field.under("metadata.labels"), f.field.under("metadata.annotations"):
		return true
	case strings.Contains(field, "]."+rolloutStrategyKey):
		return f.field.under("spec." + installStrategyKey)
	case f.reason != ReasonUnknownField || f.field.last() == supportedConfigsKey || f.field.last() == defaultConfigsKey:
		return false
	default:
		return f.field.under(specKey) && strings.LastIndexAny(field, ".[") == len(specKey)
	}
}
