package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// TestAllOfAnObjectIsToldOnce: a problem of an object hides no other one of it, and none of
// the objects that go with it, and no mistake is told twice.
func TestAllOfAnObjectIsToldOnce(t *testing.T) {
	const settings = "{name: hello-settings, namespace: hello}"
	unresolved := []complaint{
		{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[0].spec.template.spec.containers[0].args[0]", "GRETING"}},
		{flaw.ReasonUnresolvedVariable, templateFile, []string{"manifests[1].data.greeting", "GRETING"}},
	}
	// also is hello with a variable that nobody sets, and something else.
	also := func(row, path, from, to string, reason problem.Reason, parts ...string) badInput {
		commit := hello().edited(t, templateFile, "{{GREETING}}", "{{GRETING}}").edited(t, path, from, to)
		return badInput{row, commit, append([]complaint{{reason, path, parts}}, unresolved...)}
	}
	// alone is hello with something that must be told alone.
	alone := func(row, path, from, to string, reason problem.Reason, parts ...string) badInput {
		return badInput{row, hello().edited(t, path, from, to), []complaint{{reason, path, parts}}}
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
		alone("unlisted kind", addOnFile, "      rolloutStrategy:", "      - {group: example.com, resource: things, name: x}\n      rolloutStrategy:", flaw.ReasonConfigurationUnsupported, "things.example.com is not supported"),

		alone("misspelt list of variables", configFile, "customizedVariables", "customisedVariables", flaw.ReasonUnknownField, "did you mean customizedVariables?"),
		alone("other name for the list of variables", configFile, "customizedVariables", "variables", flaw.ReasonUnknownField, "spec.variables"),
		alone("misspelt name of a variable", configFile, "- name: GREETING", "- nam: GREETING", flaw.ReasonUnknownField, "did you mean name?"),
		alone("bad name of a variable", configFile, "name: GREETING", "name: 9LIVES", flaw.ReasonInvalidVariable, "customizedVariables[0].name"),
		alone("built-in name of a variable", configFile, "name: GREETING", "name: CLUSTER_NAME", flaw.ReasonReservedVariable, "customizedVariables[0].name"),
		alone("misspelt manifests", templateFile, "      manifests:", "      manifest:", flaw.ReasonUnknownField, "did you mean manifests?"),
		alone("misspelt agentSpec", templateFile, "  agentSpec:", "  agentSpecs:", flaw.ReasonUnknownField, "did you mean agentSpec?"),
		alone("misspelt add-on", templateFile, "addonName", "addOnName", flaw.ReasonUnknownField, "did you mean addonName?"),
		alone("type of the add-on's name", templateFile, "addonName: hello", "addonName: 1", flaw.ReasonInvalidType, "spec.addonName"),
		alone("misspelt typed variables", templateFile, "  name: hello\n", "  name: hello\n  annotations: {addonflow.io/typed-variable: GREETING=integer}\n", flaw.ReasonUnknownField, "did you mean addonflow.io/typed-variables?"),
		alone("misspelt type of a toleration", configFile, "key: dedicated,", "keys: dedicated,", flaw.ReasonUnknownField, "did you mean key?"),
		alone("misspelt default", addOnFile, "defaultConfig:", "defaultConfg:", flaw.ReasonUnknownField, "did you mean defaultConfig?"),
		alone("misspelt kind of configuration", addOnFile, "resource: addontemplates\n", "resources: addontemplates\n", flaw.ReasonUnknownField, "did you mean resource?"),
		alone("misspelt placement of a stage", rolloutFile, "placement:", "placment:", flaw.ReasonUnknownField, "did you mean placement?"),
	}
	rows = append(rows, badInput{
		"misspelt registration that a variable needs",
		hello().edited(t, templateFile, "{{GREETING}}", "{{HUB_KUBECONFIG}}").edited(t, templateFile, "  registration:", "  registrations:"),
		one(flaw.ReasonUnknownField, templateFile, "did you mean registration?"),
	}, badInput{
		"three in one template",
		hello().edited(t, templateFile, "    workload:", "    executr: {}\n    workload:").
			edited(t, templateFile, "clusterRoleName: hello-agent", "clusterRoleName: ''").
			edited(t, templateFile, "{name: hello-settings, namespace: hello}", "{name: '{{CLUSTER_NAME}}/x', namespace: hello}").
			edited(t, templateFile, "--cluster={{CLUSTER_NAME}}", "--cluster={{CLUSTER}}"),
		[]complaint{
			{flaw.ReasonUnknownField, templateFile, []string{"spec.agentSpec.executr"}},
			{flaw.ReasonInvalidRegistration, templateFile, []string{"currentCluster.clusterRoleName: is empty"}},
			{flaw.ReasonInvalidManifest, templateFile, []string{"manifests[1].metadata.name", "may not contain '/'"}},
			{flaw.ReasonUnresolvedVariable, templateFile, []string{"args[1]", "CLUSTER"}},
		},
	}, badInput{
		"health that finds nothing in a manifest without kind",
		hello().edited(t, templateFile, "        kind: Deployment\n", "").
			edited(t, rolloutFile, "  revisionHistoryLimit: 5", "  health: {prober: CEL, healthCheckExprs: [{apiVersion: apps/v1, kind: Deployment, current: 'feedback.ReadyReplicas >= 1'}]}"),
		one(flaw.ReasonInvalidManifest, templateFile, "manifest 0 has no kind"),
	})
	for _, in := range rows {
		t.Run(strings.ReplaceAll(in.row, " ", "_"), func(t *testing.T) { in.check(t) })
	}
}

// TestDoubt: which fields a flaw leaves open, and which findings it explains.
func TestDoubt(t *testing.T) {
	d := doubt{declared: map[string]any{"spec": map[string]any{"known": int64(1), "list": []any{map[string]any{"strange": "x", "here": "y"}}}}}
	d.note(
		flaw.Flaw{Field: "spec.a.type"}, flaw.Flaw{Field: "spec.list[1].b"}, flaw.Flaw{Field: "spec.whole[2]"},
		flaw.Flaw{Field: "spec.list[0].strange", Reason: flaw.ReasonUnknownField},
		flaw.Flaw{Field: "spec.mispelt", Meant: "spec.misspelt", Reason: flaw.ReasonUnknownField},
		flaw.Flaw{Field: manifestsAt.Index(0).Child("metadata").Child("labels")},
	)
	for field, want := range map[flaw.Path]struct{ open, explains bool }{
		"spec.known":                            {false, false},
		"spec":                                  {false, true},
		"":                                      {false, true},
		"spec.a.type":                           {true, true},
		"spec.a.other":                          {false, true}, // without its type nothing is what it says
		"spec.list[1].c":                        {false, true}, // in one entry
		"spec.list[2].c":                        {false, false},
		"spec.list[0].here":                     {false, true},
		"spec.list[0].absent.below":             {true, true}, // it may be the strange one
		"spec.whole[2].x":                       {true, true},
		"spec.whole[1]":                         {false, false},
		"spec.misspelt.x":                       {true, true},
		manifestsAt.Index(0) + ".metadata.name": {false, true},
		manifestsAt.Index(0) + ".spec.replicas": {false, false},
		manifestsAt.Index(1) + ".metadata.name": {false, false},
		"spec.agentSpec.workload.manifestsElsewhere": {false, false},
	} {
		if d.open(field) != want.open || d.explains(field) != want.explains {
			t.Errorf("%q: open %v, explained %v, want %v", field, d.open(field), d.explains(field), want)
		}
	}
}

// TestFieldsAreRemovedWithTheirList: of a list nothing moves up.
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
