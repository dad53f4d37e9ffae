package addonsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// inspect compares the facts in the status with the hub, for a commit that is applied but not in memory. It returns
// true if nothing is missing. This means: every add-on has its revision, which names its commit, and a rollout with
// its target; every object of the inventory exists, belongs to this source and is stored as it was when the commit
// was applied; no object is being deleted; and no add-on that left Git is still on the hub.
func (p *pass) inspect(ctx context.Context) (bool, error) {
	seen := newObservation()
	if err := p.seeDefined(ctx, seen); err != nil {
		return false, err
	}
	declared := map[string]bool{}
	for _, addOn := range p.source.Status.AddOns {
		declared[addOn.Name] = true
		revision, err := p.revision(ctx, addOn.Revision)
		if err != nil {
			return false, err
		}
		if revision == nil || !slices.Contains(v1alpha1.Commits(revision.Annotations), addOn.Commit) || !targets(seen.rollouts[addOn.Name], addOn, p.name()) {
			return false, nil
		}
	}
	if err := p.seeInventory(ctx, seen); err != nil {
		return false, err
	}
	for _, reference := range p.source.Status.Inventory {
		if live := seen.live[keyOfReference(reference)]; !ours(live, p.name()) || !guarded(live) || isGoing(live) {
			return false, nil
		}
	}
	for name := range leavingNames(seen, p.source.Status.Inventory, declared, p.name()) {
		r := seen.rollouts[name]
		if r == nil || r.Status.Phase != v1alpha1.PhaseRemoved || seen.live[addOnKey(name)] != nil {
			return false, nil
		}
	}
	return p.storedFields(seen) == p.source.Status.LastAppliedFields, nil
}

// storedFields is a fingerprint of the stored form of every object in the status.
func (p *pass) storedFields(seen *observation) string {
	keys := make([]objectKey, 0, len(p.source.Status.Inventory)+len(p.source.Status.AddOns))
	for _, reference := range p.source.Status.Inventory {
		keys = append(keys, keyOfReference(reference))
	}
	for _, addOn := range p.source.Status.AddOns {
		keys = append(keys, rolloutKey(p.source.Namespace, addOn.Name))
	}
	sum := sha256.New()
	for _, key := range keys {
		live, written := p.applied[key]
		if !written {
			live = seen.live[key]
		}
		fmt.Fprintf(sum, "%s\n%s\n", key, storedDigest(live))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// targets reports whether a rollout belongs to this source and has the spec that was applied.
func targets(r *v1alpha1.AddOnRollout, addOn v1alpha1.SourcedAddOn, source string) bool {
	return targetedBy(r, source) && addOn.Declares(&r.Spec)
}

// isGoing reports whether a ClusterManagementAddOn was deleted and waits for its finalizers.
func isGoing(live *unstructured.Unstructured) bool {
	return keyOf(live).isAddOn() && live.GetDeletionTimestamp() != nil
}
