package load

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

// referring is a reference and the field of the ClusterManagementAddOn that contains it.
type referring struct {
	render.ConfigReference
	at flaw.Path
}

// resolve builds the content of an add-on from its ClusterManagementAddOn and the
// objects it refers to, or notes which of them are missing.
func (l *loader) resolve(d *draft) {
	spec := d.ClusterManagementAddOn.Spec
	c := render.Content{AddOn: d.Name, MergeConfigs: d.ClusterManagementAddOn.Annotations[mergeConfigsAnnotation] == trueText}
	var all []referring
	for i, supported := range spec.SupportedConfigs {
		c.Supported = append(c.Supported, supported.ConfigGroupResource)
		if supported.DefaultConfig == nil {
			continue
		}
		r := referring{at: flaw.Path("spec.supportedConfigs").Index(i).Child("defaultConfig")}
		r.ConfigReference = configReference(supported.ConfigGroupResource, *supported.DefaultConfig)
		all = append(all, r)
		c.Defaults = append(c.Defaults, r.ConfigReference)
	}
	for i, p := range spec.InstallStrategy.Placements {
		refs := placementReferences(i, p)
		all = append(all, refs...)
		if assigned := unique(refs); len(assigned) > 0 {
			c.Placements = append(c.Placements, render.PlacementConfigs{
				PlacementReference: v1alpha1.PlacementReference{Namespace: p.Namespace, Name: p.Name}, Configs: assigned,
			})
		}
	}
	for _, r := range all {
		l.take(d, &c, r)
	}
	l.takePackage(d, &c)
	l.takeVersions(d, &c)
	sortContent(&c)
	switch {
	case d.broken:
	case d.Unfetched == "" && len(d.Missing) == 0:
		d.Content = c
	case len(d.absent) == len(d.Missing): // otherwise c lacks objects that await a definition
		d.Declared, _ = c.Digest() // on an error, the content is not known that far
	}
}

func placementReferences(i int, p addonv1alpha1.PlacementStrategy) []referring {
	at := flaw.Path("spec.installStrategy.placements").Index(i).Child("configs")
	var refs []referring
	for j, config := range p.Configs {
		refs = append(refs, referring{at: at.Index(j), ConfigReference: configReference(config.ConfigGroupResource, config.ConfigReferent)})
	}
	return refs
}

func configReference(resource addonv1alpha1.ConfigGroupResource, referent addonv1alpha1.ConfigReferent) render.ConfigReference {
	return render.ConfigReference{Group: resource.Group, Resource: resource.Resource, Namespace: referent.Namespace, Name: referent.Name}
}

// unique drops repeated references, as OCM does; the order stays the same.
func unique(refs []referring) []render.ConfigReference {
	var kept []render.ConfigReference
	for _, r := range refs {
		if !slices.Contains(kept, r.ConfigReference) {
			kept = append(kept, r.ConfigReference)
		}
	}
	return kept
}

// take adds the object of one reference to the content, unless the content has it already.
func (l *loader) take(d *draft, c *render.Content, r referring) {
	object, known := l.find(d, r)
	if !known {
		return
	}
	if r.Group == addonGroup && r.Resource == render.TemplateResource {
		l.takeTemplate(d, c, r, object)
		return
	}
	if slices.ContainsFunc(c.Configs, func(config render.Config) bool { return config.ConfigReference == r.ConfigReference }) {
		return
	}
	hash, hashed := l.hashOf(d, r, object)
	if !hashed {
		return
	}
	c.Configs = append(c.Configs, render.Config{
		ConfigReference: r.ConfigReference,
		APIVersion:      object.GetAPIVersion(), Kind: object.GetKind(),
		SpecHash: hash, Body: render.HashedFields(object.Object),
	})
}

