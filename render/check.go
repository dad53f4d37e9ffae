package render

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
	"github.com/addonflow/addonflow/render/variable"
)

const (
	// ProbeCluster is the name of the imaginary cluster for which Check renders.
	ProbeCluster = "cluster1"
	// probeMinor is the minor version of Kubernetes with which packages are checked. If the
	// chart does not allow it, versions from oldestMinor to newestMinor are tried.
	probeMinor, oldestMinor, newestMinor = 33, 16, 60
	// longestCluster is the length of the longest possible cluster name, for sizes.
	longestCluster = 63
)

// Check renders every assignment that the content can give, for an imaginary cluster. It returns all errors in the
// order found: defaults first, then placements in order, each finding once. Combinations of two placements need no
// check, because each kind of configuration comes from one of them as a whole. Check ignores annotations of
// ManagedClusters; Render reports their errors. If Interruptions changed meanwhile, findings may be missing.
func (r *Renderer) Check() []Finding {
	var found findings
	assignments := []*assignment{r.defaults}
	for _, p := range r.content.Placements {
		assignments = append(assignments, r.placements[p.PlacementReference])
	}
	templated := slices.ContainsFunc(assignments, func(a *assignment) bool { return a.template != nil })
	for _, a := range assignments {
		if a == r.defaults && a.template == nil && templated && !r.names(TemplateResource) {
			continue // possibly no cluster gets the defaults
		}
		list, _ := r.check(a, nil)
		for _, f := range list {
			found.add(f)
		}
	}
	return found.list
}

// CheckPlacements returns the errors of the rendering for clusters of the given placements; without placements, for
// clusters with the defaults. It renders a package with each of the given Kubernetes versions; without versions, with
// one that the chart allows. If Interruptions changed meanwhile, findings may be missing.
//
// Until the first finding, it calls each with the placements of an assignment and its rendering with the first
// version. It does not keep the rendering. The rendering is complete, with one exception: it is empty for a template
// with variables that only a cluster gives.
func (r *Renderer) CheckPlacements(placements []v1alpha1.PlacementReference, versions []string, each func([]v1alpha1.PlacementReference, Rendered)) []Finding {
	assignments, assigned := []*assignment{r.defaults}, map[*assignment][]v1alpha1.PlacementReference{}
	for i := range placements {
		a := r.assignmentOf(placements[i : i+1])
		assignments = append(assignments[:i], a)
		assigned[a] = append(assigned[a], placements[i])
	}
	var found findings
	for i, a := range assignments {
		if slices.Index(assignments, a) < i {
			continue
		}
		list, probe := r.check(a, versions)
		for _, f := range list {
			found.add(f)
		}
		if len(found.list) == 0 {
			each(assigned[a], probe)
		}
	}
	return found.list
}

// probeVersions are the Kubernetes versions with which a package may be checked, the most
// likely first.
func probeVersions() []string {
	version := func(minor int) string { return fmt.Sprintf("v1.%d.0", minor) }
	out := []string{version(probeMinor)}
	for minor := probeMinor + 1; minor <= newestMinor; minor++ {
		out = append(out, version(minor))
	}
	for minor := probeMinor - 1; minor >= oldestMinor; minor-- {
		out = append(out, version(minor))
	}
	return out
}

// check renders one assignment for each of the Kubernetes versions, or for one that the chart
// allows if none is given. It does not repeat findings of the first version for the others.
func (r *Renderer) check(a *assignment, versions []string) ([]Finding, Rendered) {
	if !a.packaged() {
		return r.checkFor(a, "")
	}
	if len(versions) == 0 {
		pkg := a.template.pkg
		version, err := pkg.charts.Admits(pkg.source, probeVersions())
		switch {
		case errors.Is(err, ErrInterrupted):
			r.interrupt(err)
			return nil, Rendered{}
		case err != nil:
			return append(slices.Clone(a.template.found.list), pkg.finding(err)), Rendered{}
		}
		return r.checkFor(a, version)
	}
	found, probe := r.checkFor(a, versions[0])
	first := slices.Clone(found)
	for _, version := range versions[1:] {
		list, _ := r.checkFor(a, version)
		for _, f := range list {
			if !slices.Contains(first, f) {
				f.Message = "with Kubernetes " + version + ": " + f.Message
				found = append(found, f)
			}
		}
	}
	return found, probe
}

// names reports whether the defaults name a configuration of a kind.
func (r *Renderer) names(resource string) bool {
	return slices.ContainsFunc(r.content.Defaults, func(c ConfigReference) bool {
		return c.Group == addonGroup && c.Resource == resource
	})
}

