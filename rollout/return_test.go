package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// everyoneOneByOne is a fleet at v0 with one stage of all clusters.
func everyoneOneByOne(clusters, failures, limit int) *rollouttest.Fleet {
	f := staged("v0", clusters)
	f.Policy.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Placement: ref("all"), MaxConcurrency: new(number(limit)), MaxFailures: new(number(failures)), ProgressDeadline: "10m"}}
	return f
}

// A cluster that failed with the stable revision, and for which the target is the same, fails with the
// target as well: it is no updated cluster, and spends the target's budget.
func TestFailureWithTheStableRevisionCounts(t *testing.T) {
	for name, c := range map[string]struct {
		lost   bool // it is lost before it fails
		change func(*rollouttest.Fleet)
		phase  v1alpha1.Phase
	}{
		"within the budget": {phase: v1alpha1.PhaseSucceeded},
		"beyond a lower budget": {phase: v1alpha1.PhaseFailed, change: func(f *rollouttest.Fleet) {
			f.Policy.Spec.Stages = append([]v1alpha1.Stage(nil), f.Policy.Spec.Stages...)
			f.Policy.Spec.Stages[0].MaxFailures = nil
		}},
		"after it was parked": {lost: true, phase: v1alpha1.PhaseSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			f := everyoneOneByOne(3, 1, 1)
			c3 := f.Clusters["cluster-03"]
			c3.Takes["v1"] = rollouttest.Behaviour{Ending: rollouttest.Fails, After: 5 * time.Minute}
			c3.Takes["v2"], c3.Alike["v2"] = c3.Takes["v1"], "v1"
			events := []event{at(0, "commit v1", commit("v1")), at(2*time.Hour, "commit v2, nothing new for cluster-03", func(f *rollouttest.Fleet) {
				if c.change != nil {
					c.change(f)
				}
				f.SetTarget("v2")
			})}
			if c.lost {
				events = append(events, at(3*time.Minute, "cluster-03 is lost", lose("cluster-03")), at(4*time.Hour, "cluster-03 returns, and fails", restore("cluster-03")))
			}
			if text, err := (rollouttest.Scenario{Fleet: f, Until: 9 * time.Hour, Events: events}).Run(0); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			p, err := rollout.New(f.Input())
			if err != nil {
				t.Fatal(err)
			}
			if p.Counts.Failed != 1 || p.Phase != c.phase {
				t.Errorf("%d failed; %s: %s", p.Counts.Failed, p.Phase, p.Message)
			}
		})
	}
}

// With RollingUpdateWithPlacement a revert to content that is older than the stable revision moves the
// clusters that have what it takes back, before any other.
func TestRollingUpdateRevertsWhatItMoved(t *testing.T) {
	f := everyoneOneByOne(8, 0, 8)
	events := []event{
		at(0, "commit v1", commit("v1")),
		at(time.Hour, "RollingUpdateWithPlacement 25%; commit v2; cluster-01 is lost", func(f *rollouttest.Fleet) {
			f.Lose("cluster-01")
			f.Policy.Spec.Stages = nil
			f.Policy.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyRollingUpdateWithPlacement, RollingUpdateWithPlacement: &v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("all")}}
			f.SetTarget("v2")
		}),
		at(2*time.Hour, "cluster-01 returns", restore("cluster-01")),
		at(3*time.Hour, "git revert to v0", commit("v0")),
	}
	if text, err := (rollouttest.Scenario{Fleet: f, Until: 6 * time.Hour, Events: events}).Run(0); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for name, c := range f.Clusters {
		if c.Running == "v2" {
			t.Errorf("%s still runs v2", name)
		}
	}
}

