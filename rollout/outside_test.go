package rollout_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// unreadableCanary makes the canary's placement one that cannot be relied upon.
func unreadableCanary(s rollout.Settlement) change {
	return func(in *rollout.Input) {
		in.Placements = []rollout.Placement{{Namespace: "default", Name: "canary", Settlement: s}, in.Placements[1]}
	}
}

// leftOut takes clusters out of Placement all, which installs the add-on.
func leftOut(names ...string) change {
	return func(in *rollout.Input) {
		var left []string
		for _, c := range in.Clusters {
			if !slices.Contains(names, c.Name) {
				left = append(left, c.Name)
			}
		}
		in.Placements = []rollout.Placement{in.Placements[0], placement("all", left...)}
	}
}

// installedIn is how a cluster has the add-on.
func installedIn(how rollout.Installation) func(*rollout.Cluster) {
	return func(c *rollout.Cluster) { c.Installed = how }
}

// twoPaces installs by two placements, each with a pace of its own, which do not select
// cluster-01.
func twoPaces(in *rollout.Input) {
	in.Spec.Stages = nil
	in.Spec.Install = installedBy("east", "west")
	in.Placements = []rollout.Placement{placement("east", c2, c3), placement("west", c4, c5, c6)}
}

// TestPlacementThatCannotBeReadEndsNoClock: while the placement of a stage is missing, not
// decided or in motion, its clusters keep the soak, the deadline and the slot they have there.
func TestPlacementThatCannotBeReadEndsNoClock(t *testing.T) {
	for name, unreadable := range map[string]change{
		"missing": unreadableCanary(rollout.Missing), "undecided": unreadableCanary(rollout.Undecided),
		"in motion": unreadableCanary(rollout.Unsettled),
	} {
		for state, tc := range map[string]momentCase{
			"a soak": {
				reason: "1 of 10 minutes are over", change: []change{inSoak("v2", 2*time.Minute, time.Minute, c1), on(c1, verified("v2")), finished(c2)},
				want: map[string]string{c1: "Soaking v2", c3: "Waiting v1"},
			},
			"a deadline": {
				reason: "20 of 30 minutes are over",
				change: []change{
					func(in *rollout.Input) { in.Spec.Stages[1].ProgressDeadline = "10m" },
					admitted("v2", 20*time.Minute, c1), on(c1, runs("v2", rollout.HealthProgressing)),
				},
				want: map[string]string{c1: "Updating v2", c2: "Waiting v1"},
			},
			"a slot": {
				reason: "the deadline keeps it for 3h",
				change: []change{func(in *rollout.Input) { in.Spec.Stages[0].ProgressDeadline = "3h" }, lost(20*time.Minute, 15*time.Minute, c1)},
				want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"},
			},
		} {
			t.Run(name+", "+state, func(t *testing.T) {
				tc.change = append(tc.change, unreadable)
				checkMoment(t, tc)
			})
		}
	}
	t.Run("a pace per placement", func(t *testing.T) {
		checkMoment(t, momentCase{
			reason: "the later placement, which cannot be read, may still select the cluster",
			change: []change{
				func(in *rollout.Input) {
					in.Spec.Stages, in.Spec.Install = nil, installedBy("all", "canary")
					in.Spec.Install.Placements[1].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{
						RolloutConfig: clusterv1alpha1.RolloutConfig{MinSuccessTime: metav1.Duration{Duration: time.Hour}},
					})
				},
				inSoak("v2", 2*time.Minute, time.Minute, c1), on(c1, verified("v2")), inStage("canary"), unreadableCanary(rollout.Missing),
			},
			want: map[string]string{c1: "Soaking v2"},
		})
	})
}

