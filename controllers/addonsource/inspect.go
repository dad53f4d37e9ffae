package addonsource

import (
	"context"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// inspect compares the facts in the status with the hub, for a commit that is
// applied and not in memory. It reports true when nothing is missing: every add-on
// has its revision and a rollout with its target, every object of the inventory
// exists and is ours, and nothing is on its way out. Fields that somebody changed
// are found by the next pass that has the commit in memory.
func (p *pass) inspect(ctx context.Context) (bool, error) {
	seen := newObservation()
	if err := p.seeRollouts(ctx, seen); err != nil {
		return false, err
	}
	declared := map[string]bool{}
	for _, addOn := range p.source.Status.AddOns {
		declared[addOn.Name] = true
		exists, err := p.revisionExists(ctx, addOn.Revision)
		if err != nil {
			return false, err
		}
		if !exists || !targets(seen.rollouts[addOn.Name], addOn, p.name()) {
			return false, nil
		}
	}
	if err := p.seeInventory(ctx, seen); err != nil {
		return false, err
	}
	for _, reference := range p.source.Status.Inventory {
		if !ours(seen.live[keyOfReference(reference)], p.name()) {
			return false, nil
		}
	}
	for name := range leavingNames(seen, p.source.Status.Inventory, declared, p.name()) {
		r := seen.rollouts[name]
		if r == nil || r.Status.Phase != v1alpha1.PhaseRemoved || seen.live[addOnKey(name)] != nil {
			return false, nil
		}
	}
	return true, nil
}

// targets tells whether a rollout is this source's and has the add-on's content as target.
func targets(r *v1alpha1.AddOnRollout, addOn v1alpha1.SourcedAddOn, source string) bool {
	return r != nil && r.Annotations[v1alpha1.SourceAnnotation] == source && r.Spec.Removal == nil &&
		r.Spec.Target != nil && r.Spec.Target.Digest == addOn.Digest
}
