package render

import (
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// Paths and variables with which a container finds a proxy's CA bundle.
const (
	caBundlePath     = "/managed/proxy-ca"
	caBundleFile     = "ca-bundle.crt"
	caBundleVolume   = "proxy-ca-bundle"
	caBundleVariable = "CA_BUNDLE_FILE_PATH"
)

// proxyEnvironment has the variables that a proxy configuration injects, in OCM's order. Without a proxy, OCM omits
// the variable of the CA bundle. AddonFlow delivers a CA bundle without a proxy, too, so containers need the
// variable to find it.
func proxyEnvironment(proxy addonv1alpha1.ProxyConfig) []envVariable {
	var env []envVariable
	for _, v := range []struct{ upper, lower, value string }{
		{"HTTP_PROXY", "http_proxy", proxy.HTTPProxy},
		{"HTTPS_PROXY", "https_proxy", proxy.HTTPSProxy},
		{"NO_PROXY", "no_proxy", proxy.NoProxy},
	} {
		if v.value != "" {
			env = append(env, envVariable{v.upper, v.value}, envVariable{v.lower, v.value})
		}
	}
	if len(proxy.CABundle) > 0 {
		env = append(env, envVariable{caBundleVariable, caBundlePath + "/" + caBundleFile})
	}
	return env
}

func proxyVolumes(addOn string, proxy addonv1alpha1.ProxyConfig) []volume {
	if len(proxy.CABundle) == 0 {
		return nil
	}
	return []volume{{name: caBundleVolume, path: caBundlePath, source: map[string]any{
		"configMap": map[string]any{nameKey: caBundleConfigMap(addOn)},
	}}}
}

func caBundleConfigMap(addOn string) string {
	return addOn + "-proxy-ca"
}

// caBundleObjects are the ConfigMaps with the CA bundle, one in each namespace with a pod that mounts it. OCM creates
// only one, in the default namespace, where pods of other namespaces cannot mount it.
func caBundleObjects(addOn string, proxy addonv1alpha1.ProxyConfig, namespaces []string) []map[string]any {
	if len(proxy.CABundle) == 0 {
		return nil
	}
	out := make([]map[string]any, 0, len(namespaces))
	for _, namespace := range namespaces {
		out = append(out, map[string]any{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   map[string]any{nameKey: caBundleConfigMap(addOn), "namespace": namespace},
			"data":       map[string]any{caBundleFile: string(proxy.CABundle)},
		})
	}
	return out
}
