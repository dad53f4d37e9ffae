package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Generators of policies and inputs. They draw from few values on purpose: combinations and equal times
// are what breaks a planner.

func quantities() *rapid.Generator[intstr.IntOrString] {
	return rapid.SampledFrom([]intstr.IntOrString{
		number(1), number(2), number(3), number(50), percent("1%"), percent("25%"), percent("50%"), percent("100%"), percent("2"),
	})
}

func failures() *rapid.Generator[intstr.IntOrString] {
	return rapid.OneOf(rapid.Just(number(0)), rapid.Just(number(0)), quantities())
}

func soaks() *rapid.Generator[metav1.Duration] {
	return rapid.Map(rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Minute, 10 * time.Minute}),
		func(d time.Duration) metav1.Duration { return metav1.Duration{Duration: d} })
}

func deadlines() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", "None", "5m", "5m", "15m"})
}

// seldom is true one time in n.
func seldom(t *rapid.T, n int, label string) bool {
	return rapid.IntRange(1, n).Draw(t, label) == n
}

func subset(t *rapid.T, names []string, label string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(string) bool { return !rapid.Bool().Draw(t, label) })
}

// drawPlacement is a placement of some of the clusters in up to three groups, whose
// indexes may have gaps; one in ten cannot be relied upon.
func drawPlacement(t *rapid.T, named v1alpha1.PlacementReference, clusters []string) rollout.Placement {
	pl := grouped(named.Name)
	pl.Namespace = named.Namespace
	index := 0
	for range rapid.IntRange(1, 3).Draw(t, "groups") {
		index += rapid.IntRange(0, 2).Draw(t, "gap")
		pl.Groups = append(pl.Groups, rollout.Group{
			Index: index, Name: rapid.SampledFrom([]string{"", "g", "h"}).Draw(t, "group name"),
		})
		index++
	}
	for _, c := range subset(t, clusters, "selected") {
		g := &pl.Groups[rapid.IntRange(0, len(pl.Groups)-1).Draw(t, "group")]
		g.Clusters = append(g.Clusters, c)
	}
	if rapid.Bool().Draw(t, "has clustersPerDecisionGroup") {
		pl.ClustersPerDecisionGroup = quantities().Draw(t, "clustersPerDecisionGroup")
	}
	if seldom(t, 10, "distrusted") {
		distrust(t, &pl)
	}
	return pl
}

// distrust makes a placement one that cannot be relied upon: in motion, not decided
// about, or not there.
func distrust(t *rapid.T, pl *rollout.Placement) {
	pl.Settlement = rapid.SampledFrom([]rollout.Settlement{rollout.Unsettled, rollout.Undecided, rollout.Missing}).Draw(t, "settlement")
}

func drawConfig(t *rapid.T) clusterv1alpha1.RolloutConfig {
	return clusterv1alpha1.RolloutConfig{
		MinSuccessTime: soaks().Draw(t, "soak"), ProgressDeadline: deadlines().Draw(t, "deadline"), MaxFailures: failures().Draw(t, "maxFailures"),
	}
}

// drawAll is strategy All, by its name or by none.
func drawAll(t *rapid.T) clusterv1alpha1.RolloutStrategy {
	if seldom(t, 3, "no type") {
		return clusterv1alpha1.RolloutStrategy{}
	}
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All, All: &clusterv1alpha1.RolloutAll{
		RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: deadlines().Draw(t, "deadline")},
	}}
}

