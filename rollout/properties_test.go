package rollout_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// TestHistories_KeepEveryPromise lets random histories
// happen. Every plan is judged by the history before it; the error names the property that
// it breaks.
func TestHistories_KeepEveryPromise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newWorld(t).run(rapid.IntRange(5, 40).Draw(t, "length"))
	})
}

// TestHistories_ConvergeAfterFaults: whatever happened, a commit that every cluster
// takes reaches every cluster once the faults end. Then no record holds a slot, and none
// names other content.
func TestHistories_ConvergeAfterFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.calm()
		plan := w.rest()
		held := false
		for _, c := range plan.Clusters {
			switch c.State {
			case rollout.Done, rollout.Unchanged, rollout.Unstaged, rollout.Ignored:
			default:
				held = true
				protected := c.Reason == "held by strategy" && (w.fleet.Policy.Stable != "" || w.fleet.Clusters[c.Name].Running != "")
				if !protected && !strings.Contains(c.Reason, "selects no cluster of the install set") {
					t.Fatalf("%s is %s: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
				}
			}
		}
		// Clusters in no stage may keep what they have when the others are done.
		done := plan.Phase == v1alpha1.PhaseSucceeded && plan.Counts.Updated == plan.Counts.Total && !held
		// A placement of a share or stage that selects no cluster is the user's to change.
		done = done || plan.Phase == v1alpha1.PhaseHeld && strings.Contains(plan.Message, "selects no cluster of the install set")
		if plan.Phase != atEnd(w.fleet) && !done {
			t.Fatalf("%s: %s: %+v\nafter %v", plan.Phase, plan.Message, plan.Clusters, w.history)
		}
		records, err := rollout.Records(w.fleet.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.InFlight() || plan.Phase == v1alpha1.PhaseSucceeded && r.Revision != w.fleet.Target() {
				t.Fatalf("a record is left at rest: %+v\nafter %v", r, w.history)
			}
		}
	})
}

// TestHistories_RevertsConverge: whatever happened, a revert to content that succeeded before, and that
// every cluster takes, reaches every cluster once the faults end, also those whose stage is gone.
func TestHistories_RevertsConverge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.calm()
		w.rest()
		w.commit()
		w.run(rapid.IntRange(0, 15).Draw(t, "after that"))
		proven := slices.Sorted(maps.Keys(w.fleet.Succeeded))
		if len(proven) == 0 {
			t.Skip("no content succeeded")
		}
		w.calm()
		w.fleet.SetTarget(rapid.SampledFrom(proven).Draw(t, "to"))
		w.passGates()
		plan := w.rest()
		for _, c := range plan.Clusters {
			switch c.State {
			case rollout.Done, rollout.Unchanged, rollout.Unstaged, rollout.Ignored, rollout.Gone:
			default:
				t.Fatalf("%s is %s: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
			}
		}
		if plan.Phase != v1alpha1.PhaseSucceeded {
			t.Fatalf("%s: %s: %+v\nafter %v", plan.Phase, plan.Message, plan.Clusters, w.history)
		}
	})
}

// TestHistories_RestIsExplained: when the faults end, and the content stays as bad as it
// was, every cluster that can finish does, and no cluster is in flight for ever.
func TestHistories_RestIsExplained(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.cease()
		plan := w.rest()
		for _, c := range plan.Clusters {
			if c.State.InFlight() && w.fleet.Clusters[c.Name].Reports() {
				t.Fatalf("%s is %s for ever: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
			}
		}
	})
}
