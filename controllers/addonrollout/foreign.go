package addonrollout

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/addonstatus"
	"github.com/addonflow/addonflow/render"
)

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
	takeovers []addonstatus.Takeover
	// own is what each kind was when it last was ours, or was accepted as if it were.
	own map[string]string
}

// newForeignWriters returns an empty memory.
func newForeignWriters() *foreignWriters {
	return &foreignWriters{seen: map[string]map[types.UID]*seenStatus{}}
}

// of returns who took which of our fields. An add-on whose status AddonFlow never
// wrote has none: what stands there is taken over, not fought for.
func (f *foreignWriters) of(addOn *addonv1alpha1.ManagedClusterAddOn) []addonstatus.Takeover {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.entry(addOn)
	if s.version == addOn.ResourceVersion {
		return s.takeovers
	}
	s.version, s.takeovers = addOn.ResourceVersion, nil
	taken := addonstatus.Takeovers(addOn.ManagedFields)
	for _, kind := range addonstatus.Guarded() {
		value := addonstatus.Value(addOn, kind)
		mine := slices.ContainsFunc(taken, func(t addonstatus.Takeover) bool { return t.Kind() == kind })
		own, known := s.own[kind]
		switch {
		case !mine, !known && addonstatus.OwnWords(addOn, kind):
			// Ours; or taken before this process began, and just what we would write.
			s.own[kind] = value
		case !known || own != value:
			for _, t := range taken {
				if t.Kind() == kind {
					s.takeovers = append(s.takeovers, t)
				}
			}
		}
	}
	return s.takeovers
}

// wrote remembers what was written to an add-on's status: it is ours from now on.
func (f *foreignWriters) wrote(addOn *addonv1alpha1.ManagedClusterAddOn) {
	f.accept(addOn, addonstatus.Guarded()...)
}

// accept takes what stands in an add-on's status for ours.
func (f *foreignWriters) accept(addOn *addonv1alpha1.ManagedClusterAddOn, kinds ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.entry(addOn)
	for _, kind := range kinds {
		s.own[kind] = addonstatus.Value(addOn, kind)
	}
	s.takeovers = slices.DeleteFunc(s.takeovers, func(t addonstatus.Takeover) bool { return slices.Contains(kinds, t.Kind()) })
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

// contested returns an error naming the first cluster where somebody else writes what is
// ours. target is nil while its body is missing. OCM's configuration controller keeps
// lastObservedGeneration up to date, which no filter stops; that alone is adopted. What a
// writer left that was fenced off since is taken for ours, and so repaired.
func (r *Reconciler) contested(o *observation, target *render.Renderer, now time.Time) error {
	var repaired []string
	writer := ""
	for _, m := range o.members {
		if m.addOn == nil || m.addOn.DeletionTimestamp != nil {
			continue
		}
		for _, t := range slices.Clone(r.foreign.of(m.addOn)) {
			switch {
			case t.Field == addonstatus.References && (m.hindered != nil || r.expectedReferences(m, target)):
				if m.hindered == nil { // of a cluster that is hindered nothing is known to expect
					r.foreign.accept(m.addOn, addonstatus.References)
				}
			case o.fencedOff(t, now):
				r.foreign.accept(m.addOn, t.Kind())
				repaired, writer = append(repaired, m.name), t.Manager
			default:
				return fmt.Errorf("%w: %s of ManagedClusterAddOn %s/%s was written by %q; stop it, then run: addonflow reconcile rollout %s",
					errOwnership, t.Field, m.name, m.addOn.Name, t.Manager, m.addOn.Name)
			}
		}
	}
	if repaired = slices.Compact(repaired); len(repaired) > 0 {
		r.Recorder.Eventf(o.rollout, corev1.EventTypeWarning, v1alpha1.FenceRestoredReason,
			"%q wrote to the add-on of %s while ClusterManagementAddOn %s was not fenced off; it is fenced off again, and what it wrote is repaired",
			writer, brief.Names(repaired), o.rollout.Name)
	}
	return nil
}

// fenceSettles is how long a writer that was fenced off may still act on what it read before.
const fenceSettles = 30 * time.Second

// fencedOff reports whether a takeover was written before the ClusterManagementAddOn was
// fenced off again, by a writer that has come to rest since. One that writes on later is in
// conflict with us.
func (o *observation) fencedOff(t addonstatus.Takeover, now time.Time) bool {
	if o.owner == nil || o.owner.Annotations[v1alpha1.LifecycleAnnotation] != v1alpha1.LifecycleValue || listsTemplates(o.owner) {
		return false
	}
	at, err := time.Parse(time.RFC3339, o.owner.Annotations[v1alpha1.FencedAtAnnotation])
	if err != nil || t.At.IsZero() {
		return false
	}
	settled := at.Add(fenceSettles)
	return t.At.Before(settled) && !now.Before(settled)
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
			r.foreign.accept(m.addOn, t.Kind())
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
		if err == nil && r.moveTo(m.addOn, rendered).Desires(m.addOn.Status.ConfigReferences) {
			return true
		}
	}
	return false
}
