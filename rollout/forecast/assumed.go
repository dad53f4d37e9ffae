package forecast

import (
	"fmt"
	"slices"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// assumedClusters is the size of an assumed fleet.
const assumedClusters = 100

// Assumed is a fleet of 100 clusters, divided by the declared placements. If the placements do not
// say how many clusters they select, these rules apply:
//
//   - A placement without predicates selects every cluster. A placement with numberOfClusters
//     selects that many.
//   - Other install placements select equal shares of the fleet.
//   - If the placement of the first of several stages has an unknown size, it selects one cluster.
//     Any other stage of unknown size gets the share of the remaining clusters that it would have
//     if all later stages were as large.
//   - The first decision group has one cluster, and the other groups and the clusters in no
//     group equal shares of the rest.
//
// If a part of the division is only a guess, the notes say so.
func Assumed(policy v1alpha1.AddOnRolloutSpec, declared []clusterv1beta1.Placement) Fleet {
	a := assumption{declared: declared, picked: map[v1alpha1.PlacementReference][]string{}}
	for i := range assumedClusters {
		a.all = append(a.all, fmt.Sprintf("cluster-%03d", i+1))
	}
	a.install(installedBy(policy))
	a.stages(policy.Stages)
	fleet := Fleet{Placements: a.placements(policy)}
	for _, name := range a.installed {
		by := rollout.ByPlacements
		if len(installedBy(policy)) == 0 {
			by = rollout.ByHand
		}
		fleet.Clusters = append(fleet.Clusters, running(name, by))
	}
	note := fmt.Sprintf("%d clusters", assumedClusters)
	if len(a.guesses) > 0 {
		note += ", of which " + brief.Names(a.guesses)
	}
	fleet.Notes = []string{note}
	if a.grouped {
		fleet.Notes = append(fleet.Notes, "the sizes of decision groups")
	}
	fleet.Notes = append(fleet.Notes, a.needed...)
	return fleet
}

// assumption divides an assumed fleet.
type assumption struct {
	declared []clusterv1beta1.Placement
	// all clusters, and those that have the add-on, in order of name.
	all, installed []string
	picked         map[v1alpha1.PlacementReference][]string
	// guesses in words; grouped: the pace depends on decision groups of unknown size.
	guesses []string
	grouped bool
	// needed are the decision groups, in words, that a Placement outside the tree must have.
	needed []string
}

// install selects the clusters that get the add-on; without install placements all do.
func (a *assumption) install(refs []v1alpha1.PlacementReference) {
	if len(refs) == 0 {
		a.installed = a.all
	}
	for i, ref := range refs {
		share := a.all[i*len(a.all)/len(refs) : (i+1)*len(a.all)/len(refs)]
		n, known := a.size(ref)
		switch {
		case known:
			share = a.all[:n]
		case len(refs) > 1:
			a.guess(ref, len(share))
		}
		a.picked[ref] = share
		a.installed = append(a.installed, share...)
	}
	slices.Sort(a.installed)
	a.installed = slices.Compact(a.installed)
}

// size is how many clusters a declared placement selects; false: only the fleet can say.
func (a *assumption) size(ref v1alpha1.PlacementReference) (n int, known bool) {
	pl := find(a.declared, ref)
	switch {
	case pl == nil:
		return 0, false
	case pl.Spec.NumberOfClusters != nil:
		return min(int(*pl.Spec.NumberOfClusters), len(a.all)), true
	case selectsAll(pl.Spec):
		return len(a.all), true
	}
	return 0, false
}

// selectsAll reports whether a placement selects every cluster that has no taint.
func selectsAll(spec clusterv1beta1.PlacementSpec) bool {
	if len(spec.ClusterSets) > 0 && !slices.Contains(spec.ClusterSets, globalSet) {
		return false
	}
	return len(spec.Predicates) == 0
}

// guess notes that the clusters of a placement are not known.
func (a *assumption) guess(ref v1alpha1.PlacementReference, n int) {
	a.guesses = append(a.guesses, fmt.Sprintf("Placement %s/%s selects %d", ref.Namespace, ref.Name, n))
}

// stages selects the clusters of stages among those that no earlier stage selects.
func (a *assumption) stages(stages []v1alpha1.Stage) {
	rest := a.installed
	for i, st := range stages {
		later := len(stages) - 1 - i
		members, chosen := a.picked[st.Placement]
		if !chosen {
			n, known := a.size(st.Placement)
			switch {
			case known && n == len(a.all):
				members = a.all
			case known:
				members = rest[:min(n, max(0, len(rest)-later))]
			case i == 0 && later > 0:
				members = rest[:min(1, len(rest))]
			default:
				members = rest[:len(rest)/(later+1)]
			}
			if !known {
				a.guess(st.Placement, len(members))
			}
			a.picked[st.Placement] = members
		}
		rest = without(rest, members)
	}
}

// placements are the placements of the policy with their decisions.
func (a *assumption) placements(policy v1alpha1.AddOnRolloutSpec) []rollout.Placement {
	var out []rollout.Placement
	for _, ref := range references(policy) {
		members, chosen := a.picked[ref]
		if !chosen { // the placement of RollingUpdateWithPlacement
			n, known := a.size(ref)
			if members = a.installed; known {
				members = a.all[:n]
			} else {
				a.guess(ref, len(members))
			}
		}
		var groups clusterv1beta1.GroupStrategy
		if pl := find(a.declared, ref); pl != nil {
			groups = pl.Spec.DecisionStrategy.GroupStrategy
		} else {
			groups = wantedGroups(policy, ref)
			for _, g := range groups.DecisionGroups {
				if g.GroupName != "" {
					a.needed = append(a.needed, fmt.Sprintf("Placement %s/%s on the hub, which is not declared here, has the decision group %s", ref.Namespace, ref.Name, g.GroupName))
				}
			}
		}
		a.grouped = a.grouped || len(groups.DecisionGroups) > 0 && byGroups(policy, ref)
		// The division has no error.
		pl, _ := decide(ref, groups, members, func(i int, rest []string) ([]string, error) {
			if i == 0 {
				return rest[:min(1, len(rest))], nil
			}
			return rest[:len(rest)/(len(groups.DecisionGroups)-i+1)], nil
		})
		out = append(out, pl)
	}
	return out
}

// wantedGroups are the decision groups that a placement must have because they are mandatory.
// The placement itself is not known.
func wantedGroups(policy v1alpha1.AddOnRolloutSpec, ref v1alpha1.PlacementReference) clusterv1beta1.GroupStrategy {
	var st clusterv1beta1.GroupStrategy
	indexes := 0
	for _, w := range mandatoryOf(paceOf(policy, ref)) {
		if w.GroupName == "" {
			indexes = max(indexes, int(w.GroupIndex)+1)
		} else {
			st.DecisionGroups = append(st.DecisionGroups, clusterv1beta1.DecisionGroup{GroupName: w.GroupName})
		}
	}
	for len(st.DecisionGroups) < indexes {
		st.DecisionGroups = append(st.DecisionGroups, clusterv1beta1.DecisionGroup{})
	}
	return st
}

// byGroups reports whether the pace of an install placement depends on decision groups.
func byGroups(policy v1alpha1.AddOnRolloutSpec, ref v1alpha1.PlacementReference) bool {
	p, g := paceOf(policy, ref)
	return g != nil || len(mandatoryOf(p, g)) > 0
}

// paceOf is the pace with decision groups that applies to an install placement; nil: none.
func paceOf(policy v1alpha1.AddOnRolloutSpec, ref v1alpha1.PlacementReference) (*clusterv1alpha1.RolloutProgressive, *clusterv1alpha1.RolloutProgressivePerGroup) {
	if s := policy.Strategy; s != nil {
		return s.Progressive, s.ProgressivePerGroup
	}
	for i, installs := range installedBy(policy) {
		if installs == ref && len(policy.Stages) == 0 {
			s := policy.Install.Placements[i].RolloutStrategy
			return s.Progressive, s.ProgressivePerGroup
		}
	}
	return nil, nil
}

func mandatoryOf(p *clusterv1alpha1.RolloutProgressive, g *clusterv1alpha1.RolloutProgressivePerGroup) []clusterv1alpha1.MandatoryDecisionGroup {
	switch {
	case p != nil:
		return p.MandatoryDecisionGroups.MandatoryDecisionGroups
	case g != nil:
		return g.MandatoryDecisionGroups.MandatoryDecisionGroups
	}
	return nil
}
