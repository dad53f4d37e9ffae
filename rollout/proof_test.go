package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// unplace removes clusters from both placements, as OCM does with clusters that are not available.
func unplace(f *rollouttest.Fleet, gone ...string) {
	for i, pl := range f.Policy.Placements {
		var left []string
		for _, name := range pl.Groups[0].Clusters {
			if !slices.Contains(gone, name) {
				left = append(left, name)
			}
		}
		f.Policy.Placements[i] = placement(pl.Name, left...)
	}
}

// play runs events on a fleet until a time after the first commit and returns the transcript.
func play(t *testing.T, f *rollouttest.Fleet, until time.Duration, events ...event) string {
	t.Helper()
	transcript, err := rollouttest.Scenario{Fleet: f, Until: until, Events: events}.Run(0)
	if err != nil {
		t.Fatalf("%v\n%s", err, transcript)
	}
	return transcript
}

// expect fails unless the rollout of a fleet is in the phase with that part of its message.
func expect(t *testing.T, f *rollouttest.Fleet, phase v1alpha1.Phase, message, transcript string) {
	t.Helper()
	plan := planned(t, f.Input())
	if plan.Phase != phase || !strings.Contains(plan.Message, message) {
		t.Errorf("got %s: %s, want %s: ...%s...\n%s", plan.Phase, plan.Message, phase, message, transcript)
	}
}

// expectNextCommit fails unless the next commit succeeds on the fleet.
func expectNextCommit(t *testing.T, f *rollouttest.Fleet) {
	t.Helper()
	commit("v3")(f)
	expect(t, f, v1alpha1.PhaseSucceeded, "", play(t, f, 4*day))
}

// TestCanaryThatLeavesProvesNothing: if every canary leaves before it is verified, no other
// cluster gets the content, whatever the placements select by then.
func TestCanaryThatLeavesProvesNothing(t *testing.T) {
	canary := []string{"cluster-01", "cluster-02"}
	for name, tc := range map[string]struct {
		behaviour rollouttest.Behaviour
		wait      time.Duration
		leave     func(*rollouttest.Fleet)
		message   string
	}{
		"failed, dropped and uninstalled, and its stage renamed": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute},
			wait:      10 * time.Minute,
			leave: func(f *rollouttest.Fleet) {
				unplace(f, canary...)
				for _, name := range canary {
					f.Clusters[name].Installed = rollout.Deleting
				}
				f.Policy.Spec.Stages[0].Name = "first"
			},
			message: "halted in first: 1 failed",
		},
		"in flight, uninstalled, and its stage renamed": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				unplace(f, canary...)
				for _, name := range canary {
					delete(f.Clusters, name)
				}
				f.Policy.Spec.Stages[0].Name = "first"
			},
			message: "left, none verified and soaked (cluster-01",
		},
		"lost in flight, and dropped by their placements": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				lose(canary...)(f)
				unplace(f, canary...)
			},
			message: "left, none verified and soaked (cluster-01",
		},
		"moved from the canary's placement to the others in flight": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				f.Policy.Placements[0] = placement("canary")
			},
			message: "halted in canary: 1 failed",
		},
		"moved to the others in flight, where failures are allowed": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				f.Policy.Placements[0] = placement("canary", "cluster-03")
				f.Clusters["cluster-03"].Alike["v2"] = "v1"
				f.Policy.Spec.Stages[1].MaxFailures = new(number(5))
			},
			message: "halted in canary: 1 failed (cluster-01",
		},
		"failed, and moved to the others": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute},
			wait:      10 * time.Minute,
			leave: func(f *rollouttest.Fleet) {
				f.Policy.Placements[0] = placement("canary", "cluster-02")
			},
			message: "halted in canary: 1 failed (cluster-01",
		},
		"moved to the others in flight, and lost": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				f.Policy.Spec.Stages[0].WhenEmpty = v1alpha1.WhenEmptyPass
				f.Policy.Placements[0] = placement("canary")
				lose(canary...)(f)
			},
			message: "1 cluster left, none verified and soaked (cluster-01",
		},
		"failed, lost, and dropped": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute},
			wait:      10 * time.Minute,
			leave: func(f *rollouttest.Fleet) {
				lose(canary...)(f)
				unplace(f, canary...)
			},
			message: "halted in canary: 1 failed",
		},
		"in flight, and uninstalled by hand": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			wait:      time.Minute,
			leave: func(f *rollouttest.Fleet) {
				unplace(f, canary...)
				for _, name := range canary {
					delete(f.Clusters, name)
				}
			},
			message: "left, none verified and soaked (cluster-01",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := staged("v1", 10)
			take(tc.behaviour, "v2", canary...)(f)
			transcript := play(t, f, 2*day, at(0, "commit v2", commit("v2")), at(tc.wait, name, tc.leave))
			expect(t, f, v1alpha1.PhaseFailed, tc.message, transcript)
			for _, c := range f.Input().Clusters {
				if c.Running == "v2" && !slices.Contains(canary, c.Name) {
					t.Errorf("%s got content that no canary verified\n%s", c.Name, transcript)
				}
			}
			f.Policy.Placements[0] = placement("canary", "cluster-03") // an empty canary would hold the next commit
			expectNextCommit(t, f)
		})
	}
}

