package render

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// foldered is a document of a commit that names folders, read from the tree.
type foldered struct {
	Located
	tree tree
}

func (f foldered) Folder(field string) (dir string, files map[string][]byte) {
	declared := f.GetUnstructured().Object
	file, _ := f.Position("")
	name, _ := valueAt(declared, "spec", strings.Split(field, ".")[1], "path").(string)
	if strings.HasPrefix(field, "spec.valueFiles") {
		list, _ := valueAt(declared, "spec", "valueFiles").([]any)
		name, _ = list[fieldPath(field).position()].(string)
		name = path.Join(path.Dir(file), name)
		return name, map[string][]byte{"": []byte(f.tree[name])}
	}
	dir, files = path.Join(path.Dir(file), name), map[string][]byte{}
	for name, text := range f.tree {
		if rest, below := strings.CutPrefix(name, dir+"/"); below {
			files[rest] = []byte(text)
		}
	}
	return dir, files
}

const packageFile = "hello/addonpackage.yaml"

// packagedHello is a good commit of an add-on with a chart.
func packagedHello() tree {
	return tree{
		addOnFile: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addondeploymentconfigs}
  installStrategy:
    type: Placements
    placements:
    - {namespace: hello, name: everyone, configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: hello, name: agent}]}
`,
		configFile: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: agent, namespace: hello}
spec:
  agentInstallNamespace: hello-agent
  customizedVariables:
  - {name: REPLICAS, value: "2"}
  - {name: greeting, value: from the config}
  nodePlacement:
    nodeSelector: {disk: ssd}
    tolerations: [{key: edge, operator: Exists}]
  registries: [{source: quay.io/ocm, mirror: mirror.example.com/ocm}]
`,
		packageFile: `apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata: {name: hello}
spec:
  addOn: hello
  helm: {path: chart}
  valueFiles: [values-fleet.yaml]
  values: {logLevel: 4}
  variables:
  - {name: REPLICAS, value: agent.replicas, type: integer}
  registration:
  - type: KubeClient
  manifestConfigs:
  - resourceIdentifier: {group: apps, resource: deployments, namespace: hello-agent, name: hello-agent}
    updateStrategy: {type: ServerSideApply}
`,
		"hello/values-fleet.yaml": "agent: {replicas: 1, image: quay.io/ocm/hello:v1}\nlogLevel: 1\n",
		"hello/chart/Chart.yaml":  "apiVersion: v2\nname: hello-chart\nversion: 0.1.0\n",
		"hello/chart/values.yaml": "greeting: from the chart\nagent: {replicas: 0, image: none}\nlogLevel: 0\nglobal: {nodeSelector: {}}\ntolerations: []\n",
		"hello/chart/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-agent}
spec:
  replicas: {{ .Values.agent.replicas }}
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      nodeSelector: {{ toJson .Values.global.nodeSelector }}
      tolerations: {{ toJson .Values.tolerations }}
      containers:
      - name: agent
        image: {{ .Values.agent.image }}
        args: ["--cluster={{ .Values.clusterName }}", "--v={{ .Values.logLevel }}", "--hub={{ .Values.hubKubeConfigSecret }}", "--mode={{ .Values.installMode }}"]
`,
		"hello/chart/templates/settings.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: hello-settings}
data: {greeting: {{ quote .Values.greeting }}}
`,
	}
}

// packageObjects are the objects of a commit with folders: what is in a chart is none.
func (f tree) packageObjects(tb testing.TB) []Located {
	tb.Helper()
	var objects []Located
	for name, text := range f {
		if strings.Contains(name, "/chart/") || strings.Contains(name, "/manifests/") || strings.HasPrefix(path.Base(name), "values") {
			continue
		}
		var located Located = document(tb, name, text)
		if located.GetUnstructured().GetKind() == "AddOnPackage" {
			located = foldered{Located: located, tree: f}
		}
		objects = append(objects, located)
	}
	return objects
}

func loadPackaged(tb testing.TB, commit tree) AddOn {
	tb.Helper()
	loaded, problems := Load(commit.packageObjects(tb), nil, LoadOptions{})
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	if len(loaded.AddOns) != 1 || len(loaded.Missing) > 0 {
		tb.Fatalf("got %d add-ons, missing %v", len(loaded.AddOns), loaded.Missing)
	}
	return loaded.AddOns[0]
}

func packagedObjects(tb testing.TB, c Content, cluster Cluster) []*unstructured.Unstructured {
	tb.Helper()
	cluster.Placements = append(cluster.Placements, v1alpha1.PlacementReference{Namespace: "hello", Name: "everyone"})
	objects, err := renderedFor(tb, c, cluster).Objects()
	if err != nil {
		tb.Fatal(err)
	}
	return objects
}

// TestPackageRenders is the whole way: a chart with values of its own, of a file, of
// the package, of a configuration and of the cluster's annotation.
func TestPackageRenders(t *testing.T) {
	addOn := loadPackaged(t, packagedHello())
	objects := packagedObjects(t, addOn.Content, Cluster{Name: "cluster1", Values: `{"greeting":"from the annotation","clusterName":"x"}`})
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Deployment hello-agent/hello-agent", "ConfigMap hello-agent/hello-settings"}, names); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	spec := objects[0].Object["spec"]
	container := at(spec, "template", "spec", "containers", 0)
	for what, pair := range map[string][2]any{
		"a variable mapped to a value, with its type": {at(spec, "replicas"), int64(2)},
		"node selector, under OCM's name for it":      {at(spec, "template", "spec", "nodeSelector", "disk"), "ssd"},
		"tolerations":                                 {at(spec, "template", "spec", "tolerations", 0, "key"), "edge"},
		"an image through the mirror":                 {at(container, "image"), "mirror.example.com/ocm/hello:v1"},
		"the name of the cluster, which nobody sets":  {at(container, "args", 0), "--cluster=cluster1"},
		"the package's values over the file's":        {at(container, "args", 1), "--v=4"},
		"the secret of the registration agent":        {at(container, "args", 2), "--hub=hello-hub-kubeconfig"},
		"the mode":                                    {at(container, "args", 3), "--mode=Default"},
		"the annotation over the configuration":       {at(objects[1].Object, "data", "greeting"), "from the annotation"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
	if got := at(packagedObjects(t, addOn.Content, Cluster{Name: "cluster1"})[1].Object, "data", "greeting"); got != "from the config" {
		t.Errorf("without an annotation: %v", got)
	}
}
