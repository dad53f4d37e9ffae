package show

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestCommandsAreSafeToPaste: a shell reads each word as one word.
func TestCommandsAreSafeToPaste(t *testing.T) {
	for want, words := range map[string][]string{
		"addonflow tree hello -n default": {"addonflow", "tree", "hello", "-n", "default"},
		`git revert '$(rm -rf ~)'`:        {"git", "revert", "$(rm -rf ~)"},
		`a 'it'\''s' ''`:                  {"a", "it's", ""},
	} {
		if got := Command(words...); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestNextCommand: every state has the command that helps first.
func TestNextCommand(t *testing.T) {
	since := metav1.NewTime(at())
	stalled := func(reason string) func(*v1alpha1.AddOnRollout) {
		return func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseProgressing
			r.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason}}
		}
	}
	for name, c := range map[string]struct {
		edit func(*v1alpha1.AddOnRollout)
		want string
	}{
		"Failed":     {func(*v1alpha1.AddOnRollout) {}, "git restore -SWs " + strings.Repeat("1", 40) + " PATH ':!*addonrollout.*'"},
		"NotSeenYet": {func(r *v1alpha1.AddOnRollout) { r.Generation++ }, "addonflow status hello -n default --watch"},
		"MadeByHand": {func(r *v1alpha1.AddOnRollout) { r.Spec.Target, r.Status = nil, v1alpha1.AddOnRolloutStatus{} }, ""},
		"RolledBack": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Override = v1alpha1.PhaseRolledBack, &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2")}
			r.Status.Target = targetOf("1")
		}, "git restore -SWs " + strings.Repeat("1", 40) + " PATH ':!*addonrollout.*'"},
		"Proposed": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Target = v1alpha1.PhaseRolledBack, targetOf("1")
			r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2"), Proposed: "https://gitea.example/team/fleet/pulls/12"}
		}, "https://gitea.example/team/fleet/pulls/12"},
		"Approval": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Conditions = v1alpha1.PhaseProgressing, nil
			comments := v1alpha1.Gate{Name: "qa", Approval: &v1alpha1.ApprovalGate{Forge: &v1alpha1.ForgeApproval{}}}
			r.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{comments}}}}
			r.Status.Stages[1].Gates = []v1alpha1.GateStatus{{Name: "qa", Type: v1alpha1.GateApproval, State: v1alpha1.GateWaiting, Since: &since}}
		}, "addonflow approve hello everyone -n default --gate qa"},
		"Suspended": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Conditions = v1alpha1.PhaseSuspended, nil
			r.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
		}, "addonflow resume rollout hello -n default"},
		"SuspendedOnTheWayBack": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Override = v1alpha1.PhaseSuspended, &v1alpha1.Override{Kind: v1alpha1.OverrideRecall, Declared: *targetOf("2")}
			r.Status.Target, r.Status.Conditions = targetOf("1"), nil
			r.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
		}, "addonflow resume rollout hello -n default"},
		"Soaking": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Conditions, r.Status.Stages[0].Phase = v1alpha1.PhaseProgressing, nil, "Soaking"
		}, "addonflow promote hello canary -n default -m REASON"},
		"Succeeded": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Conditions, r.Status.Counts.InFlight = v1alpha1.PhaseSucceeded, nil, 0
		}, "addonflow rollback hello -n default -m REASON"},
		"OwnershipConflict": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase = v1alpha1.PhaseSucceeded
			r.Status.Conditions = []metav1.Condition{{Type: "Stalled", Status: metav1.ConditionTrue, Reason: v1alpha1.OwnershipConflictReason}}
		}, "addonflow reconcile rollout hello -n default"},
		"FailedAfterTheSuccess": {func(r *v1alpha1.AddOnRollout) { r.Status.Phase = v1alpha1.PhaseSucceeded }, "addonflow retry hello -n default -m REASON"},
		"LedgerEdited":          {stalled(v1alpha1.InvalidLedgerReason), "kubectl edit addonrollout hello -n default --subresource=status"},
		"HealthEdited":          {stalled(v1alpha1.InvalidHealthReason), "addonflow reconcile source fleet -n default --wait"},
		"NotATenant":            {stalled(v1alpha1.TenantDeniedReason), ""},
		"StoppedOnTheWayBack": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Target, r.Status.Override = targetOf("1"), &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2")}
		}, "addonflow retry hello -n default -m REASON"},
		"AbortedOnTheWayBack": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Aborted, r.Status.Target = &v1alpha1.GivenOrder{}, targetOf("1")
			r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRecall, Declared: *targetOf("2")}
		}, "addonflow retry hello -n default -m REASON"},
		"Aborted": {func(r *v1alpha1.AddOnRollout) { r.Status.Aborted = &v1alpha1.GivenOrder{} }, "addonflow retry hello -n default -m REASON"},
	} {
		t.Run(name, func(t *testing.T) {
			r := failed()
			c.edit(r)
			got := Next("addonflow", r)
			if len(got) == 0 || got[0].Command != c.want {
				t.Errorf("got %+v, want %s", got, c.want)
			}
			for _, a := range got {
				if strings.Contains(a.Text, "Change what the message above names, and push") {
					t.Errorf("nothing in Git helps, but the advice is %q", a.Text)
				}
				if strings.HasPrefix(a.Text, "Or ") { // status prints "Or: " before it
					t.Errorf("the advice %q", a.Text)
				}
			}
		})
	}
}

