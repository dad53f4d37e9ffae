package renderworker

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render/load"
)

// declared is an object of a commit. files are those of its chart.
type declared struct {
	*unstructured.Unstructured
	path  string
	files map[string][]byte
}

func (d declared) GetUnstructured() *unstructured.Unstructured { return d.Unstructured }

func (d declared) Position(string) (path string, line int) { return d.path, 1 }

func (d declared) Folder(string) (dir string, files map[string][]byte) { return "chart", d.files }

// addOnsOf is a commit of two add-ons, each with a chart of this template and an own configuration for each of 12 placements.
func addOnsOf(t *testing.T, template string) []load.Located {
	t.Helper()
	const addOns, placements = 2, 12
	var objects []load.Located
	add := func(path, text string, files map[string][]byte) {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, declared{u, path, files})
	}
	for i := range addOns {
		name := fmt.Sprintf("addon-%d", i)
		list := ""
		for p := range placements {
			list += fmt.Sprintf("{namespace: default, name: p%d, configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: %s-%d}]}, ", p, name, p)
			add(name+"/config.yaml", fmt.Sprintf("{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: AddOnDeploymentConfig, "+
				"metadata: {namespace: default, name: %s-%d}, spec: {customizedVariables: [{name: COUNT, value: \"%d\"}]}}", name, p, p), nil)
		}
		add(name+"/addon.yaml", fmt.Sprintf("{apiVersion: addon.open-cluster-management.io/v1alpha1, kind: ClusterManagementAddOn, metadata: {name: %s}, "+
			"spec: {supportedConfigs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs}], installStrategy: {type: Placements, placements: [%s]}}}", name, list), nil)
		add(name+"/package.yaml", fmt.Sprintf("{apiVersion: addonflow.io/v1alpha1, kind: AddOnPackage, metadata: {name: %s}, spec: {addOn: %s, helm: {path: chart}}}", name, name), map[string][]byte{
			"Chart.yaml":        []byte("apiVersion: v2\nname: hello\nversion: 1.0.0\n"),
			"templates/it.yaml": []byte(strings.ReplaceAll(template, "ADDON", name)),
		})
	}
	return objects
}

// TestCommitWithManyCharts_StaysWithinTheOperatorsMemory: each of 24 renderings is within every limit. Of what the operator
// rendered for a check, it keeps only the names of the objects.
func TestCommitWithManyCharts_StaysWithinTheOperatorsMemory(t *testing.T) {
	const objects = "{{ range until 12000 }}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: ADDON-{{ . }}, namespace: hello}, " +
		"data: {a: b, c: d, e: f, g: h, i: j, k: l, m: o, p: q}}{{ end }}\n"
	limits := DefaultLimits()
	contain(t, containerMemory, limits.Memory)
	before := debug.SetMemoryLimit(operatorMemory)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	p := newPool(t, Options{Limits: limits})
	if _, problems := load.Load(addOnsOf(t, objects), nil, load.Options{Charts: p.For("a")}); len(problems) > 0 {
		t.Errorf("got %.2000s", problems)
	}
}
