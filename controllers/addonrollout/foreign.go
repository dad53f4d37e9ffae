package addonrollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
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

// kind is what of the status the field belongs to: configReferences or a condition.
func (t takeover) kind() string {
	kind, _, _ := strings.Cut(t.field, " ")
	return kind
}

// guardedReferences is the kind of configReferences; conditions are their own kinds.
const guardedReferences = "configReferences"

// foreignWriters finds takeovers, by value: who wrote what we had written has taken
// nothing. It reads the managed fields of a version once.
type foreignWriters struct {
	mu sync.Mutex
	// seen by the name of the add-on, because that is what is pruned together.
	seen map[string]map[types.UID]*seenStatus
}

// seenStatus is what is known of one add-on's status.
type seenStatus struct {
	version string
	// takeovers in this version.
	takeovers []takeover
	// own is what each kind was when it last was ours, or was accepted as if it were.
	own map[string]string
}

// newForeignWriters returns an empty memory.
func newForeignWriters() *foreignWriters {
	return &foreignWriters{seen: map[string]map[types.UID]*seenStatus{}}
}

// of returns who took which of our fields. An add-on whose status AddonFlow never
// wrote has none: what stands there is taken over, not fought for.
func (f *foreignWriters) of(addOn *addonv1alpha1.ManagedClusterAddOn) []takeover {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.entry(addOn)
	if s.version == addOn.ResourceVersion {
		return s.takeovers
	}
	s.version, s.takeovers = addOn.ResourceVersion, nil
	taken := takeoversIn(addOn.ManagedFields)
	for _, kind := range []string{guardedReferences, conditionConfigured, conditionProgressing} {
		value := valueOf(addOn, kind)
		mine := slices.ContainsFunc(taken, func(t takeover) bool { return t.kind() == kind })
		own, known := s.own[kind]
		switch {
		case !mine, !known && ownWords(addOn, kind):
			// Ours; or taken before this process began, and just what we would write.
			s.own[kind] = value
		case !known || own != value:
			for _, t := range taken {
				if t.kind() == kind {
					s.takeovers = append(s.takeovers, t)
				}
			}
		}
	}
	return s.takeovers
}

// wrote remembers what was written to an add-on's status: it is ours from now on.
func (f *foreignWriters) wrote(addOn *addonv1alpha1.ManagedClusterAddOn) {
	f.accept(addOn, guardedReferences, conditionConfigured, conditionProgressing)
}

// accept takes what stands in an add-on's status for ours.
func (f *foreignWriters) accept(addOn *addonv1alpha1.ManagedClusterAddOn, kinds ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.entry(addOn)
	for _, kind := range kinds {
		s.own[kind] = valueOf(addOn, kind)
	}
	s.takeovers = slices.DeleteFunc(s.takeovers, func(t takeover) bool { return slices.Contains(kinds, t.kind()) })
}

// entry returns what is known of an add-on. The lock is held.
func (f *foreignWriters) entry(addOn *addonv1alpha1.ManagedClusterAddOn) *seenStatus {
	all := f.seen[addOn.Name]
	if all == nil {
		all = map[types.UID]*seenStatus{}
		f.seen[addOn.Name] = all
	}
	if all[addOn.UID] == nil {
		all[addOn.UID] = &seenStatus{own: map[string]string{}}
	}
	return all[addOn.UID]
}

// keep drops what is known of installations that are gone.
func (f *foreignWriters) keep(addOn string, members []*member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	there := make(map[types.UID]bool, len(members))
	for _, m := range members {
		if m.addOn != nil {
			there[m.addOn.UID] = true
		}
	}
	maps.DeleteFunc(f.seen[addOn], func(uid types.UID, _ *seenStatus) bool { return !there[uid] })
	if len(f.seen[addOn]) == 0 {
		delete(f.seen, addOn)
	}
}

