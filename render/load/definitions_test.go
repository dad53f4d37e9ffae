package load

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/rendertest"
)

// withRegion is the add-on hello with a configuration of a user-defined kind.
func withRegion(t *testing.T, spec string) tree {
	t.Helper()
	return hello().
		edited(t, addOnFile, "  installStrategy:", "  - {group: example.com, resource: regions, defaultConfig: {namespace: hello, name: home}}\n  installStrategy:").
		edited(t, templateFile, "  name: hello\n", "  name: hello\n  annotations:\n    addonflow.io/config-variables: LEVEL=regions.example.com{.spec.level}\n").
		edited(t, templateFile, "--cluster={{CLUSTER_NAME}}", "--level={{LEVEL}}").
		with("region.yaml", "apiVersion: example.com/v1\nkind: Region\nmetadata: {name: home, namespace: hello}\nspec: "+spec+"\n")
}

func regionsReference() Reference {
	return DefinitionOf(schema.GroupResource{Group: "example.com", Resource: "regions"})
}

// definedBy returns a lookup that finds the definition, or reports that there is none.
func definedBy(t *testing.T, text string) Lookup {
	t.Helper()
	if text == "" {
		return Lookup{regionsReference(): nil}
	}
	return Lookup{regionsReference(): &unstructured.Unstructured{Object: rendertest.Fields(t, text)}}
}

// regionHash is the hash of the configuration in the content.
func regionHash(t *testing.T, c Commit) string {
	t.Helper()
	for _, config := range c.AddOns[0].Content.Configs {
		if config.Resource == "regions" {
			return config.SpecHash
		}
	}
	t.Fatal("the configuration is not content")
	return ""
}

// TestAnyKindIsHashedAsStored: with its definition an object of a user-defined kind is hashed,
// and read by variables, as the hub stores it. Writing a default out does not change the
// content.
func TestAnyKindIsHashedAsStored(t *testing.T) {
	hub := definedBy(t, rendertest.RegionsDefinition)
	short := load(t, withRegion(t, "{zone: a, free: {x: {}}}"), hub)
	written := load(t, withRegion(t, "{zone: a, level: info, free: {x: {}}}"), hub)
	if short.AddOns[0].Digest != written.AddOns[0].Digest || short.AddOns[0].Digest == "" {
		t.Errorf("a default that is written is other content: %s and %s", short.AddOns[0].Digest, written.AddOns[0].Digest)
	}
	stored, err := render.SpecHash(&unstructured.Unstructured{Object: rendertest.Fields(t, "{spec: {zone: a, level: info, free: {x: {}}}}")})
	if err != nil {
		t.Fatal(err)
	}
	if got := regionHash(t, short); got != stored {
		t.Errorf("hashed as %s, the stored object has %s", got, stored)
	}
	if len(short.Undefined) > 0 {
		t.Errorf("undefined are %v", short.Undefined)
	}
}

// TestObjectInAnotherServedVersionGetsStoredDefaults: an object in a served version other than the stored one gets the
// defaults of the stored version, unless a webhook converts it.
func TestObjectInAnotherServedVersionGetsStoredDefaults(t *testing.T) {
	const beta = "  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	const webhook = "  conversion: {strategy: Webhook}\n"
	commit := withRegion(t, "{zone: a}").edited(t, "region.yaml", "example.com/v1", "example.com/v1beta1").
		edited(t, templateFile, "{.spec.level}", "{.spec.zone}")
	for conversion, spec := range map[string]string{"": "{zone: a, level: info}", webhook: "{zone: a}"} {
		want, err := render.SpecHash(&unstructured.Unstructured{Object: rendertest.Fields(t, "{spec: "+spec+"}")})
		if err != nil {
			t.Fatal(err)
		}
		if got := regionHash(t, load(t, commit, definedBy(t, rendertest.RegionsDefinition+beta+conversion))); got != want {
			t.Errorf("conversion %q: hashed as %s, the stored object has %s", conversion, got, want)
		}
	}
}

// TestUndefinedKinds: a caller that reads definitions gets the missing ones; for any other
// caller, and if the hub has none, the objects are taken as declared.
func TestUndefinedKinds(t *testing.T) {
	commit := withRegion(t, "{zone: a, level: debug}")
	asks, problems := Load(commit.objects(t), Lookup{}, Options{AsksDefinitions: true})
	if diff := cmp.Diff([]Reference{regionsReference()}, asks.Missing); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, missing (-want +got):\n%s", problems, diff)
	}
	offline := load(t, commit, nil)
	if diff := cmp.Diff([]Reference{regionsReference()}, offline.Undefined); diff != "" || len(offline.Missing) > 0 {
		t.Errorf("missing %v, undefined (-want +got):\n%s", offline.Missing, diff)
	}
	none, problems := Load(commit.objects(t), definedBy(t, ""), Options{AsksDefinitions: true})
	if len(problems) > 0 || len(none.Missing) > 0 || none.AddOns[0].Digest != offline.AddOns[0].Digest {
		t.Errorf("a kind without a definition: problems %v, missing %v", problems, none.Missing)
	}
	// If the value equals the default, all three agree.
	if known := load(t, commit, definedBy(t, rendertest.RegionsDefinition)); known.AddOns[0].Digest != offline.AddOns[0].Digest {
		t.Error("the content depends on the caller")
	}
}

// TestAnyKindIsCheckedByItsDefinition: what the hub would refuse or drop is reported with its
// line.
func TestAnyKindIsCheckedByItsDefinition(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"unknown": {"{zone: a, levl: debug}", "region.yaml:4: Region/home: spec.levl: unknown field; did you mean level?"},
		"type":    {"{zone: 7}", "region.yaml:4: Region/home: spec.zone: must be a string; quote it"},
		"bound":   {"{size: 10}", "region.yaml:4: Region/home: spec.size: should be less than or equal to 9"},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := Load(withRegion(t, c.spec).objects(t), definedBy(t, rendertest.RegionsDefinition), Options{Charts: chart.InProcess{}})
			if len(problems) != 1 || problems[0].String() != c.want {
				t.Errorf("got %v, want %s", problems, c.want)
			}
		})
	}
}
