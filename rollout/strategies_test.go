package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestStrategies has, for each form of a policy, the stages and the clusters that the first plan of a
// rollout moves. Eight clusters run v1; v2 is the target.
func TestStrategies(t *testing.T) {
	names := rollouttest.Names(8)
	canaryGroup := []rollout.Group{group(3, "canary", names[6:]...), group(0, "", names[:3]...), group(1, "", names[3:6]...)}
	first := mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"})
	for name, tc := range map[string]struct {
		reason string
		policy func(*rollout.Input)
		moved  []string
		stages []string
	}{
		"Manual": {
			"with no pace of its own it is All",
			func(in *rollout.Input) { in.Spec.Install = &v1alpha1.Install{Type: "Manual"} },
			names,
			[]string{"all"},
		},
		"Manual with a strategy": {
			"a strategy replaces every pace, also for Manual",
			func(in *rollout.Input) {
				in.Spec.Install = &v1alpha1.Install{Type: "Manual"}
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(3)}))
			},
			names[:3],
			[]string{"all"},
		},
		"UpdateAll": {
			"another name of All",
			func(in *rollout.Input) {
				in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyUpdateAll}
			},
			names,
			[]string{"all"},
		},
		"Progressive": {
			"a percentage of the clusters, rounded up",
			func(in *rollout.Input) {
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: percent("30%")}))
			},
			names[:3],
			[]string{"all"},
		},
		"Progressive by default": {
			"without maxConcurrency, clustersPerDecisionGroup of the placement",
			func(in *rollout.Input) {
				in.Placements[0].ClustersPerDecisionGroup = number(2)
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{}))
			},
			names[:2],
			[]string{"all"},
		},
		"Progressive without any limit": {
			"and without it, every cluster",
			func(in *rollout.Input) {
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{}))
			},
			names,
			[]string{"all"},
		},
		"Progressive with a mandatory group": {
			"the group first, all of it at once, however low the limit",
			func(in *rollout.Input) {
				in.Placements[0].Groups = canaryGroup
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1), MandatoryDecisionGroups: first}))
			},
			names[6:],
			[]string{"group-canary", "rest"},
		},
		"Progressive with a mandatory group by index": {
			"an index is looked at where no name is given",
			func(in *rollout.Input) {
				in.Placements[0].Groups = canaryGroup
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{
					MaxConcurrency: number(1), MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: 1}),
				}))
			},
			names[3:6],
			[]string{"group-1", "rest"},
		},
		"ProgressivePerGroup": {
			"groups by index, whatever order they come in and however they are numbered",
			func(in *rollout.Input) {
				in.Placements[0].Groups = canaryGroup
				in.Spec.Strategy = strategyOf(perGroup(clusterv1alpha1.RolloutProgressivePerGroup{}))
			},
			names[:3],
			[]string{"group-0", "group-1", "group-canary"},
		},
		"ProgressivePerGroup with a mandatory group": {
			"the mandatory group before the others",
			func(in *rollout.Input) {
				in.Placements[0].Groups = canaryGroup
				in.Spec.Strategy = strategyOf(perGroup(clusterv1alpha1.RolloutProgressivePerGroup{MandatoryDecisionGroups: first}))
			},
			names[6:],
			[]string{"group-canary", "group-0", "group-1"},
		},
		"ProgressivePerGroup over two placements": {
			"by index, then by the placements' order; a cluster in two groups is in the first",
			func(in *rollout.Input) {
				in.Spec.Install = installedBy("b", "a")
				in.Placements = []rollout.Placement{
					grouped("a", group(0, "", names[0], names[1]), group(1, "", names[2])),
					grouped("b", group(0, "", names[1], names[3]), group(1, "", names[4:]...)),
				}
				in.Spec.Strategy = strategyOf(perGroup(clusterv1alpha1.RolloutProgressivePerGroup{}))
			},
			[]string{names[1], names[3]},
			[]string{"b/group-0", "a/group-0", "b/group-1", "a/group-1"},
		},
		"a group that OCM split": {
			"one name over several indexes is several steps, all of them mandatory",
			func(in *rollout.Input) {
				in.Placements[0].Groups = []rollout.Group{group(0, "canary", names[0]), group(1, "canary", names[1]), group(2, "", names[2:]...)}
				in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{MandatoryDecisionGroups: first}))
			},
			names[:1],
			[]string{"group-canary-0", "group-canary-1", "rest"},
		},
		"RollingUpdateWithPlacement": {
			"a quarter of the clusters both selected and installed",
			func(in *rollout.Input) {
				in.Placements = append(in.Placements, placement("share", names[2:]...))
				in.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("share")})
			},
			names[2:4],
			[]string{"share", "rest"},
		},
		"RollingUpdateWithPlacement, nothing succeeded yet": {
			"what the clusters run is protected by the share, although it never succeeded here",
			func(in *rollout.Input) {
				in.Stable = ""
				in.Placements = append(in.Placements, placement("share", names[2:]...))
				in.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("share")})
			},
			names[2:4],
			[]string{"share", "rest"},
		},
		"RollingUpdateWithPlacement, first install": {
			"there is nothing to take a share of",
			func(in *rollout.Input) {
				in.Stable = ""
				for i := range in.Clusters {
					in.Clusters[i].Running, in.Clusters[i].Health = "", rollout.Health{}
				}
				in.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("all")})
			},
			names,
			[]string{"all"},
		},
		"per placement": {
			"each at its own pace; of two placements the later has a cluster",
			func(in *rollout.Input) {
				in.Spec.Install = installedBy("one", "two")
				in.Placements = []rollout.Placement{placement("one", names[:5]...), placement("two", names[4:]...)}
				in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)})
				in.Spec.Install.Placements[1].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(2)})
			},
			[]string{names[0], names[4], names[5]},
			[]string{"one", "two"},
		},
		"per placement, the later one unsettled": {
			"it may select a cluster of the placements before it, so that they are held",
			func(in *rollout.Input) {
				in.Spec.Install = installedBy("one", "two", "three")
				in.Placements = []rollout.Placement{placement("one", names[:3]...), placement("two", names[3:6]...), placement("three", names[6:]...)}
				in.Placements[1].Settlement = rollout.Unsettled
			},
			names[6:],
			[]string{"one", "two", "three"},
		},
		"outside of every placement": {
			"installed clusters that no placement selects have no pace in OCM, and move at once",
			func(in *rollout.Input) {
				in.Placements[0] = placement("all", names[:6]...)
				in.Clusters[6].Installed, in.Clusters[7].Installed = rollout.HandMade, rollout.Ours // the latter leaves
				in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{MaxConcurrency: number(1)})
			},
			[]string{names[0], names[6]},
			[]string{"all", "unplaced"},
		},
		"stages": {
			"the first stage that selects a cluster has it; percentages are of its whole membership",
			func(in *rollout.Input) {
				in.Placements = append(in.Placements, placement("canary", names[1:5]...))
				in.Spec.Stages = []v1alpha1.Stage{
					{Name: "canary", Placement: ref("canary"), MaxConcurrency: new(percent("30%"))}, {Name: "rest", Placement: ref("all")},
				}
			},
			names[1:3],
			[]string{"canary", "rest"},
		},
		"a stage without maxConcurrency": {
			"clustersPerDecisionGroup of its placement",
			func(in *rollout.Input) {
				in.Placements[0].ClustersPerDecisionGroup = percent("50%")
				in.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Placement: ref("all")}}
			},
			names[:4],
			[]string{"everyone"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := rollouttest.NewFleet("v1", names...)
			f.Policy.Spec.Install = installedBy("all")
			f.Policy.Placements = []rollout.Placement{placement("all", names...)}
			f.SetTarget("v2")
			in := f.Input()
			tc.policy(&in)
			plan := planned(t, in)
			var moved, stages []string
			for _, a := range plan.Actions {
				if a.Kind == rollout.Move && a.Revision == "v2" {
					moved = append(moved, a.Cluster)
				}
			}
			for _, s := range plan.Stages {
				stages = append(stages, s.Name)
			}
			if diff := cmp.Diff(tc.moved, moved); diff != "" {
				t.Errorf("%s (-want +moved):\n%s%s", tc.reason, diff, plan.Message)
			}
			if diff := cmp.Diff(tc.stages, stages); diff != "" {
				t.Errorf("%s (-want +stages):\n%s", tc.reason, diff)
			}
		})
	}
}

