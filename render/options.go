package render

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/flaw"
)

// moved maps the declared names of resources to their names after relocation. It leaves out a declared name that a
// rendered object has.
func (b *builder) moved() map[workv1.ResourceIdentifier]workv1.ResourceIdentifier {
	out := map[workv1.ResourceIdentifier]workv1.ResourceIdentifier{}
	for _, m := range b.manifests {
		out[m.declared.resource()] = IdentityOf(m.fields).resource()
	}
	for _, m := range b.manifests {
		delete(out, IdentityOf(m.fields).resource())
	}
	return out
}

// options are the template's manifestConfigs for this cluster. Variables in resource names are replaced, and an entry
// follows its resource to the install namespace. OCM does neither, so such an entry never matches there.
func (b *builder) options(moved map[workv1.ResourceIdentifier]workv1.ResourceIdentifier) []workv1.ManifestConfigOption {
	at := b.template.configsAt
	out := slices.Clone(b.template.configs)
	for i := range out {
		out[i].ResourceIdentifier = b.follow(out[i].ResourceIdentifier, moved, at.Index(i).Child("resourceIdentifier"))
	}
	return out
}

func (b *builder) follow(id workv1.ResourceIdentifier, moved map[workv1.ResourceIdentifier]workv1.ResourceIdentifier, at flaw.Path) workv1.ResourceIdentifier {
	s := &substitution{template: b.template.name, values: b.variables.values, unassigned: b.assignment.unassigned, found: &b.found}
	id.Name = s.text(id.Name, at.Child("name"))
	id.Namespace = s.text(id.Namespace, at.Child("namespace"))
	if to, ok := moved[id]; ok {
		return to
	}
	return id
}

// deleteOption is the template's option, with a rule for every object with the orphan annotation.
func (b *builder) deleteOption(moved map[workv1.ResourceIdentifier]workv1.ResourceIdentifier, objects []object) *workv1.DeleteOption {
	const at flaw.Path = "spec.agentSpec.deleteOption.selectivelyOrphans.orphaningRules"
	var rules []workv1.OrphaningRule
	option := b.template.deleteOption.DeepCopy()
	if option != nil && option.SelectivelyOrphan != nil {
		for i, rule := range option.SelectivelyOrphan.OrphaningRules {
			rules = append(rules, workv1.OrphaningRule(b.follow(workv1.ResourceIdentifier(rule), moved, at.Index(i))))
		}
		option.SelectivelyOrphan.OrphaningRules = rules
	}
	for i := range objects {
		rule := workv1.OrphaningRule(objects[i].id.resource())
		if objects[i].orphan && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	if len(rules) == 0 || (option != nil && option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan) {
		return option
	}
	return &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules},
	}
}

// effectOn returns the agent's effective manifestConfigs for a resource. Of the matching entries, the first with
// rules of a kind counts, and the first with a strategy.
func effectOn(id workv1.ResourceIdentifier, options []workv1.ManifestConfigOption) workv1.ManifestConfigOption {
	var out workv1.ManifestConfigOption
	for _, o := range options {
		if !matchesResource(o.ResourceIdentifier, id) {
			continue
		}
		if len(out.FeedbackRules) == 0 {
			out.FeedbackRules = o.FeedbackRules
		}
		if len(out.ConditionRules) == 0 {
			out.ConditionRules = o.ConditionRules
		}
		if out.UpdateStrategy == nil {
			out.UpdateStrategy = o.UpdateStrategy
		}
	}
	return out
}

// matchesResource reports whether the agent applies an entry to a resource. In namespace and name, * matches any
// text.
func matchesResource(option, id workv1.ResourceIdentifier) bool {
	return option.Group == id.Group && option.Resource == id.Resource &&
		MatchesWildcard(option.Namespace, id.Namespace) && MatchesWildcard(option.Name, id.Name)
}

// MatchesWildcard reports whether a pattern, in which * stands for any text, matches a text.
func MatchesWildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	rest, begins := strings.CutPrefix(text, parts[0])
	if len(parts) == 1 || !begins {
		return begins && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}

// orphaned reports whether an object stays on the managed cluster when its work is deleted. OCM reads an annotation
// of that name, with any value; a label of that name has the same meaning.
func orphaned(metadata map[string]any) bool {
	labels, _ := metadata[labelsKey].(map[string]any)
	_, labelled := labels[addonv1alpha1.DeletionOrphanAnnotationKey]
	return labelled || annotated(metadata, addonv1alpha1.DeletionOrphanAnnotationKey)
}

// ignoresMark reports whether AddonFlow's annotation is among the fields that the agent does not update. Then the
// digest would never arrive, and the cluster would never be verified.
func ignoresMark(ignored []workv1.IgnoreField) bool {
	return slices.ContainsFunc(ignored, func(f workv1.IgnoreField) bool {
		return slices.ContainsFunc(f.JSONPaths, pathHoldsMark) || slices.ContainsFunc(f.JQPathExpressions, pathHoldsMark) ||
			slices.ContainsFunc(f.JSONPointers, pointerHoldsMark)
	})
}

// pathHoldsMark reads a JSONPath, with or without braces and root, or a jq path.
func pathHoldsMark(path string) bool {
	const annotations = ".metadata.annotations"
	path = strings.TrimPrefix(strings.Trim(strings.TrimSpace(path), "{}"), "$")
	key, below := strings.CutPrefix(path, annotations)
	if !below {
		return path == "." || path == ".metadata"
	}
	key = strings.NewReplacer(`\`, "", "[", "", "]", "", `"`, "", "'", "").Replace(strings.TrimPrefix(key, "."))
	return key == "" || key == "*" || key == v1alpha1.DigestAnnotation
}

func pointerHoldsMark(pointer string) bool {
	const annotations = "/metadata/annotations"
	return slices.Contains([]string{
		"", "/metadata", annotations, annotations + "/" + strings.ReplaceAll(v1alpha1.DigestAnnotation, "/", "~1"),
	}, pointer)
}

// ReplacedJobs returns the indices of the manifests of a template's spec that are Jobs which the work agent replaces
// as a whole when they change. Pre-delete hooks are not among them.
func ReplacedJobs(spec map[string]any, manifests []any) []int {
	var declared addonv1alpha1.AddOnTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &declared); err != nil {
		return nil // the template is refused
	}
	var found []int
	for i, raw := range manifests {
		fields, _ := raw.(map[string]any)
		id := IdentityOf(fields)
		if kind, _ := workloadKind(id.groupKind().Group, id.Kind); kind.name != jobKind || isPreDeleteHook(fields) {
			continue
		}
		if s := effectOn(id.resource(), declared.AgentSpec.ManifestConfigs).UpdateStrategy; s == nil || s.Type == workv1.UpdateStrategyTypeUpdate {
			found = append(found, i)
		}
	}
	return found
}
