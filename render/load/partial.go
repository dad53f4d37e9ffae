package load

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

const (
	addOnMetaAt flaw.Path = "spec.addOnMeta"
	variablesAt flaw.Path = "spec.customizedVariables"

	supportedConfigsKey = "supportedConfigs"
	defaultConfigsKey   = "defaultConfigs"
	installStrategyKey  = "installStrategy"
	rolloutStrategyKey  = "rolloutStrategy"
)

// hidesReferences reports whether one of the flaws of a ClusterManagementAddOn may have
// hidden a reference: what is then missing would be reported as if nobody had written it.
func hidesReferences(declared *unstructured.Unstructured, flaws []flaw.Flaw) bool {
	spec, _ := valueAt(declared.Object, specKey).(map[string]any)
	if len(flaws) > 0 && (spec[installStrategyKey] == nil || spec[supportedConfigsKey] == nil && spec[defaultConfigsKey] == nil) {
		return true
	}
	return slices.ContainsFunc(flaws, func(f flaw.Flaw) bool { return !besideContent(f) })
}

// aboutReferences are the flaws of a ClusterManagementAddOn that a hidden reference, or a
// kind that is misspelt where it is listed, leads to.
func aboutReferences(f flaw.Flaw) bool {
	return f.Untemplated || f.Reason == flaw.ReasonConfigurationUnsupported || f.Reason == flaw.ReasonReferenceNotFound
}

// besideContent reports whether a flaw is about what an add-on is called or how
// fast it is rolled out, or about a field directly in the spec that nobody knows.
// The fields that do say what runs are there, so that it is none of them misspelt;
// it may be one of another version.
func besideContent(f flaw.Flaw) bool {
	field := string(f.Field)
	switch {
	case f.Field.Under(addOnMetaAt), f.Field.Under("metadata.labels"), f.Field.Under("metadata.annotations"):
		return true
	case strings.Contains(field, "]."+rolloutStrategyKey):
		return f.Field.Under("spec." + installStrategyKey)
	case f.Reason != flaw.ReasonUnknownField || f.Field.Last() == supportedConfigsKey || f.Field.Last() == defaultConfigsKey:
		return false
	default:
		return f.Field.Under(specKey) && strings.LastIndexAny(field, ".[") == len(specKey)
	}
}

// open is what the problems of the objects of an add-on leave open about the others.
type open struct {
	// names and values of variables, manifests of the templates and what is asked about
	// them, the install namespace.
	names, values, manifests, namespace bool
}

// note adds what the problems of one of the objects leave open.
func (p *open) note(o *loaded) {
	switch o.role {
	case roleConfig:
		p.values = p.values || o.doubt.explains(variablesAt)
		p.names = p.names || o.doubt.open(variablesAt)
		list, _ := variablesAt.In(o.doubt.declared).([]any)
		for i := range list {
			p.names = p.names || o.doubt.open(variablesAt.Index(i).Child(nameKey))
		}
		p.namespace = p.namespace || o.doubt.open("spec.agentInstallNamespace")
	case roleTemplate:
		p.names = p.names || o.doubt.open(variable.FromConfigsField)
		p.manifests = p.manifests || o.doubt.explains(manifestsAt) || o.doubt.explains("spec.agentSpec.manifestConfigs")
	case roleAddOn:
		p.names = p.names || o.doubt.open(mergeConfigsAt)
	default:
	}
}

// explains reports whether a finding may come from what is wrong with another object.
func (p *open) explains(f render.Finding) bool {
	return p.names && f.Reason == flaw.ReasonUnresolvedVariable || p.values && f.Reason == flaw.ReasonInvalidVariable && f.Template != ""
}

// hidesContent reports whether what is wrong with an AddOnPackage leaves open what it would
// render: that would be judged for mistakes that nobody made.
func hidesContent(o *loaded) bool {
	return o.doubt.open("spec.values") || o.doubt.open(variable.FromConfigsField) || slices.ContainsFunc(
		[]flaw.Path{"spec.helm", "spec.manifests", "spec.valueFiles", "spec.variables", registrationAt}, o.doubt.explains)
}
