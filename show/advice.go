package show

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/gates"
	"github.com/addonflow/addonflow/rollout"
)

// Advice is an action that a user can take, with its command; Command may be "".
type Advice struct{ Text, Command string }

// OrderReason is the placeholder in commands for the reason that a user gives with an order.
const OrderReason = "REASON"

// Next lists the actions that a user can take for a rollout now, the most useful first; there is at least one.
// program is the name by which the user calls addonflow.
func Next(program string, r *v1alpha1.AddOnRollout) []Advice {
	var out []Advice
	add := func(text string, words ...string) { out = append(out, Advice{text, Command(words...)}) }
	restore := func(text string, t *v1alpha1.Target) {
		if t == nil || !strings.Contains(t.Commit, "sha1:") { // no commit, or an artifact of a registry
			out = append(out, Advice{Text: "Push a fix."})
			return
		}
		out = append(out, Advice{text, v1alpha1.RestoreCommand(v1alpha1.CommitOf(v1alpha1.LastCommit(r.Annotations, *t)))})
	}
	on := func(verb string, rest ...string) []string {
		return append([]string{program, verb, r.Name, "-n", r.Namespace}, rest...)
	}
	if r.Spec.Target == nil && !Current(r) {
		add("No source has declared the add-on yet, and the operator does not work on it before. Commit the add-on, or delete this AddOnRollout.")
		return out
	}
	if text := unanswered(r.Status.CarriedOut); text != "" {
		add("The rollout "+text+". If this takes longer than a minute, see whether the operator runs.", on("status", "--watch")...)
		return out
	}
	if !Current(r) {
		add("The operator has not planned the newest commit yet.", on("status", "--watch")...)
		return out
	}
	if r.Status.Phase == v1alpha1.PhaseSuspended && r.Status.Override.Returns() {
		out = append(out, Resume(program, r)...) // only resume moves a cluster
	}
	if r.Status.Override.Returns() && r.Status.Override.Kind == v1alpha1.OverrideBlocked {
		add("The content is blocked. Push other content, or remove the entry from spec.blocked of " + r.Name + ".")
		return out
	}
	outcome := OutcomeOf(r)
	if r.Status.Aborted != nil && outcome == Failed {
		add("The rollout was aborted. This continues it; other content from Git replaces it.", on("retry", "-m", OrderReason)...)
	}
	if r.Status.Aborted == nil && r.Status.Phase == v1alpha1.PhaseFailed && r.Status.Override.Returns() {
		add("The rollback stopped. Fix what the message above names, and try the failed clusters again.", on("retry", "-m", OrderReason)...)
	}
	out = append(out, windowsOf(r)...)
	switch {
	case r.Status.Override.Returns() && r.Status.Override.Waits():
		add("Newer content in Git follows once the clusters are back.")
	case r.Status.Override.Returns() && r.Status.Override.Proposed != "":
		out = append(out, Advice{"The fleet differs from Git. Merge the pull request, which commits what it runs, or push other content.", r.Status.Override.Proposed})
		add("The content was not at fault: end its quarantine, and roll it out again.", on("unblock", "-m", OrderReason)...)
	case r.Status.Override.Returns():
		restore("The fleet differs from Git. Commit what it runs, or push other content. This restores PATH, the directory of the add-on, except addonrollout.yaml. Check with git diff --cached what else it takes back.", r.Status.Target)
		add("The content was not at fault: end its quarantine, and roll it out again.", on("unblock", "-m", OrderReason)...)
	case stalledBy(r, v1alpha1.OwnershipConflictReason):
		add("Stop the writer that the message above names. Then let the operator look again.", program, "reconcile", "rollout", r.Name, "-n", r.Namespace)
	case outcome == Failed && r.Status.Aborted != nil:
	case stalledBy(r, v1alpha1.InvalidTenantsReason), stalledBy(r, v1alpha1.TenantDeniedReason):
		add("Ask an admin of the hub to change the policy of tenants, or push what the policy allows.")
	case stalledBy(r, v1alpha1.InvalidHealthReason) && r.Spec.Target != nil:
		add("spec.health was edited on the hub. This makes the operator restore it from Git.", program, "reconcile", "source", r.Spec.Target.Source, "-n", r.Namespace, "--wait")
	case stalledBy(r, v1alpha1.InvalidLedgerReason):
		add("status.ledger was edited. Repair it, or empty it: clusters that run content which never succeeded then count as in flight.",
			"kubectl", "edit", "addonrollout", r.Name, "-n", r.Namespace, "--subresource=status")
	case r.Status.Phase == v1alpha1.PhaseSucceeded && stalledBy(r, v1alpha1.RolloutFailedReason):
		add("Clusters failed after the rollout had succeeded. Fix what the message above names, and try them again, or push a fix.", on("retry", "-m", OrderReason)...)
	case outcome == Failed && r.Spec.Target != nil && r.Status.Phase == v1alpha1.PhaseFailed:
		restore("Push a fix, or commit the content that succeeded last. Only the clusters that got the content move. This restores PATH, the directory of the add-on, except addonrollout.yaml. Check with git diff --cached what else it takes back.", r.Status.Stable)
		again := "try the failed clusters again."
		if r.Status.Counts.Failed == 0 { // a gate failed
			again = "begin another attempt, in which the gates are asked again."
		}
		add("The content was not at fault: "+again, on("retry", "-m", OrderReason)...)
	case outcome == Failed:
		add("Change what the message above names, and push.")
	default:
		out = append(out, Resume(program, r)...)
	}
	for _, stage := range r.Status.Stages {
		if outcome == Failed {
			break // no cluster moves, and another attempt needs another approval
		}
		for _, gate := range stage.Gates {
			if gate.Type == v1alpha1.GateApproval && gate.State == v1alpha1.GateWaiting && gate.Since != nil {
				add(fmt.Sprintf("Approve stage %s (gate %s). The command shows what changes, and asks.", stage.Name, gate.Name),
					program, "approve", r.Name, stage.Name, "-n", r.Namespace, "--gate", gate.Name)
				if byComment(r, stage.Name, gate.Name) && r.Status.Target != nil {
					out = append(out, Advice{
						"Write this comment on the merged pull request (reject instead of approve rejects).",
						gates.ApproveComment(r.Name, stage.Name, gate.Name, r.Status.Target.Digest),
					})
				}
			}
		}
		if stage.Phase == rollout.StageSoaking {
			add(fmt.Sprintf("End the soak of stage %s now.", stage.Name), program, "promote", r.Name, stage.Name, "-n", r.Namespace, "-m", OrderReason)
		}
	}
	switch {
	case len(out) > 0:
	case outcome == Succeeded:
		add("Nothing to do. If this content is bad, this rolls it back and quarantines it.", on("rollback", "-m", OrderReason)...)
	case outcome == Running:
		add("It continues by itself. Follow it in a terminal.", on("status", "--watch")...)
	default:
		add("See what holds it.", on("tree")...)
	}
	return out
}

