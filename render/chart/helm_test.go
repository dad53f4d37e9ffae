package chart

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
)

// verified holds a chart against another order of its maps, and against Helm's own
// engine, which must render the same. Helm's engine knows no bounds and shows a chart
// that it is the one that runs it, so that only tests run it, on charts of their own.
func verified(t *testing.T, from tree, in Input) {
	t.Helper()
	c := loaded(t, from)
	if err := c.Verify(in); err != nil {
		t.Error(err)
	}
	ours, _, err := c.texts(&execution{}, in)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := helmTexts(t, c, in)
	if err != nil {
		t.Fatalf("Helm's own engine: %v", err)
	}
	if name := firstDifference(ours, theirs); name != "" {
		t.Errorf("%s: Helm's own engine renders\n%s\nand ours\n%s", name, theirs[name], ours[name])
	}
}

// helmTexts renders what is prepared for our engine with Helm's.
func helmTexts(t *testing.T, c *Chart, in Input) (map[string]string, error) {
	t.Helper()
	helm, values, err := c.prepare(in)
	if err != nil {
		t.Fatal(err)
	}
	return engine.Engine{}.Render(helm, common.Values{
		"Chart": helm.Metadata, "Capabilities": helmCapabilities(in), "Release": release(in), "Values": values,
	})
}

// helmCapabilities are what Helm would have asked the cluster for.
func helmCapabilities(in Input) *common.Capabilities {
	known := builtCapabilities()
	if version, err := newCapabilities(in.KubeVersion).KubeVersion(); err == nil {
		known.KubeVersion = *version
	}
	return known
}
