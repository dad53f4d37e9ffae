package load

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
)

// schemasForTest are the embedded CRDs.
func schemasForTest(t interface{ Fatal(args ...any) }) schemaSet {
	schemas, err := compiledSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return schemas
}

// newRenderer is a renderer of loaded content.
func newRenderer(tb testing.TB, c render.Content) *render.Renderer {
	tb.Helper()
	r, err := render.NewRenderer(c, chart.InProcess{})
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// objectsFor renders loaded content for a cluster.
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
