package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// versions is an add-on with templates of two versions and an AddOnHubConfig for each, the
// first as the default and the second for the canaries.
func versions() tree {
	const template = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: hello-VERSION, labels: {addonflow.io/version: VERSION}}
spec:
  addonName: hello
  agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: x}, data: {version: VERSION}}]}}
`
	const config = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnHubConfig
metadata: {name: hub-VERSION}
spec: {desiredVersion: VERSION}
`
	return tree{
		"v1.yaml":     strings.ReplaceAll(template, "VERSION", "v1"),
		"v2.yaml":     strings.ReplaceAll(template, "VERSION", "v2"),
		"hub-v1.yaml": strings.ReplaceAll(config, "VERSION", "v1"),
		"hub-v2.yaml": strings.ReplaceAll(config, "VERSION", "v2"),
		"addon.yaml": `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates}
  - {group: addon.open-cluster-management.io, resource: addonhubconfigs, defaultConfig: {name: hub-v1}}
  installStrategy:
    type: Placements
    placements:
    - {namespace: default, name: all}
    - namespace: default
      name: canary
      configs:
      - {group: addon.open-cluster-management.io, resource: addonhubconfigs, name: hub-v2}
`,
	}
}

func TestHubConfigSelectsTheTemplate(t *testing.T) {
	r := newRenderer(t, load(t, versions(), nil).AddOns[0].Content)
	hub := render.ConfigReference{Group: addonGroup, Resource: render.HubConfigResource, Name: "hub-live"}
	own := func(version string) []render.Config {
		return []render.Config{{ConfigReference: hub, SpecHash: "hash-of-" + version, Body: map[string]any{"spec": map[string]any{"desiredVersion": version}}}}
	}
	template := render.Config{ConfigReference: render.ConfigReference{Group: addonGroup, Resource: render.TemplateResource, Name: "mine"}, SpecHash: "hash", Body: map[string]any{"spec": rendertest.Fields(t, "agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: echo, namespace: default}, data: {text: mine}}]}}")}}
	cases := map[string]struct {
		reason   string
		cluster  render.Cluster
		template string
		configs  []string
		says     string
	}{
		"default":    {"the default version", render.Cluster{}, "hello-v1", []string{"hub-v1", "hello-v1"}, ""},
		"placement":  {"a placement's goes over it", render.Cluster{Placements: []v1alpha1.PlacementReference{{Namespace: "default", Name: "canary"}}}, "hello-v2", []string{"hub-v2", "hello-v2"}, ""},
		"own":        {"and a cluster's own over both", render.Cluster{Configs: own("v2")}, "hello-v2", []string{"hub-live", "hello-v2"}, ""},
		"template":   {"a template named at a more specific level wins", render.Cluster{Configs: []render.Config{template}}, "mine", []string{"mine"}, ""},
		"none":       {"a version without a template", render.Cluster{Configs: own("v3")}, "", nil, `no AddOnTemplate of add-on "hello" has the label addonflow.io/version=v3`},
		"same level": {"either selects the template", render.Cluster{Configs: append(own("v2"), template)}, "mine", nil, `AddOnTemplate "mine" and AddOnHubConfig "hub-live" are named at the same level`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.cluster.Name = "cluster1"
			rendered, err := r.Render(c.cluster)
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("%s: got %v, want %q", c.reason, err, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, reference := range rendered.ConfigReferences {
				names = append(names, reference.Name)
			}
			if rendered.Template != c.template || !cmp.Equal(names, c.configs) {
				t.Errorf("%s: template %s of %v, want %s of %v", c.reason, rendered.Template, names, c.template, c.configs)
			}
		})
	}
}

func TestBadHubConfig(t *testing.T) {
	const config = "addon.open-cluster-management.io, resource: addonhubconfigs"
	cases := map[string]struct {
		reason string
		commit tree
		want   []complaint
	}{
		"none":            {"no template has the version", versions().edited(t, "hub-v1.yaml", "spec: {desiredVersion: v1}", "spec: {desiredVersion: v9}"), one(flaw.ReasonReferenceNotFound, "hub-v1.yaml", "AddOnHubConfig/hub-v1: spec.desiredVersion", "addonflow.io/version=v9")},
		"two":             {"which of them is not said", versions().edited(t, "v1.yaml", "{addonflow.io/version: v1}", "{addonflow.io/version: v2}").edited(t, "addon.yaml", ", defaultConfig: {name: hub-v1}", ", defaultConfig: {name: hub-v2}"), one(flaw.ReasonInvalidReference, "hub-v2.yaml", "hello-v1 and hello-v2 have the label")},
		"same level":      {"both select the template", versions().edited(t, "addon.yaml", "resource: addontemplates}", "resource: addontemplates, defaultConfig: {name: hello-v1}}"), one(flaw.ReasonInvalidReference, "addon.yaml", "spec.supportedConfigs[1].defaultConfig", "named at the same level")},
		"two in one":      {"only the first would count", versions().edited(t, "addon.yaml", "name: hub-v2}", "name: hub-v2}\n      - {group: "+config+", name: hub-v1}"), one(flaw.ReasonInvalidReference, "addon.yaml", `already`)},
		"with namespace":  {"it is cluster-scoped", versions().edited(t, "addon.yaml", "name: hub-v2}", "name: hub-v2, namespace: x}"), one(flaw.ReasonInvalidReference, "addon.yaml", "an AddOnHubConfig is cluster-scoped")},
		"empty version":   {"it selects nothing", versions().edited(t, "hub-v1.yaml", "desiredVersion: v1", `desiredVersion: ""`), one(flaw.ReasonInvalidConfig, "hub-v1.yaml", "spec.desiredVersion")},
		"label elsewhere": {"only a template has a version", versions().edited(t, "hub-v1.yaml", "{name: hub-v1}", "{name: hub-v1, labels: {addonflow.io/version: v1}}"), one(flaw.ReasonInvalidManifest, "hub-v1.yaml", "is for an AddOnTemplate")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { badInput{name, c.commit, c.want}.check(t) })
	}
}
