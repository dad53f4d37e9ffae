package load

import (
	"maps"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render/chart"
)

// file is one YAML document of a commit. Its Position is deliberately simple: the
// first line that mentions the last name of the field.
type file struct {
	path   string
	text   string
	object *unstructured.Unstructured
}

func (f file) GetUnstructured() *unstructured.Unstructured { return f.object }

func (f file) Position(field string) (path string, line int) {
	name := field[strings.LastIndexAny(field, ".[")+1:]
	if i := strings.LastIndexByte(field, '['); field != "" && strings.HasSuffix(field, "]") && !strings.Contains(field[i:], "/") {
		name = strings.TrimRight(field[:i], "]")
		name = name[strings.LastIndexByte(name, '.')+1:]
	}
	for i, text := range strings.Split(f.text, "\n") {
		if name != "" && strings.Contains(text, strings.Trim(name, "[]")) {
			return f.path, i + 1
		}
	}
	return f.path, 1
}

// document parses one YAML document.
func document(tb testing.TB, path, text string) Located {
	tb.Helper()
	json, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	return file{path: path, text: text, object: u}
}

// tree is the files of a commit by path.
type tree map[string]string

// with returns a copy of the tree with a file added, replaced, or (text "") removed.
func (f tree) with(path, text string) tree {
	changed := maps.Clone(f)
	changed[path] = text
	if text == "" {
		delete(changed, path)
	}
	return changed
}

// edited returns a copy of the tree with text replaced in one file.
func (f tree) edited(tb testing.TB, path, from, to string) tree {
	tb.Helper()
	if !strings.Contains(f[path], from) {
		tb.Fatalf("%s does not contain %q", path, from)
	}
	return f.with(path, strings.ReplaceAll(f[path], from, to))
}

// objects parses every document of the tree; the order is the map's.
func (f tree) objects(tb testing.TB) []Located {
	tb.Helper()
	var objects []Located
	for path, text := range f {
		objects = append(objects, document(tb, path, text))
	}
	return objects
}

const (
	addOnFile    = "hello/clustermanagementaddon.yaml"
	templateFile = "hello/addontemplate.yaml"
	configFile   = "hello/addondeploymentconfig.yaml"
	rolloutFile  = "hello/addonrollout.yaml"
	lookFile     = "hello/placement.yaml"
	spaceFile    = "hello/namespace.yaml"
)

// hello is a good commit with one object of every kind.
func hello() tree {
	return tree{
		addOnFile: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: hello
spec:
  addOnMeta: {displayName: Hello}
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig: {name: hello}
  - group: addon.open-cluster-management.io
    resource: addondeploymentconfigs
  installStrategy:
    type: Placements
    placements:
    - namespace: hello
      name: everyone
      configs:
      - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: hello, name: agent}
      rolloutStrategy:
        type: Progressive
        progressive: {maxConcurrency: 25%, minSuccessTime: 1h30m, progressDeadline: 10m}
`,
		templateFile: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: hello
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: apps/v1
        kind: Deployment
        metadata: {name: hello-agent, namespace: hello}
        spec:
          replicas: 1
          selector: {matchLabels: {app: hello}}
          template:
            metadata: {labels: {app: hello}}
            spec:
              containers:
              - name: agent
                image: quay.io/hello/agent:v1
                args: ["--greeting={{GREETING}}", "--cluster={{CLUSTER_NAME}}"]
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: hello-settings, namespace: hello}
        data: {greeting: "{{GREETING}}"}
  registration:
  - type: KubeClient
    kubeClient:
      hubPermissions:
      - type: CurrentCluster
        currentCluster: {clusterRoleName: hello-agent}
`,
		configFile: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: agent, namespace: hello}
spec:
  agentInstallNamespace: ""
  customizedVariables:
  - name: GREETING
    value: hello
  nodePlacement:
    nodeSelector: {kubernetes.io/os: linux}
    tolerations:
    - {key: dedicated, operator: Exists, effect: NoSchedule}
`,
		rolloutFile: `apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata: {name: hello}
spec:
  stages:
  - name: canary
    placement: {namespace: hello, name: everyone}
    maxConcurrency: 1
    minSuccessTime: 10m
  revisionHistoryLimit: 5
`,
		lookFile: `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: everyone, namespace: hello}
spec: {}
`,
		spaceFile: `apiVersion: v1
kind: Namespace
metadata: {name: hello}
`,
	}
}

// load loads a tree that must have no problems.
func load(tb testing.TB, f tree, hub Lookup) Commit {
	tb.Helper()
	commit, problems := Load(f.objects(tb), hub, Options{Charts: chart.InProcess{}, Namespace: "flow"})
	if len(problems) > 0 {
		tb.Fatalf("unexpected problems:\n%v", problems)
	}
	return commit
}
