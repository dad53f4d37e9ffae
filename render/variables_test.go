package render

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
	"github.com/addonflow/addonflow/render/variable"
)

// echo is a template with a ConfigMap that holds a text.
func echo(text, registration string) string {
	return `
agentSpec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: echo, namespace: default}
      data:
        text: '` + text + `'
` + registration
}

func TestVariables(t *testing.T) {
	const registration = "registration: [{type: KubeClient}]\n"
	cases := map[string]struct {
		reason, text, registration, agent string
		want                              string
	}{
		"default":              {"HUB_KUBECONFIG is there with a registration", "{{HUB_KUBECONFIG}}", registration, "", "/managed/hub-kubeconfig/kubeconfig"},
		"default_empty_list":   {"a registration block is enough, as for OCM", "{{HUB_KUBECONFIG}}", "registration: []\n", "", "/managed/hub-kubeconfig/kubeconfig"},
		"customised_over":      {"a customised variable replaces a default", "{{HUB_KUBECONFIG}}", registration, "{agentInstallNamespace: '', customizedVariables: [{name: HUB_KUBECONFIG, value: /x}]}", "/x"},
		"cluster_name":         {"built in", "{{CLUSTER_NAME}}", "", "", "cluster1"},
		"install_namespace":    {"built in once the configuration names it", "{{INSTALL_NAMESPACE}}", "", "{agentInstallNamespace: ns}", "ns"},
		"own_namespace":        {"a variable like any other as long as it does not", "{{INSTALL_NAMESPACE}}", "", "{agentInstallNamespace: '', customizedVariables: [{name: INSTALL_NAMESPACE, value: mine}]}", "mine"},
		"spaces_are_text":      {"a Prometheus template survives", "{{ $labels.job }} {{ A }}", "", "", "{{ $labels.job }} {{ A }}"},
		"unclosed_is_text":     {"no crash", "{{CLUSTER_NAME}} {{A", "", "", "cluster1 {{A"},
		"no_identifier":        {"kept", "{{1A}} {{a.b}} {{}} {{-}}", "", "", "{{1A}} {{a.b}} {{}} {{-}}"},
		"braces_around":        {"the innermost pair counts", "{{{CLUSTER_NAME}}} {{ {{CLUSTER_NAME}}", "", "", "{cluster1} {{ cluster1"},
		"single_pass":          {"what a value brings in stays text", "{{A}}", "", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: '{{B}}'}, {name: B, value: '{{A}}'}]}", "{{B}}"},
		"quotes_and_newlines":  {"a value is data", "x{{A}}", "", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: \"a\\\",\\\"evil\\\":\\\"1\\n#: \"}]}", "xa\",\"evil\":\"1\n#: "},
		"empty_value":          {"an empty value is a value", "[{{A}}]", "", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: ''}]}", "[]"},
		"several_in_one":       {"all are replaced", "{{A}}{{A}}-{{CLUSTER_NAME}}", "", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: x}]}", "xx-cluster1"},
		"adjacent_close_brace": {"the third brace is text", "{{A}}}", "", "{agentInstallNamespace: '', customizedVariables: [{name: A, value: x}]}", "x}"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects := objectsFor(t, echo(c.text, c.registration), c.agent)
			if got := rendertest.At(objects[0].Object, "data", "text"); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestUnresolvedVariablesAreNamedWithTheirField(t *testing.T) {
	template := `
agentSpec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata: {name: echo, namespace: default, annotations: {example.com/a: "{{A}}"}}
      data: {list: "{{B}} {{C}} {{B}}"}
`
	_, err := newRenderer(t, contentOf(t, template, "")).Render(Cluster{Name: "cluster1"})
	var invalid *InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	const hint = "set it in customizedVariables of the AddOnDeploymentConfig"
	want := []Finding{
		{Template: "hello-template", Field: "spec.agentSpec.workload.manifests[0].data.list", Reason: flaw.ReasonUnresolvedVariable, Message: "no value for B, C", Hint: hint},
		{Template: "hello-template", Field: "spec.agentSpec.workload.manifests[0].metadata.annotations[example.com/a]", Reason: flaw.ReasonUnresolvedVariable, Message: "no value for A", Hint: hint},
	}
	if diff := cmp.Diff(want, invalid.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

func TestTypedVariables(t *testing.T) {
	template := func(text string) string {
		return "agentSpec: {workload: {manifests: [{apiVersion: v1, kind: Thing, metadata: {name: t}, value: '" + text + "'}]}}"
	}
	agent := func(value string) string {
		return "{agentInstallNamespace: '', customizedVariables: [{name: COUNT, value: '" + value + "'}]}"
	}
	cases := map[string]struct {
		reason, text, kind, value string
		want                      any
		invalid                   problem.Reason
	}{
		"integer":              {"whole string", "{{COUNT}}", variable.TypeInteger, "3", int64(3), ""},
		"negative":             {"whole string", "{{COUNT}}", variable.TypeInteger, "-3", int64(-3), ""},
		"boolean":              {"whole string", "{{COUNT}}", variable.TypeBoolean, "true", true, ""},
		"number":               {"fraction", "{{COUNT}}", variable.TypeNumber, "0.5", 0.5, ""},
		"whole number":         {"stays an integer", "{{COUNT}}", variable.TypeNumber, "5", int64(5), ""},
		"in a string":          {"is text", "n={{COUNT}}", variable.TypeInteger, "3", "n=3", ""},
		"undeclared":           {"is a string", "{{COUNT}}", "", "3", "3", ""},
		"no integer":           {"says so", "{{COUNT}}", variable.TypeInteger, "3.5", nil, flaw.ReasonInvalidVariable},
		"leading zero":         {"is not a valid integer", "{{COUNT}}", variable.TypeInteger, "010", nil, flaw.ReasonInvalidVariable},
		"injection":            {"is not a valid integer", "{{COUNT}}", variable.TypeInteger, "1,\"x\":2", nil, flaw.ReasonInvalidVariable},
		"yes is not a boolean": {"JSON's words only", "{{COUNT}}", variable.TypeBoolean, "yes", nil, flaw.ReasonInvalidVariable},
		"huge number":          {"does not fit", "{{COUNT}}", variable.TypeNumber, "1e999", nil, flaw.ReasonInvalidVariable},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			content := contentOf(t, template(c.text), agent(c.value))
			content.Templates[0].Typed = map[string]string{"COUNT": c.kind}
			r, err := newRenderer(t, content).Render(Cluster{Name: "cluster1"})
			if c.invalid != "" {
				var invalid *InvalidError
				if !errors.As(err, &invalid) || invalid.Findings[0].Reason != c.invalid {
					t.Fatalf("%s: got %v, want %s", c.reason, err, c.invalid)
				}
				if strings.Contains(err.Error(), c.value) {
					t.Errorf("the error shows the value: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			objects, err := r.Objects()
			if err != nil {
				t.Fatal(err)
			}
			if got := objects[0].Object["value"]; got != c.want {
				t.Errorf("%s: got %v (%T), want %v (%T)", c.reason, got, got, c.want, c.want)
			}
		})
	}
}

func TestVariablesThatCannotBeUsed(t *testing.T) {
	cases := map[string]struct {
		reason, agent string
		want          problem.Reason
		field         string
	}{
		"name":       {"no C identifier", "customizedVariables: [{name: a-b, value: x}]", flaw.ReasonInvalidVariable, "spec.customizedVariables[0].name"},
		"long_name":  {"256 characters", "customizedVariables: [{name: " + strings.Repeat("a", 256) + ", value: x}]", flaw.ReasonInvalidVariable, "spec.customizedVariables[0].name"},
		"long_value": {"1025 characters", "customizedVariables: [{name: A, value: " + strings.Repeat("a", 1025) + "}]", flaw.ReasonInvalidVariable, "spec.customizedVariables[0].value"},
		"duplicate":  {"two values", "customizedVariables: [{name: A, value: x}, {name: A, value: z}]", flaw.ReasonDuplicateVariable, "spec.customizedVariables[1].name"},
		"reserved":   {"always computed", "customizedVariables: [{name: CLUSTER_NAME, value: x}]", flaw.ReasonReservedVariable, "spec.customizedVariables[0].name"},
		"namespace":  {"computed with an install namespace", "{agentInstallNamespace: ns, customizedVariables: [{name: INSTALL_NAMESPACE, value: x}]}", flaw.ReasonReservedVariable, "spec.customizedVariables[0].name"},
		"nul":        {"refused", `customizedVariables: [{name: A, value: "\0"}]`, flaw.ReasonInvalidVariable, "spec.customizedVariables[0].value"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			found := newRenderer(t, contentOf(t, echo("x", ""), c.agent)).Check()
			if len(found) != 1 || found[0].Reason != c.want || found[0].Config != "default/agent" || found[0].Field != c.field {
				t.Errorf("%s: got %v", c.reason, found)
			}
		})
	}
}