// wayBack is a fleet that runs v1 and fails with v2 on every cluster, in one stage without a budget. After
// the events, v1 is the target again at the third hour.
func wayBack(t *testing.T, events ...event) (*rollouttest.Fleet, string) {
	t.Helper()
	f := everyoneOneByOne(3, 0, 3)
	for _, c := range f.Clusters {
		c.Takes["v2"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
	}
	all := append([]event{at(0, "commit v1", commit("v1")), at(time.Hour, "commit v2", commit("v2"))}, events...)
	return f, play(t, f, 6*time.Hour, append(all, at(3*time.Hour, "back to v1", commit("v1")))...)
}

// takes makes clusters take v1 in a way from then on.
func takes(ending rollouttest.Ending, clusters ...string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) {
		for _, name := range clusters {
			f.Clusters[name].Takes["v1"] = rollouttest.Behaviour{Ending: ending}
		}
	}
}

// A way back that no cluster verifies ends Failed, although no failure counts against its budget. It
// succeeds as soon as one cluster verifies the content.
func TestWayBackThatNoClusterVerifiesFails(t *testing.T) {
	for name, ending := range map[string]rollouttest.Ending{"failing": rollouttest.Fails, "silent": rollouttest.Silent} {
		t.Run(name, func(t *testing.T) {
			f, text := wayBack(t, at(2*time.Hour, "v1 is bad as well", takes(ending, c1, c2, c3)))
			expect(t, f, v1alpha1.PhaseFailed, "0/3 updated, 3 failed as before (cluster-01: ", text)
			takes(rollouttest.Healthy, c2)(f)
			f.Clusters[c2].Had = f.Now
			expect(t, f, v1alpha1.PhaseSucceeded, "1/3 updated, 2 failed as before (cluster-01: ", play(t, f, 7*time.Hour))
		})
	}
}

// Failures that spend no budget are not said to be within it, and are counted as failures, not as
// clusters that are not available.
func TestWayBackCountsTheFailuresThatItExcuses(t *testing.T) {
	f, text := wayBack(t, at(2*time.Hour, "v1 is bad on cluster-03", takes(rollouttest.Silent, c3)))
	expect(t, f, v1alpha1.PhaseSucceeded, "2/3 updated, 1 failed as before (cluster-03: ", text)
	stage := planned(t, f.Input()).Stages[0]
	if stage.Counts.Failed != 1 || stage.Counts.Parked != 0 || stage.Message != "2/3, 1 failed as before (cluster-03: past its progress deadline: no feedback yet)" {
		t.Errorf("%+v: %s", stage.Counts, stage.Message)
	}
}

// A cluster that had not failed with the content that is taken back counts against the budget.
func TestWayBackStopsWhenAClusterFailsNewly(t *testing.T) {
	f := everyoneOneByOne(3, 0, 3)
	f.Clusters[c1].Takes["v2"] = rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}
	f.Clusters[c2].Takes["v2"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
	text := play(t, f, 6*time.Hour, at(0, "commit v1", commit("v1")), at(time.Hour, "commit v2", commit("v2")),
		at(time.Hour+2*time.Minute, "back to v1, which is bad on cluster-02", func(f *rollouttest.Fleet) {
			takes(rollouttest.Fails, c2)(f)
			f.SetTarget("v1")
		}))
	expect(t, f, v1alpha1.PhaseFailed, "halted in everyone: 1 failed (cluster-02: ", text)
}

// A cluster that is lost on the way back, before it verified the content, is parked at once: it keeps no
// slot, and when the way back ends it is counted as not available.
func TestWayBackParksAClusterThatIsLost(t *testing.T) {
	f := everyoneOneByOne(3, 0, 3)
	text := play(t, f, 3*time.Hour, at(0, "commit v1", commit("v1")), at(time.Hour, "commit v2", commit("v2")),
		at(2*time.Hour, "back to v1", commit("v1")), at(2*time.Hour+30*time.Second, "cluster-03 is lost", lose(c3)))
	if !strings.Contains(text, "Succeeded: 2/3 updated, 1 not available, caught up on return") || strings.Contains(text, "lost        cluster-03") {
		t.Errorf("cluster-03 is not parked at once:\n%s", text)
	}
}