// checkFor renders one assignment for the probe. The rendering is empty if it has sample values.
func (r *Renderer) checkFor(a *assignment, version string) ([]Finding, Rendered) {
	samples := a.probeVariables()
	b, err := newBuilder(r.addOn, a, facts{kubeVersion: version, variables: samples}, ProbeCluster)
	if err != nil {
		return r.findings(err), Rendered{}
	}
	p := b.build()
	before := slices.Clone(b.found.list)
	if a.packaged() && len(b.found.list) == 0 {
		if err := b.verify(); err != nil {
			return r.findings(err), Rendered{}
		}
	}
	for i := range b.manifests {
		b.checkRendered(&b.manifests[i], &p.objects[i], before)
	}
	hooks := 0
	together := binned(p.objects, false).hooks
	for _, i := range together {
		hooks += largest(&p.objects[i])
	}
	if hooks > WorkLimit && len(together) > 1 {
		b.found.add(hooksTooLarge(b.template.name, hooks))
	}
	if samples != "" {
		return b.stamped(), Rendered{}
	}
	return b.stamped(), p.rendered("")
}

// checkRendered checks one manifest by its rendered object. It skips manifests with earlier
// findings, because names may be wrong only as a consequence.
func (b *builder) checkRendered(m *manifest, o *object, before []Finding) {
	at := cmp.Or(m.at, "spec.proxyConfig")
	if slices.ContainsFunc(before, func(f Finding) bool { return flaw.Path(f.Field).Under(at) }) {
		return
	}
	if b.checkTypes(m) {
		b.report(m, nameFlaws(m.fields, at)...)
	}
	if size := largest(o); size > WorkLimit {
		finding := tooLarge(b.template.name, sized{id: o.id, size: size})
		finding.Field = string(at)
		if b.template.pkg != nil {
			finding.Package, finding.File, finding.Field = b.template.pkg.Name, m.file, ""
		}
		b.found.add(finding)
	}
}

// findings returns the findings of an error; an interruption has no findings.
func (r *Renderer) findings(err error) []Finding {
	if errors.Is(err, ErrInterrupted) {
		r.interrupt(err)
		return nil
	}
	return findingsOf(err)
}

func findingsOf(err error) []Finding {
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return invalid.Findings
	}
	return []Finding{{Reason: flaw.ReasonInvalidTemplate, Message: err.Error()}}
}

// largest is the size of an object on the cluster with the longest name. The object was rendered for the probe. So
// the difference in length is added for each time that the probe's name occurs.
func largest(o *object) int {
	raw := o.delivered(digestVersionRendered + ":sha256:" + strings.Repeat("0", hex.EncodedLen(sha256.Size)))
	longer := strings.Count(string(raw), ProbeCluster) * (longestCluster - len(ProbeCluster))
	return (&runtime.RawExtension{Raw: raw}).Size() + longer
}

// checkTypes checks the rendered manifest against its Kubernetes types and reports whether it
// matches. A template's manifests were checked before, except for fields with variables.
func (b *builder) checkTypes(m *manifest) bool {
	if m.at == "" {
		return true // injected
	}
	before := len(b.found.list)
	for _, f := range strict.ManifestFlaws("", m.fields, &strict.Declarations{Newer: b.template.newer}) {
		switch {
		case b.template.pkg != nil:
			b.found.add(Finding{
				Package: b.template.pkg.Name, File: m.file, Reason: f.Reason, Hint: f.Hint,
				Message: fmt.Sprintf("%s: %s: %s", m.declared, f.Field, f.Message),
			})
		case b.comesFromVariable(m, f):
			b.found.add(Finding{Template: b.template.name, Field: string(m.at + "." + f.Field), Reason: f.Reason, Message: f.Message, Hint: f.Hint})
		}
	}
	return len(b.found.list) == before
}

// comesFromVariable reports whether a flaw of a template's rendering comes from the value of a variable. If the
// variable is the whole field, its declaration was already checked for its type.
func (b *builder) comesFromVariable(m *manifest, f flaw.Flaw) bool {
	declared, _ := b.template.manifests[m.at.Position()].(map[string]any)
	value := f.Field.In(declared)
	text, _ := value.(string)
	_, alone := variable.Whole(text)
	return variable.In(value) && (f.Reason == flaw.ReasonInvalidManifest || !alone)
}

// CheckConfig returns the errors of an AddOnDeploymentConfig that do not depend on a template.
func CheckConfig(c Config) []Finding { return parseAgentConfig(c).found.list }

// CheckTemplate returns the errors of an AddOnTemplate that do not depend on a configuration, without those of its
// manifests.
func CheckTemplate(addOn string, t Template) []Finding { return parseTemplate(addOn, t).found.list }
