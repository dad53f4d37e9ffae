package dashboard

import (
	"fmt"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/show"
)

// program is the name of the command-line tool in advice.
const program = "addonflow"

// reason stands for the reason that a user gives with an order.
const reason = "REASON"

// next is what a user can do about a rollout now, the most useful first.
func next(r *v1alpha1.AddOnRollout, source *v1alpha1.AddOnSource) []Advice {
	var out []Advice
	add := func(text string, words ...string) { out = append(out, Advice{text, command(words...)}) }
	on := func(verb string, rest ...string) []string {
		return append([]string{program, verb, r.Name, "-n", r.Namespace}, rest...)
	}
	if source != nil && show.Refusal(source) != "" {
		out = append(out, Advice{Text: "The source brings nothing newer: " + show.Refusal(source) + ". Fix it; this checks a directory before the next commit.", Command: program + " lint PATH"})
	}
	if !show.Current(r) {
		add("The operator has not looked at the newest commit yet.", on("status", "--watch")...)
		return out
	}
	if r.Status.Override.Returns() && r.Status.Override.Kind == v1alpha1.OverrideBlocked {
		return append(out, Advice{Text: "The content is blocked. Push other content, or take the entry out of spec.blocked of " + r.Name + "."})
	}
	outcome := show.OutcomeOf(r)
	switch {
	case r.Status.Override.Returns() && r.Status.Override.Waits():
		out = append(out, Advice{Text: "Newer content in Git follows once the clusters are back."})
	case r.Status.Override.Returns():
		add("The fleet differs from Git. Revert the commit, or push other content.", "git", "revert", SHA(r.Status.Override.Leaves().Commit))
		add("The content was not at fault: end its quarantine, and roll it out again.", on("unblock", "-m", reason)...)
	case outcome == show.Failed && r.Spec.Target != nil && r.Status.Phase == v1alpha1.PhaseFailed:
		add("Revert the commit, or push a fix. Only the clusters that got the content move.", "git", "revert", SHA(r.Spec.Target.Commit))
		add("The content was not at fault: try the failed clusters again.", on("retry", "-m", reason)...)
	case outcome == show.Failed:
		out = append(out, Advice{Text: "Change what the message above names, and push."})
	case r.Spec.Suspend:
		out = append(out, Advice{Text: "The AddOnRollout in Git says suspend: true. Change it there and push."})
	case v1alpha1.SuspendedByAnnotation(r.Annotations), r.ReleaseRequested():
		add("Continue the rollout.", program, "resume", "rollout", r.Name, "-n", r.Namespace)
	}
	for _, stage := range r.Status.Stages {
		for _, gate := range stage.Gates {
			if gate.Type == v1alpha1.GateApproval && gate.State == v1alpha1.GateWaiting && gate.Since != nil {
				add(fmt.Sprintf("Approve stage %s (gate %s). It shows what changes, and asks.", stage.Name, gate.Name),
					program, "approve", r.Name, stage.Name, "-n", r.Namespace, "--gate", gate.Name)
			}
		}
		if stage.Phase == rollout.StageSoaking {
			add(fmt.Sprintf("End the soak of stage %s now.", stage.Name), program, "promote", r.Name, stage.Name, "-n", r.Namespace, "-m", reason)
		}
	}
	switch {
	case len(out) > 0:
	case outcome == show.Succeeded:
		add("Nothing is to be done. This takes the content back.", on("rollback", "-m", reason)...)
	case outcome == show.Running:
		add("It continues by itself. Follow it in a terminal.", on("status", "--watch")...)
	default:
		add("See what holds it.", on("tree")...)
	}
	return out
}
