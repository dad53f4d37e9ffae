package chart

import (
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/engine"
)

// verified compares a chart's rendering with one in another order of its maps, and with that of
// Helm's own engine; they must be equal. Helm's engine has no limits and shows charts which
// engine runs them, so only tests run it, on their own charts.
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

// helmTexts renders the prepared chart with Helm's engine.
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

// helmCapabilities are what Helm would ask the cluster for.
func helmCapabilities(in Input) *common.Capabilities {
	known := builtCapabilities()
	if version, err := newCapabilities(in.KubeVersion).KubeVersion(); err == nil {
		known.KubeVersion = *version
	}
	return known
}
