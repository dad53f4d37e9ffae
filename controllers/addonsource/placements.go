package addonsource

import (
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// decisionTime is the time for OCM to decide about placements that a commit edits. OCM does not publish the
// generation of a Placement about which it has decided, so only a wait is possible.
const decisionTime = 10 * time.Second

// placementDigest identifies the objects with which OCM selects the clusters of a policy: its
// Placements, and the ManagedClusterSetBindings in their namespaces. "": there are no such objects.
func placementDigest(objects []*unstructured.Unstructured, refs []v1alpha1.PlacementReference) string {
	var texts []string
	for _, o := range objects {
		key := keyOf(o)
		if key.Group != clusterv1beta1.GroupName || !slices.ContainsFunc(refs, func(r v1alpha1.PlacementReference) bool {
			return r.Namespace == key.Namespace && (key.Kind == "ManagedClusterSetBinding" || key.Kind == "Placement" && r.Name == key.Name)
		}) {
			continue
		}
		spec, err := json.Marshal(o.Object["spec"])
		if err != nil {
			continue // a decoded object can be encoded
		}
		texts = append(texts, key.String(), string(spec))
	}
	if len(texts) == 0 {
		return ""
	}
	return digestOfTexts(texts...)
}

// awaitDecisions halts a pass that edited placements of a running policy until OCM had time to decide about them. A
// rollout that is planned earlier would report the commit as done, although it moves clusters a moment later. The
// time is in memory: a new process waits again.
func (p *pass) awaitDecisions(todo plan) error {
	edited := todo.replaced()
	if len(edited) == 0 || p.restoring() {
		p.memory.undecided, p.memory.undecidedSince = "", time.Time{}
		return nil
	}
	if p.memory.undecided != p.head.String() {
		p.memory.undecided, p.memory.undecidedSince = p.head.String(), p.Clock()
	}
	left := decisionTime - p.Clock().Sub(p.memory.undecidedSince)
	if left <= 0 {
		return nil
	}
	return wait(v1alpha1.PlacementUndecidedReason, left, "the placements of %s were edited: waiting for OCM to decide about them", brief.Names(edited))
}

// replaced returns the add-ons that have AddOnRollouts and whose placements the commit edits.
func (t *plan) replaced() []string {
	var names []string
	for _, c := range t.rollouts {
		digest, _, _ := unstructured.NestedString(c.desired.Object, "spec", "placementDigest")
		if c.live == nil || digest == "" {
			continue
		}
		if before, _, _ := unstructured.NestedString(c.live.Object, "spec", "placementDigest"); before != digest {
			names = append(names, c.desired.GetName())
		}
	}
	return names
}
