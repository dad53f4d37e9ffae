package rollout_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestMoments_AreJudged plans for random moments, also such as no history leads to. The
// second planner takes the word of their records for what happened before.
func TestMoments_AreJudged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 20 { // moments are cheap
			in := drawInput(t)
			plan, refused := rollout.New(in)
			if refused != nil && !errors.Is(refused, rollout.ErrUnknownDecisionGroup) {
				t.Fatalf("cannot plan: %v", refused)
			}
			if err := rollouttest.NewHistory().Check(rollouttest.StepOf(in, plan, refused)); err != nil {
				t.Fatalf("%v\nfor %s\nactions %+v", err, rollouttest.Snapshot(in), plan.Actions)
			}
		}
	})
}
