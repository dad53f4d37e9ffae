package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// objects returns what a chart renders to: kind, namespace and name.
func objects(t *testing.T, from tree, in Input) []string {
	t.Helper()
	out, err := loaded(t, from).Render(in)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range out {
		metadata, _ := m.Fields["metadata"].(map[string]any)
		kind, _ := m.Fields["kind"].(string)
		namespace, _ := metadata["namespace"].(string)
		name, _ := metadata["name"].(string)
		names = append(names, kind+" "+namespace+"/"+name)
	}
	return names
}

// parent is a chart with a sub-chart as a folder.
func parent() tree {
	return minimal(settings("{{ .Values.sub.word }}")).
		with("Chart.yaml", "apiVersion: v2\nname: hello\nversion: 1.0.0\ndependencies:\n- {name: sub, version: 0.x.x, repository: https://example.com, condition: sub.enabled}\n").
		with("values.yaml", "sub: {enabled: true, word: up}\nglobal: {tier: edge}\n").
		with("charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n").
		with("charts/sub/values.yaml", "word: down\nown: x\n").
		with("charts/sub/templates/it.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.word }}-{{ .Values.own }}-{{ .Values.global.tier }}}\n")
}

// archive packs the files below a folder as `helm package` does.
func archived(t *testing.T, from tree, folder string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	for _, path := range slices.Sorted(maps.Keys(from)) {
		if name, below := strings.CutPrefix(path, folder); below {
			if err := packed.WriteHeader(&tar.Header{Name: name, Size: int64(len(from[path])), Mode: 0o600}); err != nil {
				t.Fatal(err)
			}
			if _, err := packed.Write([]byte(from[path])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(packed.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestSubCharts(t *testing.T) {
	library := parent().
		with("charts/lib/Chart.yaml", "apiVersion: v2\nname: lib\nversion: 0.1.0\ntype: library\n").
		with("charts/lib/templates/_it.tpl", `{{ define "lib.word" }}from the library{{ end }}`).
		with("templates/it.yaml", settings(`{{ include "lib.word" . }}`))
	packed := parent()
	tgz := archived(t, packed, "charts/")
	for path := range parent() {
		if strings.HasPrefix(path, "charts/") {
			delete(packed, path)
		}
	}
	off := inputOfCluster1()
	off.Values = map[string]any{"sub": map[string]any{"enabled": false}}
	both := []string{"ConfigMap agents/up-x-edge", "ConfigMap agents/hello"}
	cases := map[string]struct {
		from tree
		in   Input
		want []string
	}{
		"Folder":   {parent(), inputOfCluster1(), both},
		"Archive":  {packed.with("charts/sub-0.1.0.tgz", tgz), inputOfCluster1(), both},
		"Disabled": {parent(), off, []string{"ConfigMap agents/hello"}},
		"Library":  {library, inputOfCluster1(), both},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, objects(t, c.from, c.in)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			verified(t, c.from, c.in)
		})
	}
}

// TestValuesPrecedence: each source of values overrides the one before.
func TestValuesPrecedence(t *testing.T) {
	from := minimal(settings(`"{{ .Values.a }} {{ .Values.t.x }} {{ .Values.t.y }} {{ .Values.gone }} {{ .Values.clusterName }}"`)).
		with("values.yaml", "a: chart\nt: {x: chart, y: chart}\ngone: chart\nclusterName: chart\n")
	in := inputOfCluster1()
	in.Values = map[string]any{"a": "given", "t": map[string]any{"y": "given"}, "gone": nil, "clusterName": "given"}
	if got := it(t, from, in); got != "given chart given  cluster1" {
		t.Errorf("got %q", got)
	}
	before := map[string]any{"a": map[string]any{"b": 1}}
	merged := MergeValues(before, map[string]any{"a": map[string]any{"c": nil}, "d": []any{1}})
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": 1, "c": nil}, "d": []any{1}}, merged); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": 1}}, before); diff != "" {
		t.Errorf("merging changed its argument:\n%s", diff)
	}
}

