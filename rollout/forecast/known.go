package forecast

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// globalSet is the ManagedClusterSet of OCM that has every cluster.
const globalSet = "global"

// Known is the knowledge about a fleet without its hub.
type Known struct {
	Clusters []clusterv1.ManagedCluster
	// Declared are the placements of the commit.
	Declared []clusterv1beta1.Placement
	// Observed are the placements of the hub, and Decisions are its decisions about them.
	Observed  []clusterv1beta1.Placement
	Decisions []rollout.Placement
	// Sets and Bindings that are known, of the commit and of the hub.
	Sets     []clusterv1beta2.ManagedClusterSet
	Bindings []clusterv1beta2.ManagedClusterSetBinding
	// AllBindings: all bindings are known. Then a placement selects nothing from a set that is not bound to its
	// namespace. Otherwise a placement selects from the sets that it names.
	AllBindings bool
}

// Fleet returns the fleet for a policy. If a placement has decisions and the commit does not change it, the decisions
// are used. For any other placement, cluster sets, labels and claims are evaluated. The error says what cannot be
// evaluated without the hub.
func (k Known) Fleet(policy v1alpha1.AddOnRolloutSpec) (Fleet, error) {
	k.Clusters = slices.DeleteFunc(slices.Clone(k.Clusters), func(c clusterv1.ManagedCluster) bool { return c.DeletionTimestamp != nil })
	slices.SortFunc(k.Clusters, func(a, b clusterv1.ManagedCluster) int { return strings.Compare(a.Name, b.Name) })
	var fleet Fleet
	for _, ref := range references(policy) {
		pl, notes, err := k.placement(ref)
		if err != nil {
			return fleet, err
		}
		fleet.Placements = append(fleet.Placements, pl)
		fleet.Notes = append(fleet.Notes, notes...)
	}
	installs, err := k.installs(policy, fleet.Placements)
	if err != nil {
		return fleet, err
	}
	for i := range k.Clusters {
		c := &k.Clusters[i]
		by, installed := installs(c)
		if c.Annotations[addonv1alpha1.DisableAddonAutomaticInstallationAnnotationKey] == "true" && by != rollout.ByHand {
			installed = false
		}
		if installed {
			fleet.Clusters = append(fleet.Clusters, running(c.Name, by))
		}
	}
	return fleet, nil
}

