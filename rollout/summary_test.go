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

// TestSummarise: the commit statuses of a plan.
func TestSummarise(t *testing.T) {
	for name, tc := range map[string]struct {
		change []change
		want   []rollout.Summary
	}{
		"soaking": {
			[]change{
				finished("cluster-01"), inSoak("v2", 15*time.Minute, 6*time.Minute, "cluster-02"),
				on("cluster-02", verified("v2")),
			},
			[]rollout.Summary{
				{State: rollout.Pending, Description: "canary 1/2, soaking until 12:04 UTC", Percent: 16},
				{Context: "canary", State: rollout.Pending, Description: "1/2, soaking until 12:04 UTC", Percent: 50},
				{Context: "everyone", State: rollout.Pending, Description: "0/4"},
			},
		},
		"failed": {
			[]change{admitted("v2", time.Minute, "cluster-01"), on("cluster-01", runs("v2", rollout.HealthFailed))},
			[]rollout.Summary{
				{State: rollout.Failure, Description: "halted in canary: 1 failed (cluster-01: Deployment/agent: 1 of 2 ready), 5 untouched"},
				{Context: "canary", State: rollout.Failure, Description: "0/2, 1 failed (cluster-01: Deployment/agent: 1 of 2 ready)"},
				{Context: "everyone", State: rollout.Failure, Description: "not started: canary failed"},
			},
		},
		"failed, and a stage is held that would come next": {
			[]change{
				admitted("v2", time.Minute, "cluster-01"), on("cluster-01", runs("v2", rollout.HealthFailed)),
				func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) },
			},
			[]rollout.Summary{
				{State: rollout.Failure, Description: "halted in canary: 1 failed (cluster-01: Deployment/agent: 1 of 2 ready), 5 untouched"},
				{Context: "canary", State: rollout.Failure, Description: "0/2, 1 failed (cluster-01: Deployment/agent: 1 of 2 ready)"},
				{Context: "everyone", State: rollout.Failure, Description: "not started: canary failed"},
			},
		},
		"aborted after the first canary, and a stage is held that would come next": {
			[]change{
				finished("cluster-01"), func(in *rollout.Input) { in.Aborted = "aborted by ann: incident 7" },
				func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) },
			},
			[]rollout.Summary{
				{State: rollout.Failure, Description: "aborted by ann: incident 7; canary 1/2", Percent: 16},
				{Context: "canary", State: rollout.Failure, Description: "1/2, aborted by ann: incident 7", Percent: 50},
				{Context: "everyone", State: rollout.Failure, Description: "0/4, held: maxConcurrency of stage everyone is 0, aborted by ann: incident 7"},
			},
		},
		"failed, and then the canary is renamed to a placement that does not exist": {
			[]change{
				recorded(rollout.Failed, "v2", time.Hour, time.Minute, "cluster-01"), on("cluster-01", runs("v2", rollout.HealthFailed)),
				func(in *rollout.Input) {
					in.Spec.Stages[0].Name, in.Spec.Stages[0].Placement.Name = "canry", "canry"
				},
			},
			[]rollout.Summary{
				{State: rollout.Failure, Description: "halted in everyone: 1 failed (cluster-01: Deployment/agent: 1 of 2 ready), 5 untouched"},
				{Context: "canry", State: rollout.Failure, Description: "0/0, held: Placement default/canry does not exist", Percent: 100},
				{Context: "everyone", State: rollout.Failure, Description: "0/6, 1 failed (cluster-01: Deployment/agent: 1 of 2 ready)"},
			},
		},
		"a revert, with a canary that is not available": {
			[]change{
				revert, on("cluster-01", offline), on("cluster-02", offline),
			},
			[]rollout.Summary{
				{State: rollout.Pending, Description: "everyone 0/4, 1 in flight"},
				{Context: "canary", State: rollout.Pending, Description: "0/2, waits for a cluster that is available, 2 not available"},
				{Context: "everyone", State: rollout.Pending, Description: "0/4, 1 in flight"},
			},
		},
		"nothing to change in the canary": {
			[]change{
				on("cluster-01", upToDate), on("cluster-02", upToDate),
			},
			[]rollout.Summary{
				{State: rollout.Pending, Description: "everyone 0/4, 1 in flight", Percent: 33},
				{Context: "canary", State: rollout.Success, Description: "nothing to change", Percent: 100},
				{Context: "everyone", State: rollout.Pending, Description: "0/4, 1 in flight"},
			},
		},
		"a cluster waits to be removed": {
			[]change{
				canaryDone, finished("cluster-03", "cluster-04", "cluster-05"),
				func(in *rollout.Input) {
					in.Spec.Install = installedBy("few")
					in.Placements = append(in.Placements, placement("few", rollouttest.Names(5)...))
				},
			},
			[]rollout.Summary{
				{State: rollout.Success, Description: "5/5 updated", Percent: 100},
				{Context: "canary", State: rollout.Success, Description: "2/2", Percent: 100},
				{Context: "everyone", State: rollout.Success, Description: "3/3", Percent: 100},
				{Context: rollout.RemovalContext, State: rollout.Pending, Description: "1 cluster to remove: grace period until 12:05 UTC"},
			},
		},
		"success with a failure within the budget": {
			[]change{
				canaryDone, finished("cluster-03", "cluster-04", "cluster-05"),
				func(in *rollout.Input) { in.Spec.Stages[1].MaxFailures = new(number(1)) },
				admitted("v2", time.Hour, "cluster-06"), on("cluster-06", runs("v2", rollout.HealthFailed)),
			},
			[]rollout.Summary{
				{State: rollout.Success, Description: "5/6 updated, within the budget: 1 failed (cluster-06: Deployment/agent: 1 of 2 ready)", Percent: 83},
				{Context: "canary", State: rollout.Success, Description: "2/2", Percent: 100},
				{Context: "everyone", State: rollout.Success, Description: "3/4, 1 failed (cluster-06: Deployment/agent: 1 of 2 ready)", Percent: 75},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plan := planned(t, rolling(6), tc.change...)
			if diff := cmp.Diff(tc.want, rollout.Summarise(plan)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSummariseHeld: once the share is moved, the commit status is success.
func TestSummariseHeld(t *testing.T) {
	f := paced(40, clusterv1alpha1.RolloutStrategy{})
	f.Policy.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("all"), MaxConcurrentlyUpdating: new(percent("30%"))})
	if _, err := (rollouttest.Scenario{Fleet: f, Until: time.Hour, Events: []event{at(0, "commit", commit("v2"))}}).Run(0); err != nil {
		t.Fatal(err)
	}
	plan := planned(t, f.Input())
	got := rollout.Summarise(plan)
	want := rollout.Summary{State: rollout.Success, Description: "12 of 40, rest held by strategy", Percent: 30}
	if diff := cmp.Diff(want, got[0]); diff != "" {
		t.Error(diff)
	}
	if f.Policy.Stable != "v1" || plan.Phase != v1alpha1.PhaseHeld {
		t.Errorf("stable is %s, phase %s", f.Policy.Stable, plan.Phase)
	}
}

// TestSummariseOneStep: the only step of a strategy has no commit status of its own.
func TestSummariseOneStep(t *testing.T) {
	f := paced(3, clusterv1alpha1.RolloutStrategy{})
	f.Policy.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyAll}
	f.SetTarget("v2")
	if got := rollout.Summarise(planned(t, f.Input())); len(got) != 1 {
		t.Errorf("it says %+v", got)
	}
	f.Policy.Spec.Strategy = nil
	f.Policy.Spec.Stages = []v1alpha1.Stage{{Name: "all", Placement: ref("all")}}
	if got := rollout.Summarise(planned(t, f.Input())); len(got) != 2 || got[1].Context != "all" {
		t.Errorf("a stage has a commit status, whatever its name: %+v", got)
	}
}
