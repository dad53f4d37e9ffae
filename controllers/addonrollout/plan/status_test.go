package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/journal"
)

func targetOf(revision, commit string) v1alpha1.Target {
	return v1alpha1.Target{Source: "fleet", Revision: revision, Digest: "v1:sha256:" + revision, Commit: commit}
}

// at observes a rollout of a target.
func at(target v1alpha1.Target, succeeded ...Success) *Observation {
	return &Observation{Rollout: &v1alpha1.AddOnRollout{Spec: v1alpha1.AddOnRolloutSpec{Target: &target}}, Choice: Choice{Target: target, Succeeded: succeeded}}
}

func TestStatus_MovesToANewTarget(t *testing.T) {
	then := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	now := metav1.NewTime(then.Add(time.Hour))
	a, b := targetOf("a", "main@sha1:1"), targetOf("b", "main@sha1:2")
	running := v1alpha1.AddOnRolloutStatus{
		Target: &a, TargetSince: &then, Phase: v1alpha1.PhaseProgressing, Stable: &b, Attempt: 3,
		Stages:  []v1alpha1.StageStatus{{Name: "canary", Gates: []v1alpha1.GateStatus{{Name: "qa"}}}},
		Ledger:  v1alpha1.Ledger{Records: []v1alpha1.RecordGroup{{RecordKey: v1alpha1.RecordKey{Revision: a.Digest}}}},
		History: []v1alpha1.HistoryEntry{{Target: a, Phase: v1alpha1.PhaseProgressing, Started: then}},
	}
	t.Run("SameTarget", func(t *testing.T) {
		if got := movedToTarget(running, at(a), now); !equality.Semantic.DeepEqual(got, running) {
			t.Errorf("the same target changes nothing, got %+v", got)
		}
	})
	t.Run("NewTarget", func(t *testing.T) {
		got := movedToTarget(running, at(b, Succeeded{{Name: "b", Digest: b.Digest, At: "2026-01-01T00:00:00Z"}}...), now)
		if *got.Target != b || !got.TargetSince.Equal(&now) || got.Phase != "" {
			t.Errorf("a new target starts its own clock: %+v", got)
		}
		if got.Attempt != 1 || got.Stages[0].Gates != nil {
			t.Errorf("other content has no verdicts yet: attempt %d, %+v", got.Attempt, got.Stages)
		}
		if again := movedToTarget(got, at(a), now); again.Attempt != 4 {
			t.Errorf("content that had three attempts is tried again in attempt %d, want 4", again.Attempt)
		}
		if len(got.Ledger.Records) != 1 {
			t.Error("clusters in flight keep their slots across targets")
		}
		if !got.Reverting {
			t.Error("content that succeeded here before is gone back to")
		}
		if h := got.History; len(h) != 2 || h[1].SupersededBy != b.Commit || h[1].Finished == nil {
			t.Errorf("the superseded rollout is not closed with the new commit: %+v", h)
		}
	})
	t.Run("SameContentOtherCommit", func(t *testing.T) {
		moved := targetOf("a", "main@sha1:9")
		got := movedToTarget(running, at(moved), now)
		if got.Target.Commit != moved.Commit || !got.TargetSince.Equal(&then) || got.Phase != running.Phase {
			t.Errorf("equal content goes on under its new commit: %+v", got)
		}
		ended := running
		ended.Stable = &a
		got = movedToTarget(ended, at(moved), now)
		if *got.Stable != moved || len(got.History) != 1 || got.History[0].Target != moved || ended.History[0].Target != a {
			t.Errorf("a commit that Git may not have any more is still named: stable %+v, history %+v", got.Stable, got.History)
		}
		if got = movedToTarget(running, at(moved), now); *got.Stable != b {
			t.Errorf("other content is of another commit: %+v", got.Stable)
		}
	})
	t.Run("DeclaredAgainAfterAnAbort", func(t *testing.T) {
		aborted := running
		aborted.Aborted, aborted.Override = &v1alpha1.GivenOrder{Author: "ann"}, &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: b}
		got := movedToTarget(aborted, at(a), now)
		if got.Aborted != nil || got.Attempt != 4 || got.Stages[0].Gates != nil {
			t.Errorf("attempt %d has the verdicts of the one before: %+v", got.Attempt, got.Stages)
		}
		if aborted.Stages[0].Gates == nil {
			t.Error("the stored status was changed")
		}
	})
	t.Run("LostStatus", func(t *testing.T) {
		s := Succeeded{{Name: "b", Digest: b.Digest, At: "2026-01-02T00:00:00Z"}, {Name: "c", Digest: "x", At: "2026-01-01T00:00:00Z"}}
		o := at(a, s...)
		if got := movedToTarget(v1alpha1.AddOnRolloutStatus{}, o, now); got.Stable != nil {
			t.Errorf("no cluster runs the add-on, and stable is %+v", got.Stable)
		}
		o.Members = []*Member{{Works: []*workv1.ManifestWork{{}}}}
		got := movedToTarget(v1alpha1.AddOnRolloutStatus{}, o, now)
		if got.Stable == nil || got.Stable.Digest != b.Digest {
			t.Errorf("stable is what succeeded last, got %+v", got.Stable)
		}
	})
}

