package load

import (
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/variable"
)

// spacedReference matches a variable with spaces in its braces, as in other template languages.
// Here the spaces make it plain text, which is kept.
var spacedReference = regexp.MustCompile(`\{\{(\s+([A-Za-z_][A-Za-z0-9_]*)\s*|([A-Za-z_][A-Za-z0-9_]*)\s+)\}\}`)

// unclosedReference matches a name after braces that are not closed before the next ones.
var unclosedReference = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)(?:[^{}]|\{[^{]|\}[^}])*?(?:\{\{|\}?$)`)

// warnings returns warnings about text in declared templates that is nearly a variable: only
// spaces keep it from being one that has a value, or its braces are not closed. The text is
// kept, because it may be meant for the agent.
func (l *loader) warnings() problem.List {
	said := &loader{configs: l.configs}
	for _, d := range l.addOns {
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
	for _, d := range l.addOns {
		l.warnOfPlacements(d, said)
	}
	return said.problems.Sorted()
}

// warnOfPlacements reports placements of a rollout that are neither in the commit nor among
// those that install its add-on: only the hub can have them.
func (l *loader) warnOfPlacements(d *draft, said *loader) {
	if d.Rollout == nil {
		return
	}
	known := map[v1alpha1.PlacementReference]bool{{}: true} // an empty reference is reported as a problem
	for _, o := range l.objects {
		if o.role == rolePlacement {
			known[v1alpha1.PlacementReference{Namespace: o.GetUnstructured().GetNamespace(), Name: o.GetUnstructured().GetName()}] = true
		}
	}
	for _, p := range d.Install.Placements {
		known[p.PlacementReference] = true
	}
	warn := func(at flaw.Path, p v1alpha1.PlacementReference) {
		if known[p] {
			return
		}
		said.report(d.rollout, flaw.Flaw{
			Field: at, Reason: flaw.ReasonReferenceNotFound,
			Message: fmt.Sprintf("Placement %s/%s is not in the directory, and no placement that installs the add-on", p.Namespace, p.Name),
			Hint:    "the hub must have it",
		})
	}
	for i, stage := range d.Rollout.Stages {
		warn(flaw.Path("spec.stages").Index(i).Child("placement"), stage.Placement)
	}
	if s := d.Rollout.Strategy; s != nil && s.RollingUpdateWithPlacement != nil {
		share := s.RollingUpdateWithPlacement
		warn("spec.strategy.rollingUpdateWithPlacement", v1alpha1.PlacementReference{Namespace: share.Namespace, Name: share.Name})
	}
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
