package rollouttest

import (
	"slices"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// naive holds what the oracle looks things up in.
type naive struct {
	in       rollout.Input
	clusters map[string]rollout.Cluster
	steps    []NaiveStep
	// named are the admissions in the ledger that name a cluster, whole those that
	// reserve a whole stage, oldest first; waves are whole by the step they stand for.
	named map[string]rollout.Admission
	whole []rollout.Admission
	waves map[int]rollout.Admission
	// gone are in the ledger for the target, and members no more.
	gone []string
	// bound are the steps of clusters that their admission binds, home those they are of
	// otherwise, -1 for none, by name.
	bound, home map[string]int
	// chosen are the clusters that stages or a strategy name, members or not.
	chosen map[string]bool
	// unknownGroup: a mandatory group is in none of the placements.
	unknownGroup bool
}

// newNaive reads ledger and policy off an input. The error is that of a ledger which
// cannot be read.
func newNaive(in rollout.Input) (*naive, error) {
	n := &naive{in: in, clusters: map[string]rollout.Cluster{}, chosen: map[string]bool{}}
	for _, c := range in.Clusters {
		n.clusters[c.Name] = c
	}
	if err := n.readLedger(); err != nil {
		return nil, err
	}
	n.readSteps()
	n.nameApart()
	n.bind()
	n.readWaves()
	return n, nil
}

// readSteps reads every kind of pace there is.
func (n *naive) readSteps() {
	switch spec := n.in.Spec; {
	case spec.Removal != nil: // nothing is rolled out while the add-on is to go
	case len(spec.Stages) > 0:
		n.readStages()
	case spec.Strategy != nil && spec.Strategy.Type == v1alpha1.StrategyRollingUpdateWithPlacement:
		n.readRolling(*spec.Strategy.RollingUpdateWithPlacement)
	case spec.Strategy != nil:
		st := clusterv1alpha1.RolloutStrategy{
			Type: clusterv1alpha1.RolloutType(spec.Strategy.Type), All: spec.Strategy.All,
			Progressive: spec.Strategy.Progressive, ProgressivePerGroup: spec.Strategy.ProgressivePerGroup,
		}
		n.readStrategy(st, "all", "", n.installPlacements(), n.members(), n.anyDistrusted(n.installPlacements()))
	case spec.Install != nil && spec.Install.Type == "Placements":
		n.readPerPlacement()
	default:
		n.readStrategy(clusterv1alpha1.RolloutStrategy{}, "all", "", nil, n.members(), false)
	}
}

// placement finds an observed placement.
func (n *naive) placement(ref v1alpha1.PlacementReference) rollout.Placement {
	for _, pl := range n.in.Placements {
		if pl.Namespace == ref.Namespace && pl.Name == ref.Name {
			return pl
		}
	}
	return rollout.Placement{Namespace: ref.Namespace, Name: ref.Name}
}

func (n *naive) installPlacements() []rollout.Placement {
	var found []rollout.Placement
	if n.in.Spec.Install == nil || n.in.Spec.Install.Type != "Placements" || n.in.Spec.Removal != nil {
		return nil
	}
	for _, ip := range n.in.Spec.Install.Placements {
		found = append(found, n.placement(ip.PlacementReference))
	}
	return found
}

func (n *naive) anyDistrusted(pls []rollout.Placement) bool {
	for _, pl := range pls {
		if pl.Existence != rollout.Exists || pl.Settlement != rollout.Settled {
			return true
		}
	}
	return false
}

func selects(pl rollout.Placement, name string) bool {
	for _, g := range pl.Groups {
		if slices.Contains(g.Clusters, name) {
			return true
		}
	}
	return false
}

// members are the clusters of the install set, by name.
func (n *naive) members() []string {
	var names []string
	for _, c := range n.in.Clusters {
		wanted := n.wanted(c.Name)
		has := c.Installed == rollout.Ours || c.Installed == rollout.HandMade
		if !c.Gone && (has || wanted && !c.InstallDisabled && c.Installed != rollout.Deleting) {
			names = append(names, c.Name)
		}
	}
	sort.Strings(names)
	return names
}

// wanted tells whether something installs the add-on on a cluster, in motion or not.
func (n *naive) wanted(name string) bool {
	if n.in.Spec.Removal != nil {
		return false
	}
	if s := n.in.Spec.ClusterLabelSelector; s != nil {
		return labelled(*s, n.clusters[name].Labels)
	}
	for _, pl := range n.installPlacements() {
		if selects(pl, name) {
			return true
		}
	}
	return false
}

// labelled reads a label selector requirement by requirement.
func labelled(s metav1.LabelSelector, labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if labels[key] != value {
			return false
		}
	}
	for _, e := range s.MatchExpressions {
		value, has := labels[e.Key]
		is := has && slices.Contains(e.Values, value)
		switch e.Operator {
		case metav1.LabelSelectorOpIn:
		case metav1.LabelSelectorOpNotIn:
			is = !is
		case metav1.LabelSelectorOpExists:
			is = has
		case metav1.LabelSelectorOpDoesNotExist:
			is = !has
		}
		if !is {
			return false
		}
	}
	return true
}

// leaving tells whether what selected a cluster of ours selects it no more, or the whole
// add-on is to go.
func (n *naive) leaving(name string) bool {
	c, now := n.clusters[name], rollout.ByHand
	switch {
	case c.Installed != rollout.Ours || c.Gone:
		return false
	case n.in.Spec.Removal != nil:
		return true
	case n.in.Spec.ClusterLabelSelector != nil:
		now = rollout.ByLabels
	case n.in.Spec.Install != nil && n.in.Spec.Install.Type == "Placements":
		now = rollout.ByPlacements
	}
	if now == rollout.ByHand || c.SelectedBy != now || n.wanted(name) {
		return false
	}
	return !n.anyDistrusted(n.installPlacements()) || n.approvedInMotion(name)
}

// approvedInMotion tells whether an approval lets a cluster go although placements are in
// motion: all of them are there, and it is not used, or about this cluster.
func (n *naive) approvedInMotion(name string) bool {
	for _, pl := range n.installPlacements() {
		if pl.Existence != rollout.Exists || pl.Settlement == rollout.Undecided {
			return false
		}
	}
	r := n.in.Ledger.Removal
	if lost := n.in.Previous.Target == "" && len(n.in.Ledger.Waves)+len(n.in.Ledger.Parked) == 0; lost && r == nil {
		return false // who it was used for is not known any more
	}
	if !approves(n.in) || r == nil || r.Lifted == nil || r.Lifted.Commit != n.in.ApprovedRemoval {
		return approves(n.in)
	}
	for _, d := range r.Departed {
		if slices.Contains(d.Clusters, name) {
			return !d.Since.After(r.Lifted.At.Time)
		}
	}
	return false
}
