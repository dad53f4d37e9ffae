package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
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

// A fix reaches a cluster that is still on its way back from bad content: it keeps its slot and is retargeted first.
func TestAFixReachesAClusterThatIsGoingBack(t *testing.T) {
	f := everyoneOneByOne(3, 0, 1)
	c1 := f.Clusters["cluster-01"]
	c1.Takes["v1"] = rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}
	c1.Takes["v0"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
	scenario := rollouttest.Scenario{Fleet: f, Until: time.Hour + 3*time.Minute, Events: []event{
		at(0, "commit v1", commit("v1")),
		at(time.Hour, "git revert to v0", commit("v0")),
		at(time.Hour+2*time.Minute, "commit v2", commit("v2")),
	}}
	text, err := scenario.Run(0)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if c1.Running != "v2" {
		t.Errorf("cluster-01 runs %s\n%s", c1.Running, text)
	}
}

// With RollingUpdateWithPlacement a revert to content that is older than the stable revision moves every
// cluster, and holds none: also those that run what it takes back and were never in a share.
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
	expectBack(t, f, "v0")
	expect(t, f, v1alpha1.PhaseSucceeded, "8/8 updated", "")
}

// expectBack fails unless every cluster runs the revision.
func expectBack(t *testing.T, f *rollouttest.Fleet, revision string) {
	t.Helper()
	for name, c := range f.Clusters {
		if c.Running != revision {
			t.Errorf("%s runs %s", name, c.Running)
		}
	}
}

// reverted is a fleet that runs v1 and fails with v2 on every cluster, in one stage without a budget. After
// the events, v1 is the target again at the third hour.
func reverted(t *testing.T, events ...event) (*rollouttest.Fleet, string) {
	t.Helper()
	f := everyoneOneByOne(3, 0, 3)
	for _, c := range f.Clusters {
		c.Takes["v2"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
	}
	all := append([]event{at(0, "commit v1", commit("v1")), at(time.Hour, "commit v2", commit("v2"))}, events...)
	return f, play(t, f, 6*time.Hour, append(all, at(3*time.Hour, "back to v1", commit("v1")))...)
}

// takes sets how clusters react to v1 from then on.
func takes(ending rollouttest.Ending, clusters ...string) func(*rollouttest.Fleet) {
	return func(f *rollouttest.Fleet) {
		for _, name := range clusters {
			f.Clusters[name].Takes["v1"] = rollouttest.Behaviour{Ending: ending}
		}
	}
}

// A revert that no cluster verifies ends Failed, although no failure counts against its budget. It
// succeeds as soon as one cluster verifies the content.
func TestRevertThatNoClusterVerifiesFails(t *testing.T) {
	for name, ending := range map[string]rollouttest.Ending{"failing": rollouttest.Fails, "silent": rollouttest.Silent} {
		t.Run(name, func(t *testing.T) {
			f, text := reverted(t, at(2*time.Hour, "v1 is bad as well", takes(ending, c1, c2, c3)))
			expect(t, f, v1alpha1.PhaseFailed, "0/3 updated, 3 failed again, not counted (cluster-01: ", text)
			takes(rollouttest.Healthy, c2)(f)
			f.Clusters[c2].Had = f.Now
			expect(t, f, v1alpha1.PhaseSucceeded, "1/3 updated, 2 failed again, not counted (cluster-01: ", play(t, f, 7*time.Hour))
		})
	}
}

// Failures that spend no budget are not said to be within it, and are counted as failures, not as
// clusters that are not available.
func TestRevertCountsTheFailuresThatItExcuses(t *testing.T) {
	f, text := reverted(t, at(2*time.Hour, "v1 is bad on cluster-03", takes(rollouttest.Silent, c3)))
	expect(t, f, v1alpha1.PhaseSucceeded, "2/3 updated, 1 failed again, not counted (cluster-03: ", text)
	stage := planned(t, f.Input()).Stages[0]
	if stage.Counts.Failed != 1 || stage.Counts.Parked != 0 || stage.Message != "2/3, 1 failed again, not counted (cluster-03: past its progress deadline: no feedback yet)" {
		t.Errorf("%+v: %s", stage.Counts, stage.Message)
	}
}

// A cluster that had not failed with the content that is taken back counts against the budget.
func TestRevertStopsWhenAClusterFailsNewly(t *testing.T) {
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

// A cluster that is lost during a revert, before it verified the content, is parked at once: it keeps no
// slot, and when the revert ends it is counted as not available.
func TestRevertParksAClusterThatIsLost(t *testing.T) {
	f := everyoneOneByOne(3, 0, 3)
	text := play(t, f, 3*time.Hour, at(0, "commit v1", commit("v1")), at(time.Hour, "commit v2", commit("v2")),
		at(2*time.Hour, "back to v1", commit("v1")), at(2*time.Hour+30*time.Second, "cluster-03 is lost", lose(c3)))
	if !strings.Contains(text, "Succeeded: 2/3 updated, 1 not available (updated on return)") || strings.Contains(text, "lost        cluster-03") {
		t.Errorf("cluster-03 is not parked at once:\n%s", text)
	}
}

// The placement of a stage drops its only cluster, and the content of that cluster is taken back: the
// cluster is a member of the stage, whose limit is of its members.
func TestRevertOfAClusterWhoseStageIsEmpty(t *testing.T) {
	for name, limit := range map[string]*intstr.IntOrString{"number": new(number(1)), "percent": new(percent("50%")), "default": nil} {
		t.Run(name, func(t *testing.T) {
			f := staged("v1", 4)
			f.Policy.Spec.Stages = []v1alpha1.Stage{
				{Name: "canary", Placement: ref("canary"), MaxConcurrency: limit, ProgressDeadline: "5m"},
				{Name: "fleet", Placement: ref("all"), MaxConcurrency: new(number(3)), ProgressDeadline: "5m"},
			}
			f.Policy.Spec.Install = installedBy("installed")
			f.Policy.Placements = []rollout.Placement{placement("canary", c1), placement("all", rollouttest.Names(4)[1:]...), placement("installed", rollouttest.Names(4)...)}
			take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: 2 * time.Minute}, "v2", "cluster-04")(f)
			text := play(t, f, 6*time.Hour, at(0, "commit v2", commit("v2")),
				at(time.Hour, "Placement canary selects no cluster any more; the content goes back to v1", func(f *rollouttest.Fleet) {
					f.Policy.Placements[0] = placement("canary")
					f.SetTarget("v1")
				}))
			expectBack(t, f, "v1")
			expect(t, f, v1alpha1.PhaseSucceeded, "", text)
		})
	}
}