// drawStrategy is All, Progressive or ProgressivePerGroup. A mandatory group mostly exists.
func drawStrategy(t *rapid.T, groups []rollout.Group) clusterv1alpha1.RolloutStrategy {
	if seldom(t, 5, "all") {
		return drawAll(t)
	}
	var first clusterv1alpha1.MandatoryDecisionGroups
	if len(groups) > 0 && rapid.Bool().Draw(t, "mandatory") {
		g := rapid.SampledFrom(groups).Draw(t, "mandatory group")
		m := clusterv1alpha1.MandatoryDecisionGroup{GroupName: g.Name}
		if g.Name == "" {
			m.GroupIndex = int32(g.Index) //nolint:gosec // indexes drawn here are small
		}
		if seldom(t, 12, "unknown group") {
			m = clusterv1alpha1.MandatoryDecisionGroup{GroupName: "nowhere"}
		}
		first = mandatory(m)
	}
	if rapid.Bool().Draw(t, "per group") {
		return perGroup(clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: drawConfig(t), MandatoryDecisionGroups: first})
	}
	p := clusterv1alpha1.RolloutProgressive{RolloutConfig: drawConfig(t), MandatoryDecisionGroups: first}
	if rapid.Bool().Draw(t, "has maxConcurrency") {
		p.MaxConcurrency = quantities().Draw(t, "maxConcurrency")
	}
	return progressive(p)
}

// drawPolicy fills spec and placements with every form a pace can have: stages, one
// strategy, a share of a placement, or a pace per placement.
func drawPolicy(t *rapid.T, in *rollout.Input, names []string) {
	refs := []v1alpha1.PlacementReference{ref("first"), ref("second")}
	if seldom(t, 8, "two of one name") {
		refs[1] = v1alpha1.PlacementReference{Namespace: "other", Name: "first"}
	}
	first, second := drawPlacement(t, refs[0], names), drawPlacement(t, refs[1], names)
	in.Placements = []rollout.Placement{first, second}
	in.Spec.Install = &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{
		{PlacementReference: refs[0]}, {PlacementReference: refs[1]},
	}}
	switch rapid.SampledFrom([]string{"stages", "stages", "strategy", "share", "per placement"}).Draw(t, "policy") {
	case "stages":
		in.Spec.Stages = drawStages(t, []v1alpha1.PlacementReference{refs[1], refs[0], ref("third")})
		drawSelector(t, in)
		in.Placements = append(in.Placements, drawPlacement(t, ref("third"), names))
	case "strategy":
		st := drawStrategy(t, slices.Concat(first.Groups, second.Groups))
		in.Spec.Strategy = &v1alpha1.RolloutStrategy{
			Type: v1alpha1.StrategyType(st.Type), All: st.All, Progressive: st.Progressive, ProgressivePerGroup: st.ProgressivePerGroup,
		}
		drawSelector(t, in)
	case "share":
		in.Placements = append(in.Placements, drawPlacement(t, ref("third"), names))
		in.Spec.Strategy = drawShare(t)
		drawSelector(t, in)
	default:
		in.Spec.Install.Placements[0].RolloutStrategy = drawStrategy(t, first.Groups)
		in.Spec.Install.Placements[1].RolloutStrategy = drawStrategy(t, second.Groups)
		in.Spec.Install.DefaultCanary = seldom(t, 3, "default canary")
	}
}

// drawStages is one stage or more, of the first of the placements.
func drawStages(t *rapid.T, of []v1alpha1.PlacementReference) []v1alpha1.Stage {
	var stages []v1alpha1.Stage
	for i, named := range of[:rapid.IntRange(1, len(of)).Draw(t, "stages")] {
		st := v1alpha1.Stage{
			Name: fmt.Sprintf("s%d", i), Placement: named,
			MinSuccessTime: soaks().Draw(t, "soak"), ProgressDeadline: deadlines().Draw(t, "deadline"),
			WhenEmpty: rapid.SampledFrom([]v1alpha1.WhenEmpty{"", v1alpha1.WhenEmptyHold, v1alpha1.WhenEmptyPass}).Draw(t, "when empty"),
		}
		if rapid.Bool().Draw(t, "has maxConcurrency") {
			st.MaxConcurrency = new(rapid.OneOf(quantities(), quantities(), rapid.Just(number(0))).Draw(t, "maxConcurrency"))
		}
		if rapid.Bool().Draw(t, "has maxFailures") {
			st.MaxFailures = new(failures().Draw(t, "maxFailures"))
		}
		if seldom(t, 2, "has gates") {
			st.Gates = drawGates(t)
		}
		stages = append(stages, st)
	}
	return stages
}

