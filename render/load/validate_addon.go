package load

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	addonv1beta1 "open-cluster-management.io/api/addon/v1beta1"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// maxAddOnName is the longest name that fits into the label open-cluster-management.io/addon-name, with which works
// are found.
const maxAddOnName = 63

// ownLifecycle is AddonFlow's value of the lifecycle annotation on the hub.
const ownLifecycle = "addonflow"

// addOnFlaws checks a normalised ClusterManagementAddOn by itself.
func addOnFlaws(object *unstructured.Unstructured) []flaw.Flaw {
	var cma addonv1alpha1.ClusterManagementAddOn
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &cma); err != nil {
		return []flaw.Flaw{{Reason: flaw.ReasonInvalidManifest, Message: fmt.Sprintf("cannot be decoded: %v", err)}}
	}
	var flaws []flaw.Flaw
	if len(cma.Name) > maxAddOnName {
		flaws = append(flaws, flaw.Flaw{
			Field: "metadata.name", Reason: flaw.ReasonInvalidManifest,
			Message: fmt.Sprintf("has %d characters, an add-on's name at most %d", len(cma.Name), maxAddOnName),
		})
	}
	flaws = append(flaws, lifecycleFlaws(cma.Annotations)...)
	if merge, present := cma.Annotations[mergeConfigsAnnotation]; present && merge != trueText && merge != falseText {
		flaws = append(flaws, flaw.Flaw{
			Field: flaw.Path("metadata.annotations").Child(mergeConfigsAnnotation), Reason: flaw.ReasonInvalidManifest,
			Message: fmt.Sprintf("%q is neither true nor false", flaw.Shown(merge)), Hint: `write "true" to merge`,
		})
	}
	flaws = append(flaws, supportedFlaws(cma.Spec.SupportedConfigs)...)
	if slices.ContainsFunc(flaws, func(f flaw.Flaw) bool { return !f.Untemplated }) {
		return flaws // later checks would repeat these flaws
	}
	listed := map[addonv1alpha1.ConfigGroupResource]bool{}
	for _, s := range cma.Spec.SupportedConfigs {
		listed[s.ConfigGroupResource] = true
	}
	flaws = append(flaws, defaultLevelFlaws(cma.Spec.SupportedConfigs)...)
	for i, p := range cma.Spec.InstallStrategy.Placements {
		flaws = append(flaws, placementFlaws(i, p, listed)...)
		if f, conflict := levelFlaw(placementReferences(i, p)); conflict {
			flaws = append(flaws, f)
		}
	}
	if len(flaws) > 0 && flaws[0].Untemplated {
		return flaws // it names no template either
	}
	return append(flaws, coverageFlaws(cma.Spec)...)
}

// apartFromPackages drops the flaw of an add-on that lists no templates if it has an
// AddOnPackage.
func (l *loader) apartFromPackages(object *unstructured.Unstructured, flaws []flaw.Flaw) []flaw.Flaw {
	if !l.packaged[object.GetName()] {
		return flaws
	}
	return slices.DeleteFunc(flaws, func(f flaw.Flaw) bool { return f.Untemplated })
}

// lifecycleFlaws refuses an add-on with another installer, because AddonFlow would change the annotation and take the
// add-on from that installer.
func lifecycleFlaws(annotations map[string]string) []flaw.Flaw {
	value, present := annotations[addonv1alpha1.AddonLifecycleAnnotationKey]
	if !present || value == addonv1alpha1.AddonLifecycleAddonManagerAnnotationValue || value == ownLifecycle {
		return nil
	}
	return []flaw.Flaw{{
		Field: flaw.Path("metadata.annotations").Child(addonv1alpha1.AddonLifecycleAnnotationKey), Reason: render.ReasonNotSupported,
		Message: fmt.Sprintf("%q says that the add-on has a manager of its own", flaw.Shown(value)),
		Hint:    "remove the annotation, or do not declare the add-on to AddonFlow",
	}}
}

