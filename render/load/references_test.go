package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

var (
	missingTemplate = Reference{Group: addonGroup, Resource: render.TemplateResource, Name: "hello"}
	missingConfig   = Reference{Group: addonGroup, Resource: render.AgentConfigResource, Namespace: "hello", Name: "agent"}
)

// live is a declared document as a hub would serve it.
func live(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := normalised(t, text)
	object.SetUID("4711")
	object.SetResourceVersion("42")
	object.SetManagedFields(nil)
	object.SetGeneration(3)
	return object
}

func TestLoadMissing(t *testing.T) {
	full := hello()
	without := full.with(templateFile, "").with(configFile, "")
	want := []Reference{missingConfig, missingTemplate}
	cases := map[string]struct {
		reason string
		hub    Lookup
	}{
		"NotAsked":    {"Missing lists what to read", nil},
		"KnownAbsent": {"what the hub does not have either stays missing and is waited for", Lookup{missingTemplate: nil, missingConfig: nil}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			commit := load(t, without, c.hub)
			if diff := cmp.Diff(want, commit.Missing); diff != "" {
				t.Errorf("%s: missing (-want +got):\n%s", c.reason, diff)
			}
			addOn := commit.AddOns[0]
			if addOn.Digest != "" || addOn.Content.AddOn != "" || len(addOn.Missing) != 2 || addOn.Install.Type == "" || addOn.Rollout == nil {
				t.Errorf("an add-on that is not complete has policy, and neither content nor digest: %+v", addOn)
			}
		})
	}
}

func TestLoadFromHub(t *testing.T) {
	full := hello()
	without := full.with(templateFile, "").with(configFile, "")
	want := digestOf(t, full)
	beta := func(text string) string { return strings.Replace(text, "v1alpha1", "v1beta1", 1) }
	cases := map[string]Lookup{
		"AsStored": {missingTemplate: live(t, full[templateFile]), missingConfig: live(t, full[configFile])},
		"KindLeftOut": {
			Reference{Group: addonGroup, Resource: render.TemplateResource, Name: "hello"}: live(t, full[templateFile]),
			missingConfig: live(t, full[configFile]),
		},
		"ServedInBeta": {
			missingTemplate: live(t, full[templateFile]),
			missingConfig:   document(t, "", beta(full[configFile])).GetUnstructured(),
		},
	}
	for name, hub := range cases {
		t.Run(name, func(t *testing.T) {
			commit := load(t, without, hub)
			if len(commit.Missing) > 0 || commit.AddOns[0].Digest != want {
				t.Errorf("digest is %s, missing %v; where an object comes from is not content: want %s", commit.AddOns[0].Digest, commit.Missing, want)
			}
		})
	}
}

// TestLoadBadFromHub: a flaw of an object on the hub is reported where the commit refers to it.
func TestLoadBadFromHub(t *testing.T) {
	full := hello()
	bad := live(t, full[configFile])
	variables := []any{map[string]any{"name": "CLUSTER_NAME", "value": "x"}}
	if err := unstructured.SetNestedSlice(bad.Object, variables, "spec", "customizedVariables"); err != nil {
		t.Fatal(err)
	}
	_, problems := Load(full.with(configFile, "").objects(t), Lookup{missingConfig: bad}, Options{Charts: chart.InProcess{}})
	want := complaint{flaw.ReasonReservedVariable, addOnFile, []string{
		"spec.installStrategy.placements[0].configs[0]", `AddOnDeploymentConfig "agent" on the hub: spec.customizedVariables[0].name`,
	}}
	if len(problems) != 1 || !want.matches(problems[0]) {
		t.Errorf("problems:\n%v", problems)
	}
	unresolved := live(t, full[configFile])
	unstructured.RemoveNestedField(unresolved.Object, "spec", "customizedVariables")
	_, problems = Load(full.with(templateFile, "").objects(t), Lookup{missingTemplate: live(t, strings.ReplaceAll(full[templateFile], "GREETING", "GRETING"))}, Options{Charts: chart.InProcess{}})
	want = complaint{flaw.ReasonUnresolvedVariable, addOnFile, []string{`addontemplates "hello" on the hub: spec.agentSpec.workload.manifests[1].data.greeting`, "GRETING"}}
	if len(problems) != 2 || !want.matches(problems[0]) && !want.matches(problems[1]) {
		t.Errorf("problems:\n%v", problems)
	}
}

