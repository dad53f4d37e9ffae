package load

import (
	"strings"
	"testing"

	"github.com/addonflow/addonflow/render/chart"
)

// TestPackageValuesDoNotOverrideBuiltInOnes: a value that would be replaced on every cluster is
// refused.
func TestPackageValuesDoNotOverrideBuiltInOnes(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"value":            {"values: {logLevel: 4}", "values: {logLevel: 4, clusterName: x}", []string{"spec.values.clusterName: is built in: this value would never be used; remove it, or choose another name"}},
		"variable":         {"value: agent.replicas, type: integer", "value: installMode", []string{"spec.variables[0].value: is built in"}},
		"hub kubeconfig":   {"values: {logLevel: 4}", "values: {hubKubeConfigSecret: x}", []string{"spec.values.hubKubeConfigSecret: is built in"}},
		"without its like": {"values: {logLevel: 4}", "values: {cluster: x}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(packagedHello().edited(t, packageFile, c.from, c.to).packageObjects(t), nil, Options{Charts: chart.InProcess{}})
			in := badInput{want: nil}
			for _, part := range c.want {
				in.want = append(in.want, complaint{problems[0].Reason, packageFile, []string{part}})
			}
			if (len(problems) == 0) != (len(in.want) == 0) || len(problems) > 0 && !in.want[0].matches(problems[0]) {
				t.Errorf("got %v, want %v", problems, c.want)
			}
		})
	}
}

// TestCustomisedVariableNamedAsABuiltInValue: it would be replaced on every cluster, as in a
// template.
func TestCustomisedVariableNamedAsABuiltInValue(t *testing.T) {
	for from, want := range map[string]string{"greeting": "", "clusterName": `spec.customizedVariables[1].name: value "clusterName" is built in; choose another name`} {
		_, problems := Load(packagedHello().edited(t, configFile, "name: greeting", "name: "+from).packageObjects(t), nil, Options{Charts: chart.InProcess{}})
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v", from, problems)
		case want != "" && (len(problems) != 1 || !strings.Contains(problems[0].String(), want)):
			t.Errorf("%s: got %v, want %s", from, problems, want)
		}
	}
}

// TestEveryProblemOfAPackageIsReported: problems of a package come before those of its chart,
// and do not hide them.
func TestEveryProblemOfAPackageIsReported(t *testing.T) {
	const broken, deployment = "image: {{ .Values.agent.image }}", "hello/chart/templates/deployment.yaml"
	for name, c := range map[string]struct{ from, to string }{
		"unknown field that has a name": {"  manifestConfigs:", "  manifestConfigz: []\n  manifestConfigs:"},
		"a value that is built in":      {"values: {logLevel: 4}", "values: {logLevel: 4, clusterName: x}"},
		"misspelt values":               {"values: {logLevel: 4}", "valuess: {logLevel: 4}"},
		"unknown field":                 {"values: {logLevel: 4}", "zzz: {logLevel: 4}"},
		"misspelt value files":          {"valueFiles:", "valueFile:"},
	} {
		t.Run(name, func(t *testing.T) {
			commit := packagedHello().edited(t, packageFile, c.from, c.to).edited(t, deployment, broken, "image: {{ shout .Values.agent.image }}")
			_, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}})
			if len(problems) != 2 || problems[0].Path != packageFile || problems[1].Path != deployment {
				t.Errorf("got:\n%v", problems)
			}
		})
	}
}
