package rollout_test

import (
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// momentCases: a canary of cluster-01 and 02, one at a time, soak 10m, deadline 30m;
// then everyone else, 25% (one of four) at a time, no soak, no deadline.
func momentCases() map[string]momentCase {
	const c1, c2, c3, c4, c5 = "cluster-01", "cluster-02", "cluster-03", "cluster-04", "cluster-05"
	stuck := runs("v2", rollout.HealthProgressing)
	return map[string]momentCase{
		"verified and soaking": {
			reason: "the slot is held until the soak is over",
			change: []change{admitted("v2", 15*time.Minute, c1), soakingSince(9 * time.Minute), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
			says: "canary 0/2, soaking until 12:01 UTC",
		},
		"verified and soaked": {
			reason: "at the very second the slot is free",
			change: []change{admitted("v2", 15*time.Minute, c1), soakingSince(10 * time.Minute), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Succeeded v2", c2: "Admitted v2", c3: "Waiting v1"},
		},
		"health lost in the soak": {
			reason: "what was verified is forgotten, so that the soak starts over",
			change: []change{admitted("v2", 15*time.Minute, c1), soakingSince(10 * time.Minute), on(c1, stuck)},
			want:   map[string]string{c1: "Progressing v2", c2: "Waiting v1"},
		},
		"feedback missing in the soak": {
			reason: "no word is neither good nor bad: it can not complete, nor does it start over",
			change: []change{admitted("v2", 15*time.Minute, c1), soakingSince(10 * time.Minute), on(c1, runs("v2", rollout.HealthUnknown))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"},
		},
		"lost in the soak": {
			reason: "it keeps its slot and can not complete",
			change: []change{admitted("v2", 15*time.Minute, c1), soakingSince(10 * time.Minute), on(c1, verified("v2"), lostFor(time.Minute))},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"},
		},
		"lost in a soak longer than the deadline": {
			reason: "it had met its deadline, so that it keeps its slot for the park time",
			change: []change{admitted("v2", 40*time.Minute, c1), soakingSince(5 * time.Minute), on(c1, verified("v2"), lostFor(time.Minute))},
			want:   map[string]string{c1: "Lost v2"},
		},
		"silent past the deadline": {
			reason: "a failure of a reachable cluster, whose budget of none is spent",
			change: []change{admitted("v2", 30*time.Minute, c1), on(c1, stuck)},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
			says: "halted in canary: 1 failed (cluster-01: past its progress deadline: Deployment/agent: as told), 5 untouched",
		},
		"late but verified": {
			reason: "recovery counts: it soaks, and nothing has failed",
			change: []change{admitted("v2", 3*time.Hour, c1), on(c1, verified("v2"))},
			want:   map[string]string{c1: "Soaking v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"own report": {
			reason: "it fails at once, long before the deadline",
			change: []change{admitted("v2", time.Second, c1), on(c1, runs("v2", rollout.HealthFailed))},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "cluster-01: Deployment/agent: as told",
		},
		"report about other content": {
			reason: "feedback from before the content was applied counts for nothing",
			change: []change{admitted("v2", time.Second, c1), on(c1, runs("v1", rollout.HealthFailed))},
			want:   map[string]string{c1: "Admitted v2"},
		},
		"failed and then lost": {
			reason: "vanishing mends no failure",
			change: []change{admitted("v2", time.Hour, c1), on(c1, runs("v2", rollout.HealthFailed), lostFor(time.Hour))},
			want:   map[string]string{c1: "Failed v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseFailed,
		},
		"timed out and then lost": {
			reason: "it was reachable past its deadline",
			change: []change{admitted("v2", time.Hour, c1), on(c1, stuck, lostFor(20*time.Minute))},
			want:   map[string]string{c1: "TimedOut v2", c2: "Waiting v1"},
		},
		"lost within the deadline": {
			reason: "it keeps its slot until the deadline",
			change: []change{admitted("v2", 29*time.Minute, c1), on(c1, stuck, lostFor(28*time.Minute))},
			want:   map[string]string{c1: "Lost v2", c2: "Waiting v1"}, says: "waits for 1 that are not available",
		},
		"held back by what it names": {
			reason: "it blocks nobody, takes no slot, and is named with the reason",
			change: []change{canaryDone, on(c3, away)},
			want:   map[string]string{c3: "HeldBack v1", c4: "Admitted v2"}, says: "1 held back (cluster-03: its configuration is missing)",
		},
		"held back while in flight": {
			reason: "it keeps its slot until the deadline, like one that is lost",
			change: []change{canaryDone, admitted("v2", time.Minute, c3), on(c3, stuck, away)},
			want:   map[string]string{c3: "Lost v2", c4: "Waiting v1"},
		},
		"lost past the deadline": {
			reason: "parked: the slot is free, and nothing has failed",
			change: []change{admitted("v2", 30*time.Minute, c1), on(c1, stuck, lostFor(28*time.Minute))},
			want:   map[string]string{c1: "Parked v2", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"lost without a deadline": {
			reason: "the park time counts from when it was lost",
			change: []change{canaryDone, admitted("v2", 2*time.Hour, c3), on(c3, stuck, lostFor(9*time.Minute))},
			want:   map[string]string{c3: "Lost v2", c4: "Waiting v1"},
		},
		"lost without a deadline for long": {
			reason: "after it, the slot is free",
			change: []change{canaryDone, admitted("v2", 2*time.Hour, c3), on(c3, stuck, lostFor(10*time.Minute))},
			want:   map[string]string{c3: "Parked v2", c4: "Admitted v2"},
		},
		"back from being parked": {
			reason: "in flight at once, above the limit, and nobody is admitted until it is below again",
			change: []change{canaryDone, parked("v2", c3), on(c3, stuck), admitted("v2", time.Minute, c4), on(c4, stuck)},
			want:   map[string]string{c3: "Progressing v2", c4: "Progressing v2", c5: "Waiting v1"}, says: "everyone 0/4, 2 in flight",
		},
		"back after the target moved on": {
			reason: "it goes straight to the target",
			change: []change{canaryDone, parked("v0", c3), on(c3, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c3: "Admitted v2", c4: "Waiting v1"},
		},
		"back while its stage may not start": {
			reason: "it is in flight at what it has, until its stage starts",
			change: []change{parked("v0", c3), on(c3, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c3: "Progressing v0", c1: "Admitted v2"},
		},
		"everybody parked": {
			reason: "a stage in which nobody is verified is not complete",
			change: []change{parked("v2", c1, c2), on(c1, stuck, lostFor(time.Hour)), on(c2, stuck, lostFor(time.Hour))},
			want:   map[string]string{c1: "Parked v2", c3: "Waiting v1"}, says: "waits for a cluster that is available",
		},
		"never reachable": {
			reason: "it is not admitted and blocks nothing",
			change: []change{on(c1, lostFor(time.Hour)), on(c2, verified("v2"))},
			want:   map[string]string{c1: "Unreachable v1", c3: "Admitted v2"},
		},
		"new target, in flight at the old one": {
			reason: "it keeps its slot and moves on first; its clocks start anew",
			change: []change{admitted("v0", 29*time.Minute, c2), on(c2, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"},
		},
		"new target, in flight in a later stage": {
			reason: "until its stage starts, it finishes what it is on",
			change: []change{admitted("v0", time.Minute, c3), on(c3, runs("v0", rollout.HealthProgressing))},
			want:   map[string]string{c1: "Admitted v2", c3: "Progressing v0", c4: "Waiting v1"},
		},
		"new target, verified at the old one": {
			reason: "its slot is free once it has soaked",
			change: []change{canaryDone, admitted("v0", time.Hour, c3), on(c3, verified("v0"))},
			want:   map[string]string{c3: "Admitted v2"},
		},
		"new target, failed at the old one": {
			reason: "those that failed before go first, and need a slot",
			change: []change{admitted("v0", time.Hour, c2), on(c2, runs("v0", rollout.HealthFailed))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"ill at what it runs": {
			reason: "the target may be what mends it: it goes first as well",
			change: []change{on(c2, runs("v1", rollout.HealthFailed))},
			want:   map[string]string{c1: "Waiting v1", c2: "Admitted v2"},
		},
		"unchanged": {
			reason: "a cluster for which the target changes nothing has no part in the rollout",
			change: []change{on(c1, func(c *rollout.Cluster) { c.UpToDate = true }), on(c2, func(c *rollout.Cluster) { c.UpToDate = true })},
			want:   map[string]string{c1: "Unchanged v1", c2: "Unchanged v1", c3: "Admitted v2"},
		},
		"unchanged while in flight": {
			reason: "what it is in flight with is the target's content too: its clocks go on",
			change: []change{
				admitted("v0", 9*time.Minute, c1), soakingSince(5 * time.Minute),
				on(c1, verified("v0"), func(c *rollout.Cluster) { c.UpToDate = true }),
			},
			want: map[string]string{c1: "Soaking v0", c2: "Waiting v1"},
		},
		"its own configuration changed": {
			reason: "a cluster at the target's revision whose inputs changed waits for a slot like anybody",
			change: []change{
				canaryDone, on(c3, verified("v2"), func(c *rollout.Cluster) { c.UpToDate = false }),
				admitted("v2", time.Minute, c4), on(c4, stuck),
			},
			want: map[string]string{c3: "Waiting v2", c4: "Progressing v2"},
		},
		"its own configuration changed in the soak": {
			reason: "new content under the same revision restarts its clocks",
			change: []change{
				admitted("v2", 40*time.Minute, c1), soakingSince(9 * time.Minute),
				on(c1, verified("v2"), func(c *rollout.Cluster) { c.UpToDate = false }),
			},
			want: map[string]string{c1: "Admitted v2", c2: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
		"joiner in a stage that may not start": {
			reason: "it is installed at the stable revision, in a slot of its stage",
			change: []change{on(c3, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Admitted v1", c4: "Waiting v1"},
		},
		"joiner and a spent budget": {
			reason: "a failure of the target does not keep anybody from what is proven",
			change: []change{admitted("v2", time.Minute, c1), on(c1, runs("v2", rollout.HealthFailed)), on(c2, nothing)},
			want:   map[string]string{c1: "Failed v2", c2: "Admitted v1"}, phase: v1alpha1.PhaseFailed,
		},
		"joiner without a free slot": {
			reason: "it waits for one",
			change: []change{canaryDone, on(c3, nothing), admitted("v2", time.Minute, c4), on(c4, stuck)},
			want:   map[string]string{c3: "Waiting", c4: "Progressing v2"},
		},
		"joiner arrived": {
			reason: "it is one of those that wait for the target",
			change: []change{
				canaryDone, admitted("v1", time.Minute, c4),
				func(in *rollout.Input) { in.Ledger.Waves[0].Joining = true }, on(c4, verified("v1")),
			},
			want: map[string]string{c3: "Admitted v2", c4: "Waiting v1"},
		},
		"joiner stuck at the stable revision": {
			reason: "not for ever: the target may be what mends it",
			change: []change{
				canaryDone, admitted("v1", time.Hour, c4),
				func(in *rollout.Input) { in.Ledger.Waves[0].Joining = true }, on(c4, runs("v1", rollout.HealthProgressing)),
			},
			want: map[string]string{c4: "Admitted v2"},
		},
		"gone": {
			reason: "a terminating cluster is left alone, and its slot is free",
			change: []change{admitted("v2", time.Minute, c1), on(c1, stuck, func(c *rollout.Cluster) { c.Gone = true })},
			want:   map[string]string{c1: "Gone v2", c2: "Admitted v2"},
		},
		"deleting": {
			reason: "so is that of a cluster whose add-on is being deleted",
			change: []change{admitted("v2", time.Minute, c1), on(c1, stuck, func(c *rollout.Cluster) { c.Installed = rollout.Deleting })},
			want:   map[string]string{c1: "Removing v2", c2: "Admitted v2"},
		},
		"suspended": {
			reason: "nobody is admitted, joiners neither; who is in flight goes on",
			change: []change{
				func(in *rollout.Input) { in.Suspended = true }, admitted("v2", time.Hour, c1), soakingSince(time.Hour),
				on(c1, verified("v2")), on(c3, nothing), admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Succeeded v2", c2: "Waiting v1", c3: "Waiting", c4: "Progressing v0"},
			phase: v1alpha1.PhaseSuspended, says: "suspended; canary 1/2",
		},
		"contested": {
			reason: "nobody is admitted, joiners neither, and they are told by whom; who is in flight goes on",
			change: []change{
				func(in *rollout.Input) { in.Contested = "ownership conflict: b owns it" }, admitted("v2", time.Hour, c1), soakingSince(time.Hour),
				on(c1, verified("v2")), on(c3, nothing), admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Succeeded v2", c2: "Waiting v1", c3: "Waiting", c4: "Progressing v0"},
			phase: v1alpha1.PhaseHeld, says: "held: ownership conflict: b owns it; canary 1/2",
		},
		"target missing": {
			reason: "nobody is admitted, joiners neither, and who was not written to is not late for it; who is in flight goes on",
			change: []change{
				func(in *rollout.Input) { in.TargetMissing = "revision hello-2 is missing" }, admitted("v2", time.Hour, c1, c2),
				soakingSince(time.Hour), on(c1, verified("v2")), on(c3, nothing), admitted("v0", time.Minute, c4), on(c4, runs("v0", rollout.HealthProgressing)),
			},
			want:  map[string]string{c1: "Succeeded v2", c2: "Admitted v2", c3: "Waiting", c4: "Progressing v0", c5: "Waiting v1"},
			phase: v1alpha1.PhaseProgressing, says: "revision hello-2 is missing; canary 1/2, 1 in flight",
		},
		"contested past the deadline": {
			reason: "what nobody may write is not late; what was written before is",
			change: []change{
				func(in *rollout.Input) { in.Contested = "ownership conflict" }, admitted("v2", time.Hour, c1, c2),
				on(c2, runs("v2", rollout.HealthProgressing)),
			},
			want: map[string]string{c1: "Admitted v2", c2: "TimedOut v2", c3: "Waiting v1"},
		},
		"reverting": {
			reason: "what was verified before soaks for nothing, in the order and pace of any rollout",
			change: []change{
				func(in *rollout.Input) { in.TargetVerifiedBefore = true }, admitted("v2", time.Minute, c1), on(c1, verified("v2")),
			},
			want: map[string]string{c1: "Succeeded v2", c2: "Admitted v2", c3: "Waiting v1"},
		},
		"unsettled canary": {
			reason: "a canary that cannot be told is not complete: its clusters must not slip into the next stage",
			change: []change{func(in *rollout.Input) {
				in.Placements = []rollout.Placement{{
					Namespace: "default", Name: "canary", Existence: rollout.Exists, Settlement: rollout.Unsettled,
				}, in.Placements[1]}
			}},
			want:  map[string]string{c1: "Waiting v1", c3: "Waiting v1"},
			phase: v1alpha1.PhaseHeld, says: "the decisions of Placement default/canary are not settled",
		},
		"held stage holds joiners too": {
			reason: "0 slots are no slots",
			change: []change{func(in *rollout.Input) { in.Spec.Stages[1].MaxConcurrency = new(number(0)) }, on(c3, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Waiting"},
		},
		"tolerated failure": {
			reason: "it does not stall the others",
			change: []change{
				canaryDone, func(in *rollout.Input) { in.Spec.Stages[1].MaxFailures = new(percent("25%")) },
				admitted("v2", time.Minute, c5), on(c5, runs("v2", rollout.HealthFailed)),
			},
			want: map[string]string{c5: "Failed v2", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"one failure too many": {
			reason: "past the budget nobody is admitted, and it is red at once",
			change: []change{
				canaryDone, func(in *rollout.Input) { in.Spec.Stages[1].MaxFailures = new(percent("25%")) },
				admitted("v2", time.Minute, c4, c5), on(c4, runs("v2", rollout.HealthFailed)), on(c5, runs("v2", rollout.HealthFailed)),
			},
			want: map[string]string{c3: "Waiting v1"}, phase: v1alpha1.PhaseFailed, says: "halted in everyone: 2 failed",
		},
		"a budget for all": {
			reason: "when everybody failed nobody has verified the content, whatever the budget",
			change: []change{
				func(in *rollout.Input) { in.Spec.Stages[0].MaxFailures = new(number(9)) },
				admitted("v2", time.Minute, c1, c2), on(c1, runs("v2", rollout.HealthFailed)), on(c2, runs("v2", rollout.HealthFailed)),
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
			reason: "a stage installs nobody",
			change: []change{func(in *rollout.Input) {
				in.Clusters = append(in.Clusters, rollout.Cluster{Name: "other", Reachable: true})
				in.Placements = []rollout.Placement{placement("canary", c1, c2, "other"), in.Placements[1]}
			}},
			want: map[string]string{"other": "Ignored", c1: "Admitted v2"},
		},
		"policy All": {
			reason: "everybody reachable moves at once, joiners included",
			change: []change{wholeStrategy, on(c5, lostFor(time.Hour)), on(c4, nothing)},
			want:   map[string]string{c1: "Admitted v2", c3: "Admitted v2", c4: "Admitted v2", c5: "Unreachable v1"},
		},
		"policy All, failures": {
			reason: "one failure does not make it red while others are undecided",
			change: []change{
				wholeStrategy, whole(time.Minute), on(c1, runs("v2", rollout.HealthFailed)), on(c2, stuck), on(c3, verified("v2")),
				on(c4, verified("v2")), on(c5, verified("v2")), on("cluster-06", verified("v2")),
			},
			want: map[string]string{c1: "Failed v2", c2: "Progressing v2", c3: "Succeeded v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"policy All, not applied": {
			reason: "it is no failure, since what it lacks may come; it is named, the first by name",
			change: []change{wholeStrategy, whole(time.Minute), on(c3, unapplied("v2")), on(c1, stuck), on(c2, unapplied("v2"))},
			want:   map[string]string{c1: "Progressing v2", c2: "Progressing v2", c3: "Progressing v2", c4: "Admitted v2"},
			phase:  v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "all 0/6, 6 in flight, 2 not applied (cluster-02: Deployment imm: field is immutable; and 1 more)",
		},
		"not applied in the soak": {
			reason: "it was verified, and its soak cannot end: it is named as well",
			change: []change{admitted("v2", time.Minute, c1), soakingSince(time.Minute), on(c1, unapplied("v2"))},
			want:   map[string]string{c1: "Soaking v2"},
			says:   "1 not applied (cluster-01: Deployment imm: field is immutable)",
		},
		"not applied, of content that is replaced": {
			reason: "what the agent says of works that are to be written anew is about other content",
			change: []change{admitted("v2", time.Minute, c1), on(c1, unapplied("v1"))},
			want:   map[string]string{c1: "Admitted v2"}, says: "canary 0/2, 1 in flight", silent: "not applied",
		},
		"not applied, and lost": {
			reason: "its word is old",
			change: []change{admitted("v2", time.Minute, c1), on(c1, unapplied("v2"), lostFor(time.Minute))},
			want:   map[string]string{c1: "Lost v2"}, silent: "not applied",
		},
		"not applied, past the deadline": {
			reason: "it has failed, and is named as that",
			change: []change{admitted("v2", 30*time.Minute, c1), on(c1, unapplied("v2"))},
			want:   map[string]string{c1: "TimedOut v2"}, phase: v1alpha1.PhaseFailed, says: "1 failed (cluster-01: ", silent: "1 not applied",
		},
		"policy All, unchanged": {
			reason: "a cluster for which nothing changes takes no part, however it is",
			change: []change{
				wholeStrategy, whole(time.Hour), on(c1, runs("v1", rollout.HealthProgressing), func(c *rollout.Cluster) { c.UpToDate = true }),
				on(c2, stuck),
			},
			want: map[string]string{c1: "Unchanged v1", c2: "TimedOut v2"},
		},
		"leaving": {
			reason: "whoever is about to leave is not moved any more, and keeps nobody waiting",
			change: []change{
				canaryDone, on(c3, verified("v2")), on(c4, verified("v2")), func(in *rollout.Input) {
					in.Spec.Install = installedBy("few")
					in.Placements = append(in.Placements, placement("few", c1, c2, c3, c4))
				},
			},
			want: map[string]string{c5: "Removing v1", "cluster-06": "Removing v1"}, phase: v1alpha1.PhaseSucceeded, says: "4/4 updated",
		},
		"leaving while in flight": {
			reason: "its slot is not free before it is gone",
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
					in.Placements[1] = grouped("all", group(0, "", c1, c2, c3), group(1, "", c4, c5, "cluster-06"))
					in.Spec.Stages = nil
					in.Spec.Strategy = strategyOf(progressive(clusterv1alpha1.RolloutProgressive{
						MandatoryDecisionGroups: mandatory(clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: 0}),
						RolloutConfig:           clusterv1alpha1.RolloutConfig{MaxFailures: percent("25%")}, MaxConcurrency: number(1),
					}))
				},
				canaryDone, on(c3, verified("v2")), admitted("v2", time.Minute, c4, c5),
				on(c4, runs("v2", rollout.HealthFailed)), on(c5, runs("v2", rollout.HealthFailed)),
			},
			want: map[string]string{"cluster-06": "Admitted v2"}, phase: v1alpha1.PhaseProgressing,
		},
		"policy All, a cluster that came later": {
			reason: "its clock starts when it came back, or joined",
			change: []change{
				wholeStrategy, whole(time.Hour),
				on(c1, stuck, func(c *rollout.Cluster) { c.JoinedAt = now().Add(-10 * time.Minute) }),
				on(c2, stuck, func(c *rollout.Cluster) { c.ReachableSince = now().Add(-10 * time.Minute) }),
				on(c3, stuck),
			},
			want: map[string]string{c1: "Progressing v2", c2: "Progressing v2", c3: "TimedOut v2"},
		},
		"policy All, then stages": {
			reason: "who was written to and is not verified is in flight; nobody else was touched",
			change: []change{whole(time.Minute), on(c1, stuck), on(c3, stuck)},
			want:   map[string]string{c1: "Progressing v2", c2: "Waiting v1", c3: "Progressing v2", c4: "Waiting v1"},
		},
		"status lost": {
			reason: "who differs from the stable revision is in flight from now, never started over",
			change: []change{
				func(in *rollout.Input) { in.Previous = rollout.Previous{} },
				on(c1, verified("v2")), on(c3, runs("v0", rollout.HealthProgressing)), on(c4, runs(rollout.Mixed, rollout.HealthUnknown)),
				on(c5, runs(rollout.Foreign, rollout.HealthUnknown)),
			},
			want: map[string]string{c1: "Soaking v2", c2: "Waiting v1", c3: "Progressing v0", c4: "Admitted v2", c5: "Waiting foreign"},
		},
		"status lost before any success": {
			reason: "who has a work at all is in flight",
			change: []change{func(in *rollout.Input) { in.Previous, in.Stable = rollout.Previous{}, "" }, on(c1, stuck), on(c2, nothing), on(c3, runs("v1", rollout.HealthProgressing))},
			want:   map[string]string{c1: "Progressing v2", c2: "Waiting", c3: "Progressing v1"},
		},
		"after the success": {
			reason: "joiners and returners catch up without turning the outcome",
			change: []change{
				canaryDone, on(c3, verified("v2")), on(c4, verified("v2")), on("cluster-06", verified("v2")),
				func(in *rollout.Input) { in.Stable, in.Previous.Phase = "v2", v1alpha1.PhaseSucceeded },
			},
			want: map[string]string{c5: "Admitted v2"}, phase: v1alpha1.PhaseSucceeded, says: "5/6 updated, 1 catching up",
		},
		"a failure after the success": {
			reason: "it ended, and who waits behind the failure waits for somebody's hand, which the commit is told",
			change: []change{
				canaryDone, on(c3, verified("v2")), on(c4, verified("v2")),
				func(in *rollout.Input) { in.Stable, in.Previous.Phase = "v2", v1alpha1.PhaseSucceeded },
				admitted("v2", time.Hour, c5), on(c5, runs("v2", rollout.HealthFailed)),
			},
			want: map[string]string{c5: "Failed v2", "cluster-06": "Waiting v1"}, phase: v1alpha1.PhaseSucceeded,
			says: "4/6 updated, 1 catching up, 1 failed (cluster-05: Deployment/agent: as told), halted in everyone", halted: true,
			outcome: rollout.Failure,
		},
		"a stage that comes after the success": {
			reason: "what was left out has proved nothing: the rollout goes on, and the commit is pending again",
			change: []change{
				canaryDone, on("cluster-06", verified("v2")),
				func(in *rollout.Input) {
					in.Stable, in.Previous.Phase, in.Previous.Stages = "v2", v1alpha1.PhaseSucceeded, []string{"canary"}
				},
			},
			want: map[string]string{c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending, says: "everyone 1/4, 1 in flight",
		},
		"a canary that left in flight after the success": {
			reason: "it is no pace that was widened: the outcome stands until it is gone",
			change: []change{
				canaryDone, on(c3, verified("v2")), on(c4, verified("v2")), on(c5, verified("v2")), on("cluster-06", verified("v2")),
				admitted("v2", time.Minute, c1), inCanary, on(c1, lostFor(30*time.Second)),
				func(in *rollout.Input) {
					in.Stable, in.Previous.Phase, in.Previous.Stages = "v2", v1alpha1.PhaseSucceeded, []string{"everyone"}
					in.RemovalGrace = time.Hour
					in.Placements = []rollout.Placement{placement("canary"), placement("all", c2, c3, c4, c5, "cluster-06")}
				},
			},
			want: map[string]string{c1: "Removing v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success,
		},
		"a canary that left, and was parked, after the success": {
			reason: "the target needs no proof of its any more",
			change: []change{
				canaryDone, on(c3, verified("v2")), on(c4, verified("v2")), on(c5, verified("v2")), on("cluster-06", verified("v2")),
				parked("v2", c1), inCanary, on(c1, lostFor(time.Hour)),
				func(in *rollout.Input) {
					in.Stable, in.Previous.Phase = "v2", v1alpha1.PhaseSucceeded
					in.RemovalGrace = time.Hour
					in.Placements = []rollout.Placement{placement("canary"), placement("all", c2, c3, c4, c5, "cluster-06")}
				},
			},
			want: map[string]string{c1: "Removing v2"}, phase: v1alpha1.PhaseSucceeded, outcome: rollout.Success,
		},
		"a canary that left, and was parked, on the way back": {
			reason: "what ran here before is proved: nobody is halted for it",
			change: []change{
				func(in *rollout.Input) {
					in.TargetVerifiedBefore = true
					in.RemovalGrace = time.Hour
					in.Placements = []rollout.Placement{placement("canary"), placement("all", c2, c3, c4, c5, "cluster-06")}
				},
				parked("v2", c1), inCanary, on(c1, lostFor(time.Hour)),
			},
			want: map[string]string{c1: "Removing v1", c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"a way back on which nobody is there": {
			reason: "a revert that reached nobody is not done",
			change: []change{
				func(in *rollout.Input) { in.TargetVerifiedBefore = true },
				on(c1, lostFor(time.Hour)), on(c2, lostFor(time.Hour)), on(c3, lostFor(time.Hour)),
				on(c4, lostFor(time.Hour)), on(c5, lostFor(time.Hour)), on("cluster-06", lostFor(time.Hour)),
			},
			want: map[string]string{c1: "Unreachable v1"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
			says: "0/6 updated, 6 not available, caught up on return",
		},
		"a stage that takes in who was in none after the success": {
			reason: "it is no joiner that catches up",
			change: []change{
				canaryDone, on(c4, verified("v2")), on("cluster-06", verified("v2")),
				func(in *rollout.Input) {
					in.Stable, in.Previous.Phase = "v2", v1alpha1.PhaseSucceeded
					in.Previous.Total, in.Previous.Unstaged = 4, 2
				},
			},
			want: map[string]string{c3: "Admitted v2"}, phase: v1alpha1.PhaseProgressing, outcome: rollout.Pending,
		},
		"no target": {
			reason: "there is nothing to roll out",
			change: []change{func(in *rollout.Input) { in.Spec.Target = nil }},
			want:   map[string]string{c1: "Waiting v1"}, phase: v1alpha1.PhaseProgressing,
		},
	}
}
