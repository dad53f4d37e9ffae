package load

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/render"
)

// schemasForTest are the embedded CRDs.
func schemasForTest(t interface{ Fatal(args ...any) }) schemaSet {
	schemas, err := compiledSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

// parsed reads YAML into unstructured JSON.
func parsed(tb testing.TB, text string) map[string]any {
	tb.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return fields
}

// newRenderer is a renderer of what was loaded.
func newRenderer(tb testing.TB, c render.Content) *render.Renderer {
	tb.Helper()
	r, err := render.NewRenderer(c)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// objectsFor renders what was loaded for a cluster.
func objectsFor(tb testing.TB, c render.Content, cluster render.Cluster) []*unstructured.Unstructured {
	tb.Helper()
	rendered, err := newRenderer(tb, c).Render(cluster)
	if err != nil {
		tb.Fatal(err)
	}
	objects, err := rendered.Objects()
	if err != nil {
		tb.Fatal(err)
	}
	return objects
}

// at returns what a path of names and indexes leads to, nil for nothing.
func at(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}