func strategyOf(s clusterv1alpha1.RolloutStrategy) *v1alpha1.RolloutStrategy {
	return &v1alpha1.RolloutStrategy{
		Type: v1alpha1.StrategyType(s.Type), All: s.All, Progressive: s.Progressive, ProgressivePerGroup: s.ProgressivePerGroup,
	}
}

func rollingWith(ru v1alpha1.RollingUpdateWithPlacement) *v1alpha1.RolloutStrategy {
	return &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyRollingUpdateWithPlacement, RollingUpdateWithPlacement: &ru}
}

// TestAll_EachClusterHasARecord: strategy All reserves a slot for each cluster.
func TestAll_EachClusterHasARecord(t *testing.T) {
	f := paced(3, clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.All})
	f.SetTarget("v2")
	got, err := rollout.Records(planned(t, f.Input()).Ledger)
	if err != nil {
		t.Fatal(err)
	}
	var want []rollout.Record
	for _, name := range rollouttest.Names(3) {
		want = append(want, rollout.Record{
			Cluster: name, RecordKey: v1alpha1.RecordKey{Revision: "v2", Stage: "all", State: rollout.Admitted}, Admitted: f.Now, Since: f.Now,
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestFleetAtRestNeedsNoWrite: if every cluster runs the stable revision, there is nothing to write, to do
// or to wait for.
func TestFleetAtRestNeedsNoWrite(t *testing.T) {
	f := staged("v1", 6)
	plan := planned(t, f.Input())
	if plan.LedgerChanged || len(plan.Actions) > 0 || plan.Admitted > 0 || !plan.RecheckAt.IsZero() || plan.Succeeded {
		t.Errorf("something is left to do: %+v", plan)
	}
	if plan.Phase != v1alpha1.PhaseSucceeded || plan.Outcome != rollout.Success {
		t.Errorf("%s %s: %s", plan.Phase, plan.Outcome, plan.Message)
	}
}

// TestNoClusterToRollOutTo: without a cluster the content does not become stable, because
// no cluster verified it.
func TestNoClusterToRollOutTo(t *testing.T) {
	f := staged("", 2)
	clear(f.Clusters)
	f.SetTarget("v1")
	plan := planned(t, f.Input())
	if plan.Phase != v1alpha1.PhaseSucceeded || plan.Succeeded {
		t.Errorf("%s, earned: %t", plan.Phase, plan.Succeeded)
	}
}

// TestTimesAreRoundedUp: the ledger has seconds; a soak may be longer by that, never
// shorter.
func TestTimesAreRoundedUp(t *testing.T) {
	f := staged("v1", 4)
	f.SetTarget("v2")
	f.Now = f.Now.Add(300 * time.Millisecond)
	plan := planned(t, f.Input())
	records, err := rollout.Records(plan.Ledger)
	if err != nil || len(records) == 0 {
		t.Fatalf("%v, %+v", err, records)
	}
	if got := records[0].Admitted; got.Before(f.Now) || got.Nanosecond() != 0 {
		t.Errorf("admitted at %s, stored as %s", f.Now, got)
	}
}

// TestHistory_RefusesAStrategyThatItDoesNotKnow: a new strategy is added to both planners, or no test would judge it.
func TestHistory_RefusesAStrategyThatItDoesNotKnow(t *testing.T) {
	f := rollouttest.NewFleet("v1", c1)
	in := f.Input()
	plan, err := rollout.New(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: "New"}
	defer func() {
		if recover() == nil {
			t.Error("it was judged as strategy All")
		}
	}()
	_ = rollouttest.NewHistory().Check(rollouttest.StepOf(in, plan, nil))
}
