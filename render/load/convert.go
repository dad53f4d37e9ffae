package load

import (
	"maps"
	"strings"

	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/addonflow/addonflow/render/flaw"
)

// toStorage converts a completed object to the version the hub stores.
//
// AddOnDeploymentConfig only changes its version. What differs
// in ClusterManagementAddOn is one list, and it is moved here as it stands: the
// api module's conversion goes through Go types, which refuse a pace that cannot
// be decoded before it can be explained, and write 1h0m0s for 1h. A test holds
// the result to the module's.
//
// It shares with object what it does not change, and changes nothing.
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

// supportedConfigs is v1alpha1's form of v1beta1's defaultConfigs: a name that is
// empty or the module's sentinel means that the kind has no default.
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

// asDeclaredBeta turns the path of a converted field back into what a v1beta1
// ClusterManagementAddOn calls it.
func asDeclaredBeta(field flaw.Path) flaw.Path {
	rest, converted := strings.CutPrefix(string(field), "spec.supportedConfigs")
	if !converted {
		return field
	}
	return "spec.defaultConfigs" + flaw.Path(strings.Replace(rest, "].defaultConfig", "]", 1))
}
