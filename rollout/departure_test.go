package rollout_test

import (
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// departing is the input of a fleet that runs its target. The add-on of the clusters is
// being deleted.
func departing(clusters ...rollout.Cluster) rollout.Input {
	in := rollout.Input{
		Now:    time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		AddOn:  "hello",
		Spec:   v1alpha1.AddOnRolloutSpec{Target: &v1alpha1.Target{Digest: "v1", Commit: "main@sha1:1", Revision: "hello-1"}},
		Stable: "v1", TargetProven: true, Ended: true,
		Clusters: append([]rollout.Cluster{{
			Name: "stays", Installed: rollout.HandMade, Reachable: true, Running: "v1", UpToDate: true, UpToDateStable: true,
			Health: rollout.Health{State: rollout.HealthVerified},
		}}, clusters...),
	}
	return in
}

// leaving is a cluster that is being deleted and waits for its hook.
func leaving(name string, overdueAt time.Time) rollout.Cluster {
	return rollout.Cluster{
		Name: name, Installed: rollout.Deleting, Reachable: true, Running: "v1",
		Departure: rollout.Departure{Reason: "pre-delete hook: Job " + name + " has not completed", OverdueAt: overdueAt},
	}
}

func TestDepartureInTime(t *testing.T) {
	now := departing().Now
	plan := planned(t, departing(leaving("a", now.Add(time.Minute))))
	if plan.Overdue != "" || strings.Contains(plan.Message, "removed") || len(plan.Failing) != 0 {
		t.Errorf("nothing to report yet: %q, %v", plan.Message, plan.Failing)
	}
	if !plan.RecheckAt.Equal(now.Add(time.Minute)) {
		t.Errorf("looks again at %s", plan.RecheckAt)
	}
	if c, _ := plan.Why("a"); c.State != rollout.Removing || c.Reason != "pre-delete hook: Job a has not completed" {
		t.Errorf("why: %+v", c)
	}
}

func TestDepartureOverdue(t *testing.T) {
	now := departing().Now
	plan := planned(t, departing(leaving("a", now), leaving("b", now.Add(-time.Hour)), leaving("c", now.Add(time.Hour))))
	const want = "2 not removed yet (a: pre-delete hook: Job a has not completed; b: pre-delete hook: Job b has not completed)"
	if plan.Overdue != want || !strings.HasSuffix(plan.Message, ", "+want) {
		t.Errorf("got %q in %q", plan.Overdue, plan.Message)
	}
	if plan.Phase != v1alpha1.PhaseSucceeded || plan.Outcome != rollout.Success {
		t.Errorf("the rollout has succeeded all the same: %s, %s", plan.Phase, plan.Outcome)
	}
	if len(plan.Failing) != 2 || plan.Failing[0].Cluster != "a" {
		t.Errorf("failing: %v", plan.Failing)
	}
	said := rollout.Summarise(plan)
	last := said[len(said)-1]
	if last.Context != rollout.OverdueContext || last.State != rollout.Failure || last.Description != want {
		t.Errorf("the commit status is %+v", last)
	}
}

func TestBlockedClusterFailsUntilItsInputsAreFixed(t *testing.T) {
	in := departing(rollout.Cluster{
		Name: "typo", Installed: rollout.HandMade, Reachable: true, Running: "v1",
		Health: rollout.Health{State: rollout.HealthVerified}, Blocked: "hosting cluster x is not a managed cluster of the hub",
	})
	first := planned(t, in)
	in.Ledger = first.Ledger
	second := planned(t, in)
	if len(second.Failing) != 1 || second.Failing[0].Reason != in.Clusters[1].Blocked {
		t.Errorf("failing: %v, %s", second.Failing, second.Message)
	}
	in.Clusters[1].Blocked, in.Clusters[1].UpToDate = "", true
	fixed := planned(t, in)
	if len(fixed.Failing) != 0 || fixed.Counts.Updated != 2 {
		t.Errorf("once it is fixed: %v, %+v", fixed.Failing, fixed.Counts)
	}
}
