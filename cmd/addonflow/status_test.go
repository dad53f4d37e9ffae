package main

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestStatusOfRefusedCommit: a rollout does not know that the commit after its own was refused. The
// exit code must still be a failure for a pipeline.
func TestStatusOfRefusedCommit(t *testing.T) {
	const newer = "main@sha1:3333333333333333333333333333333333333333"
	for name, c := range map[string]struct {
		reason    string
		attempted string
		condition string
		because   string
		want      int
		said      string
	}{
		"Refused":      {"the newest commit is not what succeeded", newer, meta.StalledCondition, v1alpha1.ValidationFailedReason, exitFailed, "refused main@3333333: a.yaml:3: wrong; rollout hello is of what was applied before"},
		"RefusedAgain": {"the same commit under another spec", commit, meta.StalledCondition, v1alpha1.BuildFailedReason, exitFailed, "refused main@2222222: a.yaml:3: wrong"},
		"Stalled":      {"no commit can come at all", commit, meta.StalledCondition, v1alpha1.InvalidURLReason, exitFailed, "is stalled: a.yaml:3: wrong"},
		"Suspended":    {"suspending the source makes a bad commit no better", newer, "", "", exitFailed, "refused main@3333333"},
		"CutOff":       {"what was refused stays so when Git cannot be read", newer, meta.ReconcilingCondition, v1alpha1.FetchFailedReason, exitFailed, "refused main@3333333"},
		"CutOffLater":  {"nothing that was read was refused", commit, meta.ReconcilingCondition, v1alpha1.FetchFailedReason, 0, ""},
		"Waiting":      {"what is being brought is not refused", newer, meta.ReconcilingCondition, v1alpha1.ReferenceNotFoundReason, 0, ""},
		"Applied":      {"the newest commit is on the hub", commit, "", "", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := fleetSource("False", "wrong")
			source.Status.LastAttemptedRevision = c.attempted
			if c.condition != "" {
				source.Status.Conditions = append(source.Status.Conditions, metav1.Condition{
					Type: c.condition, Status: metav1.ConditionTrue, Reason: cmp.Or(c.because, "Tested"), Message: "a.yaml:3: wrong\nb.yaml:1: wrong",
				})
			}
			for _, args := range []string{"status hello", "status hello --watch"} {
				s := newStage(t, hello(v1alpha1.PhaseSucceeded), source.DeepCopy())
				if code := s.run(t.Context(), strings.Fields(args)...); code != c.want {
					t.Errorf("%s: %s: exit code %d, want %d; %s", c.reason, args, code, c.want, s.err.String())
				}
				if !strings.Contains(s.err.String(), c.said) {
					t.Errorf("%s: stderr %q does not hold %q", args, s.err.String(), c.said)
				}
				if !strings.Contains(s.out.String(), "hello") {
					t.Errorf("%s: the rollout's own line is missing: %q", args, s.out.String())
				}
			}
		})
	}
}