func TestLoadReportsEverything(t *testing.T) {
	commit := hello().edited(t, configFile, "customizedVariables", "customisedVariables").
		edited(t, templateFile, "type: KubeClient", "type: Oidc").
		edited(t, rolloutFile, "10m", "5d").
		edited(t, addOnFile, "minSuccessTime: 1h30m", "minSuccessTime: 5").
		edited(t, lookFile, "spec: {}", "spec: {}\nstaus: {}").
		with("x.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: y}\n")
	_, problems := Load(commit.objects(t), nil, Options{Charts: chart.InProcess{}})
	var paths []string
	for _, p := range problems {
		paths = append(paths, p.Path)
	}
	want := []string{configFile, rolloutFile, templateFile, addOnFile, lookFile, "x.yaml", templateFile, templateFile} // the last two follow from the others
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Errorf("files with a problem (-want +got):\n%s\n%v", diff, problems)
	}
}

func TestLoadBetaAddOn(t *testing.T) {
	const supported = "  supportedConfigs:\n  - group: addon.open-cluster-management.io\n    resource: addontemplates\n    defaultConfig: {name: hello}\n"
	const defaults = "  defaultConfigs:\n  - group: addon.open-cluster-management.io\n    resource: addontemplates\n    name: hello\n"
	beta := hello().edited(t, addOnFile, supported, defaults).
		edited(t, addOnFile, "    resource: addondeploymentconfigs\n", "    resource: addondeploymentconfigs\n    name: __reserved_no_default__\n").
		edited(t, addOnFile, "management.io/v1alpha1\nkind", "management.io/v1beta1\nkind")
	if digestOf(t, beta) != digestOf(t, hello()) {
		t.Error("the version of a ClusterManagementAddOn changes the digest")
	}
	t.Run("positions", func(t *testing.T) {
		_, problems := Load(beta.edited(t, addOnFile, "    name: hello\n", "    name: hello\n    namespace: hello\n").objects(t), nil, Options{Charts: chart.InProcess{}})
		want := complaint{flaw.ReasonInvalidReference, addOnFile, []string{"spec.defaultConfigs[0].namespace", "cluster-scoped"}}
		if len(problems) != 1 || !want.matches(problems[0]) {
			t.Errorf("problems:\n%v", problems)
		}
	})
}

// TestLoadOtherConfigurations loads configurations of kinds that rendering does not read: they
// are content, because OCM's hash of them is on the works.
func TestLoadOtherConfigurations(t *testing.T) {
	commit := hello().
		edited(t, addOnFile, "  installStrategy:", "  - resource: configmaps\n    defaultConfig: {namespace: hello, name: settings}\n  - {group: example.com, resource: things}\n  installStrategy:").
		edited(t, addOnFile, "      rolloutStrategy:", "      - {group: example.com, resource: things, name: b}\n      - {group: example.com, resource: things, name: a}\n      - {group: example.com, resource: things, name: b}\n      rolloutStrategy:").
		with("settings.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: hello}\ndata: {a: b}\n").
		with("a.yaml", "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {size: 1}\n").
		with("b.yaml", "apiVersion: example.com/v2\nkind: Thing\nmetadata: {name: b}\nspec: {size: 2}\n")
	loaded := load(t, commit, nil)
	if len(loaded.Missing) > 0 {
		t.Fatalf("missing %v", loaded.Missing)
	}
	content := loaded.AddOns[0].Content
	var kinds []string
	for _, c := range content.Configs {
		kinds = append(kinds, c.APIVersion+" "+c.Kind+" "+c.Name)
	}
	wantKinds := []string{"v1 ConfigMap settings", "addon.open-cluster-management.io/v1alpha1 AddOnDeploymentConfig agent", "example.com/v1 Thing a", "example.com/v2 Thing b"}
	if diff := cmp.Diff(wantKinds, kinds); diff != "" {
		t.Errorf("configs sorted by reference (-want +got):\n%s", diff)
	}
	wantAssigned := []render.ConfigReference{
		{Group: addonGroup, Resource: render.AgentConfigResource, Namespace: "hello", Name: "agent"},
		{Group: "example.com", Resource: "things", Name: "b"},
		{Group: "example.com", Resource: "things", Name: "a"},
	}
	if diff := cmp.Diff(wantAssigned, content.Placements[0].Configs); diff != "" {
		t.Errorf("assigned as declared, once each (-want +got):\n%s", diff)
	}
	if got := len(loaded.Objects); got != 8 {
		t.Errorf("%d objects to apply, want 8", got)
	}
}

