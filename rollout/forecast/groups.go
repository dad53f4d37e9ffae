package forecast

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// decide returns the decisions about the clusters that a placement selects. As in OCM, the
// declared groups come first, and the other clusters last; a group that is longer than
// clustersPerDecisionGroup is divided, and a group without a cluster does not exist. in returns
// the clusters among rest that belong to the declared group at i.
func decide(ref v1alpha1.PlacementReference, st clusterv1beta1.GroupStrategy, selected []string, in func(i int, rest []string) ([]string, error)) (rollout.Placement, error) {
	pl := rollout.Placement{
		Namespace: ref.Namespace, Name: ref.Name, Settlement: rollout.Settled,
		ClustersPerDecisionGroup: st.ClustersPerDecisionGroup,
	}
	length := groupLength(st.ClustersPerDecisionGroup, len(selected))
	add := func(name string, clusters []string) {
		for chunk := range slices.Chunk(clusters, length) {
			pl.Groups = append(pl.Groups, rollout.Group{Name: name, Index: len(pl.Groups), Clusters: chunk})
		}
	}
	rest := slices.Sorted(slices.Values(selected))
	for i, g := range st.DecisionGroups {
		members, err := in(i, rest)
		if err != nil {
			return pl, err
		}
		add(g.GroupName, members)
		rest = without(rest, members)
	}
	add("", rest)
	return pl, nil
}

// groupLength is clustersPerDecisionGroup as a number of clusters, rounded up. If it is absent or invalid, all
// selected clusters are one group.
func groupLength(v intstr.IntOrString, selected int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, selected, true)
	if err != nil || n <= 0 {
		n = selected
	}
	return max(1, n)
}

// without returns the sorted names that are not in left out, which is sorted as well.
func without(names, leftOut []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, found := slices.BinarySearch(leftOut, name)
		return found
	})
}

// references are the placements that a policy names, each once.
func references(policy v1alpha1.AddOnRolloutSpec) []v1alpha1.PlacementReference {
	var refs []v1alpha1.PlacementReference
	add := func(r v1alpha1.PlacementReference) {
		if !slices.Contains(refs, r) {
			refs = append(refs, r)
		}
	}
	for _, r := range installedBy(policy) {
		add(r)
	}
	for _, st := range policy.Stages {
		add(st.Placement)
	}
	if s := policy.Strategy; s != nil && s.RollingUpdateWithPlacement != nil {
		add(s.RollingUpdateWithPlacement.PlacementReference)
	}
	return refs
}

// installPlacements is the type of an installStrategy whose placements select the clusters.
const installPlacements = "Placements"

// installedBy are the placements that install an add-on; none if labels or people do.
func installedBy(policy v1alpha1.AddOnRolloutSpec) []v1alpha1.PlacementReference {
	var refs []v1alpha1.PlacementReference
	if policy.Install != nil && policy.Install.Type == installPlacements {
		for _, p := range policy.Install.Placements {
			refs = append(refs, p.PlacementReference)
		}
	}
	return refs
}

// find returns the placement of a reference; nil: there is none.
func find(all []clusterv1beta1.Placement, ref v1alpha1.PlacementReference) *clusterv1beta1.Placement {
	for i := range all {
		if all[i].Namespace == ref.Namespace && all[i].Name == ref.Name {
			return &all[i]
		}
	}
	return nil
}

// running is a cluster that has the add-on at the stable revision and is healthy.
func running(name string, by rollout.Selection) rollout.Cluster {
	c := rollout.Cluster{
		Name: name, Installed: rollout.Ours, SelectedBy: by, Reachable: true, Running: stable, UpToDateStable: true,
		Health: rollout.Health{State: rollout.HealthVerified},
	}
	if by == rollout.ByHand {
		c.Installed = rollout.HandMade
	}
	return c
}
