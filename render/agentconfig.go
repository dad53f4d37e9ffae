package render

import (
	"slices"
	"unicode/utf8"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// agentConfig is an AddOnDeploymentConfig, read for rendering. It distinguishes absent from
// empty fields where OCM does.
type agentConfig struct {
	// origin is the namespace/name of the object.
	origin    string
	variables []addonv1alpha1.CustomizedVariable
	namespace string

	// nodeSelector and tolerations replace those of the pod if they are given (not nil). An empty one removes that of
	// the pod.
	nodeSelector, tolerations any

	// registries are the image mirrors. If the list is given, even empty, it overrides the cluster's annotation.
	registries      []addonv1alpha1.ImageMirror
	givesRegistries bool

	proxy        addonv1alpha1.ProxyConfig
	requirements []requirement

	// unreadable: no part could be read. A search for variables would only report them as missing.
	unreadable bool
	found      findings
}

// parseAgentConfig reads a configuration. Its errors are in found. The rest is usable, so that rendering can continue
// and find more errors.
func parseAgentConfig(c Config) *agentConfig {
	a, flaws := readAgentConfig(c)
	a.found.addAll(Finding{Config: a.origin}, flaws...)
	return a
}

func readAgentConfig(c Config) (*agentConfig, []flaw.Flaw) {
	a := &agentConfig{origin: c.Namespace + "/" + c.Name}
	unreadable := func(message string) (*agentConfig, []flaw.Flaw) {
		a.unreadable = true
		return a, []flaw.Flaw{{Field: specKey, Reason: flaw.ReasonInvalidConfig, Message: message}}
	}
	body, ok := c.Body[specKey].(map[string]any)
	switch {
	case c.Body[specKey] == nil:
		return a, nil
	case !ok:
		return unreadable("is not an object")
	}
	var spec addonv1alpha1.AddOnDeploymentConfigSpec
	if err := strict.Convert(body, &spec); err != nil {
		return unreadable(err.Error())
	}
	a.variables, a.namespace, a.proxy = spec.CustomizedVariables, spec.AgentInstallNamespace, spec.ProxyConfig
	a.registries, a.givesRegistries = spec.Registries, body["registries"] != nil
	placement, _ := body["nodePlacement"].(map[string]any)
	a.nodeSelector, a.tolerations = placement["nodeSelector"], placement["tolerations"]
	requirements, flaws := parseRequirements(spec.ResourceRequirements)
	a.requirements = requirements
	flaws = slices.Concat(flaws, variableFlaws(spec.CustomizedVariables, spec.AgentInstallNamespace), characterFlaws(specKey, withoutVariables(body)))
	if !utf8.Valid(spec.ProxyConfig.CABundle) || HasNUL(string(spec.ProxyConfig.CABundle)) {
		flaws = append(flaws, flaw.Flaw{Field: "spec.proxyConfig.caBundle", Reason: flaw.ReasonInvalidConfig, Message: "is not text", Hint: "encode a PEM bundle as base64"})
	}
	return a, flaws
}

func withoutVariables(body map[string]any) map[string]any {
	rest := make(map[string]any, len(body))
	for key, value := range body {
		if key != "customizedVariables" { // checked elsewhere, with better messages
			rest[key] = value
		}
	}
	return rest
}

// characterFlaws finds the characters that no manifest may hold, in any position.
func characterFlaws(at flaw.Path, value any) []flaw.Flaw {
	refused := func(message string) []flaw.Flaw {
		return []flaw.Flaw{{Field: at, Reason: flaw.ReasonInvalidConfig, Message: message}}
	}
	var flaws []flaw.Flaw
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if HasNUL(key) {
				flaws = append(flaws, refused("the name of a field contains NUL")...)
			}
			flaws = append(flaws, characterFlaws(at+"."+flaw.Path(key), v)...)
		}
	case []any:
		for i, v := range value {
			flaws = append(flaws, characterFlaws(at.Index(i), v)...)
		}
	case string:
		if HasNUL(value) {
			return refused("contains NUL")
		}
	}
	return flaws
}
