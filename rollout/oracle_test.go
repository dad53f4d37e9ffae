package rollout_test

import (
	"errors"
	"math/rand"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestMoments_PlanIsAFunctionOfItsInput plans for random moments, also such as no history
// leads to: the order of the input does not matter, the input stays as it was, and the ledger
// is read by its description as the planner reads it.
func TestMoments_PlanIsAFunctionOfItsInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // moments are cheap
			in := drawInput(t)
			before := rollouttest.Snapshot(in)
			plan, refused := rollout.New(in)
			if refused != nil && !errors.Is(refused, rollout.ErrUnknownDecisionGroup) {
				t.Fatalf("cannot plan: %v", refused)
			}
			if rollouttest.Snapshot(in) != before {
				t.Fatalf("the planner changed its input: %s", before)
			}
			order := rand.New(rand.NewSource(1))
			again, _ := rollout.New(rollouttest.Shuffled(in, order))
			if a, b := rollouttest.Snapshot(plan), rollouttest.Snapshot(again); a != b {
				t.Fatalf("another order of the input gives another plan:\n%s\n%s", a, b)
			}
			records, err := rollout.Records(plan.Ledger)
			known, wrong := rollouttest.Records(plan.Ledger)
			if err := errors.Join(err, wrong); err != nil || len(known) != len(records) {
				t.Fatalf("%v, %d and %d records\nfor %s", err, len(records), len(known), before)
			}
			for _, r := range records {
				if known[r.Cluster] != r {
					t.Fatalf("%+v is read as %+v\nfor %s", r, known[r.Cluster], before)
				}
			}
		}
	})
}
