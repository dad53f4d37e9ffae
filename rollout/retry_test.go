package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// After a retry, what a cluster reported before is no news: it has another try, in which it can recover. A
// failure that lasts counts again.
func TestRetryGivesAFailureThatWasReportedAnotherTry(t *testing.T) {
	for name, c := range map[string]struct {
		now  rollouttest.Behaviour // how the cluster takes the content since the retry
		then v1alpha1.Phase
		at   string
		// forgets: another operator starts, before and after it carries out the order.
		forgets bool
	}{
		"its cause is gone":                  {now: rollouttest.Behaviour{After: 12 * time.Minute}, then: v1alpha1.PhaseSucceeded, at: "00:12:00 Progressing"},
		"it lasts":                           {now: rollouttest.Behaviour{Ending: rollouttest.Fails}, then: v1alpha1.PhaseFailed, at: "00:19:00 Failed"},
		"its cause is gone, after a restart": {now: rollouttest.Behaviour{After: 12 * time.Minute}, then: v1alpha1.PhaseSucceeded, at: "00:12:00 Progressing", forgets: true},
		"it lasts, after a restart":          {now: rollouttest.Behaviour{Ending: rollouttest.Fails}, then: v1alpha1.PhaseFailed, at: "00:19:00 Failed", forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := everyoneOneByOne(3, 0, 1)
			f.Policy.Spec.Stages[0].ProgressDeadline = "1h"
			take(rollouttest.Behaviour{Ending: rollouttest.Fails, After: 2 * time.Minute}, "v2", "cluster-01")(f)
			text, err := rollouttest.Scenario{Fleet: f, Until: 40 * time.Minute, Events: []event{
				at(0, "commit v2", commit("v2")),
				at(9*time.Minute, "retry", func(f *rollouttest.Fleet) {
					if c.forgets {
						f.Restart()
					}
					f.Order(rollout.Order{Verb: v1alpha1.OrderRetry})
				}),
				at(9*time.Minute+20*time.Second, "the operator starts", func(f *rollouttest.Fleet) {
					if c.forgets {
						f.Restart()
					}
				}),
				at(9*time.Minute+30*time.Second, "what it says changes", take(c.now, "v2", "cluster-01")),
			}}.Run(0)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"00:02:00 Failed", "00:09:00 Progressing", c.at} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q", want)
				}
			}
			if f.Phase != c.then {
				t.Errorf("at the end %s", f.Phase)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// A retry clears the failure of a cluster that is parked, and gives no slot to a cluster that is not available (seed
// 343430).
func TestRetryOfAParkedClusterTakesNoSlot(t *testing.T) {
	failedBefore := func(in *rollout.Input) {
		records := recordsOf(in)
		records[0].Failed = true
		keepRecords(in, records)
	}
	checkMoment(t, momentCase{
		change: []change{parked("v2", c1), failedBefore, on(c1, runs("v2", rollout.HealthUnknown), offline), func(in *rollout.Input) {
			in.Orders = []rollout.Order{{Verb: v1alpha1.OrderRetry}}
		}},
		want: map[string]string{c1: "Parked v2", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
	})
}

// A cluster that failed in a stage which no longer selects it is tried again in the stage that does. The stage that it
// left is not halted by it: it is empty, and held or passed as such.
func TestRetryInAnotherStageDoesNotHaltTheStageThatIsEmptyNow(t *testing.T) {
	retry := func(in *rollout.Input) { in.Orders = []rollout.Order{{Verb: v1alpha1.OrderRetry}} }
	passes := func(in *rollout.Input) { in.Spec.Stages[0].WhenEmpty = v1alpha1.WhenEmptyPass }
	for name, tc := range map[string]momentCase{
		"its works could not be written": {
			change: []change{recorded(rollout.NotWritten, "v2", time.Hour, time.Hour, c1), rotated(), retry},
			want:   map[string]string{c1: "Waiting v1", c2: "Waiting v1"}, phase: v1alpha1.PhaseHeld, says: "held: Placement default/canary",
		},
		"its works could not be written, and an empty stage passes": {
			change: []change{recorded(rollout.NotWritten, "v2", time.Hour, time.Hour, c1), rotated(), passes, retry},
			want:   map[string]string{c1: "Admitted v2", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"its inputs changed": {
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed), edited), rotated(), retry},
			want:   map[string]string{c1: "Waiting v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseHeld, says: "held: Placement default/canary",
		},
		"its works are written": {
			reason: "it is in flight, and proves the content for the stage that admitted it",
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed)), rotated(), retry},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing, says: "canary 0/0, waits for 1 that another stage selects now",
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// Content that becomes the target again is tried anew. A failure that was reported before is no news, also to an
// operator that starts then.
func TestAnotherAttemptBeginsWithoutTheOldReport(t *testing.T) {
	for name, seen := range map[string]func(*rollout.Cluster){"the operator has seen it": seenFor(time.Hour), "the operator starts": seenFor(0)} {
		t.Run(name, func(t *testing.T) {
			checkMoment(t, momentCase{
				change: []change{recorded(rollout.Left, "v2", 2*time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed), seen)},
				want:   map[string]string{c1: "Updating v2"},
			})
		})
	}
}

// A cluster of the share that is set aside frees its place with the same plan.
func TestShareFillsThePlaceOfAParkedClusterAtOnce(t *testing.T) {
	names := rollouttest.Names(4)
	f := rollouttest.NewFleet("v1", names...)
	f.Policy.Spec.Install = installedBy("all")
	f.Policy.Placements = []rollout.Placement{placement("all", names...)}
	f.Policy.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("all"), MaxConcurrentlyUpdating: new(number(1))})
	text, err := rollouttest.Scenario{Fleet: f, Until: time.Hour, Events: []event{
		at(0, "commit v2", commit("v2")),
		at(10*time.Second, "cluster-01 is lost", lose("cluster-01")),
		at(time.Minute, "commit v3", commit("v3")),
	}}.Run(0)
	if err != nil || f.Clusters["cluster-02"].Running != "v3" {
		t.Errorf("%v: cluster-02 runs %s\n%s", err, f.Clusters["cluster-02"].Running, text)
	}
}