// TestNamespaces: namespaced objects get a namespace, others do not.
func TestNamespaces(t *testing.T) {
	crd := func(kind, scope string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + kind + "}\nspec: {group: example.com, scope: " + scope + ", names: {kind: " + kind + "}}\n"
	}
	from := minimal(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata: {name: b, namespace: own}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: c}
---
apiVersion: v1
kind: List
items:
- {apiVersion: example.com/v1, kind: Local, metadata: {name: d}}
- {apiVersion: example.com/v1, kind: Wide, metadata: {name: e}}
- {apiVersion: example.org/v1, kind: Unknown, metadata: {name: f}}
---
# nothing but a comment
---
`).with("crds/local.yaml", crd("Local", "Namespaced")).with("crds/wide.yaml", crd("Wide", "Cluster"))
	want := []string{
		"CustomResourceDefinition /Local", "CustomResourceDefinition /Wide",
		"Deployment agents/a", "Service own/b", "ClusterRole /c", "Local agents/d", "Wide /e", "Unknown /f",
	}
	if diff := cmp.Diff(want, objects(t, from, inputOfCluster1())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCRDDescriptionsAreTrimmed: descriptions are removed, a property named description stays.
func TestCRDDescriptionsAreTrimmed(t *testing.T) {
	from := minimal(settings("x")).with("crds/a.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: as.example.com}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: long
        properties:
          description: {type: string, description: long}
          list: {type: array, description: long, items: {type: string, description: long}}
`)
	out, err := loaded(t, from).Render(inputOfCluster1())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"versions": []any{map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{
		"properties": map[string]any{
			"description": map[string]any{"type": "string"},
			"list":        map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
		},
	}}}}}
	if diff := cmp.Diff(want, out[0].Fields["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNotInstalled: tests and notes are not installed, and a kept resource is orphaned.
func TestNotInstalled(t *testing.T) {
	from := minimal(settings("x")).
		with("templates/NOTES.txt", "Thank you: {{ .Values.missing.x }}").
		with("templates/tests/test.yaml", "{{ fail \"not for an installation\" }}").
		with("templates/check.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: check, annotations: {helm.sh/hook: test}}\n").
		with("templates/keep.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}\n")
	out, err := loaded(t, from).Render(inputOfCluster1())
	if err != nil {
		t.Fatal(err)
	}
	if len(out) != 2 {
		t.Fatalf("%d objects, want the ConfigMap and the Secret", len(out))
	}
	metadata, _ := out[1].Fields["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if _, orphaned := annotations[orphanAnnotation]; !orphaned {
		t.Errorf("a resource that Helm keeps is deleted with the add-on: %v", annotations)
	}
	verified(t, from, inputOfCluster1())
}

// TestRefused: an error says what is wrong with a chart, and where.
func TestRefused(t *testing.T) {
	cases := map[string]struct {
		from  tree
		place string
		says  string
	}{
		"NoChart":         {tree{"templates/a.yaml": "a: b"}, "", "Chart.yaml is missing"},
		"BadChart":        {minimal("").with("Chart.yaml", "name: [\n"), "Chart.yaml", "cannot load"},
		"BadValues":       {minimal("").with("values.yaml", "a: [\n"), "Chart.yaml", "values.yaml"},
		"Library":         {minimal("").with("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\ntype: library\n"), "Chart.yaml", "library chart"},
		"Dependency":      {parent().with("charts/sub/Chart.yaml", "apiVersion: v2\nname: other\nversion: 0.1.0\n"), "Chart.yaml", "dependency sub"},
		"BrokenArchive":   {parent().with("charts/x.tgz", "no archive"), "charts/x.tgz", "is not an archive"},
		"ArchiveBomb":     {parent().with("charts/x.tgz", archived(t, tree{"x/a": strings.Repeat("a", 4<<20), "x/b": strings.Repeat("b", 4<<20), "x/c": strings.Repeat("c", 4<<20), "x/d": strings.Repeat("d", 4<<20)}, "")), "charts/x.tgz", "unpack to more than"},
		"DeeperBomb":      {parent().with("charts/a/charts/x.tgz", archived(t, tree{"x/a": strings.Repeat("a", 17<<20)}, "")), "charts/a/charts/x.tgz", "unpack to more than"},
		"DeeperAliases":   {parent().with("charts/a/charts/x.tgz", archived(t, tree{"x/values.yaml": "a: &a " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*a,", 1000) + "]\n"}, "")), "charts/a/charts/x/values.yaml", "aliases that stand for more than"},
		"DeeperNested":    {parent().with("charts/x.tgz", archived(t, tree{"x/Chart.yaml": "a", "x/charts/z/charts/y.tgz": "b"}, "")), "charts/x.tgz", "holds an archive itself"},
		"NestedArchive":   {parent().with("charts/x.tgz", archived(t, tree{"x/Chart.yaml": "a", "x/charts/y.tgz": "b"}, "")), "charts/x.tgz", "holds an archive itself"},
		"Empty":           {minimal("# nothing\n"), "", "renders no object"},
		"Hook":            {minimal("apiVersion: v1\nkind: Job\nmetadata: {name: a, annotations: {helm.sh/hook: pre-install}}\n"), "templates/it.yaml", "is a Helm hook (pre-install)"},
		"NoYAML":          {minimal("a: b: c"), "templates/it.yaml", "not YAML"},
		"NoObject":        {minimal("just text"), "templates/it.yaml", "not an object"},
		"UnknownFunction": {minimal(settings("{{ shout 1 }}")), "templates/it.yaml", `function "shout" not defined`},
		"NilPointer":      {minimal(settings("{{ .Values.a.b }}")), "templates/it.yaml", "nil pointer"},
		"WrongType":       {minimal(settings("{{ range .Values.greeting }}{{ end }}")), "templates/it.yaml", "range can't iterate over"},
		"Required":        {minimal(settings(`{{ required "set a" .Values.a }}`)), "templates/it.yaml", "set a"},
		"Schema":          {minimal(settings("x")).with("values.schema.json", `{"properties": {"replicas": {"minimum": 2}}}`), "values.schema.json", "minimum"},
		"SchemaOfSub":     {parent().with("charts/sub/values.schema.json", `{"properties": {"word": {"const": "x"}}}`), "charts/sub/values.schema.json", "must be 'x'"},
		"SchemaFromURL":   {minimal(settings("x")).with("values.schema.json", `{"$ref": "http://127.0.0.1:1/a.json"}`), "values.schema.json", "nothing is loaded"},
		"SchemaFromFile":  {minimal(settings("x")).with("values.schema.json", `{"$ref": "file:///etc/hostname"}`), "values.schema.json", "nothing is loaded"},
		"OldCluster":      {minimal(settings("x")).with("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\nkubeVersion: '>=1.40'\n"), "Chart.yaml", "needs Kubernetes >=1.40"},
		"BadAlias":        {minimal(settings("x")).with("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: b, alias: 'x y'}]\n"), "Chart.yaml", "alias"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			chart, err := Load(c.from.files())
			if err == nil {
				_, err = chart.Render(inputOfCluster1())
			}
			failed, ok := errors.AsType[*Error](err)
			if !ok || failed.File != c.place || !strings.Contains(failed.Error(), c.says) {
				t.Errorf("got %v, want %q at %q", err, c.says, c.place)
			}
		})
	}
	t.Run("VersionNotReported", func(t *testing.T) {
		in := inputOfCluster1()
		in.KubeVersion = ""
		_, err := loaded(t, minimal(settings("{{ .Capabilities.KubeVersion.Minor }}"))).Render(in)
		if err == nil || !strings.Contains(err.Error(), "has not reported") {
			t.Errorf("got %v", err)
		}
		if _, err := loaded(t, minimal(settings("x"))).Render(in); err != nil {
			t.Errorf("a chart that does not ask: %v", err)
		}
	})
}

func TestRecursiveSchemaIsAccepted(t *testing.T) {
	from := minimal(settings("x")).with("values.yaml", "tree: {name: a, parts: [{name: b, parts: [{name: c}]}]}\n").
		with("values.schema.json", `{"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": {"required": ["name"], "properties": {"parts": {"items": {"$ref": "#/$defs/node"}}}}}}`)
	if _, err := loaded(t, from).Render(inputOfCluster1()); err != nil {
		t.Error(err)
	}
}