// TestStageWaitsForItsClustersThatAnotherStageSelects: the placement of the canary drops a cluster in its soak. Until
// the soak has ended, no other cluster gets the content, although the placement is empty and may be, or the content
// changes nothing for the cluster that it selects instead.
func TestStageWaitsForItsClustersThatAnotherStageSelects(t *testing.T) {
	for name, canary := range map[string][]string{"empty": nil, "unchanged": {"cluster-05"}} {
		t.Run(name, func(t *testing.T) {
			f := staged("v1", 6)
			f.Policy.Placements[0] = placement("canary", "cluster-01")
			f.Policy.Spec.Stages[0].WhenEmpty = v1alpha1.WhenEmptyPass
			f.Policy.Spec.Stages[1].MaxConcurrency = new(percent("100%"))
			f.Clusters["cluster-05"].Alike["v2"] = "v1"
			transcript := play(t, f, day, at(0, "commit v2", commit("v2")), at(2*time.Minute, name, func(f *rollouttest.Fleet) {
				f.Policy.Placements[0] = placement("canary", canary...)
			}))
			expect(t, f, v1alpha1.PhaseSucceeded, "6/6 updated", transcript)
			for _, text := range []string{
				", waits for 1 that another stage selects now (cluster-01)\n",
				"00:11:00 Progressing: everyone",
			} {
				if !strings.Contains(transcript, text) {
					t.Errorf("%q is missing:\n%s", text, transcript)
				}
			}
			if early, _, _ := strings.Cut(transcript, "00:11:00"); strings.Count(early, " move ") != 1 || strings.Contains(early, "everyone") {
				t.Errorf("content that has not soaked goes further:\n%s", transcript)
			}
		})
	}
}

// TestClusterThatComesAndGoesLosesItsSlot: a canary that is lost and returns for ever, and is never
// verified, does not keep the only slot of its stage for ever.
func TestClusterThatComesAndGoesLosesItsSlot(t *testing.T) {
	f := staged("v1", 4)
	f.Policy.Placements[0] = placement("canary", "cluster-01", "cluster-02")
	take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", "cluster-01")(f)
	events := []event{at(0, "commit v2", commit("v2"))}
	for i := range 12 {
		start := time.Duration(i) * 10 * time.Minute
		events = append(events, at(start+2*time.Minute, "cluster-01 is lost", lose("cluster-01")), at(start+6*time.Minute, "it returns", restore("cluster-01")))
	}
	transcript, err := rollouttest.Scenario{Fleet: f, Until: 2 * time.Hour, Events: events}.Run(0)
	if err != nil {
		t.Fatalf("%v\n%s", err, transcript)
	}
	if !strings.Contains(transcript, "00:42:00 Progressing: canary 0/2, 1 in flight, 1 not available\n         move        cluster-02 -> v2") {
		t.Errorf("after 40 minutes, deadline and soak together, it is not parked:\n%s", transcript)
	}
}

