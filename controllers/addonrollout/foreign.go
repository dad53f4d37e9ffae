package addonrollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// takeover is a field of an add-on's status that was ours and that another manager
// has written since.
type takeover struct {
	manager string
	// field is configReferences, or the type of a condition and which part of it.
	field string
}

// foreignWriters finds takeovers; it reads the managed fields of a version once.
type foreignWriters struct {
	mu   sync.Mutex
	seen map[types.UID]seenVersion
}

// seenVersion is what the managed fields of one version of an object said.
type seenVersion struct {
	version   string
	takeovers []takeover
}

// newForeignWriters returns an empty memory.
func newForeignWriters() *foreignWriters {
	return &foreignWriters{seen: map[types.UID]seenVersion{}}
}

// of returns who took which of our fields. An add-on whose status AddonFlow never
// wrote has none: what stands there is taken over, not fought for.
func (f *foreignWriters) of(addOn *addonv1alpha1.ManagedClusterAddOn) []takeover {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, ok := f.seen[addOn.UID]; ok && s.version == addOn.ResourceVersion {
		return s.takeovers
	}
	found := takeoversIn(addOn.ManagedFields)
	f.seen[addOn.UID] = seenVersion{version: addOn.ResourceVersion, takeovers: found}
	return found
}

// takeoversIn compares our entry of the managed fields with the others'.
func takeoversIn(entries []metav1.ManagedFieldsEntry) []takeover {
	var ours map[string]bool
	others := map[string]map[string]bool{}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Subresource != "status" || e.FieldsV1 == nil:
		case e.Manager == v1alpha1.FieldManager:
			ours = guarded(e.FieldsV1.GetRawBytes())
		default:
			others[e.Manager] = guarded(e.FieldsV1.GetRawBytes())
		}
	}
	if ours == nil {
		return nil
	}
	var found []takeover
	for manager, fields := range others {
		for field := range fields {
			if !ours[field] {
				found = append(found, takeover{manager: manager, field: field})
			}
		}
	}
	slices.SortFunc(found, func(a, b takeover) int {
		return strings.Compare(a.field+a.manager, b.field+b.manager)
	})
	return found
}

// guarded lists which of the fields AddonFlow guards stand in a set of managed fields.
func guarded(raw []byte) map[string]bool {
	var set struct {
		Status struct {
			ConfigReferences json.RawMessage           `json:"f:configReferences"`
			Conditions       map[string]map[string]any `json:"f:conditions"`
		} `json:"f:status"`
	}
	out := map[string]bool{}
	if json.Unmarshal(raw, &set) != nil {
		return out // not a form we know: nothing is claimed from it
	}
	if set.Status.ConfigReferences != nil {
		out["configReferences"] = true
	}
	for _, kind := range []string{conditionConfigured, conditionProgressing} {
		// Who changes a condition takes its parts; its key stays ours as well.
		for _, part := range []string{"status", "reason"} {
			if _, ok := set.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, kind)]["f:"+part]; ok {
				out[kind+" "+part] = true
			}
		}
	}
	return out
}

// contested returns an error naming the first cluster where somebody else writes
// what is ours. OCM's configuration controller keeps lastObservedGeneration up to
// date, which no filter stops; that alone is adopted.
func (r *Reconciler) contested(o *observation, target *render.Renderer) error {
	for _, m := range o.members {
		if m.addOn == nil || m.addOn.DeletionTimestamp != nil {
			continue
		}
		for _, t := range r.foreign.of(m.addOn) {
			if t.field == "configReferences" && (m.hindered != nil || r.expectedReferences(m, target)) {
				continue // of a cluster that is hindered nothing is known to expect
			}
			return fmt.Errorf("%w: %s of ManagedClusterAddOn %s/%s was written by %q; stop it, then run: addonflow reconcile rollout %s",
				errOwnership, t.field, m.name, m.addOn.Name, t.manager, m.addOn.Name)
		}
	}
	return nil
}

// expectedReferences reports whether the add-on's references are, but for
// lastObservedGeneration, those of what the cluster runs or is to run.
func (r *Reconciler) expectedReferences(m *member, target *render.Renderer) bool {
	for _, renderer := range []*render.Renderer{target, r.renderers.cached(m.addOn.Name, m.health.Revision)} {
		if renderer == nil {
			continue
		}
		rendered, err := renderer.Render(m.renderInput())
		if err == nil && sameReferences(m.addOn.Status.ConfigReferences, rendered, r.HidesTemplateHash) {
			return true
		}
	}
	return false
}

// sameReferences compares the desired side of references.
func sameReferences(have []addonv1alpha1.ConfigReference, rendered render.Rendered, hidesTemplateHash bool) bool {
	want := configReferences(nil, move{rendered: rendered, hidesTemplateHash: hidesTemplateHash})
	return slices.EqualFunc(have, want, func(a, b addonv1alpha1.ConfigReference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && a.DesiredConfig != nil && *a.DesiredConfig == *b.DesiredConfig
	})
}