// No cluster failed if a user rejected, so that there is none to try again.
func TestNext_OfferTheClustersThatFailedOnly(t *testing.T) {
	for failures, want := range map[int32]string{
		1: "The content was not at fault: try the failed clusters again.",
		0: "The content was not at fault: begin another attempt, in which the gates are asked again.",
	} {
		r := failed()
		r.Status.Counts.Failed = failures
		if got := Next("addonflow", r); len(got) != 2 || got[1].Text != want {
			t.Errorf("%d failed: %v, want %q", failures, got, want)
		}
	}
}

// TestNextOfSource_HelpsAgainstTheReason: lint is advised for problems that it can find, and a suspended source is
// resumed first.
func TestNextOfSource_HelpsAgainstTheReason(t *testing.T) {
	const (
		lint   = "addonflow lint PATH"
		look   = "addonflow reconcile source fleet -n team --wait"
		resume = "addonflow resume source fleet -n team"
	)
	stalled := func(reason, message string) []metav1.Condition {
		return []metav1.Condition{
			{Type: "Stalled", Status: metav1.ConditionTrue, Reason: reason, Message: message},
			{Type: "Ready", Status: metav1.ConditionFalse, Reason: reason, Message: message},
		}
	}
	for name, c := range map[string]struct {
		conditions []metav1.Condition
		suspended  bool
		want       []string
	}{
		"Invalid":      {stalled(v1alpha1.ValidationFailedReason, "a.yaml:3: wrong"), false, []string{lint}},
		"Unsigned":     {stalled(v1alpha1.VerificationFailedReason, "the commit is not signed"), false, []string{look}},
		"MovedBack":    {stalled(v1alpha1.NonFastForwardReason, "the branch moved"), false, []string{look}},
		"NotATenant":   {stalled(v1alpha1.TenantDeniedReason, "spec.serviceAccountName is required"), false, []string{look}},
		"MissingRight": {stalled(v1alpha1.ValidationFailedReason, `configmaps is forbidden: User "system:serviceaccount:team:deployer" cannot get resource "configmaps"`), false, []string{look}},
		"Suspended":    {nil, true, []string{resume}},
		// The suspend replaces the conditions of the refusal.
		"RefusedAndSuspended": {[]metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.SuspendedReason}}, true, []string{resume, lint}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}}
			s.Spec.ServiceAccountName = "deployer"
			s.Status.Conditions, s.Status.LastAppliedRevision = c.conditions, "main@sha1:1"
			if c.conditions != nil {
				s.Status.LastAttemptedRevision = "main@sha1:2"
			}
			if c.suspended {
				s.Annotations = map[string]string{v1alpha1.SuspendAnnotation: "true"}
			}
			var got []string
			for _, a := range NextOfSource("addonflow", s) {
				got = append(got, a.Command)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestNext_NamesTheWindowThatHoldsARollback: a window without holdsReverts does not hold it, whatever its last verdict.
func TestNext_NamesTheWindowThatHoldsARollback(t *testing.T) {
	for _, holds := range []bool{true, false} {
		r, since := failed(), metav1.Now()
		r.Status.Conditions = nil
		r.Status.Phase, r.Status.Target = v1alpha1.PhaseRollingBack, targetOf("1")
		r.Status.Override = &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2")}
		window := v1alpha1.Gate{Name: "office", Type: v1alpha1.GateWindow, Window: &v1alpha1.WindowGate{HoldsReverts: holds}}
		r.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Gates: &v1alpha1.Gates{Before: []v1alpha1.Gate{window}}}}
		r.Status.Stages[1].Gates = []v1alpha1.GateStatus{{Name: "office", Type: v1alpha1.GateWindow, State: v1alpha1.GateWaiting, Reason: "opens 09:00 UTC", Since: &since}}
		if got := Next("addonflow", r)[0].Text; strings.HasPrefix(got, "Window office holds the rollback of stage everyone: opens 09:00 UTC. ") != holds {
			t.Errorf("holdsReverts %t: %q", holds, got)
		}
		if got := OutcomeOf(r); got != Running {
			t.Errorf("the outcome is %v", got)
		}
	}
}