func TestConcludeIsIdempotent(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status := movedToTarget(v1alpha1.AddOnRolloutStatus{}, at(targetOf("a", "main@sha1:1")), now)
	plan := rollout.Plan{Phase: v1alpha1.PhaseSucceeded, Message: "24 of 24", Succeeded: true, Counts: v1alpha1.Counts{Total: 24, Updated: 24}}
	first := statusAfter(status, plan, way{}, now)
	plan.Succeeded = false
	second := statusAfter(first, plan, way{}, metav1.NewTime(now.Add(time.Hour)))
	if !equality.Semantic.DeepEqual(first, second) {
		t.Errorf("an identical reconcile an hour later writes nothing:\n%+v\n%+v", first, second)
	}
	if first.Stable == nil || first.Stable.Revision != "a" || first.History[0].Finished == nil {
		t.Errorf("a success makes the target stable and ends its history entry: %+v", first)
	}
	if joined := statusAfter(second, rollout.Plan{Phase: v1alpha1.PhaseProgressing}, way{}, now); !joined.Returned {
		t.Error("Returned is false after a cluster joined")
	}
	if next := movedToTarget(second, at(targetOf("b", "main@sha1:2")), now); next.Returned {
		t.Error("a new target has not ended yet")
	}
}

// TestHistory_NamesClustersThatFailAfterTheHalt: the other canary fails after its rollout was halted.
func TestHistory_NamesClustersThatFailAfterTheHalt(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status := movedToTarget(v1alpha1.AddOnRolloutStatus{}, at(targetOf("a", "main@sha1:1")), now)
	failing := []v1alpha1.ClusterReason{{Cluster: "c1", Reason: "crashes"}, {Cluster: "c2", Reason: "crashes"}}
	halted := statusAfter(status, rollout.Plan{Phase: v1alpha1.PhaseFailed, Counts: v1alpha1.Counts{Total: 8, Failed: 1, InFlight: 1}, Failing: failing[:1]}, way{}, now)
	later := metav1.NewTime(now.Add(time.Minute))
	h := statusAfter(halted, rollout.Plan{Phase: v1alpha1.PhaseFailed, Message: "2 failed", Counts: v1alpha1.Counts{Total: 8, Failed: 2}, Failing: failing}, way{}, later).History[0]
	if len(h.Failing) != 2 || h.Counts.Failed != 2 || h.Reason != "2 failed" || !h.Finished.Equal(&now) {
		t.Errorf("the history has %+v; it ended at %s", h, now)
	}
}

// TestHistory_NamesTenFailingClustersAndCountsAll: the number says that there are more.
func TestHistory_NamesTenFailingClustersAndCountsAll(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	status := movedToTarget(v1alpha1.AddOnRolloutStatus{}, at(targetOf("a", "main@sha1:1")), now)
	var failing []v1alpha1.ClusterReason
	for i := range 11 {
		failing = append(failing, v1alpha1.ClusterReason{Cluster: fmt.Sprintf("c%02d", i), Reason: "crashes"})
	}
	h := statusAfter(status, rollout.Plan{Phase: v1alpha1.PhaseFailed, Counts: v1alpha1.Counts{Total: 24, Failed: 11}, Failing: failing}, way{}, now).History[0]
	if !slices.Equal(h.Failing, failing[:10]) || h.Counts.Failed != 11 {
		t.Errorf("the history has %+v", h)
	}
}

