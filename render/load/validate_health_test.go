package load

import (
	"testing"

	"github.com/addonflow/addonflow/render/flaw"
)

// TestHealthReadsWhatIsAsked: an expression that reads feedback without a rule for it would
// hold every cluster.
func TestHealthReadsWhatIsAsked(t *testing.T) {
	const asking = "    manifestConfigs:\n    - resourceIdentifier: {group: apps, resource: deployments, namespace: '*', name: '*'}\n" +
		"      feedbackRules: [{type: JSONPaths, jsonPaths: [{name: mood, path: .metadata.labels.mood}]}]\n    workload:"
	row := func(row, rule, current string, parts ...string) badInput {
		commit := hello().edited(t, rolloutFile, "  revisionHistoryLimit: 5",
			"  health: {prober: CEL, healthCheckExprs: [{apiVersion: apps/v1, kind: Deployment, current: \""+current+"\"}]}")
		if rule != "" {
			commit = commit.edited(t, templateFile, "    workload:", rule)
		}
		if len(parts) == 0 {
			return badInput{row, commit, nil}
		}
		return badInput{row, commit, one(flaw.ReasonInvalidHealth, rolloutFile, append(parts, "spec.health.healthCheckExprs[0].current")...)}
	}
	for _, in := range []badInput{
		row("nobody_asks", "", "feedback.mood == 'well'", `no feedback rule asks for "mood"; ask for it in feedbackRules`),
		row("nobody_asks_by_index", "", "feedback['mood'] == 'well'", `no feedback rule asks for "mood"`),
		row("misspelt", "", "feedback.readyReplicas >= 1", `no feedback rule asks for "readyReplicas"; did you mean ReadyReplicas?`),
		row("the_template_asks", asking, "feedback.mood == 'well'"),
		row("the_agent_knows", "", "feedback.ReadyReplicas >= 1 && feedback['AvailableReplicas'] >= 1"),
		row("AddonFlow_asks", "", "feedback['addonflow.ready'] >= 1"),
		row("asked_for_first", "", "!has(feedback.mood) || feedback.mood == 'well'"),
		row("asked_for_by_in", "", "!('mood' in feedback) || feedback.mood == 'well'"),
		row("one_of_two", asking, "feedback.mood == 'well' && feedback.colour == 'red'", `"colour"`),
	} {
		t.Run(in.row, func(t *testing.T) { in.check(t) })
	}
}
