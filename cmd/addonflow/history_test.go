package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// remembering is a rollout that failed once and was reverted.
func remembering() *v1alpha1.AddOnRollout {
	ago := func(minutes int) metav1.Time {
		return metav1.NewTime(at().Add(-time.Duration(minutes) * time.Minute))
	}
	finished, before := ago(8), ago(18)
	r := hello(v1alpha1.PhaseProgressing)
	r.Status.History = []v1alpha1.HistoryEntry{
		{Target: *r.Spec.Target, Phase: v1alpha1.PhaseProgressing, Started: ago(2), Counts: v1alpha1.Counts{Total: 2, Updated: 1}, Reason: "canary 0/1, 1 in flight"},
		{
			Target: v1alpha1.Target{Revision: "hello-3", Commit: "main@sha1:" + strings.Repeat("3", 40)}, Phase: v1alpha1.PhaseFailed, Started: ago(20), Finished: &finished,
			Counts: v1alpha1.Counts{Total: 2, Failed: 1}, Reason: "halted in canary: 1 failed", SupersededBy: r.Spec.Target.Commit,
			Failing: []v1alpha1.ClusterReason{{Cluster: "eu-01", Reason: "Deployment hello: ImagePullBackOff"}},
			Stages: []v1alpha1.StageTimes{
				{Name: "canary", Phase: "Failed", Started: ago(20), Finished: &before},
				{Name: "everyone", Phase: "Progressing", Started: ago(17)},
				{Name: "late", Phase: "Progressing", Started: ago(7)},
			},
		},
	}
	r.Status.Journal = []v1alpha1.JournalEntry{
		{At: ago(8), Decision: "Halted", Commit: "333333333333", Stage: "canary", Clusters: 1, Reason: "halted in canary: 1 failed"},
		{At: ago(2), Decision: "Reverted", Commit: "222222222222", Reason: "to content that succeeded here before"},
	}
	return r
}

// TestHistoryPrintsRolloutsAndDecisions: how each ended, its stages, its failures, and what
// was decided when.
func TestHistoryPrintsRolloutsAndDecisions(t *testing.T) {
	s := newStage(t, remembering())
	if code := s.run(t.Context(), "history", "hello", "-n", "default"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	got := s.out.String()
	for _, want := range [][]string{
		{"STARTED", "TOOK", "COMMIT", "PHASE", "UPDATED", "FAILED", "REASON"},
		{"2026-03-04", "14:28:00", "2m", "so", "far", "main@2222222", "Progressing", "1/2", "0", "canary", "0/1,", "1", "in", "flight"},
		{"2026-03-04", "14:10:00", "12m", "main@3333333", "Failed", "0/2", "1", "halted", "in", "canary:", "1", "failed;", "superseded", "by", "main@2222222"},
		{"2026-03-04", "14:10:00", "2m", "stage", "canary", "Failed"},
		{"2026-03-04", "14:13:00", "9m", "stage", "everyone", "Progressing"}, // it ended with its rollout
		{"2026-03-04", "14:23:00", "–", "stage", "late", "Progressing"},      // the clock was set back meanwhile
		{"cluster", "eu-01", "Failed", "Deployment", "hello:", "ImagePullBackOff"},
		{"TIME", "DECISION", "STAGE", "CLUSTERS", "COMMIT", "REASON"},
		{"2026-03-04", "14:22:00", "Halted", "canary", "1", "333333333333", "halted", "in", "canary:", "1", "failed"},
		{"2026-03-04", "14:28:00", "Reverted", "–", "–", "222222222222", "to", "content", "that", "succeeded", "here", "before"},
	} {
		found := false
		for line := range strings.Lines(got) {
			found = found || strings.HasPrefix(strings.Join(strings.Fields(line), " "), strings.Join(want, " "))
		}
		if !found {
			t.Errorf("no line %v in\n%s", want, got)
		}
	}
}

// TestHistoryPrintsOneObjectWithOutputFlag: for scripts.
func TestHistoryPrintsOneObjectWithOutputFlag(t *testing.T) {
	s := newStage(t, remembering())
	if code := s.run(t.Context(), "history", "hello", "-n", "default", "-o", "json"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	var got struct {
		Kind    string
		History []v1alpha1.HistoryEntry
		Journal []v1alpha1.JournalEntry
	}
	if err := json.Unmarshal(s.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Kind != "RolloutHistory" || len(got.History) != 2 || got.History[1].Failing[0].Cluster != "eu-01" || len(got.Journal) != 2 {
		t.Errorf("got %+v", got)
	}
	for _, format := range []string{"yaml", "name", "jsonpath={.journal[0].decision}"} {
		s := newStage(t, remembering())
		if code := s.run(t.Context(), "history", "hello", "-n", "default", "-o", format); code != 0 || s.out.Len() == 0 {
			t.Errorf("-o %s: exit code %d, %q, %s", format, code, s.out.String(), s.err.String())
		}
	}
}

// TestHistoryOfAMissingRolloutExitsAsEveryCommand: exit codes are those of every command.
func TestHistoryOfAMissingRolloutExitsAsEveryCommand(t *testing.T) {
	if code := newStage(t).run(t.Context(), "history", "hello", "-n", "default"); code != exitNotFound {
		t.Errorf("exit code %d", code)
	}
	s := newStage(t, hello(v1alpha1.PhaseProgressing))
	if code := s.run(t.Context(), "history", "hello", "-n", "default"); code != 0 || s.out.Len() > 0 || !strings.Contains(s.err.String(), "No rollout of hello has begun.") {
		t.Errorf("exit code %d, %q, %q", code, s.out.String(), s.err.String())
	}
	if code := newStage(t, remembering()).run(t.Context(), "history", "hello", "-o", "nonsense"); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

// TestPlacementIsWaitedFor: OCM decides about a new Placement in a while, and a Placement that does not
// exist may still be brought. A script waits for both until its timeout.
func TestPlacementIsWaitedFor(t *testing.T) {
	waiting := func(reason, message string) *v1alpha1.AddOnRollout {
		r := hello(v1alpha1.PhaseHeld)
		r.Status.SetLastHandledReconcileRequest(at().UTC().Format(time.RFC3339Nano))
		r.Status.Message = message
		r.Status.Conditions = []metav1.Condition{{
			Type: "Reconciling", Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(at()),
		}}
		return r
	}
	for reason, message := range map[string]string{
		v1alpha1.PlacementUndecidedReason: "held: OCM has not decided about Placement default/canary",
		v1alpha1.ReferenceNotFoundReason:  "held: Placement default/canary does not exist",
	} {
		for _, args := range [][]string{
			{"status", "hello", "-n", "default"},
			{"status", "hello", "-n", "default", "--watch", "--timeout", "50ms"},
			{"reconcile", "rollout", "hello", "-n", "default", "--wait", "--timeout", "50ms"},
		} {
			if code := newStage(t, waiting(reason, message)).run(t.Context(), args...); code != exitTimeout {
				t.Errorf("%s: %v: exit code %d, want %d", reason, args, code, exitTimeout)
			}
		}
	}
}
