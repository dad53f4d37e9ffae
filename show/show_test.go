package show

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

func TestOutcomeOf(t *testing.T) {
	stalled := func(reason string) func(*v1alpha1.AddOnRollout) {
		return func(r *v1alpha1.AddOnRollout) {
			r.Status.Conditions = []metav1.Condition{{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: reason}}
		}
	}
	phase := func(p v1alpha1.Phase) func(*v1alpha1.AddOnRollout) {
		return func(r *v1alpha1.AddOnRollout) { r.Status.Phase = p }
	}
	for name, c := range map[string]struct {
		reason string
		edit   func(*v1alpha1.AddOnRollout)
		want   Outcome
	}{
		"Progressing": {"it moves on by itself", phase(v1alpha1.PhaseProgressing), Running},
		"Removing":    {"it moves on by itself", phase(v1alpha1.PhaseRemoving), Running},
		"Succeeded": {"done", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Counts = v1alpha1.PhaseSucceeded, v1alpha1.Counts{Total: 24, Updated: 24}
		}, Succeeded},
		"Removed": {"removed as asked is done", phase(v1alpha1.PhaseRemoved), Succeeded},
		"Failed":  {"the budget is spent", phase(v1alpha1.PhaseFailed), Failed},
		"Held":    {"the user must decide", phase(v1alpha1.PhaseHeld), Waiting},
		"RolledBack": {"Git and the fleet differ until the user decides", func(r *v1alpha1.AddOnRollout) {
			stalled(v1alpha1.RolledBackReason)(r)
			r.Status.Phase, r.Spec.Target = v1alpha1.PhaseRolledBack, targetOf("3")
			r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *r.Spec.Target}
		}, Waiting},
		"HeldByOCM": {"OCM has yet to decide about a placement", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseHeld
			r.Status.Conditions = []metav1.Condition{{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.PlacementUndecidedReason}}
		}, Running},
		"HeldByAWriterAtRest": {"a writer was fenced off", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseHeld
			r.Status.Conditions = []metav1.Condition{{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.OwnershipConflictReason}}
		}, Running},
		"RollingBack": {"it failed, and goes back by itself", phase(v1alpha1.PhaseRollingBack), Running},
		"HeldByGuard": {"the user must approve", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseHeld
			r.Status.Conditions = []metav1.Condition{{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DeletionGuardReason}}
		}, Waiting},
		"Suspended": {"the user must resume", phase(v1alpha1.PhaseSuspended), Waiting},
		"Stalled":   {"only a change helps", stalled(v1alpha1.OwnershipConflictReason), Failed},
		"OldGeneration": {"a success of the spec before is none of this one", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Generation = v1alpha1.PhaseSucceeded, 3
		}, Running},
		"OldTarget": {"a success of the target before is none of this one", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Spec.Target = v1alpha1.PhaseSucceeded, targetOf("3")
		}, Running},
		"FirstPlanFailed": {"the first plan could not be made", func(r *v1alpha1.AddOnRollout) {
			r.Status.Target = nil
			stalled(v1alpha1.InvalidRolloutStrategyReason)(r)
		}, Failed},
		"LostByMostClusters": {"the clusters lost the add-on after the success", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Counts = v1alpha1.PhaseSucceeded, v1alpha1.Counts{Total: 10, InFlight: 10}
		}, Running},
		"Joiners": {"a few clusters joined after the success", func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Counts = v1alpha1.PhaseSucceeded, v1alpha1.Counts{Total: 10, Updated: 8, InFlight: 1, Waiting: 1}
		}, Succeeded},
		"FinishWhileTheOtherSucceeds": {"the success is that of the content before", finishing(v1alpha1.PhaseSucceeded), Running},
		"FinishWhileTheOtherFails":    {"the failure is that of the content before", finishing(v1alpha1.PhaseFailed), Running},
		"FinishWhileTheOtherIsHeld":   {"the hold is that of the content before", finishing(v1alpha1.PhaseHeld), Running},
		"FinishAndSuspended": {"the user must resume, whatever the content before does", func(r *v1alpha1.AddOnRollout) {
			finishing(v1alpha1.PhaseSucceeded)(r)
			r.Spec.Suspend = true
		}, Waiting},
		"FinishAndStalled": {"no content can go on", func(r *v1alpha1.AddOnRollout) {
			finishing(v1alpha1.PhaseProgressing)(r)
			stalled(v1alpha1.InvalidRolloutStrategyReason)(r)
		}, Failed},
		"FinishOfARollback": {"the clusters go back from other content first", func(r *v1alpha1.AddOnRollout) {
			finishing(v1alpha1.PhaseRolledBack)(r)
			r.Status.Override.Kind, r.Status.Override.From = v1alpha1.OverrideRollback, targetOf("2")
		}, Running},
		"NoStatus": {"the operator has not seen it", func(r *v1alpha1.AddOnRollout) {
			r.Status = v1alpha1.AddOnRolloutStatus{}
		}, Running},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OutcomeOf(with(progressing(), c.edit)); got != c.want {
				t.Errorf("%s: got %s, want %s", c.reason, got, c.want)
			}
		})
	}
}