func TestLoadWithoutItsPlacement(t *testing.T) {
	if commit := load(t, hello().with(lookFile, ""), nil); len(commit.Missing) > 0 || commit.AddOns[0].Digest == "" {
		t.Errorf("a missing Placement removes no cluster and stops no commit: missing %v", commit.Missing)
	}
}

func TestLoadTypedVariables(t *testing.T) {
	typed := hello().edited(t, templateFile, "  name: hello\n", "  name: hello\n  annotations: {addonflow.io/typed-variables: REPLICAS=integer}\n").
		edited(t, templateFile, "replicas: 1", `replicas: "{{REPLICAS}}"`).
		edited(t, configFile, "  - name: GREETING", "  - {name: REPLICAS, value: '3'}\n  - name: GREETING")
	template := load(t, typed, nil).AddOns[0].Content.Templates[0]
	if diff := cmp.Diff(map[string]string{"REPLICAS": "integer"}, template.Typed); diff != "" {
		t.Errorf("typed variables (-want +got):\n%s", diff)
	}
	_, problems := Load(typed.edited(t, templateFile, "REPLICAS=integer", "REPLICAS=int").objects(t), nil, Options{Charts: chart.InProcess{}})
	want := complaint{flaw.ReasonInvalidTemplate, templateFile, []string{"metadata.annotations[addonflow.io/typed-variables]"}}
	if len(problems) != 1 || !want.matches(problems[0]) {
		t.Errorf("problems:\n%v", problems)
	}
}

func TestLoadManualKeepsThePace(t *testing.T) {
	manual := hello().edited(t, addOnFile, "type: Placements", "type: Manual").
		edited(t, addOnFile, "addondeploymentconfigs\n", "addondeploymentconfigs\n    defaultConfig: {namespace: hello, name: agent}\n")
	install := load(t, manual, nil).AddOns[0].Install
	if install.Type != addonv1alpha1.AddonInstallStrategyManual || len(install.Placements) != 1 || install.Placements[0].PlacementReference != (v1alpha1.PlacementReference{Namespace: "hello", Name: "everyone"}) {
		t.Errorf("install is %+v, want Manual with the placement as written", install)
	}
}

func TestLoadTwoRolloutsForOneAddOn(t *testing.T) {
	_, problems := Load(hello().edited(t, rolloutFile, "{name: hello}", "{name: hello, namespace: a}").
		with("z.yaml", "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello, namespace: b}\n").objects(t), nil, Options{Charts: chart.InProcess{}})
	want := complaint{flaw.ReasonDuplicateObject, "z.yaml", []string{"is declared in " + rolloutFile}}
	if len(problems) != 1 || !want.matches(problems[0]) {
		t.Errorf("problems:\n%v", problems)
	}
}

func TestLoadChangesNoInput(t *testing.T) {
	objects := hello().edited(t, configFile, "v1alpha1", "v1beta1").objects(t)
	before := map[Located]*unstructured.Unstructured{}
	for _, o := range objects {
		before[o] = o.GetUnstructured().DeepCopy()
	}
	if _, problems := Load(objects, nil, Options{Charts: chart.InProcess{}}); len(problems) > 0 {
		t.Fatal(problems)
	}
	for o, was := range before {
		if diff := cmp.Diff(was.Object, o.GetUnstructured().Object); diff != "" {
			t.Errorf("an input was changed (-before +after):\n%s", diff)
		}
	}
}

