package rollout_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// TestProperty_S1_S3_S4_S5_S6_S10_S11_S15_L3 lets random histories happen; every plan
// is checked by rollouttest.Invariants, which says which property is broken.
func TestProperty_S1_S3_S4_S5_S6_S10_S11_S15_L3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newWorld(t).run(rapid.IntRange(5, 40).Draw(t, "length"))
	})
}

// TestProperty_L1_L5_ConvergesAfterFaults: whatever happened, a commit that everybody
// takes reaches everybody once the faults end, and then nothing is left in the ledger.
func TestProperty_L1_L5_ConvergesAfterFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.calm()
		plan := w.rest()
		held := false
		for _, c := range plan.Clusters {
			switch c.State {
			case rollout.Succeeded, rollout.Unchanged, rollout.Unstaged, rollout.Ignored:
			default:
				held = true
				if c.Reason != "held by strategy" {
					t.Fatalf("%s is %s: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
				}
			}
		}
		// Who is in no step may keep what it has when the others are done.
		done := plan.Phase == v1alpha1.PhaseSucceeded && plan.Counts.Updated == plan.Counts.Total && !held
		if plan.Phase != atEnd(w.fleet) && !done {
			t.Fatalf("%s: %s\nafter %v", plan.Phase, plan.Message, w.history)
		}
		if l := w.fleet.Ledger; len(l.Waves)+len(l.Parked) > 0 || l.Removal != nil {
			t.Fatalf("the ledger is not empty at rest: %+v", l)
		}
	})
}

// TestProperty_L2_RestIsExplained: when the faults end, and the content stays as bad as it
// was, everything that can finish does; who waits then waits for something that stands in
// the way, which rollouttest.Invariants looks up, and nobody is said to move who does not.
func TestProperty_L2_RestIsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.cease()
		plan := w.rest()
		for _, c := range plan.Clusters {
			if c.State.InFlight() && w.fleet.Clusters[c.Name].Settles() {
				t.Fatalf("%s is %s for ever: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
			}
		}
	})
}
