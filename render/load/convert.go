package load

import (
	"maps"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/addonflow/addonflow/render/flaw"
)

// toStorage converts a completed object to the version that the hub stores.
//
// For AddOnDeploymentConfig, only the version changes. ClusterManagementAddOn differs in one list, which is moved
// here unchanged. The api module's conversion is not used, because it converts through Go types: it refuses a pace
// that cannot be decoded, before a problem can explain the mistake, and it writes 1h0m0s for 1h. A test compares
// the result with the module's.
//
// The result shares unchanged parts with object, which is not modified.
func toStorage(object map[string]any, r role, k kindSchema) map[string]any {
	if r != roleAddOn && r != roleConfig || object[apiVersionKey] == addonGroup+"/"+k.storage {
		return object
	}
	converted := maps.Clone(object)
	converted[apiVersionKey] = addonGroup + "/" + k.storage
	if spec, isObject := object[specKey].(map[string]any); isObject && r == roleAddOn {
		spec = maps.Clone(spec)
		if defaults, isList := spec["defaultConfigs"].([]any); isList {
			spec["supportedConfigs"] = supportedConfigs(defaults)
		}
		delete(spec, "defaultConfigs")
		converted[specKey] = spec
	}
	return converted
}

// supportedConfigs returns v1alpha1's form of v1beta1's defaultConfigs: an empty name, or the
// module's sentinel, means that the kind has no default.
func supportedConfigs(defaults []any) []any {
	supported := make([]any, 0, len(defaults))
	for _, entry := range defaults {
		from, _ := entry.(map[string]any)
		to := map[string]any{"group": from["group"], "resource": from["resource"]}
		if name, _ := from[nameKey].(string); name != "" && name != addonv1beta1.ReservedNoDefaultConfigName {
			referent := map[string]any{nameKey: name}
			if namespace, _ := from[namespaceKey].(string); namespace != "" {
				referent[namespaceKey] = namespace
			}
			to["defaultConfig"] = referent
		}
		supported = append(supported, to)
	}
	return supported
}

// asDeclaredBeta converts the path of a converted field to its path in a v1beta1
// ClusterManagementAddOn.
func asDeclaredBeta(field flaw.Path) flaw.Path {
	rest, converted := strings.CutPrefix(string(field), "spec.supportedConfigs")
	if !converted {
		return field
	}
	return "spec.defaultConfigs" + flaw.Path(strings.Replace(rest, "].defaultConfig", "]", 1))
}