// Clusters that no stage selects any more are reverted one by one, as their stage says, and the revert ends
// with the last of them.
func TestRevertOfClustersWithoutAStageKeepsTheLimit(t *testing.T) {
	names := rollouttest.Names(6)
	f := everyoneOneByOne(6, 0, 1)
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = []rollout.Placement{placement("all", names...), placement("installed", names...)}
	run := func(until time.Duration, look func(rollout.Plan)) {
		for end := f.Now.Add(until); f.Now.Before(end); f.Now = f.Now.Add(10 * time.Second) {
			p := planned(t, f.Input())
			f.Store(p)
			f.CarryOut(p.Actions)
			look(p)
		}
	}
	f.SetTarget("v2")
	run(20*time.Minute, func(rollout.Plan) {})
	expectBack(t, f, "v2")
	f.Policy.Placements[0] = placement("all", names[5])
	f.SetTarget("v0")
	ended := false
	run(20*time.Minute, func(p rollout.Plan) {
		flying := 0
		for _, c := range p.Clusters {
			if c.State.InFlight() {
				flying++
			}
		}
		if flying > 1 {
			t.Errorf("%d are in flight at once, maxConcurrency is 1", flying)
		}
		if p.Phase == v1alpha1.PhaseSucceeded && !ended {
			ended = true
			expectBack(t, f, "v0")
		}
	})
	if !ended {
		t.Error("the revert did not end")
	}
	expectBack(t, f, "v0")
}

