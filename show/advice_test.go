package show

import (
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
	for name, c := range map[string]struct {
		edit func(*v1alpha1.AddOnRollout)
		want string
	}{
		"Failed":     {func(*v1alpha1.AddOnRollout) {}, "git restore --source " + strings.Repeat("1", 40) + " --staged --worktree -- PATH"},
		"NotSeenYet": {func(r *v1alpha1.AddOnRollout) { r.Generation++ }, "addonflow status hello -n default --watch"},
		"RolledBack": {func(r *v1alpha1.AddOnRollout) {
			r.Status.Phase, r.Status.Override = v1alpha1.PhaseRolledBack, &v1alpha1.Override{Kind: v1alpha1.OverrideRollback, Declared: *targetOf("2")}
			r.Status.Target = targetOf("1")
		}, "git restore --source " + strings.Repeat("1", 40) + " --staged --worktree -- PATH"},
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
				if strings.HasPrefix(a.Text, "Or ") { // status prints "Or: " before it
					t.Errorf("the advice %q", a.Text)
				}
			}
		})
	}
}
