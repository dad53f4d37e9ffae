package rollout_test

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// everyoneOneByOne is a fleet with one stage of all clusters.
func everyoneOneByOne(running string, clusters, failures, limit int) *rollouttest.Fleet {
	f := staged(running, clusters)
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
			f := everyoneOneByOne("v0", 3, 1, 1)
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
	f := everyoneOneByOne("v0", 8, 0, 8)
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
