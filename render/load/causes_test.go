package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// TestOneProblemHidesNoOther: not of the same object, and not of objects that refer to it.
func TestOneProblemHidesNoOther(t *testing.T) {
	const settings = "{name: hello-settings, namespace: hello}"
	// also is hello with a variable without a value, and one more mistake.
	also := func(row, path, from, to string, reason problem.Reason, parts ...string) badInput {
		commit := hello().edited(t, templateFile, "{{GREETING}}", "{{GRETING}}").edited(t, path, from, to)
		return badInput{row, commit, append([]complaint{{reason, path, parts}}, unset("GRETING")...)}
	}
	rows := []badInput{
		also("unknown field of the template", templateFile, "  agentSpec:", "  agentSpecs: {}\n  agentSpec:", flaw.ReasonUnknownField, "spec.agentSpecs"),
		also("unknown field beside the manifests", templateFile, "    workload:", "    executr: {}\n    workload:", flaw.ReasonUnknownField, "did you mean executor?"),
		also("wrong type in the registration", templateFile, "clusterRoleName: hello-agent", "clusterRoleName: 1", flaw.ReasonInvalidType, "clusterRoleName"),
		also("wrong registration", templateFile, "type: KubeClient", "type: Oidc", flaw.ReasonInvalidRegistration, "spec.registration[0].type"),
		also("manifest that names nothing", templateFile, settings, "{namespace: hello}", flaw.ReasonInvalidManifest, "manifest 1 has no name"),
		also("unreadable annotation", templateFile, "  name: hello\n", "  name: hello\n  annotations: {addonflow.io/typed-variables: A}\n", flaw.ReasonInvalidTemplate, "typed-variables"),
		also("metadata", templateFile, "  name: hello\n", "  name: hello\n  annotations: {a: 1}\n", flaw.ReasonInvalidManifest, "metadata.annotations.a: must be a string"),
		also("proxy of the configuration", configFile, "  nodePlacement:", "  proxyConfig: {httpProxy: 1}\n  nodePlacement:", flaw.ReasonInvalidType, "spec.proxyConfig.httpProxy"),
		also("mirror of the configuration", configFile, "  nodePlacement:", "  registries: [{source: a.io/x, mirror: 'https://b.io/x'}]\n  nodePlacement:", flaw.ReasonInvalidConfig, "spec.registries[0].mirror"),
		also("value of a variable that is there", configFile, "value: hello", "value: no", flaw.ReasonInvalidType, "spec.customizedVariables[0].value"),
		also("lifecycle of the add-on", addOnFile, "  name: hello\nspec", "  name: hello\n  annotations: {addon.open-cluster-management.io/lifecycle: self}\nspec", render.ReasonNotSupported, "lifecycle"),
		also("pace of the add-on", addOnFile, "maxConcurrency: 25%", "maxConcurrency: 1.5", flaw.ReasonInvalidRolloutStrategy, "maxConcurrency"),
	}
	rows = append(rows, badInput{
		"three in one template",
		hello().edited(t, templateFile, "    workload:", "    executr: {}\n    workload:").
			edited(t, templateFile, "clusterRoleName: hello-agent", "clusterRoleName: ''").
			edited(t, templateFile, "{name: hello-settings, namespace: hello}", "{name: '{{CLUSTER_NAME}}/x', namespace: hello}").
			edited(t, templateFile, "--cluster={{CLUSTER_NAME}}", "--cluster={{CLUSTER}}"),
		[]complaint{
			{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[1].metadata.name", "may not contain '/'"}},
			{flaw.ReasonUnknownField, templateFile, []string{"spec.agentSpec.executr"}},
			{flaw.ReasonInvalidRegistration, templateFile, []string{"currentCluster.clusterRoleName: is empty"}},
			{flaw.ReasonUnresolvedVariable, templateFile, []string{"args[1]", "CLUSTER"}},
		},
	})
	for _, in := range rows {
		t.Run(strings.ReplaceAll(in.row, " ", "_"), func(t *testing.T) { in.check(t) })
	}
}

// TestFirstCauseComesFirst: problems that follow from a mistake come after it.
func TestFirstCauseComesFirst(t *testing.T) {
	mistakes := []struct {
		name, path, from, to string
		reason               problem.Reason
		says                 string
	}{
		{"unlisted kind", addOnFile, "      rolloutStrategy:", "      - {group: example.com, resource: things, name: x}\n      rolloutStrategy:", flaw.ReasonConfigurationUnsupported, "things.example.com is not supported"},
		{"misspelt list of variables", configFile, "customizedVariables", "customisedVariables", flaw.ReasonUnknownField, "did you mean customizedVariables?"},
		{"other name for the list of variables", configFile, "customizedVariables", "variables", flaw.ReasonUnknownField, "spec.variables"},
		{"misspelt name of a variable", configFile, "- name: GREETING", "- nam: GREETING", flaw.ReasonUnknownField, "did you mean name?"},
		{"bad name of a variable", configFile, "name: GREETING", "name: 9LIVES", flaw.ReasonInvalidVariable, "customizedVariables[0].name"},
		{"built-in name of a variable", configFile, "name: GREETING", "name: CLUSTER_NAME", flaw.ReasonReservedVariable, "customizedVariables[0].name"},
		{"misspelt manifests", templateFile, "      manifests:", "      manifest:", flaw.ReasonUnknownField, "did you mean manifests?"},
		{"misspelt agentSpec", templateFile, "  agentSpec:", "  agentSpecs:", flaw.ReasonUnknownField, "did you mean agentSpec?"},
		{"misspelt add-on", templateFile, "addonName", "addOnName", flaw.ReasonUnknownField, "did you mean addonName?"},
		{"type of the add-on's name", templateFile, "addonName: hello", "addonName: 1", flaw.ReasonInvalidType, "spec.addonName"},
		{"misspelt typed variables", templateFile, "  name: hello\n", "  name: hello\n  annotations: {addonflow.io/typed-variable: GREETING=integer}\n", flaw.ReasonUnknownField, "did you mean addonflow.io/typed-variables?"},
		{"misspelt type of a toleration", configFile, "key: dedicated,", "keys: dedicated,", flaw.ReasonUnknownField, "did you mean key?"},
		{"misspelt default", addOnFile, "defaultConfig:", "defaultConfg:", flaw.ReasonUnknownField, "did you mean defaultConfig?"},
		{"misspelt kind of configuration", addOnFile, "resource: addontemplates\n", "resources: addontemplates\n", flaw.ReasonUnknownField, "did you mean resource?"},
		{"misspelt placement of a stage", rolloutFile, "placement:", "placment:", flaw.ReasonUnknownField, "did you mean placement?"},
		{"kind that health judges", templateFile, "        kind: Deployment\n", "", flaw.ReasonInvalidManifest, "manifest 0 has no kind"},
		{"registration that a variable needs", templateFile, "  registration:", "  registrations:", flaw.ReasonUnknownField, "did you mean registration?"},
	}
	for _, m := range mistakes {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			commit := hello().edited(t, rolloutFile, "  revisionHistoryLimit: 5", "  health: {prober: CEL, healthCheckExprs: [{apiVersion: apps/v1, kind: Deployment, current: 'feedback.ReadyReplicas >= 1'}]}").
				edited(t, templateFile, "--cluster={{CLUSTER_NAME}}", "--hub={{HUB_KUBECONFIG}}").edited(t, m.path, m.from, m.to)
			_, problems := Load(commit.objects(t), nil, Options{Charts: chart.InProcess{}, Namespace: "flow"})
			if want := (complaint{m.reason, m.path, []string{m.says}}); len(problems) == 0 || !want.matches(problems[0]) {
				t.Errorf("%v is not the first of:\n%v", want, problems)
			}
		})
	}
}

// TestFieldsAreRemovedWithTheirList: an item with a flaw is removed with its whole list, so
// that other items keep their index.
func TestFieldsAreRemovedWithTheirList(t *testing.T) {
	for field, want := range map[flaw.Path]string{
		"spec.a":             "spec: {b: [{c: 1}, 2]}",
		"spec.b[0].c":        "spec: {a: 1, b: [{}, 2]}",
		"spec.b[1]":          "spec: {a: 1}",
		"spec.b[0].c.d":      "spec: {a: 1, b: [{c: 1}, 2]}",
		"spec.b[7].c":        "spec: {a: 1, b: [{c: 1}, 2]}",
		"spec.nothing.there": "spec: {a: 1, b: [{c: 1}, 2]}",
	} {
		object := rendertest.Fields(t, "spec: {a: 1, b: [{c: 1}, 2]}")
		field.RemoveFrom(object)
		if diff := cmp.Diff(rendertest.Fields(t, want), object); diff != "" {
			t.Errorf("without %s (-want +got):\n%s", field, diff)
		}
	}
}
