package load

import (
	"errors"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// foldered is a document of a commit that names folders, whose files are read from the tree.
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
		name, _ = list[flaw.Path(field).Position()].(string)
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

// packagedHello is a valid commit of an add-on with a chart.
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

// packageObjects are the objects of a commit with folders; the files of a chart are not among
// them.
func (f tree) packageObjects(tb testing.TB) []Located {
	tb.Helper()
	var objects []Located
	for name, text := range f {
		if strings.Contains(name, "/chart/") || strings.Contains(name, "/manifests/") || strings.HasPrefix(path.Base(name), "values") {
			continue
		}
		located := document(tb, name, text)
		if located.GetUnstructured().GetKind() == "AddOnPackage" {
			located = foldered{Located: located, tree: f}
		}
		objects = append(objects, located)
	}
	return objects
}

func loadPackaged(tb testing.TB, commit tree) AddOn {
	tb.Helper()
	loaded, problems := Load(commit.packageObjects(tb), nil, Options{Charts: chart.InProcess{}})
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	if len(loaded.AddOns) != 1 || len(loaded.Missing) > 0 {
		tb.Fatalf("got %d add-ons, missing %v", len(loaded.AddOns), loaded.Missing)
	}
	return loaded.AddOns[0]
}

func packagedObjects(tb testing.TB, c render.Content, cluster render.Cluster) []*unstructured.Unstructured {
	tb.Helper()
	cluster.Placements = append(cluster.Placements, v1alpha1.PlacementReference{Namespace: "hello", Name: "everyone"})
	return objectsFor(tb, c, cluster)
}

// TestPackageRenders covers all sources of values: the chart, a file, the package, a
// configuration and the cluster's annotation.
func TestPackageRenders(t *testing.T) {
	addOn := loadPackaged(t, packagedHello())
	objects := packagedObjects(t, addOn.Content, render.Cluster{Name: "cluster1", Values: `{"greeting":"from the annotation","clusterName":"x"}`})
	var names []string
	for _, o := range objects {
		names = append(names, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	if diff := cmp.Diff([]string{"Deployment hello-agent/hello-agent", "ConfigMap hello-agent/hello-settings"}, names); diff != "" {
		t.Fatalf("objects (-want +got):\n%s", diff)
	}
	spec := objects[0].Object["spec"]
	container := rendertest.At(spec, "template", "spec", "containers", 0)
	for what, pair := range map[string][2]any{
		"a variable mapped to a value, with its type": {rendertest.At(spec, "replicas"), int64(2)},
		"node selector, under OCM's name for it":      {rendertest.At(spec, "template", "spec", "nodeSelector", "disk"), "ssd"},
		"tolerations":                                 {rendertest.At(spec, "template", "spec", "tolerations", 0, "key"), "edge"},
		"an image through the mirror":                 {rendertest.At(container, "image"), "mirror.example.com/ocm/hello:v1"},
		"the name of the cluster, which is built in":  {rendertest.At(container, "args", 0), "--cluster=cluster1"},
		"the package's values over the file's":        {rendertest.At(container, "args", 1), "--v=4"},
		"the secret of the registration agent":        {rendertest.At(container, "args", 2), "--hub=hello-hub-kubeconfig"},
		"the mode":                                    {rendertest.At(container, "args", 3), "--mode=Default"},
		"the annotation over the configuration":       {rendertest.At(objects[1].Object, "data", "greeting"), "from the annotation"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %v, want %v", what, pair[0], pair[1])
		}
	}
	if got := rendertest.At(packagedObjects(t, addOn.Content, render.Cluster{Name: "cluster1"})[1].Object, "data", "greeting"); got != "from the config" {
		t.Errorf("without an annotation: %v", got)
	}
}

// TestPackageNullRemovesTheChartsValue: a null removes a value, as in Helm: in the package, in
// a file, and in stored content.
func TestPackageNullRemovesTheChartsValue(t *testing.T) {
	commit := packagedHello()
	commit[packageFile] = strings.Replace(commit[packageFile], "values: {logLevel: 4}", "values: {logLevel: 4, agent: {image: null}, extra: null}", 1)
	commit["hello/chart/values.yaml"] += "extra: from the chart\n"
	commit["hello/chart/templates/settings.yaml"] = `apiVersion: v1
kind: ConfigMap
metadata: {name: hello-settings}
data: {image: {{ .Values.agent.image | default "none" | quote }}, extra: {{ .Values.extra | default "none" | quote }}}
`
	content := loadPackaged(t, commit).Content
	body, err := content.Encode()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := render.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]render.Content{"declared": content, "stored": stored} {
		values := rendertest.At(packagedObjects(t, c, render.Cluster{Name: "cluster1"})[1].Object, "data")
		if diff := cmp.Diff(map[string]any{"image": "none", "extra": "none"}, values); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestPackageInputsKey: the key is equal exactly if everything that a chart may read is equal
// except for the cluster's name.
func TestPackageInputsKey(t *testing.T) {
	key := func(commit tree, c render.Cluster) string {
		inputs, err := newRenderer(t, loadPackaged(t, commit).Content).Inputs(c)
		if err != nil {
			t.Fatal(err)
		}
		return inputs.Key
	}
	plain := packagedHello()
	base := render.Cluster{Name: "a1", KubeVersion: "v1.32.0"}
	if key(plain, base) != key(plain, render.Cluster{Name: "b1", KubeVersion: "v1.32.0"}) {
		t.Error("the name changes the key")
	}
	if key(plain, base) == key(plain, render.Cluster{Name: "a1", KubeVersion: "v1.33.0"}) {
		t.Error("a version that the chart may read does not change the key")
	}
	if key(plain, base) == key(plain, render.Cluster{Name: "a1", Values: "{}"}) {
		t.Error("values of the annotation do not change the key")
	}
	if key(plain, base) == key(plain.edited(t, "hello/chart/values.yaml", "from the chart", "else"), base) {
		t.Error("a file of the chart does not change the key")
	}
}

// TestPackageContentRoundTrip: an AddOnRevision keeps everything that rendering needs, and its
// digest covers it.
func TestPackageContentRoundTrip(t *testing.T) {
	commit := packagedHello().with("hello/chart/files/logo.png", "\x89PNG\xff")
	addOn := loadPackaged(t, commit)
	body, err := addOn.Content.Encode()
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := render.Decode(body)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := decoded.Digest()
	if err != nil || digest != addOn.Digest {
		t.Errorf("digest %s, %v; want %s", digest, err, addOn.Digest)
	}
	cluster := render.Cluster{Name: "cluster1", KubeVersion: "v1.33.0"}
	if diff := cmp.Diff(packagedObjects(t, addOn.Content, cluster), packagedObjects(t, decoded, cluster)); diff != "" {
		t.Errorf("rendered from the revision (-commit +revision):\n%s", diff)
	}
	for file, text := range commit {
		if file == addOnFile || !strings.HasPrefix(file, "hello/chart/") {
			continue
		}
		if changed := loadPackaged(t, commit.with(file, text+"\n# changed\n")); changed.Digest == addOn.Digest {
			t.Errorf("%s is not covered by the digest", file)
		}
	}
}

// TestPackageOfManifests_RendersWithTheValuesOfTheGuide renders a folder of manifests with the names of values in the user
// guide.
func TestPackageOfManifests_RendersWithTheValuesOfTheGuide(t *testing.T) {
	commit := packagedHello().
		edited(t, packageFile, "helm: {path: chart}", "manifests: {path: manifests}").
		with("hello/manifests/agent.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  it: '{{ .ClusterName }} {{ .AddonInstallNamespace }} {{ .HubKubeConfigSecret }} {{ .InstallMode }} {{ .clusterName }}'\n  disk: {{ .NodeSelector.disk }}\n  replicas: '{{ .agent.replicas }}'\n").
		with("hello/manifests/sub/b.json", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"},"data":{"it":"{{ include "greet" . }}"}}`).
		with("hello/manifests/c.yml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n").
		with("hello/manifests/_lib.tpl", `{{ define "greet" }}{{ .greeting }}{{ end }}`).
		with("hello/manifests/README.md", "{{ not rendered")
	objects := packagedObjects(t, loadPackaged(t, commit).Content, render.Cluster{Name: "cluster1"})
	got := map[string]any{}
	for _, o := range objects {
		got[o.GetName()] = o.Object["data"]
	}
	want := map[string]any{
		"a": map[string]any{"it": "cluster1 hello-agent hello-hub-kubeconfig Default cluster1", "disk": "ssd", "replicas": "2"},
		"b": map[string]any{"it": "from the config"},
		"c": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("every .yaml, .yml and .json file (-want +got):\n%s", diff)
	}
}

// TestPackageObjectsWithoutAKindAreNamed: a document without a kind is reported, while OCM's
// framework skips it.
func TestPackageObjectsWithoutAKindAreNamed(t *testing.T) {
	commit := packagedHello().with("hello/chart/templates/zzz.yaml", "a: b\n")
	_, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}})
	const want = "hello/chart/templates/zzz.yaml:1: AddOnPackage/hello: spec.helm.path: object.kind: must be set"
	if err := problems.Err(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", problems, want)
	}
}

// TestInvalidAnnotationAffectsItsClusterOnly: a flaw in the annotation of one cluster affects that
// cluster only.
func TestInvalidAnnotationAffectsItsClusterOnly(t *testing.T) {
	r := newRenderer(t, loadPackaged(t, packagedHello()).Content)
	for _, bad := range []string{"[]", "{", `{"a":"\u0000"}`} {
		if _, err := r.Render(render.Cluster{Name: "a1", Values: bad}); !errors.Is(err, render.ErrInvalidValues) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := r.Render(render.Cluster{Name: "b1"}); err != nil {
		t.Error(err)
	}
}

// BenchmarkPackageRender is the cost of one cluster of a fleet, without the child process.
func BenchmarkPackageRender(b *testing.B) {
	r := newRenderer(b, loadPackaged(b, packagedHello()).Content)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		if _, err := r.Render(render.Cluster{Name: "cluster-" + strconv.Itoa(i), KubeVersion: "v1.33.0"}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestPackagesOfOneObjectConflict: also if the charts ask for a version of Kubernetes.
func TestPackagesOfOneObjectConflict(t *testing.T) {
	for name, needs := range map[string]string{"AnyVersion": "", "AVersion": "kubeVersion: '>=1.25.0-0'\n", "ANewVersion": "kubeVersion: '>=1.40.0-0'\n"} {
		t.Run(name, func(t *testing.T) {
			commit := packagedHello()
			commit["hello/chart/Chart.yaml"] += needs
			for file, text := range packagedHello() {
				if file != configFile {
					commit["other/"+file] = strings.NewReplacer("{name: hello}", "{name: other}", "addOn: hello", "addOn: other").Replace(text)
				}
			}
			commit["other/hello/chart/Chart.yaml"] += needs
			_, problems := Load(commit.packageObjects(t), nil, Options{Charts: chart.InProcess{}})
			want := complaint{flaw.ReasonObjectConflict, "other/" + packageFile, []string{`add-ons "hello" and "other" both deploy ConfigMap hello-agent/hello-settings to the clusters of placement hello/everyone`}}
			if len(problems) != 1 || !want.matches(problems[0]) {
				t.Errorf("got %v", problems)
			}
		})
	}
}

// TestPackageWithASecretIsRenderedOnce: one rendering serves every check, and the warning about the Secret's values.
func TestPackageWithASecretIsRenderedOnce(t *testing.T) {
	commit := packagedHello().with("hello/chart/templates/secret.yaml", "{{ if .Values.agent.replicas }}\n{apiVersion: v1, kind: Secret, metadata: {name: key}, stringData: {a: b}}\n{{ end }}\n")
	commit["hello/chart/Chart.yaml"] += "kubeVersion: '>=1.40.0-0'\n"
	renderings := 0
	loaded, problems := Load(commit.packageObjects(t), nil, Options{Charts: counted{chart.InProcess{}, &renderings}})
	if len(problems) > 0 || strings.Count(loaded.Warnings.Error(), "the values of Secret key can be read") != 1 {
		t.Errorf("problems %v, warnings %v", problems, loaded.Warnings)
	}
	if renderings != 1 {
		t.Errorf("%d renderings", renderings)
	}
}

// counted counts renderings.
type counted struct {
	chart.Engine
	renderings *int
}

func (c counted) Render(s *chart.Source, in chart.Input) ([]chart.Manifest, error) {
	*c.renderings++
	return c.Engine.Render(s, in)
}

// TestPackageInHostedMode: the chart gets the install mode, and Default otherwise.
func TestPackageInHostedMode(t *testing.T) {
	content := loadPackaged(t, packagedHello()).Content
	for hosting, want := range map[string]string{"": "--mode=Default", "host1": "--mode=Hosted"} {
		r := newRenderer(t, content)
		rendered, err := r.Render(render.Cluster{Name: "cluster1", Hosting: hosting})
		if err != nil {
			t.Fatal(err)
		}
		objects, err := rendered.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if got := rendertest.At(objects[0].Object, "spec", "template", "spec", "containers", 0, "args", 3); got != want {
			t.Errorf("hosted on %q: %v, want %s", hosting, got, want)
		}
	}
}