// TestSubstitutesOfLostCanariesAreBounded: a placement that replaces each canary that
// leaves gives the content to at most as many substitutes as there are canaries.
func TestSubstitutesOfLostCanariesAreBounded(t *testing.T) {
	f := staged("v1", 10)
	f.Policy.Placements[0] = placement("canary", "cluster-01")
	take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", rollouttest.Names(10)...)(f)
	events := []event{at(0, "commit v2", commit("v2"))}
	for i, name := range rollouttest.Names(6) {
		substitute := rollouttest.Names(6)[(i+1)%6]
		events = append(events, at(time.Duration(i+1)*5*time.Minute, name+" goes", func(f *rollouttest.Fleet) {
			unplace(f, name)
			delete(f.Clusters, name)
			f.Policy.Placements[0] = placement("canary", substitute)
		}))
	}
	transcript := play(t, f, day, events...)
	for _, text := range []string{
		"Progressing: canary 0/1, 1 in flight, 1 cluster left, none verified (cluster-01)",
		"Failed: halted in canary: 2 clusters left, none verified and soaked (cluster-01, cluster-02)",
	} {
		if !strings.Contains(transcript, text) {
			t.Errorf("%q is missing:\n%s", text, transcript)
		}
	}
	if strings.Contains(transcript, "move        cluster-03") {
		t.Errorf("the third cluster got it:\n%s", transcript)
	}
}

// TestDeletedPaceDoesNotRestartAFailedRollout: if the file with the stages is deleted, the pace is
// strategy All, which tolerates other failures. Content that failed in a stage is not rolled out
// further.
func TestDeletedPaceDoesNotRestartAFailedRollout(t *testing.T) {
	drop := func(f *rollouttest.Fleet) { f.Policy.Spec.Stages = nil }
	fails := rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}
	vanish := func(f *rollouttest.Fleet) {
		unplace(f, "cluster-01", "cluster-02")
		delete(f.Clusters, "cluster-01")
		delete(f.Clusters, "cluster-02")
	}
	for name, tc := range map[string]struct {
		behaviour rollouttest.Behaviour
		events    []event
		phase     v1alpha1.Phase
		message   string
		untouched int
	}{
		"the canary failed": {
			behaviour: fails,
			events:    []event{at(10*time.Minute, "the file goes", drop)},
			phase:     v1alpha1.PhaseFailed, message: "halted in all: 1 failed (cluster-01", untouched: 9,
		},
		"every canary left": {
			behaviour: rollouttest.Behaviour{Ending: rollouttest.Stuck},
			events:    []event{at(time.Minute, "they leave", vanish), at(10*time.Minute, "the file goes", drop)},
			phase:     v1alpha1.PhaseFailed, message: "1 cluster left, none verified and soaked (cluster-01)", untouched: 8,
		},
		"the canary failed, and is verified later": {
			behaviour: rollouttest.Behaviour{After: 40 * time.Minute},
			events:    []event{at(35*time.Minute, "the file goes", drop)},
			phase:     v1alpha1.PhaseSucceeded, message: "10/10 updated",
		},
		"the canary is still in flight": {
			behaviour: rollouttest.Behaviour{After: 20 * time.Minute},
			events:    []event{at(10*time.Minute, "the file goes", drop)},
			phase:     v1alpha1.PhaseSucceeded, message: "10/10 updated",
		},
		"it failed under All, and a cluster joins": {
			behaviour: fails,
			events: []event{
				at(0, "no stages", drop),
				at(time.Hour, "cluster-11 joins", func(f *rollouttest.Fleet) {
					f.Join("cluster-11")
					f.Policy.Placements[1] = placement("all", rollouttest.Names(11)...)
				}),
			},
			phase: v1alpha1.PhaseFailed, message: "failed in all: 1 failed (cluster-01: Deployment/agent: ProgressDeadlineExceeded), 0 untouched",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := staged("v1", 10)
			take(tc.behaviour, "v2", "cluster-01")(f)
			transcript := play(t, f, 2*day, append([]event{at(0, "commit v2", commit("v2"))}, tc.events...)...)
			expect(t, f, tc.phase, tc.message, transcript)
			untouched := 0
			for _, c := range f.Input().Clusters {
				if c.Running == "v1" {
					untouched++
				}
			}
			if untouched != tc.untouched {
				t.Errorf("%d clusters are untouched, want %d\n%s", untouched, tc.untouched, transcript)
			}
			expectNextCommit(t, f)
		})
	}
}