// supportedFlaws checks the kinds that an add-on lists and its default configurations.
func supportedFlaws(supported []addonv1alpha1.ConfigMeta) []flaw.Flaw {
	const list flaw.Path = "spec.supportedConfigs"
	if len(supported) > maxSupportedConfigs {
		return []flaw.Flaw{{
			Field: list, Reason: flaw.ReasonLimitExceeded,
			Message: fmt.Sprintf("lists %d kinds, at most %d are allowed", len(supported), maxSupportedConfigs),
		}}
	}
	var flaws []flaw.Flaw
	templates := false
	for i, s := range supported {
		at := list.Index(i)
		templates = templates || selectsTemplate(s.ConfigGroupResource)
		if why := refusedConfiguration(schema.GroupResource{Group: s.Group, Resource: s.Resource}); why != "" {
			flaws = append(flaws, flaw.Flaw{Field: at.Child("resource"), Reason: flaw.ReasonUnsupportedKind, Message: why})
		}
		if s.DefaultConfig != nil {
			flaws = append(flaws, referentFlaws(at.Child("defaultConfig"), s.ConfigGroupResource, *s.DefaultConfig)...)
		}
	}
	if !templates {
		flaws = append(flaws, flaw.Flaw{
			Field: list, Reason: flaw.ReasonConfigurationUnsupported,
			Message:     "lists no addontemplates.addon.open-cluster-management.io: the add-on has no template to roll out",
			Hint:        "name one, or add an AddOnPackage; add-ons with an add-on manager of their own are not declared to AddonFlow",
			Untemplated: true,
		})
	}
	return flaws
}

func templateGroupResource() addonv1alpha1.ConfigGroupResource {
	return addonv1alpha1.ConfigGroupResource{Group: addonGroup, Resource: render.TemplateResource}
}

// defaultLevelFlaws finds a default template beside a default AddOnHubConfig.
func defaultLevelFlaws(supported []addonv1alpha1.ConfigMeta) []flaw.Flaw {
	var level []referring
	for i, s := range supported {
		if s.DefaultConfig != nil {
			at := flaw.Path("spec.supportedConfigs").Index(i).Child("defaultConfig")
			level = append(level, referring{at: at, ConfigReference: configReference(s.ConfigGroupResource, *s.DefaultConfig)})
		}
	}
	if f, conflict := levelFlaw(level); conflict {
		return []flaw.Flaw{f}
	}
	return nil
}

// levelFlaw returns a flaw, at the AddOnHubConfig, if one level names both a template and an
// AddOnHubConfig.
func levelFlaw(level []referring) (flaw.Flaw, bool) {
	references := make([]render.ConfigReference, 0, len(level))
	at := flaw.Path("")
	for _, r := range level {
		references = append(references, r.ConfigReference)
		if r.Group == addonGroup && r.Resource == render.HubConfigResource {
			at = r.at
		}
	}
	f, conflict := render.ConflictingLevel(references)
	return flaw.Flaw{Field: at, Reason: f.Reason, Message: f.Message, Hint: f.Hint}, conflict
}

// selectsTemplate reports whether configurations of a kind select the template.
func selectsTemplate(kind addonv1alpha1.ConfigGroupResource) bool {
	return kind.Group == addonGroup && (kind.Resource == render.TemplateResource || kind.Resource == render.HubConfigResource)
}

// placementFlaws checks the configurations that one placement assigns.
func placementFlaws(i int, p addonv1alpha1.PlacementStrategy, listed map[addonv1alpha1.ConfigGroupResource]bool) []flaw.Flaw {
	at := flaw.Path("spec.installStrategy.placements").Index(i).Child("configs")
	first := map[addonv1alpha1.ConfigGroupResource]addonv1alpha1.ConfigReferent{}
	var flaws []flaw.Flaw
	for j, config := range p.Configs {
		kind := config.ConfigGroupResource
		if !listed[kind] {
			flaws = append(flaws, flaw.Flaw{
				Field: at.Index(j), Reason: flaw.ReasonConfigurationUnsupported,
				Message: fmt.Sprintf("%s is not supported for this add-on", schema.GroupResource{Group: kind.Group, Resource: kind.Resource}.String()),
				Hint:    "list it in spec.supportedConfigs",
			})
			continue
		}
		flaws = append(flaws, referentFlaws(at.Index(j), kind, config.ConfigReferent)...)
		before, again := first[kind]
		if again && before != config.ConfigReferent && selectsTemplate(kind) {
			flaws = append(flaws, flaw.Flaw{
				Field: at.Index(j), Reason: flaw.ReasonInvalidReference,
				Message: fmt.Sprintf("the placement has %s %q already; OCM would ignore this one", schema.GroupResource{Group: kind.Group, Resource: kind.Resource}.String(), before.Name),
				Hint:    "assign one of them, or use a placement for each",
			})
		}
		if !again {
			first[kind] = config.ConfigReferent
		}
	}
	return flaws
}

