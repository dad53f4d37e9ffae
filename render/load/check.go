package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
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
		found, probes := d.check(renderer, l.options.KubeVersions)
		for _, f := range found {
			l.reportFinding(d, f)
		}
		if len(found) == 0 {
			l.checkObjects(claims, d, probes)
		}
		if _, err := renderer.Interruptions(); err != nil {
			l.interrupted = err
		}
	}
}

// check renders what the declared install strategy gives to clusters. It skips the defaults if
// every placement has its own configurations: then only hand-made ManagedClusterAddOns use the
// defaults, and their author sees what is missing. Renderer.Check does not know the install
// strategy and would refuse the commit.
func (d *draft) check(r *render.Renderer, versions []string) ([]render.Finding, []render.Rendered) {
	return r.CheckPlacements(d.placements(), versions)
}

// placements are those on which the add-on is installed.
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

// reportFinding reports a finding at its position: in the template or configuration if the
// commit declares it, else at the add-on that refers to it.
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

// claim is an object that an add-on deploys to the clusters of a placement.
type claim struct {
	addOn  string
	object *unstructured.Unstructured
}

// claims are the first claims to the objects of each placement's clusters.
type claims map[v1alpha1.PlacementReference]map[render.Identity]claim

// checkObjects finds objects that two add-ons deploy to the clusters of one placement: their
// works would overwrite each other for ever. A Namespace that both describe alike is not a
// conflict. Clusters that two different placements share are unknown here and not compared. It
// also finds the Secrets with values of a package.
func (l *loader) checkObjects(all claims, d *draft, probes []render.Rendered) {
	placements := d.placements()
	for n, probe := range probes {
		objects, err := probe.Objects()
		if err != nil {
			continue
		}
		for i, object := range objects {
			if d.pkg != nil && hasSecretValues(object.Object) && !slices.Contains(d.secrets, object.GetName()) {
				d.secrets = append(d.secrets, object.GetName())
			}
			if n == len(placements) {
				continue // the defaults
			}
			if f, conflict := all.take(placements[n], d.Name, object); conflict {
				f.Field = manifestsAt.Index(i) // objects are in the template's order
				l.reportConflict(d, probe.Template, f)
			}
		}
	}
}

func hasSecretValues(object map[string]any) bool {
	data, _ := object["data"].(map[string]any)
	text, _ := object["stringData"].(map[string]any)
	return object["apiVersion"] == "v1" && object["kind"] == secretKind && len(data)+len(text) > 0
}

// take claims an object for an add-on. It returns a flaw if another add-on has claimed it.
func (c claims) take(p v1alpha1.PlacementReference, addOn string, object *unstructured.Unstructured) (flaw.Flaw, bool) {
	id := render.IdentityOf(object.Object).Object()
	if c[p] == nil {
		c[p] = map[render.Identity]claim{}
	}
	first, claimed := c[p][id]
	if !claimed {
		c[p][id] = claim{addOn: addOn, object: object}
		return flaw.Flaw{}, false
	}
	if first.addOn == addOn || id.Kind == namespaceKind && equality.Semantic.DeepEqual(first.object.Object, object.Object) {
		return flaw.Flaw{}, false
	}
	return flaw.Flaw{
		Reason:  flaw.ReasonObjectConflict,
		Message: fmt.Sprintf("add-ons %q and %q both deploy %s to the clusters of placement %s/%s", first.addOn, addOn, id, p.Namespace, p.Name),
		Hint:    "rename it in one of them, or move it into one",
	}, true
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
