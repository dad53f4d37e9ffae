package rollout_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestOracle compares the planner with a second implementation that reads the design
// sentence by sentence, over random moments of random rollouts, and holds each plan
// against every invariant.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // moments are cheap
			checkAgainstOracle(t, drawInput(t))
		}
	})
}

func checkAgainstOracle(t *rapid.T, in rollout.Input) {
	plan, refused := rollout.New(in)
	if refused != nil && !errors.Is(refused, rollout.ErrUnknownDecisionGroup) {
		t.Fatalf("cannot plan: %v", refused)
	}
	inv := rollouttest.NewInvariants()
	if err := inv.Believe(in); err != nil {
		t.Fatal(err)
	}
	if err := inv.Check(in, plan, refused); err != nil {
		t.Fatalf("%v\nfor %s", err, rollouttest.Snapshot(in))
	}
}
