package addonstatus

import (
	"slices"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/render"
)

// references lists the configurations of the cluster in OCM's form. The last applied values become
// the desired ones only when the move is done.
func references(current []addonv1alpha1.ConfigReference, m Move) []addonv1alpha1.ConfigReference {
	next := make([]addonv1alpha1.ConfigReference, 0, len(m.Rendered.ConfigReferences))
	for _, want := range m.Rendered.ConfigReferences {
		if m.HidesTemplateHash && m.OwnTemplate && IsTemplate(want.Group, want.Resource) {
			continue
		}
		ref := addonv1alpha1.ConfigReference{
			ConfigGroupResource: kindOf(want),
			ConfigReferent:      addonv1alpha1.ConfigReferent{Namespace: want.Namespace, Name: want.Name},
			DesiredConfig:       desiredConfig(want, m),
		}
		if old := findReference(current, want.ConfigReference); old != nil {
			ref.LastAppliedConfig = old.LastAppliedConfig.DeepCopy()
			if old.Name == want.Name && old.Namespace == want.Namespace {
				// OCM's configuration controller always updates this field.
				ref.LastObservedGeneration = old.LastObservedGeneration
			}
		}
		if m.State == Done {
			ref.LastAppliedConfig = ref.DesiredConfig.DeepCopy()
		}
		next = append(next, ref)
	}
	return next
}

// desiredConfig is the hash that OCM would show. If OCM's addon-manager may run, the hash of the
// template stays empty: with a hash OCM's template manager would deploy the add-on at once.
func desiredConfig(want render.ConfigHash, m Move) *addonv1alpha1.ConfigSpecHash {
	c := specHash(want)
	if m.HidesTemplateHash && IsTemplate(want.Group, want.Resource) {
		c.SpecHash = ""
	}
	return c
}

// IsTemplate reports whether the group and resource are those of AddOnTemplates.
func IsTemplate(group, resource string) bool {
	return group == addonv1alpha1.GroupName && resource == "addontemplates"
}

// findReference returns the reference to an object; otherwise the first reference of its kind, or
// nil.
func findReference(refs []addonv1alpha1.ConfigReference, want render.ConfigReference) *addonv1alpha1.ConfigReference {
	i := slices.IndexFunc(refs, func(r addonv1alpha1.ConfigReference) bool {
		return r.Group == want.Group && r.Resource == want.Resource && r.Namespace == want.Namespace && r.Name == want.Name
	})
	if i < 0 {
		i = slices.IndexFunc(refs, func(r addonv1alpha1.ConfigReference) bool {
			return r.Group == want.Group && r.Resource == want.Resource
		})
	}
	if i < 0 {
		return nil
	}
	return &refs[i]
}

// NeverApplied reports whether no configuration was ever applied: a fresh install.
func NeverApplied(refs []addonv1alpha1.ConfigReference) bool {
	return !slices.ContainsFunc(refs, func(r addonv1alpha1.ConfigReference) bool { return r.LastAppliedConfig != nil })
}

// AppliedAlready reports whether the references of an add-on say that all its configurations
// are applied. If its works also hold the content of the move, the move is done, even if the
// configurations have other names.
func (m Move) AppliedAlready(refs []addonv1alpha1.ConfigReference) bool {
	if len(refs) == 0 {
		return len(references(nil, m)) == 0
	}
	return !slices.ContainsFunc(refs, func(r addonv1alpha1.ConfigReference) bool {
		return r.DesiredConfig == nil || r.LastAppliedConfig == nil || *r.DesiredConfig != *r.LastAppliedConfig
	})
}

// Desires reports whether the desired side of the references is that of the move.
func (m Move) Desires(refs []addonv1alpha1.ConfigReference) bool {
	return slices.EqualFunc(refs, references(nil, m), func(a, b addonv1alpha1.ConfigReference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && a.DesiredConfig != nil && *a.DesiredConfig == *b.DesiredConfig
	})
}