// A cluster that leaves the fleet on its way back keeps its slot until its outcome is known: no other cluster takes it.
func TestRevertCountsTheSlotOfAClusterThatLeaves(t *testing.T) {
	names := rollouttest.Names(4)
	f := everyoneOneByOne(4, 0, 1)
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = []rollout.Placement{placement("all", names...), placement("installed", names...)}
	look := func() rollout.Plan {
		p := planned(t, f.Input())
		f.Store(p)
		f.CarryOut(p.Actions)
		f.Now = f.Now.Add(10 * time.Second)
		return p
	}
	f.SetTarget("v2")
	for range 120 {
		look()
	}
	expectBack(t, f, "v2")
	f.Clusters[names[0]].Takes["v0"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
	f.SetTarget("v0")
	if p := look(); !slices.Equal(flying(t, p), names[:1]) {
		t.Fatalf("in flight: %v", flying(t, p))
	}
	f.Policy.Placements = []rollout.Placement{placement("all", names[1:]...), placement("installed", names[1:]...)}
	for range 6 {
		if p := look(); len(flying(t, p)) > 1 {
			t.Errorf("in flight: %v; maxConcurrency is 1", flying(t, p))
		}
	}
}

// A canary that is verified and then leaves the fleet is counted in its stage until it is gone: 1/1, not 1/0.
func TestStageCountsAClusterThatLeavesAfterItWasVerified(t *testing.T) {
	names := rollouttest.Names(3)
	f := staged("v0", 3)
	f.Policy.Spec.Stages = []v1alpha1.Stage{
		{Name: "canary", Placement: ref("canary")},
		{Name: "everyone", Placement: ref("all"), MaxConcurrency: new(number(1)), MinSuccessTime: metav1.Duration{Duration: time.Hour}},
	}
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = []rollout.Placement{placement("canary", names[0]), placement("all", names...), placement("installed", names...)}
	f.SetTarget("v2")
	for minute := range 60 {
		if minute == 30 {
			f.Policy.Placements[2] = placement("installed", names[1:]...)
		}
		p := planned(t, f.Input())
		f.Store(p)
		f.CarryOut(p.Actions)
		f.Now = f.Now.Add(time.Minute)
		if canary := p.Stages[0].Counts; minute == 30 && (canary.Updated != 1 || canary.Total != 1) {
			t.Fatalf("the canary's stage says %d/%d", canary.Updated, canary.Total)
		}
	}
}

// flying are the clusters whose records hold a slot, sorted.
func flying(t *testing.T, p rollout.Plan) []string {
	t.Helper()
	records, err := rollout.Records(p.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range records {
		if records[i].InFlight() {
			names = append(names, records[i].Cluster)
		}
	}
	slices.Sort(names)
	return names
}

// A cluster that cannot be written keeps the reverted content, like a cluster that is not available: that is no
// failure of proven content, and stops no other cluster. It is moved when it can be written.
func TestRevertPassesByAClusterThatCannotBeWritten(t *testing.T) {
	for name, ending := range map[string]rollouttest.Ending{"it had failed": rollouttest.Fails, "it was in flight": rollouttest.Stuck} {
		t.Run(name, func(t *testing.T) {
			f := everyoneOneByOne(4, 0, 4)
			take(rollouttest.Behaviour{Ending: ending, After: 2 * time.Minute}, "v2", c2)(f)
			take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: 2 * time.Minute}, "v2", "cluster-04")(f)
			text := play(t, f, day, at(0, "commit v2", commit("v2")), at(3*time.Minute, "cluster-02 cannot be written; back to v0", func(f *rollouttest.Fleet) {
				f.Clusters[c2].Blocked = "its hosting cluster does not exist"
				f.SetTarget("v0")
			}))
			expect(t, f, v1alpha1.PhaseSucceeded, "3/4 updated, 1 parked (cluster-02: its hosting cluster does not exist)", text)
			f.Clusters[c2].Blocked = ""
			expect(t, f, v1alpha1.PhaseSucceeded, "4/4 updated", play(t, f, 2*day))
			expectBack(t, f, "v0")
		})
	}
}

// A revert moves a cluster that has only a part of the reverted content, also if no stage selects the cluster: the
// operator was killed between the writes of two of its works.
func TestRevertOfAClusterThatHasAPartOfTheContent(t *testing.T) {
	f := everyoneOneByOne(3, 0, 1)
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = append(f.Policy.Placements, placement("installed", rollouttest.Names(3)...))
	f.SetTarget("v2")
	f.Store(planned(t, f.Input()))
	f.Clusters[c1].Running = rollout.Mixed
	f.Policy.Placements[0] = placement("all", c2, c3)
	in := f.Input()
	in.Withdrawn = true
	withdrawn := planned(t, in)
	if len(withdrawn.Actions) > 0 {
		t.Errorf("content that is being withdrawn is written: %+v", withdrawn.Actions)
	}
	f.Store(withdrawn)
	f.SetTarget("v0")
	play(t, f, time.Hour)
	expectBack(t, f, "v0")
}

// A revert moves a cluster that no stage selects, although the record names older content: an older status was
// restored, and the works say which content the cluster got.
func TestRevertOfAClusterWhoseRecordIsOlder(t *testing.T) {
	f := everyoneOneByOne(3, 0, 1)
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = append(f.Policy.Placements, placement("installed", rollouttest.Names(3)...))
	play(t, f, time.Hour, at(0, "commit v1", commit("v1")))
	older := f.Ledger
	play(t, f, time.Hour, at(0, "commit v2", commit("v2")))
	f.Ledger = older
	f.Policy.Placements[0] = placement("all", c2, c3)
	f.SetTarget("v0")
	play(t, f, time.Hour)
	expectBack(t, f, "v0")
}

