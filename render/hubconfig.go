package render

import (
	"fmt"
	"slices"
	"strings"

	hubconfigv1alpha1 "github.com/addonflow/addonflow/api/hubconfig/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// templateKindKey and hubConfigKindKey are the two kinds that select a template.
func templateKindKey() groupResource  { return groupResource{addonGroup, TemplateResource} }
func hubConfigKindKey() groupResource { return groupResource{addonGroup, HubConfigResource} }

// selects reports whether configurations of a kind select the template. Such a kind at a more specific level replaces
// both kinds.
func (k groupResource) selects() bool { return k == templateKindKey() || k == hubConfigKindKey() }

// rival is the other kind that selects a template.
func (k groupResource) rival() groupResource {
	if k == templateKindKey() {
		return hubConfigKindKey()
	}
	return templateKindKey()
}

// selectVersion adds the template that the first AddOnHubConfig of an assignment selects. It reports an error if
// there is no such template or more than one.
func (r *Renderer) selectVersion(a *assignment, byKind map[groupResource][]ConfigReference) {
	if len(byKind[hubConfigKindKey()]) == 0 {
		return
	}
	reference := byKind[hubConfigKindKey()][0]
	body, ok := r.bodyOf(a, reference)
	if !ok {
		return // take reported that it is missing
	}
	version, _ := flaw.Path("spec.desiredVersion").In(body).(string)
	var names []string
	for _, t := range r.content.Templates {
		if t.Version != "" && t.Version == version {
			names = append(names, t.Name)
		}
	}
	if len(names) == 1 {
		byKind[templateKindKey()] = []ConfigReference{{Group: addonGroup, Resource: TemplateResource, Name: names[0]}}
		return
	}
	f := Finding{
		About: reference, Field: "spec.desiredVersion", Reason: flaw.ReasonReferenceNotFound,
		Message: fmt.Sprintf("no AddOnTemplate of add-on %q has the label %s=%s", r.addOn, hubconfigv1alpha1.VersionLabel, version),
		Hint:    "the templates of every version stand in the commit",
	}
	if len(names) > 1 {
		f.Reason = flaw.ReasonInvalidReference
		f.Message = fmt.Sprintf("AddOnTemplates %s have the label %s=%s", strings.Join(names, " and "), hubconfigv1alpha1.VersionLabel, version)
		f.Hint = "keep one of them"
	}
	a.found.add(f)
}

// ConflictingLevel finds a template and an AddOnHubConfig among the configurations of one level. Both would select
// the template.
func ConflictingLevel(level []ConfigReference) (Finding, bool) {
	named := func(kind groupResource) int {
		return slices.IndexFunc(level, func(c ConfigReference) bool { return c.Group == kind.group && c.Resource == kind.resource })
	}
	template, config := named(templateKindKey()), named(hubConfigKindKey())
	if template < 0 || config < 0 {
		return Finding{}, false
	}
	return Finding{
		Reason:  flaw.ReasonInvalidReference,
		Message: fmt.Sprintf("AddOnTemplate %q and AddOnHubConfig %q are named at the same level", level[template].Name, level[config].Name),
		Hint:    "keep one of them: either selects the template",
	}, true
}
