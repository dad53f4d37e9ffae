package render

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// OCM reads the annotation, whatever its value.
func TestOrphanedObjects(t *testing.T) {
	const key = "addon.open-cluster-management.io/deletion-orphan"
	cases := map[string]struct {
		reason, metadata string
		orphaned         bool
	}{
		"annotation": {"as OCM", "annotations: {" + key + `: ""}`, true},
		"false":      {"the value does not count, as in OCM", "annotations: {" + key + `: "false"}`, true},
		"label":      {"means the same", "labels: {" + key + `: ""}`, true},
		"neither":    {"goes with its work", "labels: {orphan: x}", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			desired, _ := worksFor(t, contentOf(t, "agentSpec: {workload: {manifests: [{apiVersion: example.com/v1, kind: Policy, metadata: {name: p, "+c.metadata+"}}]}}", ""))
			option := desired[0].Spec.DeleteOption
			if !c.orphaned {
				if option != nil {
					t.Errorf("%s: %+v", c.reason, option)
				}
				return
			}
			want := &workv1.DeleteOption{PropagationPolicy: "SelectivelyOrphan", SelectivelyOrphan: &workv1.SelectivelyOrphan{
				OrphaningRules: []workv1.OrphaningRule{{Group: "example.com", Resource: "policies", Name: "p"}},
			}}
			if diff := cmp.Diff(want, option); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// twoTemplates is an add-on whose placement canary gets its own template, each with different
// options.
func twoTemplates(t *testing.T) Content {
	t.Helper()
	spec := func(strategy, policy, account, rule string) string {
		return `
agentSpec:
  workload: {manifests: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}]}
  deleteOption: {propagationPolicy: ` + policy + `}
  executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: ns, name: ` + account + `}}}
  manifestConfigs:
  - resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: d}
    updateStrategy: ` + strategy + `
    feedbackRules: [{type: JSONPaths, jsonPaths: [{name: ` + rule + `, path: .status.x}]}]
`
	}
	ignore := "{type: ServerSideApply, serverSideApply: {force: true, fieldManager: agent, ignoreFields: [{condition: OnSpokeChange, jsonPaths: [.spec.replicas]}]}}"
	return Content{
		AddOn:    "hello",
		Defaults: []ConfigReference{templateReference("old")},
		Templates: []Template{
			templateOf(t, "new", spec(ignore, "Orphan", "b", "new")),
			templateOf(t, "old", spec("{type: Update}", "Foreground", "a", "old")),
		},
		Placements: []PlacementConfigs{{PlacementReference: placement("canary"), Configs: []ConfigReference{templateReference("new")}}},
	}
}

// OCM uses manifestConfigs of the add-on's default template for every cluster, and drops
// deleteOption and executor.
func TestEachClusterHasTheOptionsOfItsOwnTemplate(t *testing.T) {
	r := newRenderer(t, twoTemplates(t))
	for name, c := range map[string]struct {
		placements      []v1alpha1.PlacementReference
		policy, account string
		strategy, rule  string
	}{
		"default": {nil, "Foreground", "a", "Update", "old"},
		"canary":  {[]v1alpha1.PlacementReference{placement("canary")}, "Orphan", "b", "ServerSideApply", "new"},
	} {
		t.Run(name, func(t *testing.T) {
			rendered, err := r.Render(Cluster{Name: "cluster1", Placements: c.placements})
			if err != nil {
				t.Fatal(err)
			}
			works, _, err := rendered.Works(owner, nil)
			if err != nil {
				t.Fatal(err)
			}
			spec := works[0].Spec
			if got := string(spec.DeleteOption.PropagationPolicy); got != c.policy {
				t.Errorf("deleteOption %s, want %s", got, c.policy)
			}
			if got := spec.Executor.Subject.ServiceAccount.Name; got != c.account {
				t.Errorf("executor %s, want %s", got, c.account)
			}
			effective := effectOn(identitiesOf(works[0])[0].resource(), spec.ManifestConfigs)
			if got := string(effective.UpdateStrategy.Type); got != c.strategy {
				t.Errorf("updateStrategy %s, want %s", got, c.strategy)
			}
			if got := names([]workv1.ManifestConfigOption{effective}); !strings.HasPrefix(got, "digest ") || !strings.HasSuffix(got, " "+c.rule) {
				t.Errorf("asked: %s", got)
			}
			if ssa := effective.UpdateStrategy.ServerSideApply; c.strategy == "ServerSideApply" &&
				(!ssa.Force || ssa.FieldManager != "agent" || !slices.Equal(ssa.IgnoreFields[0].JSONPaths, []string{".spec.replicas"})) {
				t.Errorf("serverSideApply: %+v", ssa)
			}
		})
	}
}

// An update strategy that ignores annotations does not deliver the digest. The workload then
// counts with its health only, like one that is only created.
func TestIgnoredAnnotationsCarryNoDigest(t *testing.T) {
	cases := map[string]struct {
		reason, ignored string
		echoes          bool
	}{
		"replicas":       {"another writer scales", "jsonPaths: [.spec.replicas]", true},
		"annotations":    {"whole", "jsonPaths: [.metadata.annotations]", false},
		"with a root":    {"whole", "jsonPaths: ['$.metadata.annotations']", false},
		"metadata":       {"whole", "jsonPaths: [.metadata]", false},
		"every key":      {"whole", "jsonPaths: ['.metadata.annotations.*']", false},
		"one of theirs":  {"is not ours", `jsonPaths: ['.metadata.annotations.example\.com/x']`, true},
		"ours":           {"in JSONPath", `jsonPaths: ['.metadata.annotations.addonflow\.io/digest']`, false},
		"ours, bracket":  {"in JSONPath", `jsonPaths: ['.metadata.annotations["addonflow.io/digest"]']`, false},
		"a pointer":      {"whole", "jsonPointers: [/metadata/annotations]", false},
		"our pointer":    {"in JSON Pointer", "jsonPointers: [/metadata/annotations/addonflow.io~1digest]", false},
		"their pointer":  {"is not ours", "jsonPointers: [/metadata/labels]", true},
		"a jq path":      {"whole", "jqPathExpressions: [.metadata.annotations]", false},
		"another entry":  {"of several", "jsonPaths: [.spec.replicas]}, {condition: OnSpokeChange, jsonPaths: [.metadata.annotations]", false},
		"labels, of jq":  {"are not annotations", "jqPathExpressions: [.metadata.labels]", true},
		"no field named": {"ignores nothing", "jsonPaths: []", true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := askedFor(t, "Deployment", "{}", `[{resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: w},
				updateStrategy: {type: ServerSideApply, serverSideApply: {ignoreFields: [{condition: OnSpokePresent, `+c.ignored+`}]}}}]`)
			if got := strings.HasPrefix(names(asked), "digest "); got != c.echoes {
				t.Errorf("%s: the digest is asked: %v", c.reason, got)
			}
		})
	}
}

// A changed or added object leaves the other objects in their works, at their positions,
// whatever the template's order.
func TestObjectsStayInTheirWorks(t *testing.T) {
	const third = workRoom / 3
	first, _ := worksFor(t, contentOf(t, configMaps(third, "a", "b", "c", "d"), ""))
	if len(first) != 2 {
		t.Fatalf("%d works", len(first))
	}
	where := func(works []*workv1.ManifestWork) map[string]string {
		out := map[string]string{}
		for _, w := range works {
			for i, id := range identitiesOf(w) {
				out[id.Name] = w.Name + "/" + string(rune('0'+i))
			}
		}
		return out
	}
	before := where(first)
	again, remove := worksFor(t, contentOf(t, configMaps(third+10, "e", "d", "c", "b", "a"), ""), first...)
	if len(remove) > 0 {
		t.Errorf("removed: %v", remove)
	}
	after := where(again)
	for name, place := range before {
		if after[name] != place {
			t.Errorf("%s moved from %s to %s: the managed cluster would delete it and create it again", name, place, after[name])
		}
	}
	if after["e"] == "" {
		t.Error("the new object is nowhere")
	}
}

// FuzzOptions: the texts of a cluster and of a configuration are read or refused; an image stays an image.
func FuzzOptions(f *testing.F) {
	f.Add(`{"registries":[{"source":"quay.io/a","mirror":"mirror.example/a"}]}`, "quay.io/a/b:1", "deployments:hello:*", `{"replicas":2}`)
	f.Add(`{"registries":[{"source":"","mirror":"m/"}]}`, "x", "a:b", "[]")
	f.Fuzz(func(t *testing.T, registries, image, container, values string) {
		if mirrors, err := parseImageRegistries(registries); err != nil {
			if !errors.Is(err, ErrInvalidImageRegistries) {
				t.Errorf("%q: %v", registries, err)
			}
		} else if got := mirrored(image, mirrors); image != "" && got == "" || len(mirrors) == 0 && got != image {
			t.Errorf("%q is %q with %q", image, got, registries)
		}
		if pattern, err := containerPattern(container); err == nil && pattern.MatchString("") {
			t.Errorf("%q matches nothing at all", container)
		}
		if read, err := parseValues(values); err != nil && !errors.Is(err, ErrInvalidValues) || err == nil && values != "" && values != "null" && read == nil {
			t.Errorf("%q: %v, %v", values, read, err)
		}
	})
}