// installs returns a function that reports whether a cluster has the add-on, and what selects it.
func (k Known) installs(policy v1alpha1.AddOnRolloutSpec, placements []rollout.Placement) (func(*clusterv1.ManagedCluster) (rollout.Selection, bool), error) {
	if refs := installedBy(policy); len(refs) > 0 {
		selected := map[string]bool{}
		for _, pl := range placements {
			if !slices.Contains(refs, v1alpha1.PlacementReference{Namespace: pl.Namespace, Name: pl.Name}) {
				continue
			}
			for _, g := range pl.Groups {
				for _, name := range g.Clusters {
					selected[name] = true
				}
			}
		}
		return func(c *clusterv1.ManagedCluster) (rollout.Selection, bool) {
			return rollout.ByPlacements, selected[c.Name]
		}, nil
	}
	if policy.ClusterLabelSelector == nil {
		return func(*clusterv1.ManagedCluster) (rollout.Selection, bool) { return rollout.ByHand, true }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(policy.ClusterLabelSelector)
	if err != nil {
		return nil, fmt.Errorf("clusterLabelSelector: %w", err)
	}
	return func(c *clusterv1.ManagedCluster) (rollout.Selection, bool) {
		// Installed by hand as far as the planner is concerned: it does not read the labels again.
		return rollout.ByHand, selector.Matches(labels.Set(c.Labels))
	}, nil
}

// placement is one placement with its decisions.
func (k Known) placement(ref v1alpha1.PlacementReference) (pl rollout.Placement, notes []string, err error) {
	named := "Placement " + ref.Namespace + "/" + ref.Name
	declared, observed := find(k.Declared, ref), find(k.Observed, ref)
	at := slices.IndexFunc(k.Decisions, func(p rollout.Placement) bool { return p.Namespace == ref.Namespace && p.Name == ref.Name })
	changed := declared != nil && observed != nil && !equality.Semantic.DeepEqual(declared.Spec, observed.Spec)
	if changed && at >= 0 {
		notes = append(notes, named+" is not as on the hub, and its decisions there do not count")
	}
	if at >= 0 && !changed {
		pl = k.Decisions[at]
		pl.Settlement = rollout.Settled
		for _, p := range []*clusterv1beta1.Placement{declared, observed} {
			if p != nil {
				pl.ClustersPerDecisionGroup = p.Spec.DecisionStrategy.GroupStrategy.ClustersPerDecisionGroup
			}
		}
		return pl, notes, nil
	}
	if declared == nil {
		declared = observed
	}
	if declared == nil {
		return pl, nil, fmt.Errorf("%s is neither in the directory nor in the fleet", named)
	}
	selected, more, err := k.evaluate(declared, named)
	if err != nil {
		return pl, nil, fmt.Errorf("%s: %w", named, err)
	}
	groups := declared.Spec.DecisionStrategy.GroupStrategy
	pl, err = decide(ref, groups, selected, func(i int, rest []string) ([]string, error) {
		s := groups.DecisionGroups[i].ClusterSelector
		return k.matching(rest, clusterv1beta1.ClusterSelector{LabelSelector: s.LabelSelector, ClaimSelector: s.ClaimSelector})
	})
	if err != nil {
		return pl, nil, fmt.Errorf("decision groups of %s: %w", named, err)
	}
	return pl, append(notes, more...), nil
}

// evaluate returns the clusters that a placement selects by cluster sets, labels and claims.
// The notes name what was not evaluated.
func (k Known) evaluate(pl *clusterv1beta1.Placement, named string) (selected, notes []string, err error) {
	names, notes, err := k.inSets(pl, named)
	if err != nil {
		return nil, nil, err
	}
	selected = names
	if len(pl.Spec.Predicates) > 0 {
		selected = nil
		for _, predicate := range pl.Spec.Predicates {
			matched, err := k.matching(names, predicate.RequiredClusterSelector)
			if err != nil {
				return nil, nil, err
			}
			selected = append(selected, matched...)
		}
		slices.Sort(selected)
		selected = slices.Compact(selected)
	}
	if n := k.tainted(selected); n > 0 {
		notes = append(notes, fmt.Sprintf("taints of %s that %s selects are not evaluated", counted(n), named))
	}
	if n := pl.Spec.NumberOfClusters; n != nil && int(*n) < len(selected) {
		notes = append(notes, fmt.Sprintf("%s selects %d of %d clusters; taken are the first by name, not those of its priorities", named, *n, len(selected)))
		selected = selected[:*n]
	}
	return selected, notes, nil
}

// inSets returns the clusters in the cluster sets that a placement names. If it names no set, they
// are the clusters in the sets that are bound to its namespace.
func (k Known) inSets(pl *clusterv1beta1.Placement, named string) (names, notes []string, err error) {
	sets, bound := pl.Spec.ClusterSets, k.boundTo(pl.Namespace)
	switch {
	case len(sets) == 0 && len(bound) == 0 && k.AllBindings:
		notes = []string{"no cluster set is bound to namespace " + pl.Namespace + ": " + named + " selects no cluster"}
	case len(sets) == 0 && len(bound) == 0:
		notes = []string{"the cluster sets that are bound to namespace " + pl.Namespace + " are not known: " + named + " selects from all clusters"}
		sets = []string{globalSet}
	case len(sets) == 0:
		sets = bound
	case k.AllBindings:
		for _, set := range sets {
			if !slices.Contains(bound, set) {
				notes = append(notes, "cluster set "+set+" is not bound to namespace "+pl.Namespace+": "+named+" selects no cluster of it")
			}
		}
		sets = slices.DeleteFunc(slices.Clone(sets), func(set string) bool { return !slices.Contains(bound, set) })
	}
	for _, set := range sets {
		selector, err := k.setSelector(set)
		if err != nil {
			return nil, nil, err
		}
		for i := range k.Clusters {
			if selector.Matches(labels.Set(k.Clusters[i].Labels)) {
				names = append(names, k.Clusters[i].Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), notes, nil
}

// boundTo returns the cluster sets that are known to be bound to a namespace.
func (k Known) boundTo(namespace string) []string {
	var sets []string
	for i := range k.Bindings {
		if k.Bindings[i].Namespace == namespace {
			sets = append(sets, k.Bindings[i].Spec.ClusterSet)
		}
	}
	return sets
}

// setSelector selects the clusters of a cluster set. If the set is known to have a label selector,
// it is that selector. The set global has all clusters, any other set the clusters whose label
// names the set.
func (k Known) setSelector(name string) (labels.Selector, error) {
	for i := range k.Sets {
		by := k.Sets[i].Spec.ClusterSelector
		if k.Sets[i].Name != name || by.SelectorType != clusterv1beta2.LabelSelector {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(by.LabelSelector)
		if err != nil {
			return nil, fmt.Errorf("cluster set %s: %w", name, err)
		}
		return selector, nil
	}
	if name == globalSet {
		return labels.Everything(), nil
	}
	return labels.SelectorFromSet(labels.Set{clusterv1beta2.ClusterSetLabel: name}), nil
}

// matching returns the names whose clusters a selector of a placement selects.
func (k Known) matching(names []string, s clusterv1beta1.ClusterSelector) ([]string, error) {
	if len(s.CelSelector.CelExpressions) > 0 {
		return nil, fmt.Errorf("a celSelector is evaluated on the hub only")
	}
	byLabel, err := metav1.LabelSelectorAsSelector(&s.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	byClaim, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: s.ClaimSelector.MatchExpressions})
	if err != nil {
		return nil, fmt.Errorf("claimSelector: %w", err)
	}
	if !byClaim.Empty() && !k.haveClaims() {
		return nil, fmt.Errorf("it has a claimSelector, and no cluster of the fleet has status.clusterClaims")
	}
	var matched []string
	for i := range k.Clusters {
		c := &k.Clusters[i]
		if _, wanted := slices.BinarySearch(names, c.Name); wanted && byLabel.Matches(labels.Set(c.Labels)) && byClaim.Matches(claimsOf(c)) {
			matched = append(matched, c.Name)
		}
	}
	return matched, nil
}

func (k Known) haveClaims() bool {
	return slices.ContainsFunc(k.Clusters, func(c clusterv1.ManagedCluster) bool { return len(c.Status.ClusterClaims) > 0 })
}

func claimsOf(c *clusterv1.ManagedCluster) labels.Set {
	claims := labels.Set{}
	for _, claim := range c.Status.ClusterClaims {
		claims[claim.Name] = claim.Value
	}
	return claims
}

// tainted counts the clusters with a taint. OCM's taints of clusters that are not available do not
// count, because in a forecast every cluster is available.
func (k Known) tainted(names []string) int {
	n := 0
	for i := range k.Clusters {
		if _, selected := slices.BinarySearch(names, k.Clusters[i].Name); !selected {
			continue
		}
		if slices.ContainsFunc(k.Clusters[i].Spec.Taints, func(t clusterv1.Taint) bool {
			return t.Key != clusterv1.ManagedClusterTaintUnreachable && t.Key != clusterv1.ManagedClusterTaintUnavailable
		}) {
			n++
		}
	}
	return n
}
