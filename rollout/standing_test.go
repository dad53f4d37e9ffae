package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestFirstClustersMakeTheStableRevision: a rollout without a cluster ends Succeeded and
// proves nothing. The first clusters that join prove its content.
func TestFirstClustersMakeTheStableRevision(t *testing.T) {
	f := rollouttest.NewFleet("")
	f.Policy.Spec.Install = installedBy("all")
	f.Policy.Placements = []rollout.Placement{placement("all")}
	f.SetTarget("v1")
	step := func() rollout.Plan {
		t.Helper()
		in := f.Input()
		in.Ended = in.Ended && in.Stable == f.Target() // as the controller reads the stored status
		plan := planned(t, in)
		f.Store(plan)
		f.CarryOut(plan.Actions)
		return plan
	}
	if plan := step(); plan.Phase != v1alpha1.PhaseSucceeded || plan.Succeeded {
		t.Fatalf("without a cluster: %s, earned %t", plan.Phase, plan.Succeeded)
	}
	f.Join("cluster-01")
	f.Policy.Placements = []rollout.Placement{placement("all", "cluster-01")}
	step()
	f.Now = f.Now.Add(2 * time.Minute)
	if plan := step(); !plan.Succeeded || f.Policy.Stable != "v1" {
		t.Fatalf("the first cluster runs the target: earned %t, stable %q", plan.Succeeded, f.Policy.Stable)
	}
	if step().Succeeded {
		t.Fatal("success is earned twice")
	}
}

// TestSuspendedAll_AdmitsNoFurtherCluster: while strategy All is suspended, admitted clusters
// continue. A cluster that joins or returns is not admitted.
func TestSuspendedAll_AdmitsNoFurtherCluster(t *testing.T) {
	for name, do := range map[string]func(*rollout.Cluster){
		"joined":   func(c *rollout.Cluster) { c.Installed = rollout.HandMade },
		"returned": availableChanged(0),
	} {
		t.Run(name, func(t *testing.T) {
			in := rolling(4)
			admitted("v2", time.Minute, "cluster-02", "cluster-03", "cluster-04")(&in)
			strategyAll(&in)
			in.Suspended = true
			on("cluster-01", do)(&in)
			plan := planned(t, in)
			if c, _ := plan.Why("cluster-01"); c.State != rollout.Waiting {
				t.Errorf("cluster-01 is %s: %s", c.State, c.Reason)
			}
			if c, _ := plan.Why("cluster-02"); c.State != rollout.Admitted {
				t.Errorf("cluster-02, which was admitted, is %s: %s", c.State, c.Reason)
			}
			for _, a := range plan.Actions {
				if a.Cluster == "cluster-01" {
					t.Errorf("%s %s while suspended", a.Kind, a.Cluster)
				}
			}
		})
	}
}

// TestStepsHaveOneNameEach: a step and its commit status are found by name. Placements and
// groups of one name must not share it.
func TestStepsHaveOneNameEach(t *testing.T) {
	sameNames := func(in *rollout.Input) {
		in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressivePerGroup}
		in.Spec.Install = installedBy("one", "one")
		in.Spec.Install.Placements[1].Namespace = "other"
		in.Placements = []rollout.Placement{placement("one", "cluster-01"), placement("one", "cluster-02")}
		in.Placements[1].Namespace = "other"
	}
	unplaced := func(in *rollout.Input) {
		in.Spec.Install = installedBy("unplaced")
		in.Placements = []rollout.Placement{placement("unplaced", "cluster-01")}
		on("cluster-02", func(c *rollout.Cluster) { c.Installed = rollout.HandMade })(in)
	}
	groups := func(in *rollout.Input) {
		in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyProgressivePerGroup}
		in.Placements = []rollout.Placement{grouped("all",
			group(0, "canary", "cluster-01"), group(1, "canary", "cluster-02"), group(2, "canary-1", "cluster-03"),
			group(3, "", "cluster-04"), group(4, "3", "cluster-05"))}
	}
	for name, change := range map[string]change{"placements of one name": sameNames, "a placement called unplaced": unplaced, "groups": groups} {
		t.Run(name, func(t *testing.T) {
			in := rolling(5)
			in.Spec.Stages = nil
			change(&in)
			plan := planned(t, in)
			seen := map[string]bool{}
			for _, st := range plan.Stages {
				if seen[st.Name] {
					t.Errorf("two steps are named %s", st.Name)
				}
				seen[st.Name] = true
			}
		})
	}
}

// TestApproval_CountsAsUsedAfterTheStatusWasLost: an approval that is still set may have
// been used before the status was lost. It removes no further cluster.
func TestApproval_CountsAsUsedAfterTheStatusWasLost(t *testing.T) {
	in := rolling(4)
	in.Spec.Target.Commit, in.ApprovedRemoval = "main@sha1:abc", "abc"
	in.Rebuild = true
	for i := range in.Clusters {
		in.Clusters[i].Installed = rollout.Ours
	}
	gone := in.Clusters[0].Name
	for i := range in.Placements {
		for j := range in.Placements[i].Groups {
			g := &in.Placements[i].Groups[j]
			g.Clusters = slices.DeleteFunc(slices.Clone(g.Clusters), func(name string) bool { return name == gone })
		}
	}
	plan := planned(t, in)
	for _, a := range plan.Actions {
		if a.Kind == rollout.Remove {
			t.Errorf("%s is removed: %s", a.Cluster, a.Reason)
		}
	}
	if why, _ := plan.Why(gone); why.State != rollout.Removing || !strings.Contains(plan.GuardHint, "was used: set it again") {
		t.Errorf("it waits out its grace period: %+v; %q, %q", why, plan.Guard, plan.GuardHint)
	}
}

// TestStages_StayCompleteAfterTheSuccess: a cluster that joins, and works that were overwritten by hand, are no new
// rollout. The counts are those of now, and the message says so.
func TestStages_StayCompleteAfterTheSuccess(t *testing.T) {
	all := []string{c1, c2, c3, c4, c5, c6}
	for says, changes := range map[string][]change{
		"now 5/6 updated, 1 to update": {finished(c3, c4, c6)},
		"now 0/6 updated, 6 to update": {finished(c3, c4, c5, c6), func(in *rollout.Input) {
			for _, name := range all {
				on(name, runs("v1", rollout.HealthVerified))(in)
			}
		}},
	} {
		plan := planned(t, rolling(6), append([]change{canaryDone, ended}, changes...)...)
		if plan.Phase != v1alpha1.PhaseSucceeded || plan.Outcome != rollout.Success || plan.Message != says || plan.Counts.InFlight == 0 {
			t.Errorf("%s, %s, %d in flight: %s, want %s", plan.Phase, plan.Outcome, plan.Counts.InFlight, plan.Message, says)
		}
		for _, stage := range plan.Stages {
			if stage.Phase != rollout.StageComplete {
				t.Errorf("%s: stage %s is %s: %s", says, stage.Name, stage.Phase, stage.Message)
			}
		}
	}
}
