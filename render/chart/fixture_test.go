package chart

import (
	"maps"
	"slices"
	"testing"
)

// tree is a folder: paths and contents.
type tree map[string]string

func (t tree) files() []File {
	var out []File
	for _, path := range slices.Sorted(maps.Keys(t)) {
		out = append(out, File{Path: path, Content: []byte(t[path])})
	}
	return out
}

// with returns the folder with one more file, or (content "") without it.
func (t tree) with(path, content string) tree {
	out := maps.Clone(t)
	if out[path] = content; content == "" {
		delete(out, path)
	}
	return out
}

// minimal is a chart with one template.
func minimal(template string) tree {
	return tree{
		"Chart.yaml":        "apiVersion: v2\nname: hello\nversion: 1.0.0\n",
		"values.yaml":       "greeting: hi\nreplicas: 1\n",
		"templates/it.yaml": template,
	}
}

// settings is a ConfigMap with one entry.
func settings(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hello}\ndata:\n  it: " + value + "\n"
}

func inputOfCluster1() Input {
	return Input{
		Release: "hello", Namespace: "agents", KubeVersion: "v1.33.2+k3s1",
		BuiltIns: map[string]any{"clusterName": "cluster1", "addonInstallNamespace": "agents"},
	}
}

func loaded(t *testing.T, from tree) *Chart {
	t.Helper()
	c, err := Load(from.files())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// it renders a chart of one ConfigMap and returns its entry.
func it(t *testing.T, from tree, in Input) any {
	t.Helper()
	out, err := loaded(t, from).Render(in)
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := out[len(out)-1].Fields["data"].(map[string]any)
	return entries["it"]
}
