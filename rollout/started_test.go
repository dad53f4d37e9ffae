package rollout_test

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// TestStage_IsNotStartedByClustersAtOtherContent: while the canary soaks, a repaired cluster of the next stage and one
// that joins are in flight to the stable revision. The stage starts with its first cluster at the target.
func TestStage_IsNotStartedByClustersAtOtherContent(t *testing.T) {
	phase := func(p rollout.Plan, stage string) string {
		for _, s := range p.Stages {
			if s.Name == stage {
				return s.Phase
			}
		}
		t.Fatalf("no stage %s in %+v", stage, p.Stages)
		return ""
	}
	for name, changes := range map[string][]change{
		"a cluster whose works were deleted": {recorded(rollout.Done, "v1", time.Hour, time.Hour, c3), on(c3, nothing)},
		"a joiner":                           {on(c3, nothing)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := phase(planned(t, rolling(6), changes...), "everyone"); got != rollout.StageWaiting {
				t.Errorf("everyone is %s before a cluster of it was admitted to the target", got)
			}
		})
	}
	both := planned(t, rolling(6), canaryDone, admitted("v2", 0, c4), on(c3, nothing))
	if got := phase(both, "everyone"); got != rollout.StageProgressing {
		t.Errorf("with a cluster at the target everyone is %s", got)
	}
}
