package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// spacedReference matches a variable with spaces in its braces, as in other template languages. Here it is plain
// text, which is kept.
var spacedReference = regexp.MustCompile(`\{\{(\s+([A-Za-z_][A-Za-z0-9_]*)\s*|([A-Za-z_][A-Za-z0-9_]*)\s+)\}\}`)

// unclosedReference matches a name after braces that are not closed before the next braces.
var unclosedReference = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)(?:[^{}]|\{[^{]|\}[^}])*?(?:\{\{|\}?$)`)

// warnings returns accepted input that is probably a mistake, or that a hub without the named objects would refuse.
func (l *loader) warnings() problem.List {
	said := &loader{configs: l.configs}
	for _, d := range l.addOns {
		l.warnOfBraces(d, said)
		l.warnOfJobs(d, said)
		l.warnOfSecrets(d, said)
		l.warnOfAbsent(d, said)
		l.warnOfGroups(d, said)
		warnOfPace(d, said)
		warnOfUnsigned(d, said)
		if d.Unfetched != "" {
			said.report(d.pkg, flaw.Flaw{
				Field: ociField, Reason: flaw.ReasonReferenceNotFound, Message: "nothing of the chart is checked, because nothing is fetched from a registry here",
				Hint: "the operator fetches it; addonflow vendor writes a chart into the repository, where it is checked",
			})
		}
	}
	return said.problems.Sorted()
}

// warnOfBraces warns about text in declared templates that is nearly a variable: it names a variable with a value,
// but has spaces in its braces; or its braces are not closed. The text is kept, because it may be meant for the
// agent.
func (l *loader) warnOfBraces(d *draft, said *loader) {
	known := knownVariables(d.Content)
	for _, t := range d.Content.Templates {
		if _, declared := l.configs[Reference{Group: addonGroup, Resource: render.TemplateResource, Name: t.Name}]; !declared {
			continue
		}
		manifests, _ := manifestsOf(map[string]any{specKey: t.Spec})
		for i, manifest := range manifests {
			eachText(manifest, manifestsAt.Index(i), func(at flaw.Path, text string) {
				for _, name := range spacedNames(text) {
					if known[name] {
						said.reportFinding(d, render.Finding{
							Template: t.Name, Field: string(at), Reason: flaw.ReasonUnresolvedVariable,
							Message: fmt.Sprintf("{{ %s }} is kept as text", name),
							Hint:    fmt.Sprintf("write {{%s}} for the value of the variable", name),
						})
					}
				}
				for _, match := range unclosedReference.FindAllStringSubmatch(text, 1) {
					said.reportFinding(d, render.Finding{
						Template: t.Name, Field: string(at), Reason: flaw.ReasonUnresolvedVariable,
						Message: fmt.Sprintf("{{%s is never closed and kept as text", match[1]),
						Hint:    fmt.Sprintf("write {{%s}} for the value of a variable", match[1]),
					})
				}
			})
		}
	}
}

// warnOfJobs warns of Jobs that the work agent replaces as a whole. API servers refuse that, because the spec of a
// Job is immutable and has labels that the API server added.
func (l *loader) warnOfJobs(d *draft, said *loader) {
	for _, t := range d.Content.Templates {
		if _, declared := l.configs[Reference{Group: addonGroup, Resource: render.TemplateResource, Name: t.Name}]; !declared {
			continue
		}
		manifests, _ := manifestsOf(map[string]any{specKey: t.Spec})
		for _, i := range render.ReplacedJobs(t.Spec, manifests) {
			said.reportFinding(d, render.Finding{
				Template: t.Name, Field: string(manifestsAt.Index(i)), Reason: render.ReasonNotSupported,
				Message: "OCM's work agent cannot update a Job: its spec is immutable",
				Hint: "set updateStrategy ServerSideApply for jobs in spec.agentSpec.manifestConfigs, and put a version into the name to run it again; " +
					"annotate it with " + addonv1alpha1.AddonPreDeleteHookAnnotationKey + " to run it when the add-on is removed",
			})
		}
	}
}

// warnOfSecrets warns of Secrets with values.
func (l *loader) warnOfSecrets(d *draft, said *loader) {
	found := func(name string) render.Finding {
		return render.Finding{
			Reason:  flaw.ReasonUnsupportedKind,
			Message: fmt.Sprintf("the values of Secret %s can be read in Git, in AddOnRevisions and in ManifestWorks", name),
			Hint:    "create the Secret on the managed clusters, and refer to it by name",
		}
	}
	for _, t := range d.Content.Templates {
		if _, declared := l.configs[Reference{Group: addonGroup, Resource: render.TemplateResource, Name: t.Name}]; !declared {
			continue
		}
		manifests, _ := manifestsOf(map[string]any{specKey: t.Spec})
		for i, manifest := range manifests {
			object, _ := manifest.(map[string]any)
			if hasSecretValues(object) {
				f := found(fmt.Sprint(valueAt(object, metadataKey, nameKey)))
				f.Template, f.Field = t.Name, string(manifestsAt.Index(i))
				said.reportFinding(d, f)
			}
		}
	}
	for _, name := range d.secrets {
		f := found(name)
		f.Package = d.pkg.object.GetName()
		said.reportFinding(d, f)
	}
}

// warnOfAbsent warns of each placement and configuration that only the hub can have, at the first field that names
// it.
func (l *loader) warnOfAbsent(d *draft, said *loader) {
	warned := map[Reference]bool{}
	warn := func(about *loaded, at flaw.Path, r Reference) {
		if _, declared := l.configs[r]; declared || r.Name == "" || warned[r] {
			return
		}
		warned[r] = true
		said.reportNormalised(about, flaw.Flaw{
			Field: at, Reason: flaw.ReasonReferenceNotFound,
			Message: r.String() + " is not in the directory", Hint: l.meant(r) + "the hub must have it",
		})
	}
	for _, r := range d.absent {
		warn(d.addOn, r.at, Reference(r.ConfigReference))
	}
	for i, p := range d.Install.Placements {
		warn(d.addOn, flaw.Path("spec.installStrategy.placements").Index(i), placementReference(p.PlacementReference))
	}
	if d.Rollout == nil {
		return
	}
	for i, stage := range d.Rollout.Stages {
		warn(d.rollout, flaw.Path("spec.stages").Index(i).Child("placement"), placementReference(stage.Placement))
	}
	if s := d.Rollout.Strategy; s != nil && s.RollingUpdateWithPlacement != nil {
		warn(d.rollout, "spec.strategy.rollingUpdateWithPlacement", placementReference(s.RollingUpdateWithPlacement.PlacementReference))
	}
}

func placementReference(p v1alpha1.PlacementReference) Reference {
	return Reference{Group: placementGroup, Resource: placementsResource, Namespace: p.Namespace, Name: p.Name}
}

// meant is "did you mean NAME? If not, " if the name or namespace of an object of the commit is similar to the
// reference; otherwise "".
func (l *loader) meant(r Reference) string {
	var names, elsewhere []string
	for known := range l.configs {
		switch {
		case known.Group != r.Group || known.Resource != r.Resource:
		case known.Namespace == r.Namespace:
			names = append(names, known.Name)
		case known.Name == r.Name:
			elsewhere = append(elsewhere, known.Namespace+"/"+known.Name)
		}
	}
	match := flaw.Closest(r.Name, names)
	if match == "" && len(elsewhere) > 0 {
		match = slices.Min(elsewhere)
	}
	if match == "" {
		return ""
	}
	return "did you mean " + match + "? If not, "
}

// warnOfGroups warns of mandatory decision groups that no placement of the commit defines, because the rollout stalls
// until a placement defines them. Groups of placements that only the hub has are not known.
func (l *loader) warnOfGroups(d *draft, said *loader) {
	var all []v1alpha1.PlacementReference
	for _, p := range d.Install.Placements {
		all = append(all, p.PlacementReference)
	}
	if r := d.Rollout; r != nil && (r.Strategy != nil || len(r.Stages) > 0) {
		if r.Strategy != nil { // it replaces the paces of the ClusterManagementAddOn
			block, wanted := mandatoryGroups(r.Strategy.Progressive, r.Strategy.ProgressivePerGroup)
			said.reportNormalised(d.rollout, l.groupFlaws(flaw.Path("spec.strategy").Child(block), wanted, all)...)
		}
		return
	}
	for i, p := range d.Install.Placements {
		block, wanted := mandatoryGroups(p.RolloutStrategy.Progressive, p.RolloutStrategy.ProgressivePerGroup)
		at := flaw.Path("spec.installStrategy.placements").Index(i).Child("rolloutStrategy").Child(block)
		said.reportNormalised(d.addOn, l.groupFlaws(at, wanted, all[i:i+1])...)
	}
}

// warnOfPace warns of an AddOnRollout if no file declares a pace, because the author of a policy probably expects a
// pace.
func warnOfPace(d *draft, said *loader) {
	if d.rollout == nil || d.DeclaresPace() {
		return
	}
	said.report(d.rollout, flaw.Flaw{
		Field: specKey, Reason: flaw.ReasonInvalidRolloutStrategy, Message: "no pace is declared: a commit moves all clusters at once, unless the operator runs with --default-canary",
		Hint: "declare stages or strategy, such as strategy: {type: All} if this is intended",
	})
}

// warnOfUnsigned warns of webhook gates without a Secret: the service cannot know that the operator asks.
func warnOfUnsigned(d *draft, said *loader) {
	if d.Rollout == nil {
		return
	}
	for i, stage := range d.Rollout.Stages {
		if stage.Gates == nil {
			continue
		}
		at := flaw.Path("spec.stages").Index(i).Child("gates")
		for field, gates := range map[string][]v1alpha1.Gate{"before": stage.Gates.Before, "during": stage.Gates.During} {
			for j, gate := range gates {
				if gate.Webhook != nil && gate.Webhook.SecretRef == nil {
					said.report(d.rollout, flaw.Flaw{
						Field: at.Child(field).Index(j).Child("webhook"), Reason: flaw.ReasonInvalidRolloutStrategy,
						Message: "the requests are not signed", Hint: "set secretRef to a Secret with the key that signs them",
					})
				}
			}
		}
	}
}

// mandatoryGroups returns the mandatory groups of a pace, and the block with them.
func mandatoryGroups(p *clusterv1alpha1.RolloutProgressive, g *clusterv1alpha1.RolloutProgressivePerGroup) (block string, wanted []clusterv1alpha1.MandatoryDecisionGroup) {
	switch {
	case p != nil:
		return "progressive", p.MandatoryDecisionGroups.MandatoryDecisionGroups
	case g != nil:
		return "progressivePerGroup", g.MandatoryDecisionGroups.MandatoryDecisionGroups
	}
	return "", nil
}

// groupFlaws returns the flaws of named groups that no placement defines. A group with an index is not judged,
// because the number of groups depends on the clusters.
func (l *loader) groupFlaws(at flaw.Path, wanted []clusterv1alpha1.MandatoryDecisionGroup, placements []v1alpha1.PlacementReference) []flaw.Flaw {
	var groups []string
	names := make([]string, 0, len(placements))
	for _, ref := range placements {
		o, declared := l.configs[placementReference(ref)]
		if !declared || o.object == nil {
			return nil
		}
		strategy, _ := valueAt(o.object.Object, specKey, "decisionStrategy", "groupStrategy").(map[string]any)
		groups = append(groups, groupNames(strategy)...)
		names = append(names, ref.Namespace+"/"+ref.Name)
	}
	var flaws []flaw.Flaw
	for i, w := range wanted {
		if w.GroupName == "" || slices.Contains(groups, w.GroupName) {
			continue
		}
		hint := "the rollout stalls until it is defined in spec.decisionStrategy.groupStrategy.decisionGroups"
		if match := flaw.Closest(w.GroupName, groups); match != "" {
			hint = "did you mean " + match + "?"
		}
		flaws = append(flaws, flaw.Flaw{
			Field: at.Child("mandatoryDecisionGroups").Index(i).Child("groupName"), Reason: flaw.ReasonReferenceNotFound,
			Message: fmt.Sprintf("no decision group of Placement %s is named %q", brief.Names(names), flaw.Shown(w.GroupName)), Hint: hint,
		})
	}
	return flaws
}

// groupNames are the names of the decision groups that a Placement defines.
func groupNames(strategy map[string]any) []string {
	var names []string
	groups, _ := strategy["decisionGroups"].([]any)
	for _, group := range groups {
		fields, _ := group.(map[string]any)
		name, _ := fields["groupName"].(string)
		names = append(names, name)
	}
	return names
}

// knownVariables returns the names of all variables with a value in the content.
func knownVariables(c render.Content) map[string]bool {
	known := map[string]bool{variable.ClusterName: true, variable.InstallNamespace: true, variable.HubKubeconfig: true}
	for _, config := range c.Configs {
		if config.Kind != configKind {
			continue
		}
		list, _ := valueAt(config.Body, specKey, "customizedVariables").([]any)
		for _, item := range list {
			fields, _ := item.(map[string]any)
			if name, ok := fields[nameKey].(string); ok {
				known[name] = true
			}
		}
	}
	return known
}

// spacedNames returns the names within braces and spaces, each once.
func spacedNames(text string) []string {
	var names []string
	for _, match := range spacedReference.FindAllStringSubmatch(text, -1) {
		if name := match[2] + match[3]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// eachText visits every string of a document, in the order of sorted keys.
func eachText(value any, at flaw.Path, visit func(at flaw.Path, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			eachText(value[key], at.Child(key), visit)
		}
	case []any:
		for i, item := range value {
			eachText(item, at.Index(i), visit)
		}
	case string:
		visit(at, value)
	}
}
