package rollout_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// The stages of every moment: a canary of cluster-01 and 02, one at a time, soak 10m,
// deadline 30m; then the other clusters, 25% (one of four) at a time, without a soak, and
// with the default deadline of 1h.
const c1, c2, c3, c4, c5, c6 = "cluster-01", "cluster-02", "cluster-03", "cluster-04", "cluster-05", "cluster-06"

func momentCases() map[string]momentCase {
	stuck := runs("v2", rollout.HealthProgressing)
	failing := runs("v2", rollout.HealthFailed)
	return map[string]momentCase{
		"verified and soaking": {
			reason: "the slot is held until the soak is over",
			change: []change{inSoak("v2", 15*time.Minute, 9*time.Minute, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "canary 0/2, soaking until 12:01 UTC",
		},
		"verified and soaked": {
			reason: "at the very second the slot is free",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Done v2", c2: "Admitted v2", c3: "Waiting v1"},
		},
		"health lost in the soak": {
			reason: "the soak starts over when the cluster is verified again",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"},
		},
		"feedback missing in the soak": {
			reason: "the soak can not end without feedback, and does not start over",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, runs("v2", rollout.HealthUnknown))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"},
		},
		"lost in the soak": {
			reason: "it keeps its slot, and its soak can not end",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, verified("v2"), offline)},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"},
		},
		"silent past the deadline": {
			reason: "a reachable cluster has failed, and the budget of 0 is spent",
			change: []change{updating("v2", 30*time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
			says: "halted in canary: 1 failed (cluster-01: past its progress deadline: Deployment/agent: 1 of 2 ready), 5 untouched",
		},
		"verified after the deadline": {
			reason: "recovery counts: it soaks, and nothing has failed",
			change: []change{admitted("v2", 3*time.Hour, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"a failure is reported": {
			reason: "the cluster fails at once, long before the deadline",
			change: []change{admitted("v2", time.Second, c1), on(c1, failing)},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "cluster-01: Deployment/agent: 1 of 2 ready",
		},
		"a failure of other content is reported": {
			reason: "feedback from before the content was applied does not count",
			change: []change{admitted("v2", time.Second, c1), on(c1, runs("v1", rollout.HealthFailed))},
			want:   map[string]string{c1: "Admitted v2"},
		},
		"failed and then lost": {
			reason: "a loss repairs no failure",
			change: []change{admitted("v2", time.Hour, c1), on(c1, failing, offline)},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"timed out and then lost": {
			reason: "it was available past its deadline",
			change: []change{recorded(rollout.TimedOut, "v2", time.Hour, 30*time.Minute, c1), on(c1, stuck, offline)},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"lost within the declared deadline": {
			reason: "it keeps its slot until the deadline",
			change: []change{lost(29*time.Minute, 28*time.Minute, c1), on(c1, stuck, offline)},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"}, says: "waits for 1 unavailable cluster (cluster-01)",
		},
		"lost by its configuration": {
			reason: "it is available, and the text says why it gets no content",
			change: []change{lost(29*time.Minute, 28*time.Minute, c1), on(c1, stuck, away)},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"}, says: "waits for 1 cluster (cluster-01: its configuration is missing)",
		},
		"parked by its configuration": {
			reason: "it blocks no cluster, takes no slot, and is named with the reason",
			change: []change{canaryDone, on(c3, away)},
			want:   map[string]string{c3: "Parked v1", c4: "Admitted v2"}, says: "1 parked (cluster-03: its configuration is missing)",
		},
		"held by its ManagedCluster": {
			reason: "it blocks no cluster, takes no slot, and is named",
			change: []change{canaryDone, on(c3, held)},
			want:   map[string]string{c3: "Held v1", c4: "Admitted v2"}, says: "1 held by annotation (cluster-03)",
		},
		"held, and the hold is over": {
			reason: "at the very second it is moved",
			change: []change{canaryDone, on(c3, heldUntil(0))},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"}, silent: "held",
		},
		"held and not available": {
			reason: "its return would change nothing",
			change: []change{canaryDone, on(c3, held, offline)},
			want:   map[string]string{c3: "Held v1", c4: "Admitted v2"}, silent: "not available",
		},
		"held with the target": {
			reason: "there is nothing to wait for",
			change: []change{canaryDone, on(c1, held), on(c3, held, upToDate)},
			want:   map[string]string{c1: "Done v2", c3: "Unchanged v1", c4: "Admitted v2"}, silent: "held",
		},
		"held before its first content": {
			reason: "it gets the content after the hold",
			change: []change{canaryDone, on(c3, nothing, held)},
			want:   map[string]string{c3: "Held", c4: "Admitted v2"},
		},
		"held while in flight": {
			reason: "it finishes with the content that it has",
			change: []change{canaryDone, updating("v2", time.Minute, c3), on(c3, verified("v2"), held)},
			want:   map[string]string{c3: "Done v2", c4: "Admitted v2"}, silent: "held",
		},
		"held in flight to a target that was replaced": {
			reason: "it keeps its content and its slot until it is verified or fails",
			change: []change{canaryDone, updating("v0", time.Minute, c3), on(c3, runs("v0", rollout.HealthProgressing), held)},
			want:   map[string]string{c3: "Updating v0", c4: "Waiting v1"},
		},
		"held in flight to content that a revert replaces": {
			reason: "the revert does not wait for it, and names it",
			change: []change{revert, canaryDone, updating("v0", time.Minute, c3), on(c3, runs("v0", rollout.HealthProgressing), held)},
			want:   map[string]string{c3: "Updating v0", c4: "Admitted v2"}, says: "1 held by annotation (cluster-03)",
		},
		"held with content that a revert replaces": {
			reason: "it waits in a revert as well, and is named",
			change: []change{revert, canaryDone, finished(c4, c5, c6), recorded(rollout.Failed, "v0", time.Hour, time.Hour, c3), on(c3, runs("v0", rollout.HealthFailed), held)},
			want:   map[string]string{c3: "Held v0"}, phase: v1alpha1.PhaseSucceeded, says: "5/6 updated, 1 held by annotation (cluster-03)",
		},
		"one canary is held": {
			reason: "the other one proves the content",
			change: []change{on(c1, held), finished(c2)},
			want:   map[string]string{c1: "Held v1", c2: "Done v2", c3: "Admitted v2"},
		},
		"every canary is held or parked": {
			reason: "a stage in which no cluster is verified is not complete",
			change: []change{on(c1, heldUntil(time.Hour)), on(c2, offline)},
			want:   map[string]string{c1: "Held v1", c2: "Parked v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "canary 0/2, waits for a cluster that is available and is not held, 1 not available, 1 held by annotation (cluster-01)", outcome: rollout.Pending,
		},
		"held after the success": {
			reason: "a change of its own inputs waits for the end of the hold",
			change: []change{canaryDone, finished(c3, c4, c5, c6), ended, on(c3, edited, held)},
			want:   map[string]string{c3: "Held v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success, says: "5/6 updated, 1 held by annotation (cluster-03)",
		},
		"parked while in flight": {
			reason: "it keeps its slot like a cluster that is lost",
			change: []change{canaryDone, admitted("v2", time.Minute, c3), on(c3, stuck, away)},
			want:   map[string]string{c3: "Lost v2", c4: "Waiting v1"},
		},
		"lost past the declared deadline": {
			reason: "parked: the slot is free, and nothing has failed",
			change: []change{lost(31*time.Minute, 30*time.Minute, c1), on(c1, stuck, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"lost under the default deadline": {
			reason: "the park time counts from when the operator saw the loss",
			change: []change{canaryDone, lost(30*time.Minute, 9*time.Minute, c3), on(c3, stuck, offline)},
			want:   map[string]string{c3: "Lost v2", c4: "Waiting v1"},
		},
		"lost under the default deadline for the park time": {
			reason: "its slot is free",
			change: []change{canaryDone, lost(30*time.Minute, 10*time.Minute, c3), on(c3, stuck, offline)},
			want:   map[string]string{c3: "Parked v2", c4: "Admitted v2"},
		},
		"back after it was parked": {
			reason: "in flight at once, above the limit, and no cluster is admitted until the count is below the limit again",
			change: []change{canaryDone, parked("v2", c3), on(c3, stuck), admitted("v2", time.Minute, c4), on(c4, stuck)},
			want:   map[string]string{c3: "Updating v2", c4: "Updating v2", c5: "Waiting v1"}, says: "everyone 0/4, 2 in flight",
		},
		"every canary is parked": {
			reason: "a stage in which no cluster is verified is not complete",
			change: []change{parked("v2", c1, c2), on(c1, stuck, offline), on(c2, stuck, offline)},
			want:   map[string]string{c1: "Parked v2", c3: "Waiting v1"}, says: "waits for a cluster that is available",
		},
		"never available": {
			reason: "it is not admitted and blocks nothing",
			change: []change{on(c1, offline), finished(c2)},
			want:   map[string]string{c1: "Parked v1", c3: "Admitted v2"},
		},
		"a canary of one unchanged and one offline cluster": {
			reason: "no cluster verified the content, so that the next stage does not start",
			change: []change{on(c1, upToDate), on(c2, offline)},
			want:   map[string]string{c1: "Unchanged v1", c2: "Parked v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "canary 1/2, waits for a cluster that is available", outcome: rollout.Pending,
		},
		"new target, in flight at the old one": {
			reason: "it keeps its slot and is retargeted first, with new clocks",
			change: []change{admitted("v0", 29*time.Minute, c2), on(c2, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"},
		},
		"new target, in flight in a later stage": {
			reason: "until its stage starts, it goes on with what it has",
			change: []change{admitted("v0", time.Minute, c3), on(c3, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c1: "Admitted v2", c3: "Updating v0", c4: "Waiting v1"},
		},
		"new target, verified at the old one": {
			reason: "its slot is free once it has soaked",
			change: []change{canaryDone, admitted("v0", 59*time.Minute, c3), on(c3, verified("v0"))},
			want:   map[string]string{c3: "Admitted v2"},
		},
		"new target, failed at the old one": {
			reason: "clusters that failed before go first, and need a slot",
			change: []change{admitted("v0", time.Hour, c2), on(c2, runs("v0", rollout.HealthFailed))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"it fails with what it runs": {
			reason: "the target may repair it: it goes first as well",
			change: []change{on(c2, runs("v1", rollout.HealthFailed))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"},
		},
		"unchanged": {
			reason: "a cluster for which the target changes nothing takes no part",
			change: []change{on(c1, upToDate), on(c2, upToDate)},
			want:   map[string]string{c1: "Unchanged v1", c2: "Unchanged v1", c3: "Admitted v2"},
		},
		"unchanged while in flight": {
			reason: "what it is in flight with is the target's content too: its clocks go on",
			change: []change{inSoak("v0", 9*time.Minute, 5*time.Minute, c1), on(c1, verified("v0"), upToDate)},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, says: "soaking until 12:05 UTC",
		},
		"its own configuration changed": {
			reason: "a Done cluster whose inputs changed waits for a slot like any other",
			change: []change{canaryDone, finished(c3), on(c3, edited), admitted("v2", time.Minute, c4), on(c4, stuck)},
			want:   map[string]string{c3: "Waiting v2", c4: "Updating v2"},
		},
		"its own configuration changed in the soak": {
			reason: "new content under the same revision restarts its clocks",
			change: []change{inSoak("v2", 40*time.Minute, 9*time.Minute, c1), on(c1, verified("v2"), edited)},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"joiner in a stage that may not start": {
			reason: "it is installed at the stable revision, in a slot of its stage",
			change: []change{on(c3, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Admitted v1", c4: "Waiting v1"},
		},
		"joiner and a spent budget": {
			reason: "a failure of the target keeps no cluster from proven content",
			change: []change{admitted("v2", time.Minute, c1), on(c1, failing), on(c2, nothing)},
			want:   map[string]string{c1: "Failed v2", c2: "Admitted v1"}, phase: v1alpha1.PhaseFailed,
		},
		"joiner without a free slot": {
			reason: "it waits for a slot",
			change: []change{canaryDone, on(c3, nothing), admitted("v2", time.Minute, c4), on(c4, stuck)},
			want:   map[string]string{c3: "Waiting", c4: "Updating v2"},
		},
		"joiner arrived": {
			reason: "it waits for the target like the others",
			change: []change{canaryDone, admitted("v1", time.Minute, c4), on(c4, verified("v1"))},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"},
		},
		"joiner stuck at the stable revision": {
			reason: "it is late, and the target may repair it",
			change: []change{canaryDone, updating("v1", time.Hour, c4), on(c4, runs("v1", rollout.HealthProgressing))},
			want:   map[string]string{c4: "Admitted v2"},
		},
		"terminating": {
			reason: "its ManagedCluster goes, and its slot is free",
			change: []change{admitted("v2", time.Minute, c1), on(c1, stuck, func(c *rollout.Cluster) { c.Gone = true })},
			want:   map[string]string{c1: "Gone v2", c2: "Admitted v2"},
		},
		"its add-on is being deleted": {
			reason: "its slot is free",
			change: []change{admitted("v2", time.Minute, c1), on(c1, stuck, func(c *rollout.Cluster) { c.Installed = rollout.Deleting })},
			want:   map[string]string{c1: "Removing v2", c2: "Admitted v2"},
		},
		"suspended": {
			reason: "no cluster is admitted, joiners included; clusters in flight continue",
			change: []change{
				func(in *rollout.Input) { in.Suspended = true }, inSoak("v2", time.Hour, time.Hour, c1),
				on(c1, verified("v2")), on(c3, nothing), admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Done v2", c2: "Waiting v1", c3: "Waiting", c4: "Updating v0"},
			phase: v1alpha1.PhaseSuspended, says: "suspended; canary 1/2",
		},
		"contested": {
			reason: "no cluster is admitted, joiners included, and the text names the other owner; clusters in flight continue",
			change: []change{
				func(in *rollout.Input) { in.Contested = "ownership conflict: b owns it" }, inSoak("v2", time.Hour, time.Hour, c1),
				on(c1, verified("v2")), on(c3, nothing), admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Done v2", c2: "Waiting v1", c3: "Waiting", c4: "Updating v0"},
			phase: v1alpha1.PhaseHeld, says: "held: ownership conflict: b owns it; canary 1/2",
		},
		"target missing": {
			reason: "no cluster is admitted, joiners included, and no deadline runs for works that cannot be written; clusters in flight continue",
			change: []change{
				func(in *rollout.Input) { in.TargetMissing = "revision hello-2 is missing" }, admitted("v2", time.Hour, c2),
				inSoak("v2", time.Hour, time.Hour, c1), on(c1, verified("v2")), on(c3, nothing),
				admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Done v2", c2: "Admitted v2", c3: "Waiting", c4: "Updating v0", c5: "Waiting v1"},
			phase: v1alpha1.PhaseProgressing, says: "revision hello-2 is missing; canary 1/2, 1 in flight",
		},
		"contested past the deadline": {
			reason: "no cluster is late while its works may not be written",
			change: []change{
				func(in *rollout.Input) { in.Contested = "ownership conflict" },
				admitted("v2", time.Hour, c1), updating("v2", time.Hour, c2), on(c2, stuck),
			},
			want: map[string]string{c1: "Admitted v2", c2: "Updating v2", c3: "Waiting v1"},
		},
		"revert": {
			reason: "proven content does not soak; order and pace are those of any rollout",
			change: []change{revert, admitted("v2", time.Minute, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Done v2", c2: "Admitted v2", c3: "Waiting v1"},
		},
		"rollback of failures behind the canary": {
			reason:  "failed clusters do not wait for the canary, and share the slot of their stage",
			change:  []change{rollback, oneAtATime, recorded(rollout.Failed, "v0", time.Hour, time.Hour, c4, c5), on(c4, runs("v0", rollout.HealthFailed)), on(c5, runs("v0", rollout.HealthFailed))},
			want:    map[string]string{c1: "Admitted v2", c2: "Waiting v1", c3: "Waiting v1", c4: "Admitted v2", c5: "Waiting v0"},
			reasons: map[string]string{c3: "waits for canary to complete", c5: "waits for a free slot in everyone: 1 of 1 in flight"},
		},
		"rollback of a failure while a window holds reverts": {
			reason: "the failed cluster waits for the window of its stage, and for no other stage",
			change: []change{rollback, func(in *rollout.Input) {
				window := openWindow("night")
				window.Window.HoldsReverts = true
				in.Spec.Stages[1].Gates = &v1alpha1.Gates{Before: []v1alpha1.Gate{window}}
			}, recorded(rollout.Failed, "v0", time.Hour, time.Hour, c4), on(c4, runs("v0", rollout.HealthFailed))},
			want:    map[string]string{c1: "Admitted v2", c3: "Waiting v1", c4: "Waiting v0"},
			reasons: map[string]string{c3: "waits for canary to complete", c4: "waits for window night"},
		},
		"rollback of a failure while its stage is held": {
			reason: "maxConcurrency 0 holds every cluster of the stage",
			change: []change{
				rollback, func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) },
				recorded(rollout.Failed, "v0", time.Hour, time.Hour, c4), on(c4, runs("v0", rollout.HealthFailed)),
			},
			want: map[string]string{c1: "Admitted v2", c4: "Waiting v0"},
		},
		"rollback after the canary failed with the stable content": {
			reason: "a spent budget stops a rollback, also for failed clusters",
			change: []change{
				rollback, recorded(rollout.Failed, "v0", time.Hour, time.Hour, c4), on(c4, runs("v0", rollout.HealthFailed)),
				recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed)),
			},
			want: map[string]string{c1: "Failed v2", c4: "Waiting v0"}, phase: v1alpha1.PhaseFailed,
		},
		"git revert of a failure behind the canary": {
			reason: "a revert in Git keeps the order of the stages",
			change: []change{revert, recorded(rollout.Failed, "v0", time.Hour, time.Hour, c4), on(c4, runs("v0", rollout.HealthFailed))},
			want:   map[string]string{c1: "Admitted v2", c3: "Waiting v1", c4: "Waiting v0"},
		},
		"unsettled canary": {
			reason: "its members are not known, so that it is not complete: they must not get the target in the next stage",
			change: []change{func(in *rollout.Input) {
				in.Placements = []rollout.Placement{{
					Namespace: "default", Name: "canary", Settlement: rollout.Unsettled,
				}, in.Placements[1]}
			}},
			want:  map[string]string{c1: "Waiting v1", c3: "Waiting v1"},
			phase: v1alpha1.PhaseHeld, says: "the decisions of Placement default/canary are not settled",
		},
		"admitted, not installed yet, and its placement is undecided": {
			reason: "OCM's next decision does not take back the admission: it keeps its slot",
			change: []change{admitted("v2", time.Minute, c1), on(c1, nothing, func(c *rollout.Cluster) { c.Installed = rollout.NotInstalled }), func(in *rollout.Input) {
				for i := range in.Placements {
					in.Placements[i].Settlement = rollout.Undecided
				}
			}},
			want: map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
		},
		"returned with other content of a stage that is gone": {
			reason: "it holds a slot of the first stage at once, before another cluster is admitted",
			change: []change{
				func(in *rollout.Input) { in.Spec.Stages = in.Spec.Stages[:1] },
				parked("v1", c3), inStage("all"), on(c3, runs("v1", rollout.HealthProgressing)),
			},
			want: map[string]string{c1: "Waiting v1", c3: "Updating v1"},
		},
		"joiner in a stage held at 0": {
			reason: "there is no slot",
			change: []change{func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) }, on(c3, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Waiting"},
		},
		"tolerated failure": {
			reason: "the other clusters continue",
			change: []change{
				canaryDone, func(in *rollout.Input) { in.Spec.Stages[1].MaxFailures = new(percent("25%")) },
				admitted("v2", time.Minute, c5), on(c5, failing),
			},
			want: map[string]string{c5: "Failed v2", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"one failure too many": {
			reason: "past the budget no cluster is admitted, and the commit is red at once",
			change: []change{
				canaryDone, func(in *rollout.Input) { in.Spec.Stages[1].MaxFailures = new(percent("25%")) },
				admitted("v2", time.Minute, c4, c5), on(c4, failing), on(c5, failing),
			},
			want: map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "halted in everyone: 2 failed",
		},
		"every canary failed within the budget": {
			reason: "no cluster verified the content, whatever the budget",
			change: []change{
				func(in *rollout.Input) { in.Spec.Stages[0].MaxFailures = new(number(9)) },
				admitted("v2", time.Minute, c1, c2), on(c1, failing), on(c2, failing),
			},
			want: map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"hand-made outside the placements": {
			reason: "it is in the install set, and in no stage",
			change: []change{func(in *rollout.Input) {
				in.Clusters = append(in.Clusters, rollout.Cluster{Name: "mine", Installed: rollout.HandMade, Reachable: true, Running: "v1"})
			}},
			want: map[string]string{"mine": "Unstaged v1"},
		},
		"selected and not installed": {
			reason: "a stage does not install the add-on",
			change: []change{func(in *rollout.Input) {
				in.Clusters = append(in.Clusters, rollout.Cluster{Name: "other", Reachable: true})
				in.Placements = []rollout.Placement{placement("canary", c1, c2, "other"), in.Placements[1]}
			}},
			want: map[string]string{"other": "Ignored", c1: "Admitted v2"},
		},
		"strategy All": {
			reason: "every available cluster is admitted at once; a joiner starts at the stable revision",
			change: []change{strategyAll, on(c5, offline), on(c4, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Admitted v2", c4: "Admitted v1", c5: "Parked v1"},
		},
		"strategy All, a failure": {
			reason: "it does not make the commit red while others are undecided",
			change: []change{
				admitted("v2", time.Minute, c1, c2), finished(c3, c4, c5, c6), strategyAll, on(c1, failing), on(c2, stuck),
			},
			want: map[string]string{c1: "Failed v2", c2: "Updating v2", c3: "Done v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"strategy All, a failure and the last cluster is decided": {
			reason: "any failure makes the commit red",
			change: []change{admitted("v2", time.Minute, c1), finished(c2, c3, c4, c5, c6), strategyAll, on(c1, failing)},
			want:   map[string]string{c1: "Failed v2", c2: "Done v2"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
			says: "failed in all: 1 failed (cluster-01: Deployment/agent: 1 of 2 ready), 0 untouched",
		},
		"strategy All, not applied": {
			reason: "it is not a failure yet; the first cluster is named",
			change: []change{allAdmitted(time.Minute), strategyAll, on(c3, unapplied("v2")), on(c1, stuck), on(c2, unapplied("v2"))},
			want:   map[string]string{c1: "Updating v2", c2: "Updating v2", c3: "Updating v2", c4: "Admitted v2"},
			phase:  v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "all 0/6, 6 in flight, 2 not applied (cluster-02: Deployment imm: field is immutable; and 1 more)",
		},
		"not applied in the soak": {
			reason: "it was verified, and its soak can not end: it is named as well",
			change: []change{inSoak("v2", time.Minute, time.Minute, c1), on(c1, unapplied("v2"))},
			want:   map[string]string{c1: "Soaking v2"},
			says:   "1 not applied (cluster-01: Deployment imm: field is immutable)",
		},
		"not applied, of content that is replaced": {
			reason: "the error is about other content",
			change: []change{admitted("v2", time.Minute, c1), on(c1, unapplied("v1"))},
			want:   map[string]string{c1: "Admitted v2"}, says: "canary 0/2, 1 in flight", silent: "not applied",
		},
		"not applied, and lost": {
			reason: "its report is old",
			change: []change{admitted("v2", time.Minute, c1), on(c1, unapplied("v2"), offline)},
			want:   map[string]string{c1: "Lost v2"}, silent: "not applied",
		},
		"not applied, past the deadline": {
			reason: "it has failed, and is counted once",
			change: []change{updating("v2", 30*time.Minute, c1), on(c1, unapplied("v2"))},
			want:   map[string]string{c1: "TimedOut v2"}, phase: v1alpha1.PhaseFailed, says: "1 failed (cluster-01: ", silent: "1 not applied",
		},
		"strategy All, unchanged": {
			reason: "a cluster for which the target changes nothing takes no part, whatever its health",
			change: []change{
				updating("v2", time.Hour, c2), strategyAll, on(c1, runs("v1", rollout.HealthProgressing), upToDate), on(c2, stuck),
			},
			want: map[string]string{c1: "Unchanged v1", c2: "TimedOut v2"},
		},
		"leaving": {
			reason: "a cluster that leaves is not admitted, and the others do not wait for it",
			change: []change{
				canaryDone, finished(c3, c4), func(in *rollout.Input) {
					in.Spec.Install = installedBy("few")
					in.Placements = append(in.Placements, placement("few", c1, c2, c3, c4))
				},
			},
			want: map[string]string{c5: "Removing v1", c6: "Removing v1"}, phase: v1alpha1.PhaseSucceeded, says: "4/4 updated",
		},
		"leaving while in flight": {
			reason: "its slot is not free before it has left",
			change: []change{
				canaryDone, admitted("v2", time.Minute, c5), on(c5, stuck), func(in *rollout.Input) {
					in.Spec.Install = installedBy("few")
					in.Placements = append(in.Placements, placement("few", c1, c2, c3, c4))
				},
			},
			want: map[string]string{c3: "Waiting v1", c5: "Removing v2"},
		},
		"maxFailures of Progressive": {
			reason: "a percentage of all clusters of the placement, the mandatory group included: 2 of 6",
			change: []change{
				func(in *rollout.Input) {
					in.Placements[1] = grouped("all", group(0, "", c1, c2, c3), group(1, "", c4, c5, c6))
					in.Spec.Stages = nil
					in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{
						MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: 0}),
						RolloutConfig:           clusterv1alpha1.RolloutConfig{MaxFailures: percent("25%")}, MaxConcurrency: number(1),
					}))
				},
				canaryDone, finished(c3), admitted("v2", time.Minute, c4, c5), on(c4, failing), on(c5, failing),
			},
			want: map[string]string{c6: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"strategy All, each cluster has its own deadline": {
			reason: "the deadline starts when the works of the cluster were written",
			change: []change{
				updating("v2", 10*time.Minute, c1), updating("v2", time.Hour, c3), strategyAll, on(c1, stuck), on(c3, stuck),
			},
			want: map[string]string{c1: "Updating v2", c3: "TimedOut v2"},
		},
		"strategy All, then stages": {
			reason: "every admitted cluster keeps its slot; no other cluster is admitted",
			change: []change{admitted("v2", time.Minute, c1, c3, c4), inStage("all"), on(c1, stuck), on(c3, stuck)},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1", c3: "Updating v2", c4: "Admitted v2", c5: "Waiting v1"},
		},
		"status lost": {
			reason: "clusters that differ from the stable revision are in flight from now",
			change: []change{
				func(in *rollout.Input) { in.Rebuild = true },
				on(c1, verified("v2")), on(c3, runs("v0", rollout.HealthProgressing)), on(c4, runs(rollout.Mixed, rollout.HealthUnknown)),
				on(c5, runs(rollout.Foreign, rollout.HealthUnknown)),
			},
			want: map[string]string{c1: "Soaking v2", c2: "Waiting v1", c3: "Updating v0", c4: "Admitted v2", c5: "Waiting foreign"},
		},
		"status lost before any success": {
			reason: "clusters that have a work are in flight",
			change: []change{
				func(in *rollout.Input) { in.Rebuild, in.Stable = true, "" }, on(c1, stuck), on(c2, nothing),
				on(c3, runs("v1", rollout.HealthProgressing)),
			},
			want: map[string]string{c1: "Updating v2", c2: "Waiting", c3: "Updating v1"},
		},
		"after the success": {
			reason: "joiners and returning clusters catch up, and the outcome stays",
			change: []change{canaryDone, finished(c3, c4, c6), ended},
			want:   map[string]string{c5: "Admitted v2"}, phase: v1alpha1.PhaseSucceeded, says: "now 5/6 updated, 1 to update",
		},
		"a failure after the success": {
			reason: "the rollout has ended; the clusters that wait behind the failure need a retry, which the commit status says",
			change: []change{canaryDone, finished(c3, c4), ended, admitted("v2", time.Hour, c5), on(c5, failing)},
			want:   map[string]string{c5: "Failed v2", c6: "Waiting v1"}, phase: v1alpha1.PhaseSucceeded,
			says: "4/6 updated, 1 to update, 1 failed (cluster-05: Deployment/agent: 1 of 2 ready), halted in everyone", halted: true,
			outcome: rollout.Failure,
		},
		"a stage that is added after the success": {
			reason: "the rollout under the new policy has not ended, and the commit is pending again",
			change: []change{canaryDone, finished(c6), targetProven},
			want:   map[string]string{c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending, says: "everyone 1/4, 1 in flight",
		},
		"a canary that left in flight after the success": {
			reason: "the outcome stays until the cluster has left",
			change: []change{
				canaryDone, finished(c3, c4, c5, c6), lost(time.Minute, 30*time.Second, c1), ended,
				withoutCanary(c2, c3, c4, c5, c6),
			},
			want: map[string]string{c1: "Removing v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success,
		},
		"a canary that was parked and left after the success": {
			reason: "the target needs no proof any more",
			change: []change{
				canaryDone, finished(c3, c4, c5, c6), parked("v2", c1), on(c1, offline), ended, withoutCanary(c2, c3, c4, c5, c6),
			},
			want: map[string]string{c1: "Removing v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success,
		},
		"a canary that was parked and left in a revert": {
			reason: "proven content is not halted",
			change: []change{revert, parked("v2", c1), on(c1, offline), withoutCanary(c2, c3, c4, c5, c6)},
			want:   map[string]string{c1: "Removing v1", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"a revert while no cluster is available": {
			reason: "a revert that reached no cluster is not done",
			change: append([]change{revert}, forAll([]string{c1, c2, c3, c4, c5, c6}, func(name string) change { return on(name, offline) })...),
			want:   map[string]string{c1: "Parked v1"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "0/6 updated, 6 not available (updated on return)",
		},
		"a deleted pace": {
			reason: "strategy All does not give failed content to the other clusters",
			change: []change{admitted("v2", time.Hour, c1), on(c1, failing), func(in *rollout.Input) { in.Spec.Stages = nil }},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1", c6: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"two install placements, one finished and one failed": {
			reason: "a placement that is done does not make the commit green",
			change: []change{
				finished(c1, c2, c3, c5, c6), admitted("v2", time.Hour, c4), on(c4, failing), twoPlacements,
			},
			want:  map[string]string{c1: "Done v2", c4: "Failed v2", c5: "Done v2"},
			phase: v1alpha1.PhaseFailed, outcome: rollout.Failure, says: "failed in second: 1 failed (cluster-04",
		},
		"two install placements, one failed and one in flight": {
			reason: "the failure of one does not stop the other",
			change: []change{
				finished(c1), admitted("v2", time.Minute, c2), on(c2, stuck), finished(c5, c6),
				admitted("v2", time.Hour, c4), on(c4, failing), twoPlacements,
			},
			want:  map[string]string{c1: "Done v2", c2: "Updating v2", c3: "Admitted v2", c4: "Failed v2"},
			phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"no target": {
			reason: "there is nothing to roll out",
			change: []change{func(in *rollout.Input) { in.Spec.Target = nil }},
			want:   map[string]string{c1: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
	}
}

// withoutCanary empties the placement of the canary. The clusters stay in the install set.
func withoutCanary(names ...string) change {
	return func(in *rollout.Input) {
		in.RemovalGrace = time.Hour
		in.Placements = []rollout.Placement{placement("canary"), placement("all", names...)}
	}
}

// twoPlacements install the add-on on three clusters each, and have strategy All each.
// Clusters that have a record were admitted under it.
func twoPlacements(in *rollout.Input) {
	in.Spec.Stages = nil
	in.Spec.Install = installedBy("first", "second")
	in.Placements = []rollout.Placement{placement("first", c1, c2, c3), placement("second", c4, c5, c6)}
	records := recordsOf(in)
	for i := range records {
		if records[i].Stage = "first"; records[i].Cluster > c3 {
			records[i].Stage = "second"
		}
	}
	keepRecords(in, records)
}

// TestPoorerLedger_ClustersAtTheTargetAreInFlight: a ledger that does not name clusters which run the target, such as one
// restored from a backup, must not make unproven content look proven.
func TestPoorerLedger_ClustersAtTheTargetAreInFlight(t *testing.T) {
	stuck := runs("v2", rollout.HealthProgressing)
	for name, tc := range map[string]momentCase{
		"verified canaries without a record": {
			reason: "their soak starts now, and both hold a slot, above the limit of one",
			change: []change{on(c1, verified("v2")), on(c2, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Soaking v2", c3: "Waiting v1"},
			phase:  v1alpha1.PhaseProgressing, outcome: rollout.Pending, says: "canary 0/2, soaking until 12:10 UTC",
		},
		"unhealthy clusters without a record": {
			reason: "none of them counts as updated, and no cluster is admitted",
			change: []change{on(c1, stuck), on(c2, stuck), on(c3, stuck), on(c4, stuck)},
			want: map[string]string{
				c1: "Updating v2", c2: "Updating v2", c3: "Updating v2", c4: "Updating v2", c5: "Waiting v1",
			},
			phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending, says: "canary 0/2, 2 in flight",
		},
		"a failing canary without a record": {
			reason: "its failure counts",
			change: []change{on(c1, runs("v2", rollout.HealthFailed))},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"clusters above the limit without a record, in the last stage": {
			reason: "no cluster is admitted until the number in flight is below the limit",
			change: []change{canaryDone, on(c3, stuck), on(c4, stuck), on(c5, stuck)},
			want:   map[string]string{c3: "Updating v2", c4: "Updating v2", c5: "Updating v2", c6: "Waiting v1"},
			says:   "everyone 0/4, 3 in flight",
		},
		"every cluster is at the target without a record": {
			reason: "the rollout does not end before the soak",
			change: forAll([]string{c1, c2, c3, c4, c5, c6}, func(name string) change { return on(name, verified("v2")) }),
			want:   map[string]string{c1: "Soaking v2", c6: "Done v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"a lost cluster without a record": {
			reason: "its slot is held, and its last report proves nothing",
			change: []change{on(c1, verified("v2"), offline)},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"},
		},
		"the target is proven": {
			reason: "clusters that run it take no part",
			change: []change{on(c1, verified("v2")), on(c2, verified("v2")), targetProven},
			want:   map[string]string{c1: "Unchanged v2", c2: "Unchanged v2", c3: "Admitted v2"},
		},
		"works without AddonFlow's mark": {
			reason: "equal works that OCM wrote are unchanged",
			change: []change{on(c1, runs(rollout.Foreign, rollout.HealthVerified), upToDate)},
			want:   map[string]string{c1: "Unchanged foreign", c2: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestPoorerLedger_DoesNotSpreadBadContent: while a canary gets content that never becomes
// healthy, the ledger is replaced by an empty one. No further cluster gets the content.
func TestPoorerLedger_DoesNotSpreadBadContent(t *testing.T) {
	f := staged("v1", 8)
	take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", rollouttest.Names(8)...)(f)
	f.SetTarget("v2")
	var plan rollout.Plan
	for minute := range 120 {
		if minute == 5 {
			f.Ledger = v1alpha1.Ledger{}
		}
		plan = planned(t, f.Input())
		f.Store(plan)
		f.CarryOut(plan.Actions)
		f.Now = f.Now.Add(time.Minute)
	}
	if plan.Phase != v1alpha1.PhaseFailed || plan.Outcome != rollout.Failure {
		t.Errorf("%s: %s", plan.Phase, plan.Message)
	}
	for _, c := range f.Clusters {
		if got := c.Running == "v2"; got != (c.Name == c1) {
			t.Errorf("%s runs %s", c.Name, c.Running)
		}
	}
}

// TestSoak_ClockOfTheManagedCluster: Available has a time by the clock of the managed
// cluster. It can lengthen a soak, and never shorten it.
func TestSoak_ClockOfTheManagedCluster(t *testing.T) {
	for name, tc := range map[string]momentCase{
		"a clock that is ahead": {
			reason: "the change is taken as of now, and the soak starts anew",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, verified("v2"), availableChanged(-time.Hour))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, says: "soaking until 12:10 UTC",
		},
		"a clock that is behind, after a loss that the operator saw": {
			reason: "the soak starts when the operator sees the cluster verified again",
			change: []change{lost(15*time.Minute, time.Minute, c1), on(c1, verified("v2"), available, availableChanged(time.Hour))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, says: "soaking until 12:10 UTC",
		},
		"a clock that is behind, in the soak": {
			reason: "the soak is neither shorter nor longer",
			change: []change{inSoak("v2", 15*time.Minute, 9*time.Minute, c1), on(c1, verified("v2"), availableChanged(time.Hour))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, says: "soaking until 12:01 UTC",
		},
		"a loss and a return that the operator did not see": {
			reason: "the soak starts anew",
			change: []change{inSoak("v2", 15*time.Minute, 10*time.Minute, c1), on(c1, verified("v2"), availableChanged(5*time.Minute))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, says: "soaking until 12:10 UTC",
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

func available(c *rollout.Cluster) { c.Reachable = true }

// TestReturnAfterTheTargetWasReplaced: a parked cluster that returns has content that was
// replaced since. It holds a slot with it, and gets the target within the limit only.
func TestReturnAfterTheTargetWasReplaced(t *testing.T) {
	stuck, old := runs("v2", rollout.HealthProgressing), runs("v0", rollout.HealthProgressing)
	for name, tc := range map[string]momentCase{
		"within the limit": {
			reason: "it is retargeted in its slot, before any other cluster is admitted",
			change: []change{canaryDone, parked("v0", c5), on(c5, old)},
			want:   map[string]string{c5: "Admitted v2", c3: "Waiting v1", c4: "Waiting v1"},
		},
		"above the limit": {
			reason: "it keeps its content and its slot while the canary at the target is in flight",
			change: []change{parked("v0", c2), on(c2, old), admitted("v2", time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "Updating v2", c2: "Updating v0", c3: "Waiting v1"}, says: "canary 0/2, 2 in flight",
		},
		"above the limit, while the canary at the target soaks": {
			reason: "a soak holds the slot",
			change: []change{parked("v0", c2), on(c2, old), inSoak("v2", 9*time.Minute, 5*time.Minute, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Updating v0"},
		},
		"the canary at the target is done": {
			reason: "the number in flight is within the limit again",
			change: []change{finished(c1), admitted("v0", time.Minute, c2), on(c2, old)},
			want:   map[string]string{c1: "Done v2", c2: "Admitted v2"},
		},
		"two return at once": {
			reason: "as many as the limit get the target; the other holds a slot with what it has",
			change: []change{canaryDone, parked("v0", c3, c4), on(c3, old), on(c4, old)},
			want:   map[string]string{c3: "Admitted v2", c4: "Updating v0", c5: "Waiting v1"},
		},
		"before its stage may start": {
			reason: "it is in flight with what it has until its stage starts",
			change: []change{parked("v0", c3), on(c3, old)},
			want:   map[string]string{c3: "Updating v0", c1: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestEmptyStage: a stage whose placement selects no cluster of the install set proves
// nothing.
func TestEmptyStage(t *testing.T) {
	all := []string{c1, c2, c3, c4, c5, c6}
	empty := withoutCanary(all...)
	gone := func(in *rollout.Input) {
		in.Placements[0] = rollout.Placement{Namespace: "default", Name: "canary"}
	}
	pass := func(in *rollout.Input) { in.Spec.Stages[0].WhenEmpty = v1alpha1.WhenEmptyPass }
	const held = "held: Placement default/canary of stage canary selects no cluster of the install set; select one, or set whenEmpty: Pass"
	for name, tc := range map[string]momentCase{
		"it is held by default": {
			reason: "the next stage does not start; the text names the placement and the way out",
			change: []change{empty},
			want:   map[string]string{c1: "Waiting v1", c6: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"its clusters are outside the install set": {
			reason: "they do not make it less empty",
			change: []change{empty, func(in *rollout.Input) {
				in.Clusters = append(in.Clusters, rollout.Cluster{Name: "other", Reachable: true})
				in.Placements[0] = placement("canary", "other")
			}},
			want: map[string]string{c1: "Waiting v1", "other": "Ignored"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"it passes if the user says so": {
			reason: "whenEmpty: Pass",
			change: []change{empty, pass},
			want:   map[string]string{c1: "Admitted v2", c2: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"it passes on a first install": {
			reason: "no cluster runs anything that could break",
			change: append(forAll(all, func(name string) change { return on(name, nothing) }), empty, func(in *rollout.Input) { in.Stable = "" }),
			want:   map[string]string{c1: "Admitted v2", c2: "Admitted v2", c3: "Waiting"}, phase: v1alpha1.PhaseProgressing,
		},
		"it is held if only content ran that never succeeded": {
			reason: "the first rollout failed, and what runs is not the target",
			change: []change{empty, func(in *rollout.Input) { in.Stable = "" }},
			want:   map[string]string{c1: "Waiting v1", c6: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"it is held if the clusters run other content of OCM": {
			reason: "an add-on that is taken over is no first install",
			change: append(forAll(all, func(name string) change { return on(name, runs(rollout.Foreign, rollout.HealthVerified)) }), empty,
				func(in *rollout.Input) { in.Stable = "" }),
			want: map[string]string{c1: "Waiting foreign"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"it passes on a revert": {
			reason: "the content is proven",
			change: []change{empty, revert},
			want:   map[string]string{c1: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"its placement does not exist": {
			reason: "it may select any cluster",
			change: []change{gone},
			want:   map[string]string{c1: "Waiting v1", c6: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending,
			says: "held: Placement default/canary does not exist",
		},
		"its placement does not exist on a revert": {
			reason: "the content is proven",
			change: []change{gone, revert},
			want:   map[string]string{c1: "Admitted v2", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"its placement does not exist, and its clusters failed with what is reverted": {
			reason: "they move back in the stage that selects them now",
			change: []change{gone, revert, on(c1, runs("v9", rollout.HealthFailed)), on(c2, runs("v9", rollout.HealthFailed)), recorded(rollout.Failed, "v9", time.Hour, time.Minute, c1, c2)},
			want:   map[string]string{c1: "Admitted v2", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"it does not hold what succeeded": {
			reason: "the rollout has ended, and a returning cluster catches up",
			change: []change{finished(c1, c2, c3, c4, c5), ended, empty},
			want:   map[string]string{c6: "Admitted v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success,
		},
		"it has a member that is offline": {
			reason: "it is not empty, and waits for the cluster",
			change: []change{empty, func(in *rollout.Input) { in.Placements[0] = placement("canary", c1) }, pass, on(c1, offline)},
			want:   map[string]string{c1: "Parked v1", c3: "Waiting v1"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"it holds no removal of a cluster": {
			reason: "the only canary left the install set: it keeps the stages after it waiting, and leaves all the same",
			change: []change{withoutCanary(c2, c3, c4, c5, c6), remembered(leavingSince(time.Hour, c1))},
			want:   map[string]string{c1: "Removing v1", c2: "Waiting v1"}, reasons: map[string]string{c1: "removed: it left the install set"},
			phase: v1alpha1.PhaseHeld, outcome: rollout.Pending, says: held,
		},
		"a share without a cluster is held": {
			reason: "no cluster was moved, so that the commit is pending",
			change: []change{share},
			want:   map[string]string{c1: "Waiting v1"}, phase: v1alpha1.PhaseHeld, outcome: rollout.Pending,
			says: "held: Placement default/canary selects no cluster of the install set; select one, or name another placement",
		},
		"a share without a cluster on a first install": {
			reason: "a first install ignores the placement",
			change: append(forAll(all, func(name string) change { return on(name, nothing) }), share, func(in *rollout.Input) { in.Stable = "" }),
			want:   map[string]string{c1: "Admitted v2", c6: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"a share without a cluster on a revert to the stable revision": {
			reason: "every cluster is moved",
			change: []change{
				share, revert, admitted("v0", time.Minute, c1), inStage("share"), on(c1, runs("v0", rollout.HealthFailed)),
				func(in *rollout.Input) { in.Stable = "v2" },
			},
			want: map[string]string{c1: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// share moves a quarter of the clusters of Placement canary, which selects none.
func share(in *rollout.Input) {
	in.Spec.Stages = nil
	in.Spec.Strategy = rollingWith(v1alpha1.RollingUpdateWithPlacement{PlacementReference: ref("canary")})
	in.Placements = []rollout.Placement{placement("canary"), in.Placements[1]}
}

// TestLateClusters: a cluster fails if it does not get there in time, or if its agent
// cannot apply the works for ten minutes.
func TestLateClusters(t *testing.T) {
	stuck := runs("v2", rollout.HealthProgressing)
	none := func(in *rollout.Input) { in.Spec.Stages[1].ProgressDeadline = "None" }
	refused := func(since, seen time.Duration) change {
		return func(in *rollout.Input) {
			recorded(rollout.Updating, "v2", since, since, c3)(in)
			on(c3, unapplied("v2"), seenFor(seen))(in)
		}
	}
	fails := map[string]string{c3: "Failed v2", c4: "Waiting v1"}
	waits := map[string]string{c3: "Updating v2", c4: "Waiting v1"}
	const text = "1 failed (cluster-03: not applied: Deployment imm: field is immutable)"
	for name, tc := range map[string]momentCase{
		"a stage without a deadline, before an hour": {
			reason: "the default is an hour",
			change: []change{canaryDone, updating("v2", time.Hour-time.Second, c3), on(c3, stuck)},
			want:   waits, phase: v1alpha1.PhaseProgressing,
		},
		"a stage without a deadline, after an hour": {
			reason: "the default is an hour",
			change: []change{canaryDone, updating("v2", time.Hour, c3), on(c3, stuck)},
			want:   map[string]string{c3: "TimedOut v2", c4: "Waiting v1"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"a stage whose deadline is None": {
			reason: "the user's word wins over the default",
			change: []change{canaryDone, none, updating("v2", 100*time.Hour, c3), on(c3, stuck)},
			want:   waits, phase: v1alpha1.PhaseProgressing,
		},
		"an apply error that lasts ten minutes": {
			reason: "it was seen a minute ago as well",
			change: []change{canaryDone, refused(10*time.Minute, time.Minute)},
			want:   fails, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure, says: text,
		},
		"an apply error that lasts nine minutes": {
			reason: "it is named, and is not a failure yet",
			change: []change{canaryDone, refused(9*time.Minute, 5*time.Minute)},
			want:   waits, phase: v1alpha1.PhaseProgressing, says: "1 not applied (cluster-03: Deployment imm: field is immutable)",
		},
		"an apply error that was seen once": {
			reason: "the next look may find the works applied",
			change: []change{canaryDone, refused(time.Hour-time.Second, 59*time.Second)},
			want:   waits, phase: v1alpha1.PhaseProgressing,
		},
		"an apply error, and the deadline is None": {
			reason: "an apply error needs no deadline",
			change: []change{canaryDone, none, refused(10*time.Minute, time.Minute)},
			want:   fails, phase: v1alpha1.PhaseFailed, says: text,
		},
		"an apply error of a cluster that is offline": {
			reason: "its report is old",
			change: []change{canaryDone, refused(10*time.Minute, time.Minute), on(c3, offline)},
			want:   map[string]string{c3: "Lost v2", c4: "Waiting v1"}, silent: "not applied",
		},
		"an apply error under strategy All": {
			reason: "it is a failure in every strategy",
			change: []change{finished(c1, c2, c4, c5, c6), refused(10*time.Minute, time.Minute), strategyAll},
			want:   map[string]string{c3: "Failed v2"}, phase: v1alpha1.PhaseFailed, outcome: rollout.Failure, says: text,
		},
		"an apply error in the soak": {
			reason: "the cluster was verified: the error may not be about its works any more",
			change: []change{
				func(in *rollout.Input) { in.Spec.Stages[1].MinSuccessTime = metav1.Duration{Duration: time.Hour} },
				canaryDone, inSoak("v2", 30*time.Minute, 20*time.Minute, c3), on(c3, unapplied("v2"), seenFor(15*time.Minute)),
			},
			want: map[string]string{c3: "Soaking v2"}, phase: v1alpha1.PhaseProgressing,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// rotated replaces the canaries: the placement selects other clusters than those that were
// admitted as canaries.
func rotated(names ...string) change {
	return func(in *rollout.Input) {
		in.Placements = []rollout.Placement{placement("canary", names...), in.Placements[1]}
	}
}

// TestFailuresHaltTheWholeTrack: once the failures of one stage are beyond its budget, no
// stage admits a cluster, whichever stage selects the failed ones by then.
func TestFailuresHaltTheWholeTrack(t *testing.T) {
	failing := runs("v2", rollout.HealthFailed)
	for name, tc := range map[string]momentCase{
		"a failed canary that another stage selects now": {
			reason: "its failure is one of the last stage; the new canary is not tried",
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, failing), rotated(c3)},
			want:   map[string]string{c1: "Failed v2", c3: "Waiting v1", c2: "Waiting v1"},
			phase:  v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"a failed cluster whose works were deleted": {
			reason: "it is still a failure; its works are written again, in a slot",
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, lostWorks)},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
			phase:  v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"a failed cluster whose own inputs changed": {
			reason: "it is a failure until it is Done, and gets its new works in a slot",
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, runs("v2", rollout.HealthUnknown), edited)},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
			phase:  v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"a failed cluster that another stage selects now, whose own inputs changed": {
			reason: "it can still prove the content for the stage in which it failed, within the budget: that stage does not halt the others",
			change: []change{
				recorded(rollout.Failed, "v2", time.Hour, time.Hour, c2), inStage("everyone"), on(c2, runs("v2", rollout.HealthUnknown), edited),
				on(c3, offline), on(c4, offline), on(c5, offline), on(c6, offline), func(in *rollout.Input) {
					for i := range in.Spec.Stages {
						in.Spec.Stages[i].MaxConcurrency, in.Spec.Stages[i].MaxFailures = new(number(2)), new(number(1))
					}
				},
			},
			want:  map[string]string{c1: "Admitted v2", c2: "Admitted v2", c3: "Parked v1"},
			phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"a failed cluster that left and came back": {
			reason: "it is still a failure",
			change: []change{recorded(rollout.LeftFailed, "v2", time.Hour, time.Hour, c1), on(c1, lostWorks)},
			want:   map[string]string{c1: "Admitted v2", c2: "Waiting v1"},
			phase:  v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
		"the own inputs of failed clusters changed": {
			reason: "as many as the limit get new works; the others wait as failures",
			change: []change{
				finished(c1, c2), recorded(rollout.Failed, "v2", time.Hour, time.Hour, c3), recorded(rollout.TimedOut, "v2", time.Hour, time.Hour, c4, c5),
				on(c3, failing, edited), on(c4, failing, edited), on(c5, failing, edited),
			},
			want:  map[string]string{c3: "Admitted v2", c4: "TimedOut v2", c5: "TimedOut v2", c6: "Waiting v1"},
			phase: v1alpha1.PhaseFailed, outcome: rollout.Failure, says: "halted in everyone: 3 failed",
		},
		"a failed cluster that is verified again": {
			reason: "it soaks, and is a failure until it is Done",
			change: []change{recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1", c3: "Waiting v1"},
			phase:  v1alpha1.PhaseFailed, outcome: rollout.Failure, says: "halted in canary: 1 failed (cluster-01: soaking until 12:10 UTC), 1 in flight",
		},
		"a failed cluster of a stage that is gone, although another of its clusters is done": {
			reason: "its failure counts in the first stage",
			change: []change{
				finished(c2), recorded(rollout.Failed, "v2", time.Hour, time.Hour, c1), inStage("early"), on(c1, failing),
				rotated(c3), staging(c4, c5, c6),
			},
			want:  map[string]string{c1: "Failed v2", c3: "Waiting v1", c4: "Waiting v1"},
			phase: v1alpha1.PhaseFailed, outcome: rollout.Failure,
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// staging makes the last stage select the clusters only.
func staging(clusters ...string) change {
	return func(in *rollout.Input) {
		in.Spec.Stages[1].Placement = ref("some")
		in.Placements = append(in.Placements, placement("some", clusters...))
	}
}

// lostWorks makes it a cluster whose works were deleted.
func lostWorks(c *rollout.Cluster) {
	c.Running, c.UpToDate, c.UpToDateStable, c.Health = "", false, false, rollout.Health{}
}

// TestProofIsOfWhatTheClusterGetsNow: a canary proves the content with the inputs that it
// was verified with.
func TestProofIsOfWhatTheClusterGetsNow(t *testing.T) {
	for name, tc := range map[string]momentCase{
		"the inputs of a canary that is offline changed": {
			reason: "the other canary proves the content",
			change: []change{canaryDone, on(c1, edited, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Done v2", c3: "Admitted v2"},
		},
		"the inputs of every canary changed, and they are offline": {
			reason: "no canary has proved what they are to get",
			change: []change{canaryDone, on(c1, edited, offline), on(c2, edited, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Parked v2", c3: "Waiting v1"},
		},
		"the same after the success": {
			reason: "the clusters after them wait, too",
			change: []change{finished(c1, c2, c3, c4, c5, c6), ended, on(c1, edited, offline), on(c2, edited, offline), on(c3, edited)},
			want:   map[string]string{c1: "Parked v2", c2: "Parked v2", c3: "Waiting v2"},
		},
		"a revert does not wait for them": {
			reason: "the target is proven",
			change: []change{canaryDone, revert, on(c1, edited, offline), on(c2, edited, offline)},
			want:   map[string]string{c1: "Parked v2", c2: "Parked v2", c3: "Admitted v2"},
		},
		"the only canary that is done leaves": {
			reason: "its stage is not empty: the canary proved the content",
			change: []change{finished(c1), rotated(c1), func(in *rollout.Input) { in.Placements[1] = placement("all", c2, c3, c4, c5, c6) }, on(c1, selectedBefore)},
			want:   map[string]string{c1: "Removing v2", c2: "Admitted v2"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// selectedBefore makes it a cluster that an install placement selected.
func selectedBefore(c *rollout.Cluster) { c.SelectedBy = rollout.ByPlacements }

// TestSlotsOfUnselectedClusters: a cluster in flight keeps its slot when no stage selects
// it any more, at whatever content.
func TestSlotsOfUnselectedClusters(t *testing.T) {
	stuck, old := runs("v2", rollout.HealthProgressing), runs("v0", rollout.HealthProgressing)
	for name, tc := range map[string]momentCase{
		"at the target": {
			reason: "it holds the only slot of the canary",
			change: []change{admitted("v2", time.Minute, c1), on(c1, stuck), rotated(c2), staging(c3, c4)},
			want:   map[string]string{c1: "Updating v2", c2: "Waiting v1"},
		},
		"at content that was replaced": {
			reason: "it holds the slot, and is given nothing more",
			change: []change{admitted("v0", time.Minute, c1), on(c1, old), rotated(c2), staging(c3, c4)},
			want:   map[string]string{c1: "Updating v0", c2: "Waiting v1"},
		},
		"at content that was replaced, in a stage that is gone": {
			reason: "it holds a slot of the first stage",
			change: []change{admitted("v0", time.Minute, c1), inStage("early"), on(c1, old), rotated(c2), staging(c3, c4)},
			want:   map[string]string{c1: "Updating v0", c2: "Waiting v1"},
		},
		"a member of the share whose works were deleted": {
			reason: "it keeps its place in the share while it is installed at the stable revision",
			change: []change{
				share, func(in *rollout.Input) { in.Placements[0] = placement("canary", c1, c2, c3, c4) },
				admitted("v1", 0, c3), inStage("share"), on(c3, lostWorks),
			},
			want: map[string]string{c3: "Admitted v1", c1: "Waiting v1"},
		},
	} {
		t.Run(name, func(t *testing.T) { checkMoment(t, tc) })
	}
}

// TestRemovalThatIsWithdrawn: while the removal of the add-on is requested, no soak ends and no
// deadline passes.
func TestRemovalThatIsWithdrawn(t *testing.T) {
	remove := func(in *rollout.Input) { in.Spec.Removal = &v1alpha1.Removal{Commit: "abc"} }
	f := staged("v1", 6)
	f.SetTarget("v2")
	in := f.Input()
	for _, c := range []change{
		inSoak("v2", 5*time.Minute, time.Minute, c1), on(c1, verified("v2")),
		admitted("v2", time.Minute, c2), remove,
	} {
		c(&in)
	}
	start := in.Now
	for minute := range 60 {
		in.Now = start.Add(time.Duration(minute) * time.Minute)
		plan := planned(t, in)
		in.Ledger = plan.Ledger
	}
	in.Spec.Removal, in.Now = nil, in.Now.Add(time.Second)
	plan := planned(t, in)
	for cluster, want := range map[string]rollout.State{c1: rollout.Done, c2: rollout.Admitted, c3: rollout.Waiting} {
		if got, _ := plan.Why(cluster); got.State != want {
			t.Errorf("%s is %s (%s), want %s", cluster, got.State, got.Reason, want)
		}
	}
}
