package render

import (
	"fmt"
	"unicode/utf8"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// agentConfig is an AddOnDeploymentConfig, read for rendering. What is absent is
// told from what is empty, where OCM's meaning hangs on it.
type agentConfig struct {
	// origin is the namespace/name of the object.
	origin    string
	variables []addonv1alpha1.CustomizedVariable
	namespace string

	// nodeSelector and tolerations replace the pod's own when they are given,
	// each for itself; an empty one removes the pod's.
	nodeSelector, tolerations given

	// registries are the image mirrors; a list that is given but empty still
	// outranks the cluster's annotation.
	registries      []addonv1alpha1.ImageMirror
	givesRegistries bool

	proxy        addonv1alpha1.ProxyConfig
	requirements []requirement

	// unreadable: nothing of it is known, so that looking for variables would only
	// say that they are missing.
	unreadable bool
	found      findings
}

// given is an optional JSON value.
type given struct {
	value any
	ok    bool
}

// parseAgentConfig reads a configuration. What is wrong with it is in found; the
// rest is usable, so that rendering can go on and find more.
func parseAgentConfig(c Config) *agentConfig {
	a := &agentConfig{origin: c.Namespace + "/" + c.Name}
	add := func(field string, reason problem.Reason, message, hint string) {
		a.found.add(Finding{
			Config: c.Namespace + "/" + c.Name, Field: field,
			Reason: reason, Message: message, Hint: hint,
		})
	}
	body, ok := c.Body["spec"].(map[string]any)
	if !ok {
		if c.Body["spec"] != nil {
			add("spec", flaw.ReasonInvalidConfig, "is no object", "")
			a.unreadable = true
		}
		return a
	}
	var spec addonv1alpha1.AddOnDeploymentConfigSpec
	if err := strict.Convert(body, &spec); err != nil {
		add("spec", flaw.ReasonInvalidConfig, err.Error(), "")
		a.unreadable = true
		return a
	}
	a.variables, a.namespace, a.proxy = spec.CustomizedVariables, spec.AgentInstallNamespace, spec.ProxyConfig
	a.registries, a.givesRegistries = spec.Registries, body["registries"] != nil
	if placement, ok := body["nodePlacement"].(map[string]any); ok {
		a.nodeSelector = givenValue(placement["nodeSelector"])
		a.tolerations = givenValue(placement["tolerations"])
	}
	a.requirements = parseRequirements(spec.ResourceRequirements, add)
	checkVariables(spec.CustomizedVariables, spec.AgentInstallNamespace, add)
	checkCharacters("spec", withoutVariables(body), add)
	if !utf8.Valid(spec.ProxyConfig.CABundle) || ForbiddenCharacter(string(spec.ProxyConfig.CABundle)) != "" {
		add("spec.proxyConfig.caBundle", flaw.ReasonInvalidConfig, "is no text", "encode a PEM bundle as base64")
	}
	return a
}

func givenValue(value any) given {
	return given{value: value, ok: value != nil}
}

func withoutVariables(body map[string]any) map[string]any {
	rest := make(map[string]any, len(body))
	for key, value := range body {
		if key != "customizedVariables" { // checked with their own words
			rest[key] = value
		}
	}
	return rest
}

// checkCharacters refuses characters no manifest may hold, wherever they stand.
func checkCharacters(at string, value any, add func(field string, reason problem.Reason, message, hint string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if c := ForbiddenCharacter(key); c != "" {
				add(at, flaw.ReasonInvalidConfig, "the name of a field contains "+c, "")
			}
			checkCharacters(at+"."+key, v, add)
		}
	case []any:
		for i, v := range value {
			checkCharacters(fmt.Sprintf("%s[%d]", at, i), v, add)
		}
	case string:
		if c := ForbiddenCharacter(value); c != "" {
			add(at, flaw.ReasonInvalidConfig, "contains "+c, "")
		}
	}
}
