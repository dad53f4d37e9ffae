package show

import (
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// at is the time of every test.
func at() time.Time { return time.Date(2026, time.March, 4, 14, 30, 0, 0, time.UTC) }

// digestOf is a digest made of one digit.
func digestOf(digit string) string { return "v1:sha256:" + strings.Repeat(digit, 64) }

// targetOf is a target whose commit and digest consist of one digit.
func targetOf(digit string) *v1alpha1.Target {
	return &v1alpha1.Target{
		Source: "fleet", Revision: "hello-" + strings.Repeat(digit, 10), Digest: digestOf(digit),
		Commit: "main@sha1:" + strings.Repeat(digit, 40),
	}
}

// progressing is a rollout with a finished canary and a quarter of the rest in flight.
func progressing() *v1alpha1.AddOnRollout {
	since := metav1.NewTime(at().Add(-4 * time.Minute))
	return &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Generation: 2, CreationTimestamp: metav1.NewTime(at().Add(-26 * time.Hour))},
		Spec:       v1alpha1.AddOnRolloutSpec{Target: targetOf("2")},
		Status: v1alpha1.AddOnRolloutStatus{
			ObservedGeneration: 2, Phase: v1alpha1.PhaseProgressing, Message: "everyone 9/22, 6 in flight",
			Target: targetOf("2"), TargetSince: &since, Stable: targetOf("1"),
			Counts: v1alpha1.Counts{Total: 24, Updated: 11, InFlight: 6, Waiting: 7},
			Stages: []v1alpha1.StageStatus{
				{Name: "canary", Phase: "Complete", Counts: v1alpha1.Counts{Total: 2, Updated: 2}},
				{Name: "everyone", Phase: "Progressing", Counts: v1alpha1.Counts{Total: 22, Updated: 9, InFlight: 6, Waiting: 7}, Message: "9/22, 6 in flight"},
			},
			Conditions: []metav1.Condition{
				{Type: meta.ReadyCondition, Status: metav1.ConditionUnknown, Message: "everyone 9/22, 6 in flight"},
				{Type: v1alpha1.CommitStatusReportedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DeliveredReason},
			},
		},
	}
}

// failed is a rollout that its canary stopped.
func failed() *v1alpha1.AddOnRollout {
	r := progressing()
	r.Status.Phase, r.Status.Message = v1alpha1.PhaseFailed, "stage canary: 1 of 2 failed, none allowed"
	r.Status.Counts = v1alpha1.Counts{Total: 24, InFlight: 1, Failed: 1, Waiting: 22}
	r.Status.Stages[0] = v1alpha1.StageStatus{Name: "canary", Phase: "Failed", Counts: v1alpha1.Counts{Total: 2, InFlight: 1, Failed: 1}}
	r.Status.Stages[1] = v1alpha1.StageStatus{Name: "everyone", Phase: "Waiting", Counts: v1alpha1.Counts{Total: 22, Waiting: 22}, Message: "0/22, waits for canary"}
	r.Status.Failing = []v1alpha1.ClusterReason{{Cluster: "eu-01", Reason: "Deployment hello: ProgressDeadlineExceeded\nmore"}}
	r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{
		Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RolloutFailedReason, Message: r.Status.Message,
	})
	return r
}

// with returns a rollout changed by edit.
func with(r *v1alpha1.AddOnRollout, edit func(*v1alpha1.AddOnRollout)) *v1alpha1.AddOnRollout {
	edit(r)
	return r
}

// finishing makes the rollout that of other content than Git declares, which waits.
func finishing(phase v1alpha1.Phase) func(*v1alpha1.AddOnRollout) {
	return func(r *v1alpha1.AddOnRollout) {
		r.Spec.Target, r.Status.Phase = targetOf("3"), phase
		r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideFinish, Declared: *r.Spec.Target}
		r.Status.Conditions = []metav1.Condition{{
			Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RolloutProgressingReason,
			Message: "main@3333333 waits for main@2222222 (onNewCommit is Finish); everyone 9/22",
		}}
	}
}
