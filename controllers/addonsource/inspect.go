package addonsource

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// inspect compares the facts in the status with the hub, for a commit that is
// applied and not in memory. It reports true when nothing is missing: every add-on
// has its revision and a rollout with its target, every object of the inventory
// exists, is ours, was written by nobody else and has every field that we gave it, and
// nothing is on its way out.
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
		if !exists || !targets(seen.rollouts[addOn.Name], addOn, p.name()) || changed(seen.live[rolloutKey(p.source.Namespace, addOn.Name)]) {
			return false, nil
		}
	}
	if err := p.seeInventory(ctx, seen); err != nil {
		return false, err
	}
	for _, reference := range p.source.Status.Inventory {
		if live := seen.live[keyOfReference(reference)]; !ours(live, p.name()) || changed(live) {
			return false, nil
		}
	}
	for name := range leavingNames(seen, p.source.Status.Inventory, declared, p.name()) {
		r := seen.rollouts[name]
		if r == nil || r.Status.Phase != v1alpha1.PhaseRemoved || seen.live[addOnKey(name)] != nil {
			return false, nil
		}
	}
	return p.ownFields(seen) == p.source.Status.LastAppliedFields, nil
}

// ownFields fingerprints which fields are ours, by the API server's record, of every
// object in the status. Whoever removes one, or gives it another value, takes it from us.
func (p *pass) ownFields(seen *observation) string {
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
		fmt.Fprintf(sum, "%s\n", key)
		for _, entry := range ownEntries(live) {
			fmt.Fprintf(sum, "%s\n", entry.FieldsV1.GetRawBytes())
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// targets tells whether a rollout is this source's and has the add-on's content as target.
func targets(r *v1alpha1.AddOnRollout, addOn v1alpha1.SourcedAddOn, source string) bool {
	return r != nil && r.Annotations[v1alpha1.SourceAnnotation] == source && r.Spec.Removal == nil &&
		r.Spec.Target != nil && r.Spec.Target.Digest == addOn.Digest
}

// changed tells whether somebody else owns more of an object than its metadata: then what
// the commit declares may be there no more, which only the commit can tell. It is fetched
// once for that, and is in memory then.
func changed(live *unstructured.Unstructured) bool {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == v1alpha1.FieldManager || entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields map[string]json.RawMessage
		if json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			return true
		}
		delete(fields, "f:metadata")
		if len(fields) > 0 {
			return true
		}
	}
	return false
}
