package rollout

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// paceless are 20 clusters with v1 whose add-on declares no pace, and whose target is v2.
func paceless() Input {
	in := allAtOnce([]string{
		"c01", "c02", "c03", "c04", "c05", "c06", "c07", "c08", "c09", "c10", "c11", "c12", "c13", "c14", "c15", "c16", "c17", "c18", "c19", "c20",
	})
	in.Spec.Stages = nil
	in.Spec.Install = &v1alpha1.Install{Type: installPlacements, DefaultCanary: true, Placements: []v1alpha1.InstallPlacement{{
		PlacementReference: v1alpha1.PlacementReference{Namespace: "default", Name: "all"},
	}}}
	return in
}

// named are the clusters in a state.
func named(p Plan, state State) string {
	var names []string
	for _, c := range p.Clusters {
		if c.State == state {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, " ")
}

// follows plans, carries the plan out, and lets the admitted clusters report.
func follows(t *testing.T, in *Input, health HealthState) Plan {
	t.Helper()
	plan, err := New(*in)
	if err != nil {
		t.Fatal(err)
	}
	in.Now, in.Ledger = in.Now.Add(time.Minute), plan.Ledger
	in.Clusters = slices.Clone(in.Clusters)
	for i := range in.Clusters {
		if c := &in.Clusters[i]; plan.Clusters[i].State.InFlight() {
			c.Running, c.UpToDate, c.UpToDateStable, c.Health.State = "v2", true, false, health
		}
	}
	return plan
}

// One available cluster gets the content first, whichever the hash of its name chooses; after it is
// verified, the others follow, at most 10 % at a time.
func TestDefaultCanary_OneClusterFirstThenATenth(t *testing.T) {
	in := paceless()
	first := named(follows(t, &in, HealthProgressing), Admitted)
	if first == "" || strings.Contains(first, " ") {
		t.Fatalf("%q are admitted first", first)
	}
	again := paceless()
	for i := range again.Clusters {
		again.Clusters[i].Reachable = again.Clusters[i].Name != first
	}
	other := named(follows(t, &again, HealthVerified), Admitted)
	if other == "" || strings.Contains(other, " ") || other == first {
		t.Errorf("%s is not available, and %q is admitted", first, other)
	}
	for i := range again.Clusters {
		again.Clusters[i].Reachable = true
	}
	if got := named(follows(t, &again, HealthVerified), Admitted); len(strings.Fields(got)) != 2 {
		t.Errorf("after the canary %s %q are admitted, want 2 of 19", other, got)
	}
	plan := follows(t, &in, HealthVerified)
	if got := named(plan, Updating); got != first || plan.Counts.InFlight != 1 || plan.Phase != v1alpha1.PhaseProgressing {
		t.Errorf("before the canary is verified %q are in flight", got)
	}
	most, last := int32(0), v1alpha1.Phase("")
	for range 30 {
		plan := follows(t, &in, HealthVerified)
		most, last = max(most, plan.Counts.InFlight), plan.Phase
	}
	if most != 2 || last != v1alpha1.PhaseSucceeded {
		t.Errorf("at most %d in flight; the rollout is %s", most, last)
	}
}

// A canary that fails halts the rollout.
func TestDefaultCanary_ThatFailsHalts(t *testing.T) {
	in := paceless()
	first := named(follows(t, &in, HealthFailed), Admitted)
	plan := follows(t, &in, HealthFailed)
	if named(plan, Failed) != first || plan.Phase != v1alpha1.PhaseFailed || plan.Counts.InFlight != 0 {
		t.Errorf("%s, %d in flight: %s", plan.Phase, plan.Counts.InFlight, plan.Message)
	}
}

// A first install has nothing to protect, and a declared pace is the user's.
func TestDefaultCanary_IsForUpdatesWithoutAPaceOnly(t *testing.T) {
	first := paceless()
	first.Stable = ""
	for i := range first.Clusters {
		first.Clusters[i].Running, first.Clusters[i].UpToDateStable = "", false
	}
	declared := paceless()
	declared.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyUpdateAll}
	for name, in := range map[string]Input{"first install": first, "declared": declared} {
		if plan := follows(t, &in, HealthVerified); plan.Counts.InFlight != 20 {
			t.Errorf("%s: %d in flight", name, plan.Counts.InFlight)
		}
	}
}

// TestDefaultCanary_PaceLastsUntilTheRolloutEnds: other content runs on two clusters only, the canary and the last one.
// The clusters that run nothing keep the pace of a tenth when the last one is in flight.
func TestDefaultCanary_PaceLastsUntilTheRolloutEnds(t *testing.T) {
	in := paceless()
	canary := named(follows(t, &in, HealthVerified), Admitted)
	follows(t, &in, HealthVerified)
	other := strings.Fields(named(follows(t, &in, HealthProgressing), Admitted))[0]
	in.Stable = ""
	for i := range in.Clusters {
		if c := &in.Clusters[i]; c.Name != canary && c.Name != other {
			c.Running, c.UpToDate, c.UpToDateStable = "", false, false
		}
	}
	for range 3 {
		if plan := follows(t, &in, HealthProgressing); plan.Counts.InFlight > 2 {
			t.Fatalf("%d of 20 in flight: %s", plan.Counts.InFlight, plan.Message)
		}
	}
}

