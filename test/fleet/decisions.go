package fleet

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// maxDecisions is how many clusters OCM puts into one PlacementDecision.
const maxDecisions = 100

// decided is one decision group: a name, which may be empty, and its clusters.
type decided struct {
	name     string
	clusters []string
}

// decide divides a placement's clusters into groups as OCM's scheduler does: the named groups
// take the clusters that match, in their order; the others follow without a name; each group is
// sorted and cut at the group length. Without any cluster there is one empty group.
func (p Placement) decide(fleet map[string]map[string]string) ([]decided, error) {
	selected, err := p.selected(fleet)
	if err != nil {
		return nil, err
	}
	length, err := groupLength(p.ClustersPerGroup, len(selected))
	if err != nil {
		return nil, err
	}
	rest := slices.Clone(selected)
	var groups []decided
	for _, g := range p.Groups {
		matches, err := g.matcher(fleet)
		if err != nil {
			return nil, fmt.Errorf("group %q: %w", g.Name, err)
		}
		var taken []string
		rest = slices.DeleteFunc(rest, func(name string) bool {
			if matches(name) {
				taken = append(taken, name)
				return true
			}
			return false
		})
		groups = append(groups, cut(g.Name, taken, length)...)
	}
	groups = append(groups, cut("", rest, length)...)
	if len(groups) == 0 {
		groups = []decided{{}}
	}
	return groups, nil
}

// selected lists the placement's clusters, sorted, each once.
func (p Placement) selected(fleet map[string]map[string]string) ([]string, error) {
	names := slices.Clone(p.Clusters)
	if p.Selector != nil {
		selector, err := metav1.LabelSelectorAsSelector(p.Selector)
		if err != nil {
			return nil, err
		}
		for name, own := range fleet {
			if selector.Matches(labels.Set(own)) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

func (g Group) matcher(fleet map[string]map[string]string) (func(string) bool, error) {
	if g.Selector == nil {
		return func(name string) bool { return slices.Contains(g.Clusters, name) }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(g.Selector)
	if err != nil {
		return nil, err
	}
	return func(name string) bool {
		return slices.Contains(g.Clusters, name) || selector.Matches(labels.Set(fleet[name]))
	}, nil
}

// groupLength resolves clustersPerDecisionGroup, rounding up. An invalid value means one group.
func groupLength(value intstr.IntOrString, total int) (int, error) {
	length := value.IntValue()
	if value.Type == intstr.String && value.StrVal != "" {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(value.StrVal, "%"), 64)
		if err != nil {
			return 0, fmt.Errorf("clusters per group: %w", err)
		}
		length = int(math.Ceil(percent / 100 * float64(total)))
	}
	if length <= 0 || length > total {
		return total, nil
	}
	return length, nil
}

func cut(name string, clusters []string, length int) []decided {
	var groups []decided
	for chunk := range slices.Chunk(clusters, max(1, length)) {
		groups = append(groups, decided{name: name, clusters: chunk})
	}
	return groups
}

// objects turns groups into decisions, numbered from 1 through all groups, and
// the placement's status.
func (p Placement) objects(groups []decided, owner *clusterv1beta1.Placement) ([]clusterv1beta1.PlacementDecision, clusterv1beta1.PlacementStatus) {
	controller := metav1.NewControllerRef(owner, schema.GroupVersion(clusterv1beta1.GroupVersion).WithKind("Placement"))
	var decisions []clusterv1beta1.PlacementDecision
	status := clusterv1beta1.PlacementStatus{DecisionGroups: []clusterv1beta1.DecisionGroupStatus{}}
	for index, group := range groups {
		shown := clusterv1beta1.DecisionGroupStatus{
			DecisionGroupIndex: int32(index), DecisionGroupName: group.name,
			ClustersCount: int32(len(group.clusters)), //nolint:gosec // G115: no fleet has two billion clusters
		}
		for _, chunk := range chunksOrEmpty(group.clusters) {
			decision := clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
				Namespace: p.Namespace,
				Name:      fmt.Sprintf("%s-decision-%d", p.Name, len(decisions)+1),
				Labels: map[string]string{
					clusterv1beta1.PlacementLabel:          p.Name,
					clusterv1beta1.DecisionGroupNameLabel:  group.name,
					clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(index),
				},
				OwnerReferences: []metav1.OwnerReference{*controller},
			}}
			decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
			for _, name := range chunk {
				decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
			}
			shown.Decisions = append(shown.Decisions, decision.Name)
			decisions = append(decisions, decision)
		}
		status.NumberOfSelectedClusters += shown.ClustersCount
		status.DecisionGroups = append(status.DecisionGroups, shown)
	}
	return decisions, status
}

// chunksOrEmpty returns one empty decision for an empty group.
func chunksOrEmpty(clusters []string) [][]string {
	if len(clusters) == 0 {
		return [][]string{nil}
	}
	return slices.Collect(slices.Chunk(clusters, maxDecisions))
}

// satisfied are the placement's conditions for a number of selected clusters.
func satisfied(selected int32) []metav1.Condition {
	all := metav1.Condition{
		Type: clusterv1beta1.PlacementConditionSatisfied, Status: metav1.ConditionTrue,
		Reason: "AllDecisionsScheduled", Message: "All cluster decisions scheduled",
	}
	if selected == 0 {
		all.Status, all.Reason = metav1.ConditionFalse, "NoManagedClusterMatched"
		all.Message = "No ManagedCluster matches any of the cluster predicate"
	}
	return []metav1.Condition{all, {
		Type: clusterv1beta1.PlacementConditionMisconfigured, Status: metav1.ConditionFalse,
		Reason: "Succeedconfigured", Message: "Placement configurations check pass",
	}}
}

// spec is the spec that a user would write for these decisions.
func (p Placement) spec() clusterv1beta1.PlacementSpec {
	spec := clusterv1beta1.PlacementSpec{
		Tolerations: []clusterv1beta1.Toleration{{
			Key: clusterv1.ManagedClusterTaintUnreachable, Operator: clusterv1beta1.TolerationOpExists,
		}},
	}
	spec.Predicates = []clusterv1beta1.ClusterPredicate{{
		RequiredClusterSelector: clusterv1beta1.ClusterSelector{LabelSelector: selectorOr(p.Selector, p.Clusters)},
	}}
	strategy := &spec.DecisionStrategy.GroupStrategy
	strategy.ClustersPerDecisionGroup = p.ClustersPerGroup
	if p.ClustersPerGroup == (intstr.IntOrString{}) {
		strategy.ClustersPerDecisionGroup = intstr.FromString("100%")
	}
	for _, g := range p.Groups {
		strategy.DecisionGroups = append(strategy.DecisionGroups, clusterv1beta1.DecisionGroup{
			GroupName:       g.Name,
			ClusterSelector: clusterv1beta1.GroupClusterSelector{LabelSelector: selectorOr(g.Selector, g.Clusters)},
		})
	}
	return spec
}

// selectorOr returns the selector if there is one, else one by the name label that every
// simulated cluster has. Without names it selects nothing, while an empty selector would select
// all.
func selectorOr(selector *metav1.LabelSelector, clusters []string) metav1.LabelSelector {
	if selector != nil {
		return *selector
	}
	byName := metav1.LabelSelectorRequirement{Key: clusterv1.ClusterNameLabelKey, Operator: metav1.LabelSelectorOpDoesNotExist}
	if len(clusters) > 0 {
		byName.Operator, byName.Values = metav1.LabelSelectorOpIn, slices.Clone(clusters)
	}
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{byName}}
}
