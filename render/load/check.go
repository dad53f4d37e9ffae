package load

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
)

// checkAddOns digests and renders every complete add-on, and reports the findings.
func (l *loader) checkAddOns() {
	claims := claims{}
	for _, d := range l.addOns {
		if d.Content.AddOn == "" {
			continue // an object that it refers to is missing or has problems
		}
		if err := d.seal(); err != nil {
			l.reportNormalised(d.addOn, flaw.Flaw{Reason: flaw.ReasonLimitExceeded, Message: err.Error(), Hint: "split the add-on"})
			continue
		}
		renderer, err := render.NewRendererWithin(l.options.Bounds, d.Content, l.options.Charts)
		if err != nil {
			l.reportNormalised(d.addOn, flaw.Flaw{Reason: flaw.ReasonInvalidTemplate, Message: err.Error()})
			continue
		}
		for _, f := range d.check(renderer, l.options.KubeVersions, func(p []v1alpha1.PlacementReference, probe render.Rendered) { l.checkObjects(claims, d, p, probe) }) {
			l.reportFinding(d, f)
		}
		if _, err := renderer.Interruptions(); err != nil {
			l.interrupted = err
		}
	}
}

// check renders the assignments that the declared install strategy gives to clusters. It skips the defaults if every
// placement has its own configurations: then only hand-made ManagedClusterAddOns use the defaults, and their authors
// see the errors. Renderer.Check does not know the install strategy and would refuse the commit.
func (d *draft) check(r *render.Renderer, versions []string, each func([]v1alpha1.PlacementReference, render.Rendered)) []render.Finding {
	return r.CheckPlacements(d.placements(), versions, each)
}

// placements are the placements on which the add-on is installed.
func (d *draft) placements() []v1alpha1.PlacementReference {
	if d.Install.Type != addonv1alpha1.AddonInstallStrategyPlacements {
		return nil
	}
	var placements []v1alpha1.PlacementReference
	for _, p := range d.Install.Placements {
		placements = append(placements, p.PlacementReference)
	}
	return placements
}

// seal gives an add-on its digest, if its content fits into an AddOnRevision.
func (d *draft) seal() error {
	digest, err := d.Content.Digest()
	if err != nil {
		return err
	}
	if _, err := d.Content.Encode(); err != nil {
		return err
	}
	d.Digest = digest
	return nil
}

// reportFinding reports a finding at its position: in the template or configuration if the commit declares it,
// otherwise at the add-on that refers to it.
func (l *loader) reportFinding(d *draft, f render.Finding) {
	if f.Package != "" && d.pkg != nil {
		l.reportNormalised(d.pkg, packageFlaw(d.pkg, f))
		return
	}
	var reference Reference
	switch {
	case f.Template != "":
		reference = Reference{Group: addonGroup, Resource: render.TemplateResource, Name: f.Template}
	case f.Config != "":
		namespace, name, _ := strings.Cut(f.Config, "/")
		reference = Reference{Group: addonGroup, Resource: render.AgentConfigResource, Namespace: namespace, Name: name}
	case f.About.Name != "":
		reference = Reference(f.About)
	}
	if o, declared := l.configs[reference]; declared {
		l.reportNormalised(o, flawOfFinding(f))
		return
	}
	about := flaw.Flaw{Reason: f.Reason, Message: f.Message, Hint: f.Hint}
	if reference.Name != "" {
		about.Message = fmt.Sprintf("%s %q on the hub: %s: %s", reference.Resource, reference.Name, f.Field, f.Message)
	}
	l.reportNormalised(d.addOn, about)
}

// place returns the findings of an *InvalidError with their positions in the commit.
func (l *loader) place(d *draft, err error) problem.List {
	said := &loader{configs: l.configs}
	if invalid, ok := errors.AsType[*render.InvalidError](err); ok {
		for _, f := range invalid.Findings {
			said.reportFinding(d, f)
		}
	}
	return said.problems.Sorted()
}

// claim records that an add-on deploys an object to the clusters of placements. sum identifies the content of a
// Namespace.
type claim struct {
	addOn      string
	sum        [sha256.Size]byte
	placements []v1alpha1.PlacementReference
}

// claims are the claims of all add-ons, by object. The objects themselves are not kept, because those of all charts
// of a commit can take more memory than the operator has.
type claims map[render.Identity][]claim

// checkObjects finds objects that two add-ons deploy to the clusters of one placement, because their works would
// overwrite each other for ever. A Namespace with equal content in both is not a conflict. Clusters that two
// different placements share are not known here and not compared. It also finds the Secrets with values of a package.
// Without placements, the probe has the defaults.
func (l *loader) checkObjects(all claims, d *draft, placements []v1alpha1.PlacementReference, probe render.Rendered) {
	objects, err := probe.Objects()
	if err != nil {
		return
	}
	for i, object := range objects {
		if d.pkg != nil && hasSecretValues(object.Object) && !slices.Contains(d.secrets, object.GetName()) {
			d.secrets = append(d.secrets, object.GetName())
		}
		for _, f := range all.take(d.Name, placements, object) {
			f.Field = manifestsAt.Index(i) // objects are in the template's order
			l.reportConflict(d, probe.Template, f)
		}
	}
}

func hasSecretValues(object map[string]any) bool {
	data, _ := object["data"].(map[string]any)
	text, _ := object["stringData"].(map[string]any)
	return object["apiVersion"] == "v1" && object["kind"] == secretKind && len(data)+len(text) > 0
}

// take claims an object for an add-on. Each placement for which another add-on has already claimed it is a flaw.
func (c claims) take(addOn string, placements []v1alpha1.PlacementReference, object *unstructured.Unstructured) []flaw.Flaw {
	id := render.IdentityOf(object.Object).Object()
	ours := claim{addOn: addOn, placements: slices.Clip(placements)}
	if id.Kind == namespaceKind {
		text, _ := json.Marshal(object.Object) // it was decoded from JSON
		ours.sum = sha256.Sum256(text)
	}
	var flaws []flaw.Flaw
	for _, p := range placements {
		i := slices.IndexFunc(c[id], func(first claim) bool {
			alike := id.Kind == namespaceKind && first.sum == ours.sum
			return first.addOn != addOn && !alike && slices.Contains(first.placements, p)
		})
		if i < 0 {
			continue
		}
		flaws = append(flaws, flaw.Flaw{
			Reason:  flaw.ReasonObjectConflict,
			Message: fmt.Sprintf("add-ons %q and %q both deploy %s to the clusters of placement %s/%s", c[id][i].addOn, addOn, id, p.Namespace, p.Name),
			Hint:    "rename it in one of them, or move it into one",
		})
	}
	i := slices.IndexFunc(c[id], func(x claim) bool { return x.addOn == addOn && x.sum == ours.sum })
	switch {
	case len(placements) == 0:
	case i < 0:
		c[id] = append(c[id], ours)
	default:
		c[id][i].placements = append(c[id][i].placements, placements...)
	}
	return flaws
}

// reportConflict reports at the manifest if the commit declares it; objects that rendering
// added have no position.
func (l *loader) reportConflict(d *draft, template string, f flaw.Flaw) {
	o, declared := l.configs[Reference{Group: addonGroup, Resource: render.TemplateResource, Name: template}]
	if d.pkg != nil {
		o, f.Field = d.pkg, ""
	} else if !declared {
		o, f.Field = d.addOn, ""
	} else if manifests, _ := manifestsOf(o.object.Object); f.Field.Position() >= len(manifests) {
		f.Field = manifestsAt
	}
	l.reportNormalised(o, f)
}
