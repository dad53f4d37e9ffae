package render

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
	"github.com/addonflow/addonflow/render/variable"
)

// assignments is an add-on whose placements assign different configurations.
func assignments(t *testing.T) Content {
	t.Helper()
	other := ConfigReference{Group: "example.com", Resource: "things", Namespace: "default", Name: "thing"}
	return Content{
		AddOn: "hello",
		Templates: []Template{
			templateOf(t, "v1", echo("v1 {{WHO}}", "")), templateOf(t, "v2", echo("v2 {{WHO}}", "")),
		},
		Configs: []Config{
			agentOf(t, "a", "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: a}]}"),
			agentOf(t, "b", "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: b}]}"),
			{ConfigReference: other, SpecHash: "hash-of-thing", Body: map[string]any{}},
		},
		Defaults: []ConfigReference{agentReference("a"), templateReference("v1"), other},
		Placements: []PlacementConfigs{
			{PlacementReference: placement("canary"), Configs: []ConfigReference{templateReference("v2")}},
			{PlacementReference: placement("two"), Configs: []ConfigReference{agentReference("b"), agentReference("a"), agentReference("b")}},
		},
	}
}

func TestAssignment(t *testing.T) {
	cases := map[string]struct {
		reason     string
		placements []v1alpha1.PlacementReference
		text       string
		configs    []string
	}{
		"outside":               {"every placement: defaults", nil, "v1 a", []string{"a", "v1", "thing"}},
		"placement":             {"over defaults, of its kind only", []v1alpha1.PlacementReference{placement("canary")}, "v2 a", []string{"a", "v2", "thing"}},
		"several":               {"the first is read, all are listed once", []v1alpha1.PlacementReference{placement("two")}, "v1 b", []string{"b", "a", "v1", "thing"}},
		"later_wins":            {"wholesale", []v1alpha1.PlacementReference{placement("canary"), placement("two")}, "v1 b", []string{"b", "a", "v1", "thing"}},
		"later_without_configs": {"wins, too, and leaves the defaults", []v1alpha1.PlacementReference{placement("canary"), placement("everyone")}, "v1 a", []string{"a", "v1", "thing"}},
	}
	r := newRenderer(t, assignments(t))
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			expectAssigned(t, r, Cluster{Name: "cluster1", Placements: c.placements}, c.reason, c.text, c.configs)
		})
	}
}

// expectAssigned renders a cluster twice, the second time from what is shared, and compares the
// text of its first object and the names of its configurations with the expected ones.
func expectAssigned(t *testing.T, r *Renderer, cluster Cluster, reason, text string, names []string) Inputs {
	t.Helper()
	inputs, err := r.Inputs(cluster)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		rendered, err := r.Render(cluster)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := rendered.Objects()
		if err != nil {
			t.Fatal(err)
		}
		if got := rendertest.At(objects[0].Object, "data", "text"); got != text {
			t.Errorf("%s: got %v, want %s", reason, got, text)
		}
		if diff := cmp.Diff(rendered.ConfigReferences, inputs.Configs); diff != "" {
			t.Errorf("Render and Inputs differ:\n%s", diff)
		}
	}
	var got []string
	for _, config := range inputs.Configs {
		got = append(got, config.Name)
	}
	if diff := cmp.Diff(names, got); diff != "" {
		t.Errorf("%s: configurations (-want +got):\n%s", reason, diff)
	}
	return inputs
}

func TestConfigurationsOfTheClusterOutrankOthers(t *testing.T) {
	r := newRenderer(t, assignments(t))
	own := agentOf(t, "own", "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: own}]}")
	shadow := agentOf(t, "a", "{agentInstallNamespace: '', customizedVariables: [{name: WHO, value: changed}]}")
	shadow.SpecHash = "hash-of-changed"
	template := Config{ConfigReference: templateReference("v9"), SpecHash: "hash-of-v9", Body: map[string]any{"spec": rendertest.Fields(t, echo("v9 {{WHO}}", ""))}}
	cases := map[string]struct {
		reason  string
		configs []Config
		text    string
		names   []string
	}{
		"config":   {"over the placement's", []Config{own}, "v2 own", []string{"own", "v2", "thing"}},
		"template": {"over the placement's", []Config{template}, "v9 a", []string{"a", "v9", "thing"}},
		"shadow":   {"the hub's object counts, not the content's of that name", []Config{shadow}, "v2 changed", []string{"a", "v2", "thing"}},
		"several":  {"the first is read", []Config{own, shadow, own}, "v2 own", []string{"own", "a", "v2", "thing"}},
	}
	keys := map[string]string{}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cluster := Cluster{Name: "cluster1", Placements: []v1alpha1.PlacementReference{placement("canary")}, Configs: c.configs}
			inputs := expectAssigned(t, r, cluster, c.reason, c.text, c.names)
			if other, ok := keys[inputs.Key]; ok {
				t.Errorf("key is that of %s", other)
			}
			keys[inputs.Key] = name
		})
	}
}