// TestJournal_NamesTheCommitOfSupersededContent: a cluster returned with content that another one superseded.
func TestJournal_NamesTheCommitOfSupersededContent(t *testing.T) {
	older, target := targetOf("a", "main@sha1:1"), targetOf("b", "main@sha1:2")
	did := []journal.Decision{{Kind: journal.Returned, Revision: older.Digest}}
	NameCommits(did, &v1alpha1.AddOnRolloutStatus{Target: &target, History: []v1alpha1.HistoryEntry{{Target: target}, {Target: older}}})
	if did[0].Commit != older.Commit {
		t.Errorf("the commit is %q, want %q", did[0].Commit, older.Commit)
	}
}

func TestVerdictOf(t *testing.T) {
	for err, want := range map[error]string{
		rollout.ErrInvalidStrategy:      v1alpha1.InvalidRolloutStrategyReason,
		rollout.ErrUnknownDecisionGroup: v1alpha1.InvalidRolloutStrategyReason,
		rollout.ErrCorruptLedger:        v1alpha1.InvalidLedgerReason,
		ErrOwnership:                    v1alpha1.OwnershipConflictReason,
		ErrTenantDenied:                 v1alpha1.TenantDeniedReason,
		ErrInvalidTenants:               v1alpha1.InvalidTenantsReason,
	} {
		v, known := verdictOf(fmt.Errorf("wrapped: %w", err))
		if !known || v.Stalled+v.Waiting != want {
			t.Errorf("%v: got %+v, want reason %s", err, v, want)
		}
	}
	if _, known := verdictOf(fmt.Errorf("boom")); known {
		t.Error("an error of the network must be retried, not reported to the user")
	}
}

// TestHistory_KeepsTheRollbackBesideTheRevert: Git declares the content of the rollback. The rollback and the revert are two
// rollouts to the same content, and the verdict of each stays.
func TestHistory_KeepsTheRollbackBesideTheRevert(t *testing.T) {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	good, bad, revert := targetOf("a", "main@sha1:1"), targetOf("b", "main@sha1:2"), targetOf("a", "main@sha1:3")
	for name, tc := range map[string]struct {
		phase v1alpha1.Phase // of the rollback, as the planner says it
		want  v1alpha1.Phase
		by    string
	}{
		"RolledBack":  {v1alpha1.PhaseSucceeded, v1alpha1.PhaseRolledBack, ""},
		"Failed":      {v1alpha1.PhaseFailed, v1alpha1.PhaseFailed, ""},
		"RollingBack": {v1alpha1.PhaseProgressing, v1alpha1.PhaseRollingBack, revert.Commit},
	} {
		t.Run(name, func(t *testing.T) {
			success := Succeeded{{Name: "a", Digest: good.Digest, At: "2026-01-01T00:00:00Z"}}
			status := movedToTarget(v1alpha1.AddOnRolloutStatus{}, at(bad, success...), now)
			status = statusAfter(status, rollout.Plan{Phase: v1alpha1.PhaseFailed, Message: "1 failed"}, way{}, now)
			o := at(good, success...)
			o.Rollout.Spec.Target, o.Override = &bad, &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: bad}
			status = statusAfter(movedToTarget(status, o, now), rollout.Plan{Phase: tc.phase, Message: "back"}, way{}, now)
			status = statusAfter(movedToTarget(status, at(revert, success...), now), rollout.Plan{Phase: v1alpha1.PhaseSucceeded}, way{}, now)
			h := status.History
			if len(h) != 3 || h[0].Phase != v1alpha1.PhaseSucceeded || h[0].Target != revert || h[1].Phase != tc.want || h[1].SupersededBy != tc.by || h[2].Phase != v1alpha1.PhaseFailed {
				t.Errorf("the history is %+v", h)
			}
		})
	}
}
