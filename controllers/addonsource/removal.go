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

// leaving is an add-on of this source that the source does not declare any more. Its
// clusters are left by the rollout, at the pace that was approved; its
// ClusterManagementAddOn goes last.
type leaving struct {
	addOn string
	// rollout is nil when somebody deleted it.
	rollout *v1alpha1.AddOnRollout
	// removal is what the rollout is, or is about to be, asked for.
	removal v1alpha1.Removal
	// cma is ours; nil: there is none any more.
	cma *unstructured.Unstructured
	installation
}

// leavingNames returns the add-ons that a source has on the hub and does not declare.
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

// addRemoval plans that the rollout of a leaving add-on is asked to leave.
func (t *plan) addRemoval(in planInput, l leaving) error {
	if l.rollout == nil {
		return nil
	}
	spec := *l.rollout.Spec.DeepCopy()
	spec.Removal = &l.removal
	// What declared it left Git as well; nobody could take it back there. The
	// annotation still suspends.
	spec.Suspend = false
	desired, err := rolloutObject(in.namespace, l.addOn, in.source, spec)
	if err != nil {
		return fmt.Errorf("cannot plan the removal of %s: %w", l.addOn, err)
	}
	t.add(in, keyOf(desired), desired)
	return nil
}

// installed tells whether the add-on is still on the hub.
func (l leaving) installed() bool { return l.cma != nil }

// left tells whether the rollout says that no cluster has the add-on any more, about
// a spec that asks for the removal.
func (l leaving) left() bool {
	if l.rollout == nil {
		return true
	}
	status := l.rollout.Status
	return l.rollout.Spec.Removal != nil && status.Phase == v1alpha1.PhaseRemoved &&
		status.ObservedGeneration >= l.rollout.Generation
}

// done tells whether the ClusterManagementAddOn may go: the rollout is through, and
// no ManagedClusterAddOn at all is left, hand-made ones included.
func (l leaving) done() bool { return l.left() && l.total == 0 && !l.releaseRequested() }

// note says what the removal waits for, "" when it is over.
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
	case l.removal.Deleting != "":
		return fmt.Sprintf("%s is held (%s): %s is being deleted, which approves no removal; to remove it, annotate AddOnRollout %s with %s=%s",
			l.addOn, v1alpha1.DeletionGuardReason, l.removal.Deleting, l.addOn, v1alpha1.ApproveRemovalAnnotation, l.removal.Commit)
	default:
		return fmt.Sprintf("%s left Git and is held (%s): set spec.prune, or annotate AddOnRollout %s with %s=%s",
			l.addOn, v1alpha1.DeletionGuardReason, l.addOn, v1alpha1.ApproveRemovalAnnotation, l.removal.Commit)
	}
}

// approved tells whether somebody approved the removal.
func (l leaving) approved() bool {
	return l.removal.Approved || l.rollout.Annotations[v1alpha1.ApproveRemovalAnnotation] == l.removal.Commit
}

// finishRemovals deletes the ClusterManagementAddOns of add-ons that no cluster has
// any more. What else belonged to them is pruned by the next pass, when they are gone.
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
