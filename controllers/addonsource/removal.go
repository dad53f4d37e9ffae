package addonsource

import (
	"context"
	"fmt"
	"maps"
	"slices"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// leaving is an add-on that this source has on the hub but no longer declares. The rollout removes it from its
// clusters at the approved pace; its ClusterManagementAddOn is deleted last.
type leaving struct {
	addOn string
	// rollout is nil if it was deleted by hand.
	rollout *v1alpha1.AddOnRollout
	// removal is the removal in the spec of the rollout, or the one that is about to be written.
	removal v1alpha1.Removal
	// cma is the ClusterManagementAddOn of this source; nil: it does not exist.
	cma *unstructured.Unstructured
	installation
}

// leavingNames returns the add-ons that a source has on the hub but does not declare.
func leavingNames(seen *observation, inventory []v1alpha1.ObjectReference, declared map[string]bool, source string) map[string]bool {
	left := map[string]bool{}
	for name, r := range seen.rollouts {
		if !declared[name] && r.Annotations[v1alpha1.SourceAnnotation] == source {
			left[name] = true
		}
	}
	for _, reference := range inventory {
		if key := keyOfReference(reference); key.isAddOn() && !declared[key.Name] {
			left[key.Name] = true
		}
	}
	return left
}

// leavingAddOns returns the add-ons that left, sorted by name.
func leavingAddOns(in planInput, declared map[string]bool) []leaving {
	var out []leaving
	for _, name := range slices.Sorted(maps.Keys(leavingNames(in.seen, in.inventory, declared, in.source))) {
		l := leaving{addOn: name, installation: in.seen.installed[name]}
		if r := in.seen.rollouts[name]; r != nil && r.Annotations[v1alpha1.SourceAnnotation] == in.source {
			l.rollout = r
			l.removal = removalOf(r.Spec, in)
		}
		if cma := in.seen.live[addOnKey(name)]; ours(cma, in.source) {
			l.cma = cma
		}
		out = append(out, l)
	}
	return out
}

// addRemoval plans the write that requests the removal from the rollout of a leaving add-on.
func (t *plan) addRemoval(in planInput, l leaving) error {
	if l.rollout == nil {
		return nil
	}
	spec := *l.rollout.Spec.DeepCopy()
	spec.Removal = &l.removal
	// The file with suspend left Git, too, so suspend can no longer be changed there. The annotation still suspends.
	spec.Suspend = false
	desired, err := rolloutObject(in.namespace, l.addOn, in.source, spec)
	if err != nil {
		return fmt.Errorf("cannot plan the removal of %s: %w", l.addOn, err)
	}
	t.add(in, keyOf(desired), desired)
	return nil
}

// installed reports whether the add-on is still on the hub.
func (l leaving) installed() bool { return l.cma != nil }

// left reports whether, according to the status of the rollout for a spec with the removal, no cluster has the
// add-on.
func (l leaving) left() bool {
	if l.rollout == nil {
		return true
	}
	status := l.rollout.Status
	return l.rollout.Spec.Removal != nil && status.Phase == v1alpha1.PhaseRemoved &&
		status.ObservedGeneration >= l.rollout.Generation
}

// done reports whether the ClusterManagementAddOn may be deleted: the rollout is complete, and there is no
// ManagedClusterAddOn, not even a hand-made one.
func (l leaving) done() bool { return l.left() && l.total == 0 && !l.releaseRequested() }

// note says what the removal waits for; "": it is complete.
func (l leaving) note() string {
	switch {
	case l.releaseRequested():
		return l.addOn + " is being released: it stays on its clusters"
	case !l.installed() && l.left():
		return ""
	case l.left() && len(l.handMade) > 0:
		slices.Sort(l.handMade)
		return fmt.Sprintf("%s stays for the hand-made ManagedClusterAddOns of %s", l.addOn, brief.Names(l.handMade))
	case l.rollout == nil || l.approved():
		return l.addOn + " is being removed"
	case l.removal.Uninstalls():
		return fmt.Sprintf("%s is held (%s): %s is being deleted, which removes no add-on; %s",
			l.addOn, v1alpha1.DeletionGuardReason, l.removal.Deleting, v1alpha1.UninstallAdvice)
	case l.removal.Deleting != "":
		return fmt.Sprintf("%s is held (%s): %s is being deleted, which approves no removal; to remove it, annotate AddOnRollout %s with %s=%s",
			l.addOn, v1alpha1.DeletionGuardReason, l.removal.Deleting, l.addOn, v1alpha1.ApproveRemovalAnnotation, l.removal.Commit) +
			"; to keep it, run addonflow release " + l.addOn
	default:
		return fmt.Sprintf("%s left Git and is held (%s): to keep it, restore its files in Git or run addonflow release %[1]s; to remove it, set spec.prune or annotate AddOnRollout %[1]s with %[3]s=%[4]s",
			l.addOn, v1alpha1.DeletionGuardReason, v1alpha1.ApproveRemovalAnnotation, l.removal.Commit)
	}
}

func (l leaving) approved() bool {
	return l.removal.Approved || l.rollout.Annotations[v1alpha1.ApproveRemovalAnnotation] == l.removal.Commit
}

// finishRemovals deletes the ClusterManagementAddOns of add-ons that no cluster has. The next pass prunes their other
// objects after that.
func (p *pass) finishRemovals(ctx context.Context, todo plan) error {
	var deleted []string
	for _, l := range todo.leaving {
		if !l.installed() || !l.done() || isGoing(l.cma) {
			continue
		}
		if err := p.delete(ctx, l.cma); err != nil {
			return err
		}
		ctrl.LoggerFrom(ctx).Info("Removed the add-on", "addOn", l.addOn)
		deleted = append(deleted, l.addOn)
	}
	if len(deleted) > 0 {
		return wait(fluxmeta.ProgressingReason, firstWait, "removed %s", brief.Names(deleted))
	}
	return nil
}