// BenchmarkLoad is a commit of 50 add-ons.
func BenchmarkLoad(b *testing.B) {
	commit := tree{}
	for i := range 50 {
		name := "hello-" + strings.Repeat("a", i+1)
		for path, text := range hello() {
			if path == spaceFile || path == lookFile {
				commit[path] = text
				continue
			}
			text = strings.NewReplacer("  name: hello\n", "  name: "+name+"\n", "{name: hello}", "{name: "+name+"}", "addonName: hello", "addonName: "+name,
				"name: agent,", "name: "+name+",", "name: agent}", "name: "+name+"}", "hello-settings", name+"-settings", "hello-agent, n", name+"-agent, n").Replace(text)
			commit[name+path] = text
		}
	}
	objects := commit.objects(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Load(objects, nil, Options{Charts: chart.InProcess{}}); len(problems) > 0 {
			b.Fatal(problems)
		}
	}
}

// FuzzLoad replaces each object of a valid commit by any YAML. Loading never panics and is
// deterministic, and everything that it accepts is its own normal form.
func FuzzLoad(f *testing.F) {
	for _, text := range hello() {
		f.Add(text)
	}
	f.Add("apiVersion: addon.open-cluster-management.io/v1beta1\nkind: ClusterManagementAddOn\nmetadata: {name: hello}\nspec: {defaultConfigs: [null, 3], installStrategy: {placements: [{rolloutStrategy: {progressive: {minSuccessTime: [], maxFailures: {}}}}]}}\n")
	f.Add("apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: hello}\nspec: {stages: [{minSuccessTime: null}], strategy: {type: null}}\n")
	f.Add("apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {name: hello}\nspec: {addonName: hello, agentSpec: {workload: {manifests: [{apiVersion: a/b/c, kind: '{{X}}', metadata: {name: '{{Y}}', labels: {'{{Z}}': '{{'}}}]}}, registration: [{type: CustomSigner}]}\n")
	f.Fuzz(func(t *testing.T, text string) {
		json, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(json); err != nil || u.IsList() {
			return
		}
		objects := []Located{file{path: "fuzz.yaml", text: text, object: u}}
		for path, text := range hello() {
			if other := document(t, path, text); other.GetUnstructured().GetKind() != u.GetKind() {
				objects = append(objects, other)
			}
		}
		commit, problems := Load(objects, nil, Options{Charts: chart.InProcess{}})
		again, sameProblems := Load(objects, nil, Options{Charts: chart.InProcess{}})
		if diff := cmp.Diff(problems, sameProblems); diff != "" {
			t.Fatalf("the second answer differs:\n%s", diff)
		}
		for i, object := range commit.Objects {
			if diff := cmp.Diff(object.Object, again.Objects[i].Object); diff != "" {
				t.Fatalf("the second answer differs:\n%s", diff)
			}
			normal, flaws := schemasForTest(t).normalise(object, roleOf(object.GroupVersionKind(), listedResources(objects)))
			if len(flaws) > 0 {
				t.Fatalf("what was accepted is refused: %v", flaws)
			}
			if diff := cmp.Diff(object.Object, normal.Object); diff != "" {
				t.Fatalf("not its own normal form:\n%s", diff)
			}
		}
	})
}

// FuzzReferences: references to charts and repositories are read as they were written.
func FuzzReferences(f *testing.F) {
	f.Add("registry.example:5000/charts/hello:1.2.3@sha256:" + strings.Repeat("a", 64))
	f.Add("registry.example/charts/hello")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := v1alpha1.ParseChartReference(text); err == nil && r.String() != text {
			t.Errorf("%q is read as %s", text, r)
		}
		if host, repository, err := v1alpha1.ParseOCIRepository(text); err == nil && host+"/"+repository != text {
			t.Errorf("%q is read as %s and %s", text, host, repository)
		}
	})
}