// referentFlaws checks the name of one configuration object.
func referentFlaws(at flaw.Path, kind addonv1alpha1.ConfigGroupResource, referent addonv1alpha1.ConfigReferent) []flaw.Flaw {
	invalid := func(field, message, hint string) []flaw.Flaw {
		return []flaw.Flaw{{Field: at.Child(field), Reason: flaw.ReasonInvalidReference, Message: message, Hint: hint}}
	}
	switch {
	case referent.Name == addonv1beta1.ReservedNoDefaultConfigName:
		return invalid(nameKey, fmt.Sprintf("%q is reserved by OCM and names no object", referent.Name), "leave the default out")
	case kind == templateGroupResource() && referent.Namespace != "":
		return invalid(namespaceKey, "an AddOnTemplate is cluster-scoped", "remove the namespace")
	case selectsTemplate(kind) && referent.Namespace != "":
		return invalid(namespaceKey, "an AddOnHubConfig is cluster-scoped", "remove the namespace")
	case kind.Group == addonGroup && kind.Resource == render.AgentConfigResource && referent.Namespace == "":
		return invalid(namespaceKey, "is required: an AddOnDeploymentConfig lives in a namespace", "")
	case kind.Group == "" && kind.Resource == configMapsResource && referent.Namespace == "":
		return invalid(namespaceKey, "is required: a ConfigMap lives in a namespace", "")
	default:
		return nil
	}
}

// coverageFlaws finds clusters that would get the add-on without a template. With a default template there are none.
// Otherwise every placement must name a template; with type Manual no cluster would get one.
func coverageFlaws(spec addonv1alpha1.ClusterManagementAddOnSpec) []flaw.Flaw {
	for _, s := range spec.SupportedConfigs {
		if selectsTemplate(s.ConfigGroupResource) && s.DefaultConfig != nil {
			return nil
		}
	}
	const hint = "set defaultConfig of addontemplates in spec.supportedConfigs"
	if spec.InstallStrategy.Type != addonv1alpha1.AddonInstallStrategyPlacements || len(spec.InstallStrategy.Placements) == 0 {
		return []flaw.Flaw{{Field: "spec.supportedConfigs", Reason: flaw.ReasonReferenceNotFound, Message: "no AddOnTemplate is named: no cluster would run anything", Hint: hint, Untemplated: true}}
	}
	var flaws []flaw.Flaw
	for i, p := range spec.InstallStrategy.Placements {
		names := false
		for _, config := range p.Configs {
			names = names || selectsTemplate(config.ConfigGroupResource)
		}
		if !names {
			flaws = append(flaws, flaw.Flaw{
				Field: flaw.Path("spec.installStrategy.placements").Index(i), Reason: flaw.ReasonReferenceNotFound,
				Message: fmt.Sprintf("placement %s/%s names no AddOnTemplate and there is no default: its clusters would run nothing", p.Namespace, p.Name),
				Hint:    "name one in its configs, or " + hint, Untemplated: true,
			})
		}
	}
	return flaws
}

// rolloutFlaws refuses the fields of an AddOnRollout that AddonFlow writes.
func rolloutFlaws(object *unstructured.Unstructured) []flaw.Flaw {
	var flaws []flaw.Flaw
	for _, name := range strict.WrittenFields() {
		if valueAt(object.Object, specKey, name) != nil {
			flaws = append(flaws, flaw.Flaw{
				Field: flaw.Path(specKey).Child(name), Reason: flaw.ReasonInvalidManifest,
				Message: "is written by AddonFlow", Hint: flaw.RemoveIt,
			})
		}
	}
	return flaws
}