func TestKey(t *testing.T) {
	key := func(t *testing.T, change func(*Content, *Cluster)) string {
		t.Helper()
		content, cluster := assignments(t), Cluster{Name: "cluster1"}
		change(&content, &cluster)
		inputs, err := newRenderer(t, content).Inputs(cluster)
		if err != nil {
			t.Fatal(err)
		}
		return inputs.Key
	}
	base := key(t, func(*Content, *Cluster) {})
	const annotation = `{"registries":[]}`
	cases := map[string]struct {
		reason string
		change func(*Content, *Cluster)
		equal  bool
	}{
		"nothing":          {"is nothing", func(*Content, *Cluster) {}, true},
		"another name":     {"of the cluster", func(_ *Content, c *Cluster) { c.Name = "cluster2" }, true},
		"other placement":  {"assigns other clusters something", func(c *Content, _ *Cluster) { c.Placements = nil }, true},
		"unused template":  {"is not read here", func(c *Content, _ *Cluster) { c.Templates[1].Spec = map[string]any{} }, true},
		"template":         {"changed", func(c *Content, _ *Cluster) { c.Templates[0].Spec["addonName"] = "x" }, false},
		"template hash":    {"is in the works' annotation", func(c *Content, _ *Cluster) { c.Templates[0].SpecHash = "x" }, false},
		"typed variable":   {"renders otherwise", func(c *Content, _ *Cluster) { c.Templates[0].Typed = map[string]string{"WHO": variable.TypeBoolean} }, false},
		"agent config":     {"changed", func(c *Content, _ *Cluster) { c.Configs[0].SpecHash = "x" }, false},
		"other kind":       {"is in the works' annotation", func(c *Content, _ *Cluster) { c.Configs[2].SpecHash = "x" }, false},
		"one default less": {"is in the works' annotation", func(c *Content, _ *Cluster) { c.Defaults = c.Defaults[:2] }, false},
		"registries":       {"are an input", func(_ *Content, c *Cluster) { c.ImageRegistries = annotation }, false},
		"add-on":           {"names secrets", func(c *Content, _ *Cluster) { c.AddOn = "other" }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := key(t, c.change) == base; got != c.equal {
				t.Errorf("%s: equal %t, want %t", c.reason, got, c.equal)
			}
		})
	}
}

func TestKeyIgnoresRegistriesThatTheConfigurationOutranks(t *testing.T) {
	r := newRenderer(t, contentOf(t, echo("x", ""), "{agentInstallNamespace: '', registries: []}"))
	a, errA := r.Inputs(Cluster{Name: "c"})
	b, errB := r.Inputs(Cluster{Name: "c", ImageRegistries: "not even JSON"})
	if err := errors.Join(errA, errB); err != nil || a.Key != b.Key {
		t.Errorf("keys %q and %q, error %v", a.Key, b.Key, err)
	}
	if _, err := r.Render(Cluster{Name: "c", ImageRegistries: "not even JSON"}); err != nil {
		t.Errorf("the annotation is read: %v", err)
	}
}

func TestErrors(t *testing.T) {
	var invalid *InvalidError
	noTemplate := contentOf(t, echo("x", ""), "")
	noTemplate.Defaults = nil
	if _, err := newRenderer(t, noTemplate).Render(Cluster{Name: "c"}); !errors.As(err, &invalid) || invalid.Findings[0].Reason != flaw.ReasonReferenceNotFound {
		t.Errorf("no template: got %v", err)
	}
	noHash := contentOf(t, echo("x", ""), "")
	noHash.Templates[0].SpecHash = ""
	if _, err := newRenderer(t, noHash).Render(Cluster{Name: "c"}); !errors.As(err, &invalid) {
		t.Errorf("empty hash: got %v", err)
	}
	missing := contentOf(t, echo("x", ""), "")
	missing.Defaults = append(missing.Defaults, agentReference("gone"))
	if _, err := newRenderer(t, missing).Render(Cluster{Name: "c"}); !errors.As(err, &invalid) {
		t.Errorf("missing configuration: got %v", err)
	}
	good := newRenderer(t, contentOf(t, echo("x", ""), ""))
	if _, err := good.Render(Cluster{Name: "c", ImageRegistries: "{"}); !errors.Is(err, ErrInvalidImageRegistries) {
		t.Errorf("annotation: got %v", err)
	}
	if _, err := good.Render(Cluster{Name: "c", ImageRegistries: `{"registries":[{"mirror":"\u0000"}]}`}); !errors.Is(err, ErrInvalidImageRegistries) {
		t.Errorf("NUL in the annotation: got %v", err)
	}
	if _, err := good.Render(Cluster{}); !errors.Is(err, ErrNoClusterName) {
		t.Errorf("no name: got %v", err)
	}
	if _, err := good.Render(Cluster{Name: "c"}); err != nil {
		t.Errorf("another cluster suffers: %v", err)
	}
	if _, err := NewRenderer(Content{}, chart.InProcess{}); err == nil {
		t.Error("content without a name is accepted")
	}
}

func TestRenderingChangesNoContent(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	before := encoded(t, content)
	r := newRenderer(t, content)
	for _, name := range []string{"a", "b"} {
		rendered, err := r.Render(Cluster{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := rendered.Works(Owner{Name: "hello", Namespace: name}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if encoded(t, content) != before {
		t.Error("content was changed")
	}
	if slices.ContainsFunc(r.Check(), func(Finding) bool { return true }) {
		t.Errorf("findings: %v", r.Check())
	}
}
