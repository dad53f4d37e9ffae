package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestFirstClustersMakeTheStableRevision: a rollout that found no cluster ended well,
// and proved nothing. The first clusters that come prove it.
func TestFirstClustersMakeTheStableRevision(t *testing.T) {
	f := rollouttest.NewFleet("")
	f.Policy.Spec.Install = installedBy("all")
	f.Policy.Placements = []rollout.Placement{placement("all")}
	inv := rollouttest.NewInvariants()
	f.SetTarget("v1")
	step := func() rollout.Plan {
		t.Helper()
		plan, err := f.Step(inv)
		if err != nil {
			t.Fatal(err)
		}
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

// TestSuspendedAllMovesNobodyNew (S18): a reservation of everybody covers those that
// were there. Whoever comes, or comes back, while it is suspended was never written to.
func TestSuspendedAllMovesNobodyNew(t *testing.T) {
	for name, do := range map[string]func(*rollout.Cluster){
		"came":      func(c *rollout.Cluster) { c.Installed, c.JoinedAt = rollout.HandMade, now() },
		"came back": func(c *rollout.Cluster) { c.ReachableSince = now() },
	} {
		t.Run(name, func(t *testing.T) {
			in := rolling(4)
			in.Spec.Stages, in.Suspended = nil, true
			in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyAll}
			in.Ledger.Waves = []v1alpha1.Wave{{
				Revision: "v2", Stage: "all", All: true, AdmittedAt: metav1.NewTime(now().Add(-time.Minute)),
			}}
			on("cluster-01", do)(&in)
			plan := planned(t, in)
			if c, _ := plan.Why("cluster-01"); c.State != rollout.Waiting {
				t.Errorf("cluster-01 is %s: %s", c.State, c.Reason)
			}
			if c, _ := plan.Why("cluster-02"); c.State != rollout.Admitted {
				t.Errorf("cluster-02, which was reserved, is %s: %s", c.State, c.Reason)
			}
			for _, a := range plan.Actions {
				if a.Cluster == "cluster-01" {
					t.Errorf("%s %s while suspended", a.Kind, a.Cluster)
				}
			}
		})
	}
}

// TestStepsHaveOneNameEach: a step is found again, and its commit status told apart, by
// its name, whatever placements and groups are called.
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

// TestApprovalIsUsedThoughItsUseWasForgotten: with the status the ledger is lost, and who
// had left by an approval that still stands. It lets nobody else go.
func TestApprovalIsUsedThoughItsUseWasForgotten(t *testing.T) {
	in := rolling(4)
	in.Spec.Target.Commit, in.ApprovedRemoval = "main@sha1:abc", "abc"
	in.Previous, in.Ledger = rollout.Previous{}, v1alpha1.Ledger{}
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