// drawGates is a gate or two before the stage, and one or none during it.
func drawGates(t *rapid.T) *v1alpha1.Gates {
	g := &v1alpha1.Gates{}
	for i := range rapid.IntRange(0, 2).Draw(t, "gates before") {
		g.Before = append(g.Before, drawGate(t, fmt.Sprintf("before-%d", i), approvalGate, openWindow, measuredGate))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "gates during") {
		during := drawGate(t, fmt.Sprintf("during-%d", i), measuredGate)
		if rapid.Bool().Draw(t, "has errorAfter") {
			during.ErrorAfter = &metav1.Duration{Duration: rapid.SampledFrom([]time.Duration{time.Second, time.Hour}).Draw(t, "errorAfter")}
		}
		g.During = append(g.During, during)
	}
	return g
}

func drawGate(t *rapid.T, name string, kinds ...func(string) v1alpha1.Gate) v1alpha1.Gate {
	g := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "type")](name)
	if g.Type == v1alpha1.GateWindow {
		g.Window.HoldsReverts = rapid.Bool().Draw(t, "holds reverts")
	}
	return g
}

// drawVerdict is what a gate may say: most often that it is passed.
func drawVerdict(t *rapid.T, at v1alpha1.Stage) rollout.Gate {
	v := rollout.Gate{
		Stage: at.Name, When: v1alpha1.GateBefore, Reason: words(t, 1, "reason", "0.3 is above 0.1"),
		State: rapid.SampledFrom([]v1alpha1.GateState{
			v1alpha1.GatePassed, v1alpha1.GatePassed, v1alpha1.GatePassed, v1alpha1.GatePassed, "",
			v1alpha1.GateWaiting, v1alpha1.GateFailed, v1alpha1.GateError, v1alpha1.GateError,
		}).Draw(t, "verdict"),
	}
	v.Name = "before-" + rapid.SampledFrom([]string{"0", "0", "1"}).Draw(t, "gate")
	if rapid.Bool().Draw(t, "during") {
		v.When, v.Name = v1alpha1.GateDuring, "during"+strings.TrimPrefix(v.Name, "before")
	}
	return v
}

func drawShare(t *rapid.T) *v1alpha1.RolloutStrategy {
	ru := &v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref(rapid.SampledFrom([]string{"first", "third"}).Draw(t, "share of"))}
	if rapid.Bool().Draw(t, "has maxConcurrentlyUpdating") {
		ru.MaxConcurrentlyUpdating = new(quantities().Draw(t, "maxConcurrentlyUpdating"))
	}
	return &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyRollingUpdateWithPlacement, RollingUpdateWithPlacement: ru}
}

// drawSelector may draw a label selector, which may select no cluster.
func drawSelector(t *rapid.T, in *rollout.Input) {
	if !seldom(t, 3, "by labels") {
		return
	}
	in.Spec.Install = rapid.SampledFrom([]*v1alpha1.Install{nil, {}, {Type: "Manual"}}).Draw(t, "install")
	in.Spec.ClusterLabelSelector = rapid.SampledFrom([]*metav1.LabelSelector{
		edge(), edge(), {MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "site", Operator: metav1.LabelSelectorOpIn, Values: []string{"edge", "lab"}},
			{Key: "broken", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}, {MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "site", Operator: metav1.LabelSelectorOpExists}, {Key: "site", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"lab"}},
		}}, {}, nil,
	}).Draw(t, "selector")
}

// edge selects the clusters with the labels of onEdge.
func edge() *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: onEdge()} }

func onEdge() map[string]string { return map[string]string{"site": "edge"} }

func unselected(pls []rollout.Placement, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(pls, func(pl rollout.Placement) bool {
			return slices.ContainsFunc(pl.Groups, func(g rollout.Group) bool { return slices.Contains(g.Clusters, name) })
		})
	})
}