func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		rollout *v1alpha1.AddOnRollout
		want    string
	}{
		"MadeByHand": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Spec.Target, r.Status = nil, v1alpha1.AddOnRolloutStatus{}
		}), "○ hello – Pending: no source has declared the add-on yet"},
		"Progressing": {progressing(), "⟳ hello main@2222222 Progressing 11/24: everyone 9/22, 6 in flight"},
		"Failed":      {failed(), "✗ hello main@2222222 Failed 0/24: stage canary: 1 of 2 failed, none allowed"},
		"Stalled": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Conditions = []metav1.Condition{{
				Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.OwnershipConflictReason, Message: "source b owns it\nand more",
			}}
		}), "✗ hello main@2222222 Stalled 11/24: source b owns it"},
		"LostByMostClusters": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Message = v1alpha1.PhaseSucceeded, "now 0/10 updated, 10 to update"
			r.Status.Counts = v1alpha1.Counts{Total: 10, InFlight: 10}
		}), "⟳ hello main@2222222 Succeeded 0/10: now 0/10 updated, 10 to update"},
		"Deleted": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			now := metav1.NewTime(at())
			r.DeletionTimestamp, r.Status.Phase = &now, v1alpha1.PhaseSucceeded
			r.Status.Counts = v1alpha1.Counts{Total: 24, Updated: 24}
			r.Status.Conditions = []metav1.Condition{{
				Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DeletionGuardReason, Message: "24/24; the AddOnRollout is being deleted",
			}}
		}), "✔ hello main@2222222 Succeeded 24/24: 24/24; the AddOnRollout is being deleted"},
		"Removing": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Spec.Removal = &v1alpha1.Removal{Commit: "c", Approved: true}
			r.Status.Phase, r.Status.Message, r.Status.Counts = v1alpha1.PhaseRemoving, "3 still to be removed", v1alpha1.Counts{Removing: 3}
		}), "⟳ hello main@2222222 Removing: 3 still to be removed"},
		"FirstPlanFailed": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status = v1alpha1.AddOnRolloutStatus{ObservedGeneration: r.Generation, Conditions: []metav1.Condition{{
				Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.InvalidRolloutStrategyReason, Message: "unknown group typo",
			}}}
		}), "✗ hello main@2222222 Stalled 0/0: unknown group typo"},
		"Pending": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Spec.Target = targetOf("3")
		}), "○ hello main@3333333 Pending: the operator has not reconciled it yet"},
		// A rollback order of content that had succeeded takes effect in the turn after the one that stores it.
		"OrderThatIsNotAnswered": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseSucceeded
			r.Status.CarriedOut = []v1alpha1.GivenOrder{{Name: "hello-rollback-1", Author: "alice", Reason: "leaks"}}
		}), "○ hello main@2222222 Pending: waits for the operator to answer the order of alice (leaks)"},
		"Finish": {with(progressing(), finishing(v1alpha1.PhaseProgressing)), "○ hello main@3333333 Pending: main@3333333 waits for main@2222222 (onNewCommit is Finish); everyone 9/22"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Style{}.Line(c.rollout)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTree(t *testing.T) {
	for name, c := range map[string]struct {
		rollout *v1alpha1.AddOnRollout
		want    string
	}{
		"Progressing": {progressing(), `
Rollout   default/hello   ⟳ Progressing   stage 2/2 everyone
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   everyone 9/22, 6 in flight

NAME            STATUS        CLUSTERS             PROGRESS
⟳ hello         Progressing   11/24  6 in flight   █████████░░░░░░░░░░░
├─ ✔ canary     Complete      2/2                  ████████████████████
└─ ⟳ everyone   Progressing   9/22  6 in flight    ████████░░░░░░░░░░░░
`},
		"Finish": {with(progressing(), finishing(v1alpha1.PhaseProgressing)), `
Rollout   default/hello   ○ Pending   stage 2/2 everyone
Commit    main@3333333   stable main@1111111
Message   main@3333333 waits for main@2222222 (onNewCommit is Finish); everyone 9/22

NAME            STATUS        CLUSTERS             PROGRESS
⟳ hello         Progressing   11/24  6 in flight   █████████░░░░░░░░░░░
├─ ✔ canary     Complete      2/2                  ████████████████████
└─ ⟳ everyone   Progressing   9/22  6 in flight    ████████░░░░░░░░░░░░
`},
		"StatusLost": {with(progressing(), func(r *v1alpha1.AddOnRollout) { r.Status.Stable.Commit = "" }), `
Rollout   default/hello   ⟳ Progressing   stage 2/2 everyone
Commit    main@2222222 (4m ago)   stable hello-1111111111   commit status reported ✔
Message   everyone 9/22, 6 in flight

NAME            STATUS        CLUSTERS             PROGRESS
⟳ hello         Progressing   11/24  6 in flight   █████████░░░░░░░░░░░
├─ ✔ canary     Complete      2/2                  ████████████████████
└─ ⟳ everyone   Progressing   9/22  6 in flight    ████████░░░░░░░░░░░░
`},
		"NotApplied": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Stages[1].Message += ", 2 not applied (eu-01: field is immutable; and 1 more)"
		}), `
Rollout   default/hello   ⟳ Progressing   stage 2/2 everyone
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   everyone 9/22, 6 in flight

NAME            STATUS        CLUSTERS             PROGRESS
⟳ hello         Progressing   11/24  6 in flight   █████████░░░░░░░░░░░
├─ ✔ canary     Complete      2/2                  ████████████████████
└─ ⟳ everyone   Progressing   9/22  6 in flight    ████████░░░░░░░░░░░░  2 not applied (eu-01: field is immutable; and 1 more)
`},
		"Gates": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			now := metav1.NewTime(at())
			r.Status.Phase, r.Status.Message = v1alpha1.PhaseHeld, "everyone 0/22, waits for approval qa: 1 of 2 approvals (addonflow approve hello everyone)"
			r.Status.Stages[0].Gates = []v1alpha1.GateStatus{{Name: "errors", Type: v1alpha1.GatePrometheus, State: v1alpha1.GatePassed, Reason: "0.02 is at most 0.1", Since: &now}}
			everyone := &r.Status.Stages[1]
			everyone.Phase, everyone.Message, everyone.Counts = "Held", "0/22", v1alpha1.Counts{Total: 22}
			everyone.Gates = []v1alpha1.GateStatus{
				{Name: "qa", Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Reason: "1 of 2 approvals (ann)", Since: &now},
				{Name: "office", Type: v1alpha1.GateWindow, State: v1alpha1.GatePassed, Reason: "open until Mon 17:00 CET", Since: &now},
				{Name: "slo", Type: v1alpha1.GateWebhook, State: v1alpha1.GateWaiting}, // not asked for yet
			}
		}), `
Rollout   default/hello   ‖ Held   stage 2/2 everyone
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   everyone 0/22, waits for approval qa: 1 of 2 approvals (addonflow approve hello everyone)

NAME                        STATUS     CLUSTERS             PROGRESS
‖ hello                     Held       11/24  6 in flight   █████████░░░░░░░░░░░
├─ ✔ canary                 Complete   2/2                  ████████████████████
│  └─ ✔ prometheus errors   Passed     0.02 is at most 0.1
└─ ‖ everyone               Held       0/22                 ░░░░░░░░░░░░░░░░░░░░
   ├─ ‖ approval qa         Waiting    1 of 2 approvals (ann)
   └─ ✔ window office       Passed     open until Mon 17:00 CET
`},
		"Failed": {failed(), `
Rollout   default/hello   ✗ Failed   stage 1/2 canary
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   stage canary: 1 of 2 failed, none allowed

NAME            STATUS    CLUSTERS                      PROGRESS
✗ hello         Failed    0/24  1 in flight, 1 failed   ░░░░░░░░░░░░░░░░░░░░
├─ ✗ canary     Failed    0/2  1 in flight, 1 failed    ░░░░░░░░░░░░░░░░░░░░
│  └─ ✗ eu-01   Failed    Deployment hello: ProgressDeadlineExceeded
└─ ○ everyone   Waiting   0/22                          ░░░░░░░░░░░░░░░░░░░░  waits for canary
`},
		"StatusesBeingPosted": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Conditions[1].Status, r.Status.Stages = metav1.ConditionUnknown, nil
		}), `
Rollout   default/hello   ⟳ Progressing
Commit    main@2222222 (4m ago)   stable main@1111111   commit status … being delivered
Message   everyone 9/22, 6 in flight

NAME      STATUS        CLUSTERS             PROGRESS
⟳ hello   Progressing   11/24  6 in flight   █████████░░░░░░░░░░░
`},
		"FailedWithACanaryInFlight": {with(failed(), func(r *v1alpha1.AddOnRollout) {
			since := at().Add(-time.Minute)
			r.Status.Ledger = rollouttest.LedgerOf(
				rollout.Record{Cluster: "eu-01", RecordKey: v1alpha1.RecordKey{Revision: digestOf("2"), Stage: "canary", State: rollout.Failed}, Admitted: since, Since: since},
				rollout.Record{Cluster: "us-01", RecordKey: v1alpha1.RecordKey{Revision: digestOf("2"), Stage: "canary", State: rollout.Updating}, Admitted: since, Since: since},
			)
		}), `
Rollout   default/hello   ✗ Failed   stage 1/2 canary
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   stage canary: 1 of 2 failed, none allowed

NAME            STATUS     CLUSTERS                      PROGRESS
✗ hello         Failed     0/24  1 in flight, 1 failed   ░░░░░░░░░░░░░░░░░░░░
├─ ✗ canary     Failed     0/2  1 in flight, 1 failed    ░░░░░░░░░░░░░░░░░░░░
│  ├─ ✗ eu-01   Failed     Deployment hello: ProgressDeadlineExceeded
│  └─ ⟳ us-01   Updating   in flight since 2026-03-04 14:29:00 UTC
└─ ○ everyone   Waiting    0/22                          ░░░░░░░░░░░░░░░░░░░░  waits for canary
`},
		"Released": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
			r.Status.Phase, r.Status.Message, r.Status.Stages = v1alpha1.PhaseSuspended, "suspended", nil
		}), `
Rollout   default/hello   ‖ Suspended
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   suspended; release requested: no cluster is moved; the add-on is released when it leaves Git

NAME      STATUS      CLUSTERS             PROGRESS
‖ hello   Suspended   11/24  6 in flight   █████████░░░░░░░░░░░
`},
		"NoCluster": {with(progressing(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Message, r.Status.Counts = v1alpha1.PhaseSucceeded, "no cluster to roll out to", v1alpha1.Counts{}
			r.Status.Stages = []v1alpha1.StageStatus{{Name: "canary", Phase: "NothingToDo"}}
		}), `
Rollout   default/hello   ✔ Succeeded   stage 1/1
Commit    main@2222222 (4m ago)   stable main@1111111   commit status reported ✔
Message   no cluster to roll out to

NAME          STATUS        CLUSTERS   PROGRESS
✔ hello       Succeeded     0/0        ░░░░░░░░░░░░░░░░░░░░
└─ ✔ canary   NothingToDo   0/0        ░░░░░░░░░░░░░░░░░░░░
`},
		"FailingInTwoStages": {with(failed(), func(r *v1alpha1.AddOnRollout) {
			r.Status.Stages[1].Counts.Failed, r.Status.Counts.Failed = 3, 4
			r.Status.Conditions, r.Status.TargetSince, r.Status.Message = nil, nil, ""
		}), `
Rollout   default/hello   ✗ Failed   stage 1/2 canary
Commit    main@2222222   stable main@1111111

NAME              STATUS    CLUSTERS                      PROGRESS
✗ hello           Failed    0/24  1 in flight, 4 failed   ░░░░░░░░░░░░░░░░░░░░
├─ ✗ canary       Failed    0/2  1 in flight, 1 failed    ░░░░░░░░░░░░░░░░░░░░
├─ ○ everyone     Waiting   0/22  3 failed                ░░░░░░░░░░░░░░░░░░░░  waits for canary
├─ ✗ eu-01        Failed    Deployment hello: ProgressDeadlineExceeded
└─ ✗ and 3 more
`},
		"Empty": {&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}, `
Rollout   a/b   ○ Pending
Commit    –   stable –

NAME   STATUS    CLUSTERS   PROGRESS
○ b    Pending   0/0        ░░░░░░░░░░░░░░░░░░░░
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), Style{}.Tree(c.rollout, at())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTree_SaysOfTheCommitThatItRollsOut: when its content became the target, and that it succeeded before. If the clusters
// go back, this is not said of the commit that they leave.
func TestTree_SaysOfTheCommitThatItRollsOut(t *testing.T) {
	r := progressing()
	r.Status.Reverting = true
	if got := (Style{}).Tree(r, at()); !strings.Contains(got, "Commit    main@2222222 (4m ago, succeeded here before)   stable main@1111111") {
		t.Errorf("of a revert:\n%s", got)
	}
	r.Status.Target, r.Status.Override = targetOf("1"), &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2")}
	if got := (Style{}).Tree(r, at()); !strings.Contains(got, "Commit    main@2222222   stable main@1111111") {
		t.Errorf("of a rollback:\n%s", got)
	}
}

// Without its codes, coloured output equals plain output.
func TestTreeColour(t *testing.T) {
	coloured := Style{Colour: true}.Tree(failed(), at())
	if !strings.Contains(coloured, "\x1b[31m✗\x1b[0m") {
		t.Errorf("the failure is not red: %q", coloured)
	}
	var plain strings.Builder
	escaped := false
	for _, r := range coloured {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			plain.WriteRune(r)
		}
	}
	if diff := cmp.Diff(Style{}.Tree(failed(), at()), plain.String()); diff != "" {
		t.Error(diff)
	}
}

// A picture never exceeds the size of the terminal.
func TestTreeFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		style := Style{
			Colour: rapid.Bool().Draw(t, "colour"),
			Width:  rapid.IntRange(2, 120).Draw(t, "width"),
			Height: rapid.IntRange(3, 30).Draw(t, "height"),
		}
		picture := style.Tree(failed(), at())
		if n := strings.Count(picture, "\n"); n > style.Height-1 {
			t.Fatalf("%d lines in a height of %d", n, style.Height)
		}
		for line := range strings.Lines(picture) {
			line = strings.TrimSuffix(line, "\n")
			if n := visible(line); n > style.Width {
				t.Fatalf("%d columns in a width of %d: %q", n, style.Width, line)
			}
			if i := strings.LastIndex(line, "\x1b["); i >= 0 && !strings.HasPrefix(line[i:], "\x1b[0m") {
				t.Fatalf("a colour is left on: %q", line)
			}
		}
	})
}

func TestBar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int32Range(0, 1<<20).Draw(t, "total")
		done := rapid.Int32Range(0, max(total, 1)).Draw(t, "done")
		bar := progressBar(done, total)
		full, empty := !strings.Contains(bar, "░"), !strings.Contains(bar, "█")
		switch {
		case utf8.RuneCountInString(bar) != barWidth:
			t.Fatalf("%d cells", utf8.RuneCountInString(bar))
		case full != (total > 0 && done >= total):
			t.Fatalf("%d of %d is drawn full: %v", done, total, full)
		case empty != (done == 0 || total == 0):
			t.Fatalf("%d of %d is drawn empty: %v", done, total, empty)
		}
	})
}

func TestShortCommit(t *testing.T) {
	sha := strings.Repeat("0123456789", 4)
	for in, want := range map[string]string{
		"main@sha1:" + sha:              "main@0123456",
		"refs/pull/1/head@sha1:" + sha:  "refs/pull/1/head@0123456",
		"a@b@sha1:" + sha:               "a@b@0123456",
		"sha1:" + sha:                   "0123456",
		"":                              "",
		"main@sha1:012":                 "main@sha1:012",
		"no revision string whatsoever": "no revision string whatsoever",
	} {
		if got := ShortCommit(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestTables(t *testing.T) {
	created := metav1.NewTime(at().Add(-time.Hour))
	source := v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Name: "fleet", Generation: 1, CreationTimestamp: created},
		Spec:       v1alpha1.AddOnSourceSpec{URL: "https://git.example.com/fleet", Path: "addons"},
		Status: v1alpha1.AddOnSourceStatus{
			ObservedGeneration: 1, LastAppliedRevision: targetOf("1").Commit, AddOns: []v1alpha1.SourcedAddOn{{Name: "hello"}},
			Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Message: "a.yaml:3: wrong\nb.yaml:4: wrong"}},
		},
	}
	unseen := v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Name: "new", Generation: 1, CreationTimestamp: created}, Spec: v1alpha1.AddOnSourceSpec{URL: "u", Suspend: true}}
	revision := v1alpha1.AddOnRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hello-1111111111", CreationTimestamp: created,
			Annotations: map[string]string{v1alpha1.SucceededAtAnnotation: at().Add(-2 * time.Minute).Format(time.RFC3339)},
		},
		Spec: v1alpha1.AddOnRevisionSpec{AddOn: "hello", Digest: digestOf("1")},
	}
	cluster := ClusterOf(progressing(), rollout.ClusterPlan{
		Name: "eu-01", Stage: "canary", State: rollout.Soaking, Revision: digestOf("2"), Reason: "soaks", SoakingUntil: at(),
	})
	stranger := ClusterOf(progressing(), rollout.ClusterPlan{Name: "us-01", State: rollout.Unstaged, Revision: rollout.Foreign})
	recalled, unreadable := *revision.DeepCopy(), v1alpha1.AddOnRevision{}
	recalled.Annotations[v1alpha1.QuarantinedAnnotation] = `{"time":"` + at().Add(-time.Hour).UTC().Format(time.RFC3339) + `","reason":"leaks memory\nsince 1.4"}`
	unreadable.Annotations = map[string]string{v1alpha1.QuarantinedAnnotation: "true"}
	stopped := failed()
	stopped.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
	for name, c := range map[string]struct {
		table *metav1.Table
		want  []string
	}{
		"Sources": {SourcesTable(at(), source, unseen), []string{
			"[fleet False False main@1111111 1 60m a.yaml:3: wrong https://git.example.com/fleet addons]",
			"[new Unknown True – 0 60m – u –]",
		}},
		"Rollouts": {RolloutsTable(at(), *progressing(), *failed(), *stopped), []string{
			"[hello Unknown False Progressing main@2222222 11/24 0 2/2 everyone 26h main@1111111 everyone 9/22, 6 in flight]",
			"[hello Unknown False Failed main@2222222 0/24 1 1/2 canary 26h main@1111111 stage canary: 1 of 2 failed, none allowed]",
			"[hello Unknown True Failed main@2222222 0/24 1 1/2 canary 26h main@1111111 stage canary: 1 of 2 failed, none allowed; suspended]",
		}},
		"Revisions": {RevisionsTable(at(), revision, recalled, unreadable), []string{
			"[hello-1111111111 hello 2m ago – 60m " + digestOf("1") + " –]",
			"[hello-1111111111 hello 2m ago 60m ago 60m " + digestOf("1") + " leaks memory]",
			"[  – True –  annotation addonflow.io/quarantined cannot be read]",
		}},
		"Clusters": {ClustersTable(cluster, stranger), []string{
			"[eu-01 hello canary Soaking hello-2222222222 soaks 14:30 UTC –]",
			"[us-01 hello – Unstaged foreign – – –]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, row := range c.table.Rows {
				if len(row.Cells) != len(c.table.ColumnDefinitions) {
					t.Errorf("%d cells in %d columns", len(row.Cells), len(c.table.ColumnDefinitions))
				}
				got = append(got, fmt.Sprint(row.Cells))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClustersLeavesOutIgnored(t *testing.T) {
	plan := rollout.Plan{Clusters: []rollout.ClusterPlan{{Name: "a", State: rollout.Waiting}, {Name: "b", State: rollout.Ignored}}}
	got := Clusters(progressing(), plan)
	if len(got) != 1 || got[0].Cluster != "a" {
		t.Errorf("got %v, want cluster a alone", got)
	}
}