// TestNextLineNamesTheFix: resume is for what an annotation suspends; it does nothing for a
// rollout that its strategy holds, or that Git suspends.
func TestNextLineNamesTheFix(t *testing.T) {
	for name, c := range map[string]struct {
		phase  v1alpha1.Phase
		change func(*v1alpha1.AddOnRollout)
		want   string
	}{
		"Held": {v1alpha1.PhaseHeld, nil, "Next: See what holds it.\n  addonflow tree hello -n default"},
		"RolledBack": {v1alpha1.PhaseRolledBack, func(r *v1alpha1.AddOnRollout) {
			r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *r.Spec.Target}
		}, "Next: The fleet differs from Git. Commit what it runs, or push other content. This restores PATH, the directory of the add-on, except addonrollout.yaml. Check with git diff --cached what else it takes back.\n  git restore -SWs 2222222222222222222222222222222222222222 PATH ':!*addonrollout.*'\n" +
			"Or: The content was not at fault: end its quarantine, and roll it out again.\n  addonflow unblock hello -n default -m REASON"},
		"Proposed": {v1alpha1.PhaseRolledBack, func(r *v1alpha1.AddOnRollout) { r.Status.Override = proposed().Status.Override }, "Next: The fleet differs from Git. Merge the pull request, which commits what it runs, or push other content.\n  https://gitea.example/team/fleet/pulls/12\n" +
			"Or: The content was not at fault: end its quarantine, and roll it out again.\n  addonflow unblock hello -n default -m REASON"},
		"Suspended": {v1alpha1.PhaseSuspended, func(r *v1alpha1.AddOnRollout) { r.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"} }, "Next: Continue the rollout.\n  addonflow resume rollout hello -n default"},
		"Released":  {v1alpha1.PhaseSuspended, func(r *v1alpha1.AddOnRollout) { r.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: ""} }, "Next: Continue the rollout.\n  addonflow resume rollout hello -n default"},
		"Declared":  {v1alpha1.PhaseSuspended, func(r *v1alpha1.AddOnRollout) { r.Spec.Suspend = true }, "Next: The AddOnRollout in Git says suspend: true. Change it there and push."},
		"Failed": {v1alpha1.PhaseFailed, nil, "Next: Push a fix.\n" +
			"Or: The content was not at fault: begin another attempt, in which the gates are asked again.\n  addonflow retry hello -n default -m REASON"},
		"Aborted": {
			v1alpha1.PhaseFailed, func(r *v1alpha1.AddOnRollout) {
				r.Status.Aborted = &v1alpha1.GivenOrder{}
				r.Status.Stages = []v1alpha1.StageStatus{{Name: "fleet", Gates: []v1alpha1.GateStatus{{Name: "qa", Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: new(metav1.Now())}}}}
			},
			"Next: The rollout was aborted. This continues it; other content from Git replaces it.\n  addonflow retry hello -n default -m REASON",
		},
		"Succeeded": {v1alpha1.PhaseSucceeded, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := hello(c.phase)
			if c.change != nil {
				c.change(r)
			}
			s := newStage(t, r)
			s.run(t.Context(), "status", "hello")
			if got := strings.TrimSpace(s.err.String()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestStatus_SaysThatTheSourceIsSuspended: the commit that was just pushed is not read.
func TestStatus_SaysThatTheSourceIsSuspended(t *testing.T) {
	s := newStage(t, hello(v1alpha1.PhaseSucceeded), suspendedSource(false, map[string]string{v1alpha1.SuspendAnnotation: "true"}))
	const want = "source default/fleet is suspended: it reads no newer commit\nNext: Continue reading the repository.\n  addonflow resume source fleet -n default\n"
	if code := s.run(t.Context(), "status", "hello"); code != 0 || s.err.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, s.err.String(), want)
	}
}

// TestFollowReportsADeletionBetweenReadAndList: a rollout that is deleted between the first read and
// the first list is gone; the command does not wait for it to return.
func TestFollowReportsADeletionBetweenReadAndList(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		phase  v1alpha1.Phase
		args   string
		code   int
	}{
		"Status":    {"there is no outcome", v1alpha1.PhaseProgressing, "status hello --watch", exitNotFound},
		"Removed":   {"its removal is the outcome", v1alpha1.PhaseRemoving, "status hello --watch", 0},
		"Tree":      {"there is nothing left to show", v1alpha1.PhaseProgressing, "tree hello --watch", 0},
		"Reconcile": {"no operator looks at it any more", v1alpha1.PhaseProgressing, "reconcile rollout hello --wait", exitNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStageWith(t, interceptor.Funcs{List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				if err := client.IgnoreNotFound(hub.Delete(ctx, hello(c.phase))); err != nil {
					t.Error(err)
				}
				return hub.List(ctx, list, options...)
			}}, hello(c.phase))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if code := s.run(ctx, strings.Fields(c.args)...); code != c.code || ctx.Err() != nil {
				t.Errorf("%s: exit code %d, want %d; %s", c.reason, code, c.code, s.err.String())
			}
		})
	}
}
