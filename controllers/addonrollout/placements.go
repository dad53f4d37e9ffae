package addonrollout

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

func readPlacements(ctx context.Context, c client.Reader, refs []v1alpha1.PlacementReference) ([]rollout.Placement, error) {
	placements := make([]rollout.Placement, 0, len(refs))
	for _, ref := range refs {
		p, err := readPlacement(ctx, c, ref)
		if err != nil {
			return nil, err
		}
		placements = append(placements, p)
	}
	return placements, nil
}

// readPlacement reads one placement. A placement that does not exist selects and removes no cluster; decisions that
// remain of it are not read.
func readPlacement(ctx context.Context, c client.Reader, ref v1alpha1.PlacementReference) (rollout.Placement, error) {
	out := rollout.Placement{Namespace: ref.Namespace, Name: ref.Name}
	var p clusterv1beta1.Placement
	if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &p); err != nil {
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		return out, fmt.Errorf("cannot read placement %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	if p.DeletionTimestamp != nil {
		return out, nil
	}
	var decisions clusterv1beta1.PlacementDecisionList
	err := c.List(ctx, &decisions, client.InNamespace(ref.Namespace),
		client.MatchingLabels{clusterv1beta1.PlacementLabel: ref.Name})
	if err != nil {
		return out, fmt.Errorf("cannot list decisions of placement %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	out.Settlement = settlement(&p, decisions.Items)
	out.Groups = DecisionGroups(decisions.Items)
	out.ClustersPerDecisionGroup = p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
	return out, nil
}

// DecisionGroups gathers the clusters of a placement by decision group: groups by index, clusters by name, each once.
// Decisions without labels form group 0.
func DecisionGroups(decisions []clusterv1beta1.PlacementDecision) []rollout.Group {
	type key struct {
		index int
		name  string
	}
	groups := map[key]*rollout.Group{}
	for i := range decisions {
		index, _ := strconv.Atoi(decisions[i].Labels[clusterv1beta1.DecisionGroupIndexLabel])
		k := key{index, decisions[i].Labels[clusterv1beta1.DecisionGroupNameLabel]}
		if groups[k] == nil {
			groups[k] = &rollout.Group{Name: k.name, Index: k.index}
		}
		for _, d := range decisions[i].Status.Decisions {
			groups[k].Clusters = append(groups[k].Clusters, d.ClusterName)
		}
	}
	out := make([]rollout.Group, 0, len(groups))
	for _, g := range groups {
		slices.Sort(g.Clusters)
		g.Clusters = slices.Compact(g.Clusters)
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b rollout.Group) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// settlement says whether a placement's decisions are complete and present.
func settlement(p *clusterv1beta1.Placement, decisions []clusterv1beta1.PlacementDecision) rollout.Settlement {
	switch {
	case !judged(p):
		return rollout.Undecided
	case !settled(p, decisions):
		return rollout.Unsettled
	}
	return rollout.Settled
}

// settled reports whether the decisions of a judged placement are complete. OCM's placement controller writes the
// decisions one by one, with a hundred clusters each, and then the status. A read in between misses clusters that are
// still selected.
func settled(p *clusterv1beta1.Placement, decisions []clusterv1beta1.PlacementDecision) bool {
	names := map[string]struct{}{}
	present := map[string]int{}
	for i := range decisions {
		present[decisions[i].Name] = len(decisions[i].Status.Decisions)
		for _, d := range decisions[i].Status.Decisions {
			names[d.ClusterName] = struct{}{}
		}
	}
	if len(names) != int(p.Status.NumberOfSelectedClusters) {
		return false
	}
	for _, g := range p.Status.DecisionGroups {
		total := 0
		for _, d := range g.Decisions {
			count, ok := present[d]
			if !ok {
				return false
			}
			total += count
		}
		if total != int(g.ClustersCount) {
			return false
		}
	}
	return true
}

// judged reports whether OCM's placement controller has decided about the current version of the placement. A
// placement that was just created or restored has no status. Its 0 clusters look like a placement that selects no
// cluster, and would remove the add-on from all of them. A misconfigured placement is not scheduled and has no status
// either.
func judged(p *clusterv1beta1.Placement) bool {
	if meta.IsStatusConditionTrue(p.Status.Conditions, clusterv1beta1.PlacementConditionMisconfigured) {
		return false
	}
	c := meta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
	// OCM leaves observedGeneration 0. If another controller sets it, it must be current.
	return c != nil && (c.ObservedGeneration == 0 || c.ObservedGeneration == p.Generation)
}