// Resume returns the command that ends the suspend of a rollout; if the rollout is not suspended, none.
func Resume(program string, r *v1alpha1.AddOnRollout) []Advice {
	switch {
	case r.Spec.Suspend:
		return []Advice{{Text: "The AddOnRollout in Git says suspend: true. Change it there and push."}}
	case suspended(r):
		return []Advice{{"Continue the rollout.", Command(program, "resume", "rollout", r.Name, "-n", r.Namespace)}}
	}
	return nil
}

// windowsOf names the windows that hold a rollback. Its phase stays RollingBack, because it continues by itself.
func windowsOf(r *v1alpha1.AddOnRollout) []Advice {
	if r.Status.Phase != v1alpha1.PhaseRollingBack || !r.Status.Override.Returns() {
		return nil
	}
	var out []Advice
	for _, stage := range r.Status.Stages {
		for _, gate := range stage.Gates {
			if gate.State == v1alpha1.GateWaiting && holdsReverts(r, stage.Name, gate.Name) {
				out = append(out, Advice{Text: fmt.Sprintf("Window %s holds the rollback of stage %s: %s. "+
					"The rollback continues when it opens. To continue now, remove holdsReverts from the window in Git.", gate.Name, stage.Name, gate.Reason)})
			}
		}
	}
	return out
}

