package rollout_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestOracle compares the planner with a second implementation that reads the design
// sentence by sentence, over random moments of random rollouts.
func TestOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawInput(t)
		plan, err := rollout.New(in)
		if err != nil {
			t.Fatalf("cannot plan: %v", err)
		}
		fates, err := rollouttest.Naive(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := rollouttest.Agrees(in, plan, fates); err != nil {
			t.Fatalf("%v\nfor %s", err, rollouttest.Snapshot(in))
		}
	})
}
