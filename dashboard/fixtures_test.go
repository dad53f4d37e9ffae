package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// at is the time of every test.
func at() time.Time { return time.Date(2026, time.March, 4, 14, 30, 0, 0, time.UTC) }

// ago is a time before at.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(at().Add(-d)) }

// sha is a commit made of one digit.
func sha(digit string) string { return strings.Repeat(digit, 40) }

// targetOf is a target whose commit and digest consist of one digit.
func targetOf(digit string) *v1alpha1.Target {
	return &v1alpha1.Target{
		Source: "fleet", Revision: "hello-" + strings.Repeat(digit, 10), Digest: "v1:sha256:" + strings.Repeat(digit, 64),
		Commit: "main@sha1:" + sha(digit),
	}
}

// fleetSource is the source of the rollouts.
func fleetSource() *v1alpha1.AddOnSource {
	return &v1alpha1.AddOnSource{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"},
		Spec: v1alpha1.AddOnSourceSpec{
			URL: "https://git.example/team/fleet", CommitStatus: &v1alpha1.CommitStatusSpec{Provider: "gitea", Address: "https://git.example/team/fleet.git"},
		},
		Status: v1alpha1.AddOnSourceStatus{
			LastAppliedRevision: "main@sha1:" + sha("2"), LastAttemptedRevision: "main@sha1:" + sha("2"),
			AddOns:     []v1alpha1.SourcedAddOn{{Name: "hello", Commit: "main@sha1:" + sha("2"), Author: "Ana Author", Subject: "hello: a new image"}},
			Conditions: []metav1.Condition{{Type: meta.ReadyCondition, Status: metav1.ConditionTrue, Message: "applied main@2222222"}},
		},
	}
}

// refusedSource refused the newest commit, for two mistakes.
func refusedSource() *v1alpha1.AddOnSource {
	const mistakes = "addons/hello/addontemplate.yaml:42: Deployment/hello: spec.template.spec.containers[0].image: must not be empty\naddons/hello/addonrollout.yaml:9: AddOnRollout/hello: spec.stages[0].soak: unknown field; did you mean minSuccessTime?"
	s := fleetSource()
	s.Status.LastAttemptedRevision, s.Status.LastAttemptedSpec = "main@sha1:"+sha("3"), "x"+v1alpha1.RefusedSuffix
	s.Status.Conditions = []metav1.Condition{
		{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ValidationFailedReason, Message: mistakes},
		{Type: meta.ReadyCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.ValidationFailedReason, Message: mistakes},
	}
	return s
}

// failed is a rollout that its canary stopped, with the content before it in the history.
func failed() *v1alpha1.AddOnRollout {
	one, begun, ended := intstr.FromInt32(1), ago(4*time.Minute), ago(time.Minute)
	r := &v1alpha1.AddOnRollout{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hello", Generation: 2},
		Spec: v1alpha1.AddOnRolloutSpec{Target: targetOf("2"), Stages: []v1alpha1.Stage{
			{Name: "canary", MaxConcurrency: &one, MinSuccessTime: metav1.Duration{Duration: 10 * time.Minute}, ProgressDeadline: "30m"},
			{Name: "everyone", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{{Name: "qa", Type: v1alpha1.GateApproval}}}},
		}},
		Status: v1alpha1.AddOnRolloutStatus{
			ObservedGeneration: 2, Phase: v1alpha1.PhaseFailed, Message: "stage canary: 2 of 2 failed, none allowed",
			Target: targetOf("2"), TargetSince: &begun, Stable: targetOf("1"), Counts: v1alpha1.Counts{Total: 4, Failed: 2, Waiting: 2},
			Stages: []v1alpha1.StageStatus{
				{Name: "canary", Phase: "Failed", Counts: v1alpha1.Counts{Total: 2, Failed: 2}},
				{Name: "everyone", Phase: "Waiting", Counts: v1alpha1.Counts{Total: 2, Waiting: 2}, Message: "0/2, waits for canary"},
			},
			Failing: []v1alpha1.ClusterReason{{Cluster: "eu-01", Reason: "Deployment hello: ImagePullBackOff"}},
			Journal: []v1alpha1.JournalEntry{
				{At: begun, Decision: "Started", Commit: sha("2")[:12]},
				{At: ended, Decision: "Halted", Commit: sha("2")[:12], Stage: "canary", Clusters: 2, Reason: "2 of 2 failed"},
			},
			History: []v1alpha1.HistoryEntry{
				{Target: *targetOf("2"), Phase: v1alpha1.PhaseFailed, Started: begun, Finished: &ended, Counts: v1alpha1.Counts{Total: 4, Failed: 2}},
				{
					Target: *targetOf("1"), Phase: v1alpha1.PhaseSucceeded, Started: ago(26 * time.Hour), Finished: new(ago(25 * time.Hour)), Counts: v1alpha1.Counts{Total: 4, Updated: 4},
					Stages: []v1alpha1.StageTimes{{Name: "canary", Phase: "Complete", Started: ago(26 * time.Hour), Finished: new(ago(25 * time.Hour))}},
				},
			},
			Conditions: []metav1.Condition{{Type: meta.StalledCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.RolloutFailedReason, Message: "stage canary: 2 of 2 failed, none allowed"}},
		},
	}
	return r
}

// planOf is a plan of the rollout failed.
func planOf() *rollout.Plan {
	return &rollout.Plan{Clusters: []rollout.ClusterPlan{
		{Name: "ap-01", Stage: "everyone", State: rollout.Waiting, Reason: "stage canary is not complete (0/2)"},
		{Name: "eu-01", Stage: "canary", State: rollout.Failed, Reason: "Deployment hello: ImagePullBackOff"},
		{Name: "us-01", Stage: "canary", State: rollout.Failed, Reason: "Deployment hello: ImagePullBackOff"},
		{Name: "us-02", Stage: "everyone", State: rollout.Waiting, Reason: "stage canary is not complete (0/2)"},
		{Name: "zz-01", State: rollout.Ignored},
	}}
}

// object reads an object from YAML.
func object(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		tb.Fatal(err)
	}
	return o
}

// subject is the page of the rollout failed, with everything that a page can show.
func subject(tb testing.TB) Subject {
	tb.Helper()
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: %s}}"
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: hello}, spec: {image: 'example.com/hello:%d'}}"
	return Subject{
		Rollout: failed(), Source: fleetSource(), Plan: planOf(), Now: at(), Asked: sha("2"),
		Change: &Change{
			Cluster: "eu-01", From: targetOf("1"),
			Before: []*unstructured.Unstructured{object(tb, fmt.Sprintf(deployment, 1)), object(tb, fmt.Sprintf(secret, "hunter1"))},
			After:  []*unstructured.Unstructured{object(tb, fmt.Sprintf(deployment, 2)), object(tb, fmt.Sprintf(secret, "hunter2"))},
		},
	}
}

// frame is the Frame of a page with this path.
func frame(path string) Frame {
	page := func(forge *v1alpha1.CommitStatusSpec, sha string) string {
		return strings.TrimSuffix(forge.Address, ".git") + "/commit/" + sha
	}
	return Frame{Base: "/", Path: path, CommitPage: page}
}