// A revert moves a cluster that no stage selects and that runs content between the reverted one and the target: the
// operator was killed between the admission to the reverted content and the write (seed 409170).
func TestRevertOfAClusterThatWasAdmittedAndNeverWritten(t *testing.T) {
	f := everyoneOneByOne(3, 0, 1)
	f.Policy.Spec.Install = installedBy("installed")
	f.Policy.Placements = append(f.Policy.Placements, placement("installed", rollouttest.Names(3)...))
	play(t, f, time.Hour, at(0, "commit v1", commit("v1")))
	f.SetTarget("v2")
	f.Store(planned(t, f.Input()))
	f.Policy.Placements[0] = placement("all", c2, c3)
	f.SetTarget("v0")
	play(t, f, time.Hour)
	expectBack(t, f, "v0")
}

// A cluster that is held during a revert moves back after the revert ended, and passes without a soak: its content is
// proven. The soak would hold the only slot.
func TestRevertMovesAHeldClusterWithoutASoakAfterItsEnd(t *testing.T) {
	f := everyoneOneByOne(3, 0, 3)
	f.Policy.Spec.Stages[0].MinSuccessTime = metav1.Duration{Duration: time.Hour}
	hold := func(held bool) func(*rollouttest.Fleet) {
		return func(f *rollouttest.Fleet) { f.Clusters[c3].Held = held }
	}
	text := play(t, f, 4*time.Hour, at(0, "commit v1", commit("v1")), at(2*time.Hour, "cluster-03 is held; back to v0", func(f *rollouttest.Fleet) {
		hold(true)(f)
		f.SetTarget("v0")
	}))
	expect(t, f, v1alpha1.PhaseSucceeded, "2/3 updated, 1 held by annotation (cluster-03)", text)
	text = play(t, f, 4*time.Hour+10*time.Minute, at(4*time.Hour+time.Minute, "the hold is over", hold(false)))
	expectBack(t, f, "v0")
	expect(t, f, v1alpha1.PhaseSucceeded, "3/3 updated", text)
	if strings.Contains(text, "soaking") {
		t.Errorf("cluster-03 soaks with proven content:\n%s", text)
	}
}

// A stage is not complete if the revert moved none of its clusters: they still run the reverted content. It is
// complete when one of them verified the target.
func TestRevertOfAStageThatCannotBeMovedDoesNotCompleteIt(t *testing.T) {
	for name, why := range map[string]func(*rollouttest.Fleet){
		"not available":     func(f *rollouttest.Fleet) { f.Lose(c1, c2) },
		"cannot be written": func(f *rollouttest.Fleet) { f.Clusters[c1].Blocked, f.Clusters[c2].Blocked = "no host", "no host" },
	} {
		t.Run(name, func(t *testing.T) {
			f := staged("v0", 4)
			f.Policy.Spec.Stages = []v1alpha1.Stage{
				{Name: "canary", Placement: ref("canary"), ProgressDeadline: "5m"}, {Name: "fleet", Placement: ref("all"), ProgressDeadline: "5m"},
			}
			f.Policy.Spec.Install = installedBy("installed")
			f.Policy.Placements = []rollout.Placement{placement("canary", c1, c2), placement("all", rollouttest.Names(4)[2:]...), placement("installed", rollouttest.Names(4)...)}
			stages := func() [2]string {
				p := planned(t, f.Input())
				return [2]string{p.Stages[0].Phase + " " + p.Stages[0].Message, p.Stages[1].Phase}
			}
			play(t, f, 2*time.Hour, at(0, "commit v2", commit("v2")), at(time.Hour, "canary is "+name, why), at(time.Hour+time.Minute, "back to v0", commit("v0")))
			if got := stages(); !strings.HasPrefix(got[0], "Waiting 0/2, waits for a cluster that ") || got[1] != rollout.StageComplete {
				t.Errorf("after the end the stages are %q", got)
			}
			f.Return(c1)
			f.Clusters[c1].Blocked = ""
			play(t, f, time.Hour)
			if got := stages(); !strings.HasPrefix(got[0], "Complete 1/2, 1 ") {
				t.Errorf("after cluster-01 is back the stages are %q", got)
			}
		})
	}
}

// A stage whose clusters all failed again in a revert is not complete either.
func TestRevertOfAStageWhoseClustersAllFailDoesNotCompleteIt(t *testing.T) {
	f, _ := reverted(t, at(2*time.Hour, "v1 is bad as well", takes(rollouttest.Fails, c1, c2, c3)))
	if got := planned(t, f.Input()).Stages[0]; got.Phase != rollout.StageFailed {
		t.Errorf("the stage is %s: %s", got.Phase, got.Message)
	}
}