// TestGroupThatDisappearsHoldsTheNextOne: a placement that drops the clusters of a group in
// flight drops the group. The next group does not start.
func TestGroupThatDisappearsHoldsTheNextOne(t *testing.T) {
	names := rollouttest.Names(6)
	aa, bb, cc := group(0, "aa", names[:2]...), group(1, "bb", names[2:4]...), group(2, "cc", names[4:]...)
	for name, tc := range map[string]struct {
		leave   func(*rollouttest.Fleet)
		back    bool
		phase   v1alpha1.Phase
		message string
	}{
		"dropped and lost": {
			leave: lose(names[:2]...), phase: v1alpha1.PhaseFailed, message: "halted in all/group-bb: 2 clusters left, none verified and soaked (cluster-01, cluster-02)",
		},
		"dropped, lost and deleted": {
			leave: func(f *rollouttest.Fleet) {
				delete(f.Clusters, names[0])
				delete(f.Clusters, names[1])
			},
			phase: v1alpha1.PhaseFailed, message: "halted in all/group-bb: 2 clusters left, none verified and soaked (cluster-01, cluster-02)",
		},
		"back in time": {leave: lose(names[:2]...), back: true, phase: v1alpha1.PhaseSucceeded, message: "6/6 updated"},
	} {
		t.Run(name, func(t *testing.T) {
			pace := clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: "30m", MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}}}
			f := paced(6, perGroup(pace), aa, bb, cc)
			take(rollouttest.Behaviour{After: 2 * time.Minute}, "v2", names[:2]...)(f)
			decided := f.Policy.Placements[0]
			events := []event{at(0, "commit v2", commit("v2")), at(time.Minute, "aa goes", func(f *rollouttest.Fleet) {
				tc.leave(f)
				f.Policy.Placements[0].Groups = []rollout.Group{bb, cc}
			})}
			if tc.back {
				events = append(events, at(3*time.Minute, "aa is back", func(f *rollouttest.Fleet) {
					restore(names[:2]...)(f)
					f.Policy.Placements[0] = decided
				}))
			}
			transcript := play(t, f, day, events...)
			expect(t, f, tc.phase, tc.message, transcript)
			if moved := strings.Contains(transcript, "move        cluster-03"); moved == (tc.phase == v1alpha1.PhaseFailed) {
				t.Errorf("the second group got the content: %t\n%s", moved, transcript)
			}
		})
	}
}

// TestHaltOfAMandatoryGroupNamesItsOwnFailures: the budget of the other clusters allows theirs.
func TestHaltOfAMandatoryGroupNamesItsOwnFailures(t *testing.T) {
	names := rollouttest.Names(8)
	f := paced(8, progressive(clusterv1alpha1.RolloutProgressive{
		RolloutConfig:           clusterv1alpha1.RolloutConfig{MaxFailures: percent("50%")},
		MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupName: "canary"}),
		MaxConcurrency:          number(1),
	}), group(0, "canary", names[:2]...), group(1, "", names[2:]...))
	take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}, "v2", c3, c4)(f)
	transcript := play(t, f, day, at(0, "commit v2", commit("v2")), at(4*time.Minute, "the group selects cluster-04, which failed", func(f *rollouttest.Fleet) {
		f.Policy.Placements[0] = grouped("all", group(0, "canary", c1, c2, c4), group(1, "", c3, c5, c6, names[6], names[7]))
	}))
	expect(t, f, v1alpha1.PhaseFailed, "halted in all/group-canary: 1 failed (cluster-04: Deployment/agent: ProgressDeadlineExceeded), 3 untouched", transcript)
}

// TestCanaryThatIsVerifiedAndLeavesIsNamed: the stage names the canary in the plan in which the
// soak ends.
func TestCanaryThatIsVerifiedAndLeavesIsNamed(t *testing.T) {
	f := staged("v1", 4)
	f.Policy.RemovalGrace = time.Hour
	f.Policy.Placements[0] = placement("canary", "cluster-01")
	var plan rollout.Plan
	transcript := play(
		t, f, 2*day,
		at(0, "commit v2", commit("v2")),
		at(5*time.Minute, "the canary leaves", func(f *rollouttest.Fleet) { unplace(f, "cluster-01") }),
		at(11*time.Minute, "its soak ends", func(f *rollouttest.Fleet) { plan, _ = rollout.New(f.Input()) }),
	)
	for _, s := range rollout.Summarise(plan) {
		if s.Context == "canary" && (s.State != rollout.Success || s.Description != "0/0, 1 verified and no longer selected (cluster-01)") {
			t.Errorf("got %s: %s\n%s", s.State, s.Description, transcript)
		}
	}
	if len(plan.Stages) == 0 || plan.Stages[0].Phase != rollout.StageComplete {
		t.Errorf("got %+v\n%s", plan.Stages, transcript)
	}
}