// TestOlderStatusKeepsWhatTheWorksReport: a status from before the current content was admitted names older content.
// What the works say is not forgotten for it.
func TestOlderStatusKeepsWhatTheWorksReport(t *testing.T) {
	before := recorded(rollout.Done, "v1", 48*time.Hour, 47*time.Hour, c1, c2, c3, c4, c5, c6)
	for name, tc := range map[string]momentCase{
		"a failing canary": {
			reason: "it is a failure, and the stage does not pass",
			change: []change{before, on(c1, runs("v2", rollout.HealthFailed))},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"a healthy canary": {
			reason: "its soak starts now",
			change: []change{before, on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestReplacedCanariesAreBounded: content that cuts clusters off reaches no more than one
// substitute for each canary, although the next stage selects the lost ones.
func TestReplacedCanariesAreBounded(t *testing.T) {
	names := rollouttest.Names(12)
	f := staged("v1", 12)
	f.Policy.Placements = []rollout.Placement{placement("canary", names[0]), placement("all", names...)}
	f.SetTarget("v2")
	h, reached := rollouttest.NewHistory(), 0
	for range 60 {
		if _, err := f.Step(h); err != nil {
			t.Fatal(err)
		}
		reached = 0
		for _, name := range names {
			if f.Clusters[name].Running == "v2" {
				reached++
				f.Lose(name)
			}
		}
		f.Policy.Placements = []rollout.Placement{placement("canary", names[min(reached, 11)]), placement("all", names...)}
		f.Now = f.Now.Add(time.Minute)
	}
	if reached > 2 {
		t.Errorf("%d clusters have content that no cluster proved", reached)
	}
}

// TestClusterWhoseAddOnIsBeingDeleted: if a user deletes the ManagedClusterAddOn of a canary, the operator creates it
// again. Until then its stage or group does not complete.
func TestClusterWhoseAddOnIsBeingDeleted(t *testing.T) {
	grouped := func(pace clusterv1alpha1.RolloutStrategy) change {
		return func(in *rollout.Input) {
			in.Spec.Stages, in.Spec.Install = nil, installedBy("all")
			in.Spec.Install.Placements[0].RolloutStrategy = pace
			in.Placements = []rollout.Placement{grouped("all", group(0, "canary", c1), group(1, "rest", c2, c3, c4, c5, c6))}
		}
	}
	deleted := on(c1, installedIn(rollout.Deleting))
	want := map[string]string{c1: "Removing v1", c3: "Waiting v1"}
	for name, tc := range map[string]momentCase{
		"the only cluster of a mandatory group": {
			change: []change{deleted, grouped(progressive(clusterv1alpha1.RolloutProgressive{
				MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"}),
			}))}, want: want,
		},
		"the only cluster of the first group": {change: []change{deleted, grouped(perGroup(clusterv1alpha1.RolloutProgressivePerGroup{}))}, want: want},
		"the only canary that changes":        {change: []change{deleted, on(c2, verified("v1"), upToDate)}, want: want},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestMandatoryGroupThatSelectsNoCluster: a mandatory group without a cluster of the install
// set proves nothing. It is held, like a stage.
func TestMandatoryGroupThatSelectsNoCluster(t *testing.T) {
	pace := func(in *rollout.Input) {
		in.Spec.Stages, in.Spec.Install = nil, installedBy("all")
		in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{
			MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"}),
		})
		in.Placements = []rollout.Placement{grouped("all", group(0, "canary", c1), group(1, "rest", c2, c3, c4, c5, c6))}
	}
	gone := on(c1, func(c *rollout.Cluster) { c.Gone = true })
	const held = "held: no cluster of decision group all/group-canary, which is mandatory, is in the install set"
	for name, tc := range map[string]momentCase{
		"its ManagedCluster is terminating": {
			change: []change{pace, gone}, want: map[string]string{c2: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"its ManagedCluster disables installation": {
			change: []change{pace, on(c1, nothing, func(c *rollout.Cluster) { c.InstallDisabled = true })},
			want:   map[string]string{c1: "Ignored", c2: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"it proved the content before it was gone": {
			change: []change{finished(c1), inStage("all/group-canary"), pace, gone}, want: map[string]string{c2: "Admitted v2"},
		},
		"a revert": {change: []change{pace, gone, revert}, want: map[string]string{c2: "Admitted v2"}},
		"a first install": {
			change: append(forAll([]string{c1, c2, c3, c4, c5, c6}, func(name string) change { return on(name, nothing) }), pace, gone,
				func(in *rollout.Input) { in.Stable = "" }),
			want: map[string]string{c2: "Admitted v2"},
		},
		"another placement has its cluster": {
			change: []change{pace, func(in *rollout.Input) {
				in.Spec.Install.Placements = append(in.Spec.Install.Placements, v1alpha1.InstallPlacement{PlacementReference: ref("own")})
				in.Placements = append(in.Placements, placement("own", c1))
			}},
			want: map[string]string{c1: "Admitted v2", c2: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestShareThatRotatesKeepsClustersInFlight: a cluster in flight in the share holds a slot of it until it is
// decided, whichever clusters the placement selects by then.
func TestShareThatRotatesKeepsClustersInFlight(t *testing.T) {
	one := func(in *rollout.Input) {
		share(in)
		in.Spec.Strategy.RollingUpdateWithPlacement.MaxConcurrentlyUpdating = new(number(1))
		in.Placements[0] = placement("canary", c2)
	}
	for name, tc := range map[string]momentCase{
		"in flight": {
			change: []change{updating("v2", time.Minute, c1), inStage("share"), on(c1, runs("v2", rollout.HealthProgressing)), one},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"},
		},
		"in flight at content that was replaced": {
			change: []change{updating("v0", time.Minute, c1), inStage("share"), on(c1, runs("v0", rollout.HealthProgressing)), one},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
		},
		"back after it was parked, and another one joins": {
			change: []change{parked("v2", c1), inStage("share"), on(c1, runs("v2", rollout.HealthProgressing)), one, on(c3, nothing)},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1", c3: "Admitted v1"},
		},
		"done": {change: []change{finished(c1), inStage("share"), one}, want: map[string]string{c1: "Done v2", c2: "Admitted v2"}},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestShareIsOfWhatRunsOtherContent: a share protects the clusters that run other content, whatever pace the
// rollout began with. A share for which the target changes nothing has nothing to do.
func TestShareIsOfWhatRunsOtherContent(t *testing.T) {
	quarter := func(in *rollout.Input) {
		share(in)
		in.Placements[0] = placement("canary", c1, c2, c3, c4)
	}
	unproven := func(in *rollout.Input) { in.Stable = "" }
	for name, tc := range map[string]momentCase{
		"the rollout began with another strategy": {
			change: []change{updating("v2", time.Minute, c1), inStage("all"), on(c1, runs("v2", rollout.HealthProgressing)), quarter, unproven},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1", c5: "Waiting v1"},
		},
		"the first install failed where the target changes nothing": {
			change: []change{recorded(rollout.Failed, "v0", time.Hour, time.Minute, c1), inStage("all"), on(c1, runs("v0", rollout.HealthFailed), upToDate), quarter, unproven},
			want:   map[string]string{c1: "Failed v0", c2: "Waiting v1", c5: "Waiting v1"},
		},
		"the only other content is in flight to the target": {
			change: append(forAll([]string{c2, c3, c4, c5, c6}, func(name string) change { return on(name, nothing) }),
				admitted("v2", time.Minute, c1), inStage("all"), quarter, unproven),
			want: map[string]string{c1: "Admitted v2", c2: "Admitted v2", c5: "Admitted v2"},
		},
		"nothing runs on a cluster that the placement does not select, before the share is verified": {
			change: []change{updating("v2", time.Minute, c1), inStage("share"), on(c1, runs("v2", rollout.HealthProgressing)), on(c6, nothing), quarter, unproven},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1", c6: "Waiting"}, says: "share 0/1, 1 in flight",
		},
		"nothing runs on a cluster that the placement does not select, after that": {
			change: []change{finished(c1), inStage("share"), on(c6, nothing), quarter, unproven},
			want:   map[string]string{c1: "Done v2", c2: "Waiting v1", c6: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, says: "rest 0/5, 1 in flight",
		},
		"a cluster joins at the stable revision in the rest": {
			change: []change{finished(c1), inStage("share"), on(c6, nothing), quarter},
			want:   map[string]string{c2: "Waiting v1", c6: "Admitted v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Success,
			says: "1 of 6, rest held by strategy",
		},
		"nothing runs on a cluster that waits for a dependency": {
			change: []change{finished(c1), inStage("share"), on(c6, nothing, func(c *rollout.Cluster) { c.Waits = "waits for base" }), quarter, unproven},
			want:   map[string]string{c2: "Waiting v1", c6: "Waiting"}, phase: v1alpha1.PhaseProgressing,
		},
		"newer content was never written where other content runs, and half of it where nothing ran": {
			change: []change{
				recorded(rollout.Failed, "v0", time.Hour, time.Minute, c5, c6), on(c5, runs(rollout.Foreign, rollout.HealthVerified)), on(c6, runs(rollout.Mixed, rollout.HealthUnknown)),
				finished(c1), inStage("share"), quarter, unproven,
			},
			want: map[string]string{c2: "Waiting v1", c5: "Waiting foreign", c6: "Admitted v2"},
		},
		"the target changes nothing in the share": {
			change: []change{quarter, on(c1, upToDate), on(c2, upToDate), on(c3, upToDate), on(c4, upToDate)},
			want:   map[string]string{c1: "Unchanged v1", c5: "Waiting v1"}, phase: v1alpha1.PhaseHeld,
			says: "4 of 6, rest held by strategy", outcome: rollout.Success,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestFirstContentOfTheRest: until some content has succeeded, a cluster that ran nothing gets the target after the
// share. It is the strategy's to hold once content is verified there, and no earlier, also if the status was lost.
func TestFirstContentOfTheRest(t *testing.T) {
	edit := func(b rollouttest.Behaviour) func(*rollouttest.Fleet) {
		return func(f *rollouttest.Fleet) { f.Clusters[c6].Edited, f.Clusters[c6].Takes["v1"] = true, b }
	}
	healthy := rollouttest.Behaviour{After: time.Minute}
	heldAt := func(n string) string { return n + " of 6, rest held by strategy" }
	for name, tc := range map[string]struct {
		takes    rollouttest.Behaviour // v1, in the rest
		then     func(*rollouttest.Fleet)
		revision string
		writes   int // of that revision, in the rest
		says     string
	}{
		"its image never starts, and a commit mends that": {
			takes: rollouttest.Behaviour{Ending: rollouttest.Stuck}, then: commit("v2"), revision: "v2", writes: 1, says: heldAt("2"),
		},
		"the same, and the status was lost": {
			takes: rollouttest.Behaviour{Ending: rollouttest.Stuck}, then: both((*rollouttest.Fleet).LoseStatus, commit("v2")), revision: "v2", writes: 1, says: heldAt("2"),
		},
		"it failed, and a commit mends that": {
			takes: rollouttest.Behaviour{Ending: rollouttest.Fails}, then: commit("v2"), revision: "v2", writes: 1, says: heldAt("2"),
		},
		"it failed, and its inputs are corrected": {
			takes: rollouttest.Behaviour{Ending: rollouttest.Fails}, then: edit(healthy), revision: "v1", writes: 2, says: heldAt("2"),
		},
		"its inputs change after it was verified": {takes: healthy, then: edit(healthy), revision: "v1", writes: 2, says: heldAt("2")},
		"a commit follows after it was verified":  {takes: healthy, then: commit("v2"), revision: "v1", writes: 1, says: heldAt("1")},
		"the same, and the status was lost, too":  {takes: healthy, then: both((*rollouttest.Fleet).LoseStatus, commit("v2")), revision: "v1", writes: 1, says: heldAt("1")},
	} {
		t.Run(name, func(t *testing.T) {
			names := []string{c1, c2, c3, c4, c5, c6}
			f := rollouttest.NewFleet("", names...)
			for _, name := range names[:5] {
				f.Clusters[name].Installed, f.Clusters[name].Running = rollout.HandMade, rollout.Foreign
			}
			f.Policy.Spec.Install = installedBy("all")
			f.Policy.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("canary")})
			f.Policy.Placements = []rollout.Placement{placement("canary", c1, c2, c3, c4), placement("all", names...)}
			f.Clusters[c6].Takes["v1"] = tc.takes
			text, err := rollouttest.Scenario{Fleet: f, Until: 3 * time.Hour, Events: []event{
				at(0, "commit v1", commit("v1")), at(time.Hour, "then", tc.then),
			}}.Run(0)
			plan := planned(t, f.Input())
			if at := f.Clusters[c6]; err != nil || at.Running != tc.revision || at.Writes[tc.revision] != tc.writes || plan.Message != tc.says || plan.Outcome != rollout.Success {
				t.Errorf("%v: %s runs %s, written %v; %s: %s\n%s", err, c6, at.Running, at.Writes, plan.Outcome, plan.Message, text)
			}
			for _, name := range names[1:5] {
				if f.Clusters[name].Running != rollout.Foreign {
					t.Errorf("the strategy does not hold %s: it runs %s", name, f.Clusters[name].Running)
				}
			}
		})
	}
}

// TestUndecidedPlacementInstallsNothing: if OCM has not yet evaluated the current spec of a placement, its decisions
// may belong to an older spec.
func TestUndecidedPlacementInstallsNothing(t *testing.T) {
	in := rolling(6)
	on(c6, nothing)(&in)
	for settlement, want := range map[rollout.Settlement]int{rollout.Undecided: 0, rollout.Unsettled: 1, rollout.Settled: 1} {
		in.Placements = []rollout.Placement{in.Placements[0], placement("all", c1, c2, c3, c4, c5, c6)}
		in.Placements[1].Settlement = settlement
		installs := 0
		for _, a := range planned(t, in).Actions {
			if a.Kind == rollout.Install {
				installs++
			}
		}
		if installs != want {
			t.Errorf("%s: %d ManagedClusterAddOns are created, want %d", settlement, installs, want)
		}
	}
	in.Placements[1].Settlement = rollout.Undecided
	if c, _ := planned(t, in, admitted("v2", time.Minute, c6)).Why(c6); c.State != rollout.Admitted {
		t.Errorf("a cluster that was admitted before is %s, want Admitted", c.State)
	}
}

// TestFailureOfAGoneStageHaltsEveryTrack: dropping the stages for a pace per placement does
// not restart a rollout that failed, in any of the tracks.
func TestFailureOfAGoneStageHaltsEveryTrack(t *testing.T) {
	unselected := on(c1, func(c *rollout.Cluster) { c.Gone = true })
	for name, tc := range map[string]momentCase{
		"it failed": {
			change: []change{recorded(rollout.LeftFailed, "v2", time.Hour, time.Hour, c1), unselected, twoPaces},
			want:   map[string]string{c2: "Waiting v1", c4: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "halted in east: 1 failed (cluster-01: it failed before it left), 5 untouched",
		},
		"it left": {
			change: []change{recorded(rollout.Left, "v2", time.Hour, time.Hour, c1), unselected, twoPaces},
			want:   map[string]string{c2: "Waiting v1", c4: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"in the track of a placement": {
			change: []change{recorded(rollout.LeftFailed, "v2", time.Hour, time.Hour, c1), inStage("east/group-1"), unselected, twoPaces},
			want:   map[string]string{c2: "Waiting v1", c4: "Admitted v2"}, phase: v1alpha1.PhaseFailed,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestRecordsOfAGoneStageCountInTheFirst: a stage was renamed. What its clusters did that no stage
// selects now counts in the first stage, under the budget and the members of that one.
func TestRecordsOfAGoneStageCountInTheFirst(t *testing.T) {
	early := func(state rollout.State, do ...func(*rollout.Cluster)) change {
		return func(in *rollout.Input) {
			recorded(state, "v2", time.Hour, time.Hour, c1)(in)
			inStage("early")(in)
			on(c1, do...)(in)
			rotated(c2)(in)
			staging(c3, c4, c5, c6)(in)
		}
	}
	stuck, failing := runs("v2", rollout.HealthProgressing), runs("v2", rollout.HealthFailed)
	tolerant := func(in *rollout.Input) { in.Spec.Stages[0].MaxFailures = new(number(1)) }
	all := func(in *rollout.Input) { in.Spec.Stages, in.Placements[1] = nil, placement("all", c2, c3, c4, c5, c6) }
	unselected := on(c1, func(c *rollout.Cluster) { c.Gone = true })
	for name, tc := range map[string]momentCase{
		"it failed, and the budget allows it": {
			reason: "the other canary is tried",
			change: []change{tolerant, early(rollout.Failed, failing)},
			want:   map[string]string{c1: "Failed v2", c2: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"it failed, and the budget is spent": {
			change: []change{early(rollout.Failed, failing)},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"it is parked": {
			reason: "it holds no slot, and the other canary is tried",
			change: []change{early(rollout.Parked, stuck, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"it left": {
			reason: "the other canary is tried, as in a stage that kept its name",
			change: []change{early(rollout.Left), unselected},
			want:   map[string]string{c2: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"it left, and the other canary is done": {
			change: []change{early(rollout.Left), unselected, finished(c2)},
			want:   map[string]string{c2: "Done v2", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"it is in flight": {
			reason: "it holds the slot of the canary",
			change: []change{early(rollout.Updating, stuck), recorded(rollout.Updating, "v2", time.Minute, time.Minute, c1), inStage("early")},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"it is done": {
			reason: "it proves the content",
			change: []change{early(rollout.Done, verified("v2")), on(c2, offline)},
			want:   map[string]string{c2: "Parked v1", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"it left, and strategy All moves every cluster at once": {
			reason: "the content was not verified anywhere",
			change: []change{early(rollout.Left), unselected, all},
			want:   map[string]string{c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "halted in all: 1 cluster left, none verified",
		},
		"it left, strategy All moves every cluster at once, and one of them is done": {
			change: []change{early(rollout.Left), unselected, finished(c2), all},
			want:   map[string]string{c2: "Done v2", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestJoinersTheTargetRefuses: the target has no value for clusters that join. They start at the
// stable revision like other joiners, each in a slot.
func TestJoinersTheTargetRefuses(t *testing.T) {
	refused := func(c *rollout.Cluster) { nothing(c); c.Refused = "no value for GREETING" }
	joiners := func(in *rollout.Input) {
		canaryDone(in)
		for _, name := range []string{c3, c4, c5} {
			on(name, refused)(in)
		}
	}
	for name, tc := range map[string]momentCase{
		"the slot is taken": {
			change: []change{joiners}, want: map[string]string{c3: "Waiting", c4: "Waiting", c5: "Waiting", c6: "Admitted v2"},
		},
		"the slot is free": {
			reason: "one of them is admitted",
			change: []change{joiners, finished(c6)}, want: map[string]string{c3: "Admitted v1", c4: "Waiting", c5: "Waiting"},
		},
		"one of them is in flight": {
			reason: "it holds its slot until the stable revision is verified on it",
			change: []change{joiners, finished(c6), admitted("v1", time.Minute, c3), on(c3, runs("v1", rollout.HealthProgressing))},
			want:   map[string]string{c3: "Updating v1", c4: "Waiting", c5: "Waiting"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestClusterThatFailsForCertainFailsFirst: it is known before that the target cannot be written to the cluster. If
// others were admitted together with it, each retry and each lost status would move one more cluster above the budget.
func TestClusterThatFailsForCertainFailsFirst(t *testing.T) {
	together := func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(3)) }
	refused := on(c4, func(c *rollout.Cluster) { c.Refused = "no value for GREETING" })
	blocked := on(c4, func(c *rollout.Cluster) { c.Blocked = "hosting cluster hub-2 does not exist" })
	retry := func(in *rollout.Input) {
		in.Orders = []rollout.Order{{Verb: v1alpha1.OrderRetry, Clusters: []string{c4}}}
	}
	alone := map[string]string{c3: "Waiting v1", c4: "Admitted v1", c5: "Waiting v1", c6: "Waiting v1"}
	for name, tc := range map[string]momentCase{
		"refused":                  {change: []change{canaryDone, together, refused}, want: alone},
		"blocked":                  {change: []change{canaryDone, together, blocked}, want: alone},
		"refused again by a retry": {change: []change{canaryDone, together, refused, recorded(rollout.NotWritten, "v2", time.Hour, time.Hour, c4), retry}, want: alone},
		"retargeted": {
			reason: "it was in flight with other content",
			change: []change{canaryDone, together, refused, admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c3: "Waiting v1", c4: "Admitted v0", c5: "Waiting v1", c6: "Waiting v1"},
		},
		"beside one that failed": {
			reason: "what failed gets the content that may mend it",
			change: []change{canaryDone, together, refused, on(c5, runs("v1", rollout.HealthFailed))},
			want:   map[string]string{c3: "Waiting v1", c4: "Admitted v1", c5: "Admitted v2", c6: "Waiting v1"},
		},
		"in a revert": {
			reason: "no cluster waits for it on bad content",
			change: []change{canaryDone, together, refused, revert},
			want:   map[string]string{c3: "Admitted v2", c4: "Parked v1", c5: "Admitted v2", c6: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestJoinerProvesNothing: a cluster on its way to the stable revision proves nothing for a
// target that changes nothing for it.
func TestJoinerProvesNothing(t *testing.T) {
	checkMoment(t, momentCase{
		reason: "the only canary that changes is not available",
		change: []change{admitted("v1", time.Minute, c1), on(c1, verified("v1"), upToDate), on(c2, offline)},
		want:   map[string]string{c1: "Unchanged v1", c3: "Waiting v1"},
	})
}

// TestClustersThatLeaveHoldNoStage: a cluster that is not installed any more is given nothing. No
// stage waits for it, and a revert does not wait for a slot that it has.
func TestClustersThatLeaveHoldNoStage(t *testing.T) {
	back := []change{revert, func(in *rollout.Input) { in.Stable = "v2" }}
	bad := func(names ...string) change {
		return func(in *rollout.Input) {
			recorded(rollout.Failed, "v3", time.Hour, time.Hour, names...)(in)
			for _, name := range names {
				on(name, runs("v3", rollout.HealthFailed))(in)
			}
		}
	}
	leaves := on(c1, selectedBefore)
	flying := []change{admitted("v3", time.Minute, c1), on(c1, runs("v3", rollout.HealthProgressing))}
	for name, tc := range map[string]momentCase{
		"a canary with a record of the last success": {
			change: []change{finished(c2), recorded(rollout.Done, "v1", 48*time.Hour, 47*time.Hour, c1), leaves, leftOut(c1)},
			want:   map[string]string{c3: "Admitted v2"},
		},
		"a failed canary, in a revert": {
			change: append(back, bad(c1, c3, c4), on(c2, verified("v2")), leaves, leftOut(c1)), want: map[string]string{c3: "Admitted v2"},
		},
		"a canary in flight, in a revert": {
			change: append(append(back, bad(c2, c3)), append(flying, leaves, leftOut(c1))...), want: map[string]string{c2: "Admitted v2"},
		},
		"a canary in flight that no stage selects, in a revert": {
			reason: "it is installed, so that it goes back as well, in the slot that it has",
			change: append(append(back, bad(c2, c3, c4, c5, c6)), append(flying, rotated(c2), staging(c3, c4, c5, c6))...),
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v3"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestHandMadeClustersCount: with a pace per placement, a cluster that no placement selects
// moves at once, and counts.
func TestHandMadeClustersCount(t *testing.T) {
	handMade := on(c1, installedIn(rollout.HandMade))
	others := finished(c2, c3, c4, c5, c6)
	for name, tc := range map[string]momentCase{
		"it failed": {
			change: []change{others, recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed)), handMade, twoPaces},
			want:   map[string]string{c1: "Failed v2"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"it is in flight": {
			change: []change{others, admitted("v2", time.Minute, c1), on(c1, runs("v2", rollout.HealthProgressing)), handMade, twoPaces},
			want:   map[string]string{c1: "Updating v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"it is done, and its inputs changed": {
			change: []change{finished(c1, c2, c3, c4, c5, c6), on(c1, edited), handMade, twoPaces},
			want:   map[string]string{c1: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestProofIsKeptWhicheverStageSelectsTheCluster: verified and failed clusters count, whichever stage selects them now.
func TestProofIsKeptWhicheverStageSelectsTheCluster(t *testing.T) {
	for name, tc := range map[string]momentCase{
		"the canaries are done, and the last stage selects them now": {
			reason: "the stage without clusters is not one without proof",
			change: []change{canaryDone, rotated()}, want: map[string]string{c3: "Admitted v2"},
		},
		"a failure of a track that has groups now": {
			reason: "it counts in the first of them",
			change: []change{
				recorded(rollout.LeftFailed, "v2", time.Hour, time.Hour, c1), inStage("east"), on(c1, func(c *rollout.Cluster) { c.Gone = true }), twoPaces,
				func(in *rollout.Input) {
					in.Placements[0] = grouped("east", group(0, "x", c2), group(1, "y", c3))
					in.Spec.Install.Placements[0].RolloutStrategy = progressive(clusterv1alpha1.RolloutProgressive{
						MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "x"}),
					})
				},
			},
			want: map[string]string{c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"a lost cluster that is back after its slot ended": {
			reason: "it is in flight again, with a new deadline",
			change: []change{lost(40*time.Minute, 35*time.Minute, c1), on(c1, runs("v2", rollout.HealthUnknown), available)},
			want:   map[string]string{c1: "Updating v2"}, phase: v1alpha1.PhaseProgressing,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestShareTakesFailedClustersFirst: the share of a fix is filled with the clusters that need it.
func TestShareTakesFailedClustersFirst(t *testing.T) {
	checkMoment(t, momentCase{
		reason: "cluster-05 failed with the content before",
		change: []change{
			share, func(in *rollout.Input) { in.Placements[0] = placement("canary", c1, c2, c3, c4, c5, c6) },
			recorded(rollout.Failed, "v0", time.Hour, time.Hour, c5), inStage("share"), on(c5, runs("v0", rollout.HealthFailed)),
		},
		want: map[string]string{c5: "Admitted v2", c1: "Admitted v2", c2: "Waiting v1"},
	})
}

// TestFailureOutlivesItsWorks: a cluster that failed is a failure whatever its works are
// replaced with by hand. Only one that was never given the content is admitted again.
func TestFailureOutlivesItsWorks(t *testing.T) {
	failed, notWritten := recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), recorded(rollout.NotWritten, "v2", time.Hour, time.Hour, c1)
	blocked := func(c *rollout.Cluster) { c.Blocked = "no value for GREETING" }
	for name, tc := range map[string]momentCase{
		"restored by hand to the content before": {
			change: []change{failed, on(c1, verified("v1"))}, want: map[string]string{c1: "Admitted v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"its works cannot be written": {
			change: []change{notWritten, on(c1, verified("v1"), blocked)}, want: map[string]string{c1: "Failed v1", c2: "Waiting v1"},
			phase: v1alpha1.PhaseFailed, says: "cluster-01: no value for GREETING",
		},
		"its works can be written again": {
			change: []change{notWritten, on(c1, verified("v1"))}, want: map[string]string{c1: "Admitted v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"its works can be written again, and it runs nothing of the add-on": {
			change: []change{notWritten, on(c1, nothing)}, want: map[string]string{c1: "Waiting", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"its works can be written again, and it is not available": {
			change: []change{notWritten, on(c1, verified("v1"), offline)}, want: map[string]string{c1: "Parked v1", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"its works can be written again, and it is in no stage": {
			change: []change{notWritten, on(c1, verified("v1")), rotated(c2), staging(c3, c4, c5, c6)},
			want:   map[string]string{c1: "Unstaged v1", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"it left, and its works could be written": {
			change: []change{notWritten, on(c1, verified("v1"), installedIn(rollout.Deleting))},
			want:   map[string]string{c1: "Removing v1", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestDeadlineCountsFromTheState: a deadline is how long a cluster may be Updating, or Lost.
// What it was before does not count.
func TestDeadlineCountsFromTheState(t *testing.T) {
	stuck := runs("v2", rollout.HealthProgressing)
	for name, tc := range map[string]momentCase{
		"the operator was away between admission and write": {
			change: []change{admitted("v2", 40*time.Minute, c1)}, want: map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
		},
		"a cluster returns just before its deadline": {
			change: []change{lost(29*time.Minute, time.Minute, c1), on(c1, stuck, available)}, want: map[string]string{c1: "Updating v2"},
		},
		"a cluster is not healthy for a moment in a soak that outlasts the deadline": {
			change: []change{inSoak("v2", 39*time.Minute, 9*time.Minute, c1), on(c1, stuck)}, want: map[string]string{c1: "Updating v2"},
		},
		"a cluster crashes again and again, for deadline and soak together": {
			change: []change{inSoak("v2", 40*time.Minute, time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"a cluster is lost in a soak that outlasts the deadline": {
			change: []change{inSoak("v2", 39*time.Minute, 9*time.Minute, c1), on(c1, stuck, offline)}, want: map[string]string{c1: "Lost v2", c2: "Waiting v1"},
		},
		"a cluster is lost again and again, for deadline and soak together": {
			change: []change{recorded(rollout.Updating, "v2", 40*time.Minute, time.Minute, c1), on(c1, stuck, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Admitted v2"},
		},
		"its inputs changed while it was late": {
			change: []change{updating("v2", 31*time.Minute, c1), on(c1, stuck, edited)},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
		},
		"it never became healthy": {
			change: []change{updating("v2", 30*time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestRecordsEndWithTheRollout: when a rollout has succeeded, the ledger drops the records of
// clusters that left with other content. Until then their failures count.
func TestRecordsEndWithTheRollout(t *testing.T) {
	failedBefore := []change{recorded(rollout.LeftFailed, "v0", 48*time.Hour, 47*time.Hour, c1), on(c1, nothing), leftOut(c1)}
	for name, tc := range map[string]struct {
		done []string
		want bool
	}{
		"it succeeds":       {done: []string{c2, c3, c4, c5, c6}},
		"it is in progress": {done: []string{c2, c3}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), append(slices.Clone(failedBefore), finished(tc.done...))...)
			records, err := rollout.Records(plan.Ledger)
			if err != nil {
				t.Fatal(err)
			}
			kept := slices.ContainsFunc(records, func(r rollout.Record) bool { return r.Cluster == c1 })
			if kept != tc.want {
				t.Errorf("phase %s: the record is kept: %t, want %t", plan.Phase, kept, tc.want)
			}
		})
	}
}

// A full ledger has no room for the record of a cluster that runs the target and that no stage selects.
func TestLedger_FullHasNoRoomForAnAdoptedClusterInNoStage(t *testing.T) {
	plan := planned(t, rolling(6), on("cluster-06", verified("v2")), func(in *rollout.Input) {
		in.Placements[1] = placement("all", rollouttest.Names(5)...)
		in.Spec.Install, in.Spec.ClusterLabelSelector = nil, nil
		in.Spec.Stages[0].MinSuccessTime.Duration = 0
		in.LedgerLimit = 10
	})
	if c, ok := plan.Why("cluster-06"); !ok || c.Revision != "v2" || len(plan.Ledger.Records) > 0 {
		t.Errorf("%+v, ledger %+v", c, plan.Ledger)
	}
}