// holdsReverts reports whether a gate is a window that also holds rollbacks.
func holdsReverts(r *v1alpha1.AddOnRollout, stage, gate string) bool {
	for _, s := range r.Spec.Stages {
		if s.Name != stage || s.Gates == nil {
			continue
		}
		for _, g := range slices.Concat(s.Gates.Before, s.Gates.During) {
			if g.Name == gate && g.Window != nil && g.Window.HoldsReverts {
				return true
			}
		}
	}
	return false
}

// byComment reports whether comments on a forge count at a gate.
func byComment(r *v1alpha1.AddOnRollout, stage, gate string) bool {
	for _, s := range r.Spec.Stages {
		if s.Name != stage || s.Gates == nil {
			continue
		}
		for _, g := range s.Gates.Before {
			if g.Name == gate && g.Approval != nil && g.Approval.Forge != nil {
				return true
			}
		}
	}
	return false
}

func stalledBy(r *v1alpha1.AddOnRollout, reason string) bool {
	stalled := meta.FindStatusCondition(r.Status.Conditions, fluxmeta.StalledCondition)
	return stalled != nil && stalled.Status == metav1.ConditionTrue && stalled.Reason == reason
}

// NextOfSource lists the actions that a user can take for a source that applies no newer commit, because it is
// suspended or refused its newest commit.
func NextOfSource(program string, s *v1alpha1.AddOnSource) []Advice {
	var out []Advice
	switch {
	case s.Spec.Suspend:
		out = append(out, Advice{"The AddOnSource says spec.suspend: true. Change it where the source is declared.", ""})
	case v1alpha1.SuspendedByAnnotation(s.Annotations):
		out = append(out, Advice{"Continue reading the repository.", Command(program, "resume", "source", s.Name, "-n", s.Namespace)})
	}
	switch {
	case Refusal(s) == "" && SourceOutcome(s) != Failed:
	case lintFinds(s):
		out = append(out, Advice{"Fix the errors, and push. This checks a directory before the next commit.", Command(program, "lint", "PATH")})
	default:
		out = append(out, Advice{"Change what the message above names. Then let the operator look again.", ReadNow(program, s)})
	}
	return out
}

// ReadNow is the command that makes the operator read the repository.
func ReadNow(program string, s *v1alpha1.AddOnSource) string {
	return Command(program, "reconcile", "source", s.Name, "-n", s.Namespace, "--wait")
}

// lintFinds reports whether the problems of a source are in the files of the commit. Problems with signatures, the
// history of the branch, tenants and the rights of accounts are not. It is true if the conditions no longer show a
// problem.
func lintFinds(s *v1alpha1.AddOnSource) bool {
	stuck := meta.FindStatusCondition(s.Status.Conditions, fluxmeta.StalledCondition)
	if stuck == nil || stuck.Status != metav1.ConditionTrue {
		return true
	}
	switch stuck.Reason {
	case v1alpha1.BuildFailedReason, v1alpha1.ValidationFailedReason, v1alpha1.LimitExceededReason:
		account := "system:serviceaccount:" + s.Namespace + ":" + s.Spec.ServiceAccountName // the user name in the API server
		return s.Spec.ServiceAccountName == "" || !strings.Contains(stuck.Message, account)
	}
	return false
}

// plainWord matches words that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9._/@:=-]+$`)

// Command is a command line. Words from Git or a cluster are quoted if a shell needs it.
func Command(words ...string) string {
	for i, w := range words {
		if !plainWord.MatchString(w) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