// TestDefaultCanary_IsNoClusterThatJoins: while the canary waits, the clusters that run nothing join at the stable
// revision, at most 10% at a time.
func TestDefaultCanary_IsNoClusterThatJoins(t *testing.T) {
	in := paceless()
	in.Placements[0].Settlement = Unsettled
	for i := range in.Clusters[:19] {
		c := &in.Clusters[i]
		c.Running, c.UpToDateStable = "", false
	}
	for range 3 {
		plan, err := New(in)
		if err != nil {
			t.Fatal(err)
		}
		if c, _ := plan.Why("c20"); plan.Counts.InFlight != 2 || c.Stage != defaultCanary {
			t.Errorf("%d in flight, and c20 is in stage %s", plan.Counts.InFlight, c.Stage)
		}
		in.Ledger, in.Clusters = plan.Ledger, slices.Clone(in.Clusters)
		for i, c := range plan.Clusters {
			if c.State.InFlight() {
				in.Clusters[i].Running, in.Clusters[i].UpToDateStable = "v1", true
			}
		}
	}
}

// TestDefaultCanary_IsTheClusterThatGotTheContent: the cluster was adopted while no stage could be determined, because
// the status was lost while the add-on was to be removed.
func TestDefaultCanary_IsTheClusterThatGotTheContent(t *testing.T) {
	in := paceless()
	first := named(follows(t, &in, HealthProgressing), Admitted)
	in.Ledger, in.Spec.Removal = v1alpha1.Ledger{}, &v1alpha1.Removal{Commit: "gone"}
	follows(t, &in, HealthProgressing)
	in.Spec.Removal = nil
	plan := follows(t, &in, HealthProgressing)
	if got := named(plan, Updating); got != first || plan.Counts.InFlight != 1 {
		t.Errorf("%s got the content first; %d are in flight, and %q has it", first, plan.Counts.InFlight, got)
	}
}

// TestDefaultCanary_WhoseWorksAreDeletedStaysTheCanary: it is admitted to the target again, and no second cluster gets the
// content before it is verified.
func TestDefaultCanary_WhoseWorksAreDeletedStaysTheCanary(t *testing.T) {
	in := paceless()
	canary := named(follows(t, &in, HealthProgressing), Admitted)
	for i := range in.Clusters {
		if c := &in.Clusters[i]; c.Name == canary {
			c.Reachable = false
		}
	}
	follows(t, &in, HealthProgressing)
	in.Now = in.Now.Add(2 * time.Hour)
	if plan := follows(t, &in, HealthProgressing); named(plan, Parked) != canary {
		t.Fatalf("%s is not parked: %s", canary, plan.Message)
	}
	for i := range in.Clusters {
		if c := &in.Clusters[i]; c.Name == canary {
			c.Running, c.UpToDate, c.Reachable, c.Health = "", false, true, Health{}
		}
	}
	for range 2 {
		plan := follows(t, &in, HealthProgressing)
		if c, _ := plan.Why(canary); plan.Counts.InFlight != 1 || c.Revision != "v2" || c.Stage != defaultCanary {
			t.Fatalf("%d in flight, and %s is %s in %s at %q", plan.Counts.InFlight, canary, c.State, c.Stage, c.Revision)
		}
	}
}

// In a revert, failed clusters are admitted first, and the limit of 10% stays.
func TestDefaultCanary_DoesNotLeadARevert(t *testing.T) {
	in := paceless()
	canary := named(follows(t, &in, HealthProgressing), Admitted)
	follows(t, &in, HealthVerified)
	plan := follows(t, &in, HealthVerified)
	failed := strings.Fields(named(plan, Admitted))
	if len(failed) != 2 || named(plan, Done) != canary {
		t.Fatalf("%v follow %s", failed, canary)
	}
	for i := range in.Clusters {
		if slices.Contains(failed, in.Clusters[i].Name) {
			in.Clusters[i].Health.State = HealthFailed
		}
	}
	if plan, err := New(in); err != nil || plan.Phase != v1alpha1.PhaseFailed {
		t.Fatalf("%s, %v", plan.Phase, err)
	} else {
		in.Ledger = plan.Ledger
	}
	in.Spec.Target = &v1alpha1.Target{Revision: "v1", Digest: "v1"}
	in.TargetProven, in.Reverting = true, true
	for i := range in.Clusters {
		c := &in.Clusters[i]
		c.UpToDate, c.UpToDateStable = c.Running == "v1", c.Running == "v1"
	}
	plan, err := New(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := named(plan, Admitted); got != strings.Join(failed, " ") {
		t.Errorf("%q go back first, want %v; the canary was %s", got, failed, canary)
	}
}
