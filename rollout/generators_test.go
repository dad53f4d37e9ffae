package rollout_test

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// Generators of policies and inputs. Values are drawn from few on purpose: what breaks
// a planner is their combination, and times that fall on each other.

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

func subset(t *rapid.T, names []string, label string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(string) bool { return !rapid.Bool().Draw(t, label) })
}

// drawPlacement is a placement of some of the clusters in up to three groups, whose
// indexes may have gaps; one in ten cannot be relied upon.
func drawPlacement(t *rapid.T, name string, clusters []string) rollout.Placement {
	pl := grouped(name)
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
	if rapid.IntRange(0, 9).Draw(t, "trust") == 0 {
		pl.Settlement = rollout.Unsettled
	}
	return pl
}

func drawConfig(t *rapid.T) clusterv1alpha1.RolloutConfig {
	return clusterv1alpha1.RolloutConfig{
		MinSuccessTime: soaks().Draw(t, "soak"), ProgressDeadline: deadlines().Draw(t, "deadline"), MaxFailures: failures().Draw(t, "maxFailures"),
	}
}

// drawStrategy is Progressive or ProgressivePerGroup, with a mandatory group that exists.
func drawStrategy(t *rapid.T, groups []rollout.Group) clusterv1alpha1.RolloutStrategy {
	var first clusterv1alpha1.MandatoryDecisionGroups
	if len(groups) > 0 && rapid.Bool().Draw(t, "mandatory") {
		g := rapid.SampledFrom(groups).Draw(t, "mandatory group")
		m := clusterv1alpha1.MandatoryDecisionGroup{GroupName: g.Name}
		if g.Name == "" {
			m.GroupIndex = int32(g.Index) //nolint:gosec // indexes drawn here are small
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

// drawPolicy fills spec and placements: stages, one strategy, or a pace per placement.
func drawPolicy(t *rapid.T, in *rollout.Input, names []string) {
	first, second := drawPlacement(t, "first", names), drawPlacement(t, "second", names)
	in.Placements = []rollout.Placement{first, second}
	in.Spec.Install = installedBy("first", "second")
	switch rapid.SampledFrom([]string{"stages", "strategy", "per placement"}).Draw(t, "policy") {
	case "stages":
		for i, name := range []string{"second", "first", "third"}[:rapid.IntRange(1, 3).Draw(t, "stages")] {
			st := v1alpha1.Stage{
				Name: fmt.Sprintf("s%d", i), Placement: ref(name),
				MinSuccessTime: soaks().Draw(t, "soak"), ProgressDeadline: deadlines().Draw(t, "deadline"),
			}
			if rapid.Bool().Draw(t, "has maxConcurrency") {
				st.MaxConcurrency = new(rapid.OneOf(quantities(), quantities(), rapid.Just(number(0))).Draw(t, "maxConcurrency"))
			}
			if rapid.Bool().Draw(t, "has maxFailures") {
				st.MaxFailures = new(failures().Draw(t, "maxFailures"))
			}
			in.Spec.Stages = append(in.Spec.Stages, st)
		}
		if rapid.IntRange(0, 2).Draw(t, "by labels") == 0 {
			in.Spec.Install, in.Spec.ClusterLabelSelector = &v1alpha1.Install{Type: "Manual"}, edge()
		}
		in.Placements = append(in.Placements, drawPlacement(t, "third", names))
	case "strategy":
		groups := slices.Concat(first.Groups, second.Groups)
		st := drawStrategy(t, groups)
		in.Spec.Strategy = &v1alpha1.RolloutStrategy{
			Type: v1alpha1.StrategyType(st.Type), Progressive: st.Progressive, ProgressivePerGroup: st.ProgressivePerGroup,
		}
	default:
		in.Spec.Install.Placements[0].RolloutStrategy = drawStrategy(t, first.Groups)
		in.Spec.Install.Placements[1].RolloutStrategy = drawStrategy(t, second.Groups)
		// What no placement selects moves at once, which the oracle does not know.
		in.Placements[1].Groups[0].Clusters = slices.Concat(in.Placements[1].Groups[0].Clusters, unselected(in.Placements, names))
	}
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

// ago draws a time before now, on the minute, so that clocks meet.
func ago(t *rapid.T, now time.Time, label string) time.Time {
	return now.Add(-time.Duration(rapid.IntRange(0, 20).Draw(t, label)) * time.Minute)
}

// drawCluster is a cluster in any state, also in ones that no history leads to.
func drawCluster(t *rapid.T, in rollout.Input, name string) rollout.Cluster {
	c := rollout.Cluster{
		Name: name, Reachable: rapid.IntRange(0, 4).Draw(t, "reachable") > 0,
		Installed: rapid.SampledFrom([]rollout.Installation{
			rollout.Ours, rollout.Ours, rollout.Ours, rollout.HandMade, rollout.NotInstalled, rollout.Deleting,
		}).Draw(t, "installed"),
		Running: rapid.SampledFrom([]string{"", "a", "a", "b", "c", "c", rollout.Mixed}).Draw(t, "running"),
		Gone:    rapid.IntRange(0, 19).Draw(t, "gone") == 0,
		Health: rollout.Health{State: rapid.SampledFrom([]rollout.HealthState{
			rollout.HealthVerified, rollout.HealthVerified, rollout.HealthProgressing, rollout.HealthFailed, rollout.HealthUnknown,
		}).Draw(t, "health")},
	}
	if in.Spec.ClusterLabelSelector != nil && rapid.Bool().Draw(t, "on the edge") {
		c.Labels = onEdge()
	}
	if rapid.IntRange(0, 3).Draw(t, "selected as now") == 0 {
		c.SelectedBy = rapid.SampledFrom([]rollout.Selection{rollout.ByPlacements, rollout.ByLabels, rollout.ByHand}).Draw(t, "selected by")
	} else if in.Spec.ClusterLabelSelector != nil {
		c.SelectedBy = rollout.ByLabels
	}
	c.InstallDisabled = rapid.IntRange(0, 9).Draw(t, "install disabled") == 0
	target := in.Spec.Target.Digest
	c.UpToDate = c.Running == target || c.Running == "b" && rapid.IntRange(0, 5).Draw(t, "alike") == 0
	c.UpToDateStable = in.Stable != "" && c.Running == in.Stable
	if !c.Reachable {
		c.LostSince = ago(t, in.Now, "lost")
	}
	return c
}

// drawInput is a random moment of a random rollout.
func drawInput(t *rapid.T) rollout.Input {
	names := rollouttest.Names(rapid.IntRange(1, 9).Draw(t, "clusters"))
	in := rollout.Input{
		Now: rollouttest.Epoch(), AddOn: "hello", ParkAfter: 10 * time.Minute, RemovalGrace: 5 * time.Minute,
		Stable:    rapid.SampledFrom([]string{"", "a", "a", "c"}).Draw(t, "stable"),
		Suspended: rapid.IntRange(0, 9).Draw(t, "suspended") == 0,
		Previous:  rollout.Previous{Target: "b"},
	}
	in.Spec.Target = &v1alpha1.Target{Digest: "c"}
	in.TargetVerifiedBefore = in.Stable == "c" || rapid.IntRange(0, 4).Draw(t, "reverting") == 0
	drawPolicy(t, &in, names)
	for _, name := range names {
		in.Clusters = append(in.Clusters, drawCluster(t, in, name))
	}
	in.Ledger = drawLedger(t, in, names)
	return in
}

// drawLedger admits some of the clusters to any revision at any time.
func drawLedger(t *rapid.T, in rollout.Input, names []string) v1alpha1.Ledger {
	var l v1alpha1.Ledger
	for _, name := range names {
		revision := rapid.SampledFrom([]string{"", "", "a", "b", "c", "c"}).Draw(t, "admitted to")
		if revision == "" {
			continue
		}
		if rapid.IntRange(0, 6).Draw(t, "parked") == 0 {
			l.Parked = append(l.Parked, v1alpha1.ParkedClusters{Revision: revision, Stage: name, Clusters: []string{name}})
			continue
		}
		w := v1alpha1.Wave{
			Revision: revision, Stage: name, AdmittedAt: metav1.NewTime(ago(t, in.Now, "admitted")), Clusters: []string{name},
			Joining: revision == in.Stable && rapid.Bool().Draw(t, "joining"),
		}
		if rapid.Bool().Draw(t, "verified") {
			w.Verified = []v1alpha1.VerifiedAt{{At: metav1.NewTime(ago(t, in.Now, "verified at")), Positions: "0"}}
		}
		l.Waves = append(l.Waves, w)
	}
	return l
}