// valueOf is what a guarded kind says, as a text that is equal for equal values.
func valueOf(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) string {
	if kind != guardedReferences {
		c := meta.FindStatusCondition(addOn.Status.Conditions, kind)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	var b strings.Builder
	for _, r := range addOn.Status.ConfigReferences {
		parts := []string{r.Group, r.Resource}
		if d := r.DesiredConfig; d != nil {
			parts = append(parts, d.Namespace, d.Name, d.SpecHash)
		}
		b.WriteString(strings.Join(parts, "/"))
		b.WriteByte(' ')
	}
	return b.String()
}

// ownWords reports whether a condition says what only AddonFlow says.
func ownWords(addOn *addonv1alpha1.ManagedClusterAddOn, kind string) bool {
	c := meta.FindStatusCondition(addOn.Status.Conditions, kind)
	switch {
	case c == nil:
		return false
	case kind == conditionConfigured:
		return c.Status == metav1.ConditionTrue && c.Reason == reasonConfigured
	case kind != conditionProgressing:
		return false
	}
	for _, words := range progressingReasons {
		if i := slices.Index(words[:], c.Reason); i >= 0 {
			return (c.Status == metav1.ConditionTrue) == (i == int(moveStarted))
		}
	}
	return false
}

// takeoversIn compares our entry of the managed fields with the others'. A condition
// that was never ours was not taken from us: while an add-on is taken over, its
// configReferences are ours already and its conditions are OCM's still.
func takeoversIn(entries []metav1.ManagedFieldsEntry) []takeover {
	var own *metav1.ManagedFieldsEntry
	others := map[string]map[string]bool{}
	for i := range entries {
		e := &entries[i]
		switch {
		case e.Subresource != "status" || e.FieldsV1 == nil:
		case e.Manager == v1alpha1.FieldManager:
			own = e
		case mentionsGuarded(e.FieldsV1.GetRawBytes()):
			others[e.Manager] = guarded(e.FieldsV1.GetRawBytes())
		}
	}
	if own == nil || len(others) == 0 {
		return nil // mostly so, and cheap
	}
	ours := guarded(own.FieldsV1.GetRawBytes())
	var found []takeover
	for manager, fields := range others {
		for field := range fields {
			t := takeover{manager: manager, field: field}
			wasOurs := field == guardedReferences || field != t.kind() && ours[t.kind()]
			if wasOurs && !ours[field] {
				found = append(found, t)
			}
		}
	}
	slices.SortFunc(found, func(a, b takeover) int {
		return strings.Compare(a.field+a.manager, b.field+b.manager)
	})
	return found
}

// mentionsGuarded tells without decoding whether a set of managed fields may have one
// that AddonFlow guards.
func mentionsGuarded(raw []byte) bool {
	for _, name := range []string{"f:" + guardedReferences, conditionConfigured, conditionProgressing} {
		if bytes.Contains(raw, []byte(name)) {
			return true
		}
	}
	return false
}

// guarded lists which of the fields AddonFlow guards stand in a set of managed fields:
// configReferences, a condition by its type alone, and its parts.
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
		out[guardedReferences] = true
	}
	for _, kind := range []string{conditionConfigured, conditionProgressing} {
		// Who changes a condition takes its parts; its key stays ours as well.
		parts, ok := set.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, kind)]
		if ok {
			out[kind] = true
		}
		for _, part := range []string{"status", "reason"} {
			if _, ok := parts["f:"+part]; ok {
				out[kind+" "+part] = true
			}
		}
	}
	return out
}

// contested returns an error naming the first cluster where somebody else writes what is
// ours. target is nil while its body is missing. OCM's configuration controller keeps
// lastObservedGeneration up to date, which no filter stops; that alone is adopted.
func (r *Reconciler) contested(o *observation, target *render.Renderer) error {
	for _, m := range o.members {
		if m.addOn == nil || m.addOn.DeletionTimestamp != nil {
			continue
		}
		for _, t := range r.foreign.of(m.addOn) {
			if t.field == guardedReferences && (m.hindered != nil || r.expectedReferences(m, target)) {
				if m.hindered == nil { // of a cluster that is hindered nothing is known to expect
					r.foreign.accept(m.addOn, guardedReferences)
				}
				continue
			}
			return fmt.Errorf("%w: %s of ManagedClusterAddOn %s/%s was written by %q; stop it, then run: addonflow reconcile rollout %s",
				errOwnership, t.field, m.name, m.addOn.Name, t.manager, m.addOn.Name)
		}
	}
	return nil
}

// acceptForeign takes for ours what others wrote, because the user says that they were
// stopped: what is not to be like that is written anew, by this turn or when the cluster
// is next written.
func (r *Reconciler) acceptForeign(o *observation) {
	for _, m := range o.members {
		if m.addOn == nil {
			continue
		}
		for _, t := range slices.Clone(r.foreign.of(m.addOn)) {
			r.foreign.accept(m.addOn, t.kind())
		}
	}
}

// expectedReferences reports whether the add-on's references are, but for
// lastObservedGeneration, those of what the cluster runs or is to run.
func (r *Reconciler) expectedReferences(m *member, target *render.Renderer) bool {
	for _, renderer := range []*render.Renderer{target, r.renderers.cached(m.addOn.Name, m.health.Revision)} {
		if renderer == nil {
			continue
		}
		rendered, err := renderer.Render(m.renderInput())
		if err == nil && sameReferences(m.addOn.Status.ConfigReferences, move{rendered: rendered, hidesTemplateHash: r.HidesTemplateHash, ownTemplate: namesTemplate(m.addOn)}) {
			return true
		}
	}
	return false
}

// sameReferences compares the desired side of references.
func sameReferences(have []addonv1alpha1.ConfigReference, m move) bool {
	want := configReferences(nil, m)
	return slices.EqualFunc(have, want, func(a, b addonv1alpha1.ConfigReference) bool {
		return a.ConfigGroupResource == b.ConfigGroupResource && a.DesiredConfig != nil && *a.DesiredConfig == *b.DesiredConfig
	})
}