func (l *loader) takeTemplate(d *draft, c *render.Content, r referring, object *unstructured.Unstructured) {
	if addOn, _ := valueAt(object.Object, specKey, "addonName").(string); addOn != "" && addOn != d.Name {
		l.reportNormalised(d.addOn, flaw.Flaw{
			Field: r.at, Reason: flaw.ReasonInvalidReference,
			Message: fmt.Sprintf("AddOnTemplate %q belongs to add-on %q", r.Name, addOn),
			Hint:    "set its spec.addonName, or refer to a template of this add-on",
		})
		d.broken = true
		return
	}
	if slices.ContainsFunc(c.Templates, func(t render.Template) bool { return t.Name == r.Name }) {
		return
	}
	hash, hashed := l.hashOf(d, r, object)
	if !hashed {
		return
	}
	spec, _ := object.Object[specKey].(map[string]any)
	// templateFlaws reported the errors of the annotations. The rest is checked without them.
	typed, typedErr := variable.ParseTyped(object.GetAnnotations()[variable.TypedAnnotation])
	mapped, mappedErr := variable.ParseFromConfigs(object.GetAnnotations()[variable.FromConfigsAnnotation])
	newer, _ := strict.ParseNewerNames(object.GetAnnotations()[strict.NewerNamesAnnotation])
	if typedErr != nil {
		typed = nil
	}
	if mappedErr != nil {
		mapped = nil
	}
	t := render.Template{Name: r.Name, SpecHash: hash, Typed: typed, FromConfigs: mapped, Newer: newer, Spec: spec}
	if versioned(c.Supported) {
		t.Version = object.GetLabels()[hubconfigv1alpha1.VersionLabel]
	}
	c.Templates = append(c.Templates, t)
}

// hashOf hashes the object of a reference, or reports why it cannot be hashed.
func (l *loader) hashOf(d *draft, r referring, object *unstructured.Unstructured) (hash string, hashed bool) {
	hash, err := render.SpecHash(object)
	if err != nil {
		l.reportNormalised(d.addOn, flaw.Flaw{Field: r.at, Reason: flaw.ReasonInvalidReference, Message: err.Error()})
		d.broken = true
	}
	return hash, err == nil
}

// find returns the object of a reference, from the commit or from the hub. known is false if the object is missing
// (it is then in d.Missing), or if it has problems.
func (l *loader) find(d *draft, r referring) (object *unstructured.Unstructured, known bool) {
	reference := Reference(r.ConfigReference)
	if o, declared := l.configs[reference]; declared && o.awaits != nil {
		d.Missing = append(d.Missing, *o.awaits)
		return nil, false
	} else if declared {
		d.broken = d.broken || o.object == nil
		return o.object, o.object != nil
	}
	if live := l.hub[reference]; live != nil {
		return l.fromHub(d, r, live)
	}
	d.Missing, d.absent = append(d.Missing, reference), append(d.absent, r)
	return nil, false
}

// fromHub normalises and validates an object that exists only on the hub. Its errors are problems of the commit that
// refers to it.
func (l *loader) fromHub(d *draft, r referring, live *unstructured.Unstructured) (object *unstructured.Unstructured, known bool) {
	role := roleOf(live.GroupVersionKind(), l.listed)
	object, err := l.schemas.stored(live, role)
	flaws := []flaw.Flaw{}
	if err != nil {
		flaws = append(flaws, flaw.Flaw{Message: err.Error(), Reason: flaw.ReasonInvalidReference})
	} else {
		flaws = append(flaws, valueFlaws(object, role)...)
	}
	for _, f := range flaws {
		l.reportNormalised(d.addOn, flaw.Flaw{
			Field: r.at, Reason: f.Reason, Hint: f.Hint,
			Message: fmt.Sprintf("%s %q on the hub: %s: %s", live.GetKind(), live.GetName(), f.Field, f.Message),
		})
	}
	d.broken = d.broken || len(flaws) > 0
	return object, len(flaws) == 0
}

// sortContent sorts content into its canonical order. Placements and their configurations stay as declared, because
// later placements and earlier configurations take precedence.
func sortContent(c *render.Content) {
	slices.SortFunc(c.Supported, func(a, b addonv1alpha1.ConfigGroupResource) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Resource, b.Resource))
	})
	slices.SortFunc(c.Defaults, compareConfigs)
	slices.SortFunc(c.Templates, func(a, b render.Template) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Configs, func(a, b render.Config) int {
		return compareConfigs(a.ConfigReference, b.ConfigReference)
	})
}

func compareConfigs(a, b render.ConfigReference) int {
	return compareReferences(Reference(a), Reference(b))
}
