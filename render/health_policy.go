package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/strict"
)

// HealthFlaws judges the health policy of an add-on against its content. An entry that matches no object in a
// template would hold the clusters of that template for ever. An entry that reads feedback without a rule would hold
// all clusters.
func HealthFlaws(h *v1alpha1.Health, content Content) []flaw.Flaw {
	p, flaws := newProber(h)
	if len(flaws) > 0 {
		return flaws
	}
	for i := range p.checks {
		at := flaw.Path("spec.health.healthCheckExprs").Index(i)
		for _, t := range content.Templates {
			if len(p.checks[i].judges(t)) > 0 {
				continue
			}
			flaws = append(flaws, flaw.Flaw{
				Field: at, Reason: flaw.ReasonInvalidHealth,
				Message: fmt.Sprintf("AddOnTemplate %s has no %s that it could judge", t.Name, h.HealthCheckExprs[i].Kind),
				Hint:    "compare apiVersion, kind, namespace and name with its manifests",
			})
		}
		flaws = append(flaws, p.checks[i].unaskedFlaws(at, content.Templates)...)
	}
	return flaws
}

// judges returns the manifests of a template that the check may judge. If a name or namespace depends on variables or
// on agentInstallNamespace, it can only be matched on the cluster.
func (c *check) judges(t Template) []Identity {
	manifests, _ := flaw.Path("agentSpec.workload.manifests").In(t.Spec).([]any)
	var judged []Identity
	for _, manifest := range manifests {
		fields, ok := manifest.(map[string]any)
		if !ok {
			continue
		}
		id := IdentityOf(fields)
		name := id.Name
		if strings.Contains(name, "{{") {
			name = c.name
		}
		if c.matches(id.groupKind(), c.namespace, name) {
			judged = append(judged, id)
		}
	}
	return judged
}

// unaskedFlaws finds feedback that the check requires although no template has a rule for it.
func (c *check) unaskedFlaws(at flaw.Path, templates []Template) []flaw.Flaw {
	asked := map[string]bool{}
	for _, t := range templates {
		judged := c.judges(t)
		if !asks(t, judged, asked) || len(judged) == 0 {
			return nil
		}
	}
	var flaws []flaw.Flaw
	for _, x := range []struct {
		name       string
		expression *expression
	}{{"inProgress", c.inProgress}, {"failed", c.failed}, {"current", c.current}, {"degraded", c.degraded}} {
		if x.expression == nil || len(templates) == 0 {
			continue
		}
		for _, name := range x.expression.needs {
			if asked[name] {
				continue
			}
			f := flaw.Flaw{
				Field: at.Child(x.name), Reason: flaw.ReasonInvalidHealth, Message: fmt.Sprintf("no feedback rule asks for %q", flaw.Shown(name)),
				Hint: "ask for it in feedbackRules of the template's manifestConfigs",
			}
			if match := flaw.Closest(name, slices.Collect(maps.Keys(asked))); match != "" {
				f.Hint = "did you mean " + match + "?"
			}
			flaws = append(flaws, f)
		}
	}
	return flaws
}

// asks adds the names of the feedback for which a template has rules. It returns false if the agent may report
// names that this function cannot list.
func asks(t Template, objects []Identity, names map[string]bool) bool {
	var spec addonv1alpha1.AddOnTemplateSpec
	if strict.Convert(t.Spec, &spec) != nil {
		return false
	}
	for _, id := range objects {
		kind, _ := workloadKind(id.groupKind().Group, id.Kind)
		ours := feedback{kind: kind, digest: true, updated: true}
		for _, path := range ours.paths() {
			names[path.Name] = true
		}
		for _, name := range ours.wellKnown() {
			names[name] = true
		}
		for _, option := range spec.AgentSpec.ManifestConfigs {
			// Only the cluster knows the plural of every kind.
			if option.ResourceIdentifier.Group != id.groupKind().Group {
				continue
			}
			for _, rule := range option.FeedbackRules {
				if rule.Type == workv1.WellKnownStatusType && len(ours.wellKnown()) == 0 {
					return false
				}
				for _, path := range rule.JsonPaths {
					names[path.Name] = true
				}
			}
		}
	}
	return true
}
