package rollout_test

import (
	"testing"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// waiting makes it a cluster on which the add-on base is not verified.
func waiting(c *rollout.Cluster) { c.Waits = "waits for add-on base to be verified" }

// A cluster that waits for another add-on is not admitted and takes no slot; the clusters after it
// in its stage go first. A revert does not wait.
func TestClusterThatWaitsForAnotherAddOn(t *testing.T) {
	for name, tc := range map[string]momentCase{
		"one of the canaries": {
			reason: "the other one goes first",
			change: []change{on(c1, waiting)},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "1 not admitted yet (cluster-01: waits for add-on base to be verified)",
		},
		"all canaries": {
			reason: "the stage is not complete, and the next one does not start",
			change: []change{on(c1, waiting), on(c2, waiting)},
			want:   map[string]string{c1: "Waiting v1", c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "canary 0/2, 2 not admitted yet (cluster-01: waits for add-on base to be verified; and 1 more)",
		},
		"the last canary": {
			reason: "the stage waits for it",
			change: []change{finished(c1), on(c2, waiting)},
			want:   map[string]string{c1: "Done v2", c2: "Waiting v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"in flight": {
			reason: "what was admitted continues, on its own clocks",
			change: []change{updating("v2", 5*time.Minute, c1), on(c1, runs("v2", rollout.HealthProgressing), waiting)},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"}, silent: "not admitted yet",
		},
		"in flight with other content": {
			reason: "no content reaches it, not even in the slot that it has",
			change: []change{updating("v0", 5*time.Minute, c1), on(c1, runs("v0", rollout.HealthProgressing), waiting)},
			want:   map[string]string{c1: "Updating v0", c2: "Waiting v1"},
		},
		"runs the target": {
			reason: "there is nothing to wait for",
			change: []change{finished(c1, c2), on(c1, waiting)},
			want:   map[string]string{c1: "Done v2", c3: "Admitted v2"}, silent: "not admitted yet",
		},
		"behind a gate": {
			reason: "no verdict is asked for while no cluster could be admitted",
			change: []change{before(0, approvalGate("qa")), on(c1, waiting), on(c2, waiting)},
			want:   map[string]string{c1: "Waiting v1"}, phase: v1alpha1.PhaseProgressing, silent: "approval",
		},
		"joiner": {
			reason: "the stable revision is content as well",
			change: []change{on(c1, nothing, waiting)},
			want:   map[string]string{c1: "Waiting", c2: "Admitted v2"},
		},
		"a revert": {
			reason: "it passes the dependency by",
			change: []change{revert, on(c1, waiting)},
			want:   map[string]string{c1: "Admitted v2"}, silent: "not admitted yet",
		},
		"a revert that has ended": {
			reason: "the cluster still runs what was taken back",
			change: []change{finished(c2, c3, c4, c5, c6), ended, revert, on(c1, waiting)},
			want:   map[string]string{c1: "Admitted v2"}, silent: "not admitted yet",
		},
		"a revert, and nothing to take back": {
			reason: "new content reaches a cluster only after what it depends on",
			change: []change{revert, on(c1, nothing, waiting)},
			want:   map[string]string{c1: "Waiting", c2: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}
