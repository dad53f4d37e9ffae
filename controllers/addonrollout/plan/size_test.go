package plan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/commitstatus"
	"github.com/addonflow/addonflow/rollout"
)

// TestObjectWithEverythingAtItsLimitIsStored: the object has a full ledger, history and journal, the
// commit marks of a forge that was down for weeks, and the longest names and texts. Its size is at
// most 1.4 MiB; etcd accepts 1.5 MiB, managed fields included.
func TestObjectWithEverythingAtItsLimitIsStored(t *testing.T) {
	const limit = 14 << 20 / 10
	const gatesAtATime = 5 // MaxItems of before and of during
	long, text, digest := strings.Repeat("n", 63), strings.Repeat("t", 200), "v1:sha256:"+strings.Repeat("0", 64)
	commit := "main@sha1:" + strings.Repeat("0", 40)
	target := v1alpha1.Target{Source: long, Revision: long, Digest: digest, Commit: commit}
	now := metav1.Now()
	var failing []v1alpha1.ClusterReason
	for range failingKept {
		failing = append(failing, v1alpha1.ClusterReason{Cluster: long, Reason: text})
	}
	var times []v1alpha1.StageTimes
	for range stagesKept {
		times = append(times, v1alpha1.StageTimes{Name: long, Phase: rollout.StageComplete, Started: now, Finished: &now})
	}
	status := v1alpha1.AddOnRolloutStatus{Message: text, Target: &target, Stable: &target, Failing: failing}
	const n = 10000
	counts := v1alpha1.Counts{Total: n, Updated: n, InFlight: n, Failed: n, Waiting: n}
	full := v1alpha1.HistoryEntry{
		Target: target, Attempt: n, Phase: v1alpha1.PhaseFailed, Started: now, Finished: &now, Counts: counts, Reason: text, Failing: failing, Stages: times, SupersededBy: commit,
	}
	for i := range 60 {
		status.History = supersede(status, v1alpha1.Target{}, now)
		status.History[0], status.Attempt = full, int32(i)
	}
	if got := len(status.History); got != 50 || size(t, status.History) > historyBytes {
		t.Errorf("%d entries in %d bytes, want %d in at most %d", got, size(t, status.History), historyKept, historyBytes)
	}
	if newest, oldest := status.History[1], status.History[historyKept-1]; len(newest.Failing) == 0 || oldest.Attempt != 10 || oldest.Reason != text {
		t.Errorf("%d clusters of the newest rollout that ended; the oldest is that of attempt %d: %s", len(newest.Failing), oldest.Attempt, oldest.Reason)
	}
	full.Quarantine = &v1alpha1.RememberedQuarantine{
		Quarantine:  v1alpha1.Quarantine{Time: now, Reason: strings.Repeat("t", 1024), Order: long, Author: text, To: digest, WithCRDs: true},
		RevisionUID: "00000000-0000-0000-0000-000000000000",
	}
	for range historyKept {
		status.History = supersede(status, v1alpha1.Target{}, now)
		status.History[0] = full
	}
	if got := size(t, status.History); got > historyBytes || len(status.History) < historyKept/3 {
		t.Errorf("%d entries of quarantined content in %d bytes, at most %d", len(status.History), got, historyBytes)
	}
	for i := range 400 { // one for each decision group; of declared stages there are fewer, and they have gates
		st := v1alpha1.StageStatus{Name: long, Phase: rollout.StageProgressing, SoakingUntil: &now, Message: text, Counts: counts}
		if i >= stagesSpared {
			status.Stages = append(status.Stages, st)
			continue
		}
		for range 2 * gatesAtATime {
			st.Gates = append(st.Gates, v1alpha1.GateStatus{
				Name: long[:40], When: v1alpha1.GateDuring, Type: v1alpha1.GatePrometheus, State: v1alpha1.GateWaiting,
				Reason: strings.Repeat("t", gateTextLimit), By: strings.Repeat("t", gateTextLimit), Since: &now, EvaluatedAt: &now, FailedInARow: 100,
			})
		}
		status.Stages = append(status.Stages, st)
	}
	for i := range commitstatus.KeptLimit {
		status.CommitStatuses = append(status.CommitStatuses, v1alpha1.CommitMark{
			SHA: fmt.Sprintf("%040d", i), To: "0123456789", Context: "addonflow/" + long + "/" + long + "/" + long, AcceptedAt: 1_700_000_000, ProgressPosts: 60,
			Accepted: &v1alpha1.CommitStatement{State: "pending", Description: strings.Repeat("d", commitstatus.DescriptionLimit), Progress: 50, Content: strings.Repeat("0", 10)},
			Owed:     &v1alpha1.CommitStatement{State: "error", Description: "superseded by 0123456789ab", Content: strings.Repeat("0", 10)},
		})
	}
	all := 0
	for _, st := range status.Stages {
		all += len(st.Gates)
	}
	ledger := rollout.DefaultLedgerLimit - all*gateRoom - (len(status.Stages)-stagesSpared)*stageRoom
	bare := status.Stages[0]
	bare.Gates = nil
	if got := size(t, bare); got >= stageRoom {
		t.Errorf("a stage has %d bytes, and %d are left for it", got, stageRoom)
	}
	if got := size(t, status.Stages[0].Gates[0]); got >= gateRoom {
		t.Errorf("a verdict has %d bytes, and %d are left for it", got, gateRoom)
	}
	whole := ledger + v1alpha1.JournalBytes + size(t, v1alpha1.AddOnRollout{Status: status})
	t.Logf("%d bytes: ledger %d, journal %d, history %d, marks %d, stages %d", whole, ledger, v1alpha1.JournalBytes,
		size(t, status.History), size(t, status.CommitStatuses), size(t, status.Stages))
	if whole > limit {
		t.Errorf("%d bytes, at most %d", whole, limit)
	}
}

func size(t *testing.T, what any) int {
	t.Helper()
	text, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}
