package proposals_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/registration"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/load"
)

var update = flag.Bool("update", false, "write want.yaml and problems.txt")

// valuesAnnotation of a ManagedClusterAddOn has the values of its cluster.
const valuesAnnotation = "addon.open-cluster-management.io/values"

// exampleCase is case.yaml.
type exampleCase struct {
	About    string          `json:"about"`
	Clusters []exampleMember `json:"clusters,omitempty"`
}

// exampleMember is a cluster of an example; its ManagedClusterAddOn is in hub/.
type exampleMember struct {
	Name string `json:"name"`
	// Placements, namespace/name, that select it.
	Placements  []string `json:"placements,omitempty"`
	KubeVersion string   `json:"kubeVersion,omitempty"`
}

// TestProposals commits every example and compares the error, or the content of each cluster, with the
// files of the example.
func TestProposals(t *testing.T) {
	paths, err := filepath.Glob("testdata/*/*/case.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		name, _ := filepath.Rel("testdata", dir)
		t.Run(filepath.ToSlash(name), func(t *testing.T) { walk(t, dir) })
	}
}

func walk(t *testing.T, dir string) {
	t.Helper()
	var c exampleCase
	text, err := os.ReadFile(filepath.Join(dir, "case.yaml"))
	if err == nil {
		err = yaml.UnmarshalStrict(text, &c)
	}
	if err != nil || c.About == "" {
		t.Fatalf("case.yaml: %v", err)
	}
	tree, err := gitsource.TreeFromDir(filepath.Join(dir, "commit"))
	if err != nil {
		t.Fatal(err)
	}
	hub := hubOf(t, dir)
	objects, unread := tree.Build(t.Context(), gitsource.BuildOptions{})
	commit, problems := addonsource.Compile(objects, hub.lookup, addonsource.CompileOptions{Unread: unread, Options: load.Options{Charts: chart.InProcess{}}})
	said := &strings.Builder{}
	for _, p := range problems {
		said.WriteString(strings.TrimPrefix(p.String(), "test/proposals/"+filepath.ToSlash(filepath.Join(dir, "commit"))+"/") + "\n")
	}
	golden(t, filepath.Join(dir, "problems.txt"), said.String())
	want := &strings.Builder{}
	if len(problems) == 0 {
		for _, addOn := range commit.AddOns {
			tell(t, want, addOn, hub, c.Clusters)
		}
	}
	golden(t, filepath.Join(dir, "want.yaml"), want.String())
}

// golden compares a text with a file; an empty text has no file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		err := os.Remove(path)
		if got != "" {
			err = os.WriteFile(path, []byte(got), 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; -update writes it)\n%s", path, diff)
	}
}

// hubState is what an example has on the hub.
type hubState struct {
	lookup load.Lookup
	addOns map[string]*addonv1alpha1.ManagedClusterAddOn // by cluster/name
	// configs are the other objects, by what a reference to them is.
	configs map[render.ConfigReference]*unstructured.Unstructured
}

func hubOf(t *testing.T, dir string) hubState {
	t.Helper()
	hub := hubState{
		lookup: load.Lookup{}, addOns: map[string]*addonv1alpha1.ManagedClusterAddOn{},
		configs: map[render.ConfigReference]*unstructured.Unstructured{},
	}
	paths, err := filepath.Glob(filepath.Join(dir, "hub/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			hub.add(t, document)
		}
	}
	return hub
}

func (h hubState) add(t *testing.T, document string) {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
		t.Fatal(err)
	}
	switch o.GetKind() {
	case "ManagedClusterAddOn":
		addOn := &addonv1alpha1.ManagedClusterAddOn{}
		if err := yaml.UnmarshalStrict([]byte(document), addOn); err != nil {
			t.Fatal(err)
		}
		h.addOns[addOn.Namespace+"/"+addOn.Name] = addOn
	case "CustomResourceDefinition":
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		h.lookup[load.DefinitionOf(schema.GroupResource{Group: group, Resource: plural})] = o
	default:
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		h.configs[render.ConfigReference{Group: plural.Group, Resource: plural.Resource, Namespace: o.GetNamespace(), Name: o.GetName()}] = o
	}
}

// tell writes which clusters get an add-on, how fast, and the content of each cluster.
func tell(t *testing.T, out *strings.Builder, addOn load.AddOn, hub hubState, members []exampleMember) {
	t.Helper()
	document(t, out, map[string]any{"addOn": addOn.Name, "install": addOn.Install, "rollout": addOn.Rollout})
	if len(members) == 0 {
		return
	}
	renderer, err := render.NewRenderer(addOn.Content, chart.InProcess{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		rendered, err := renderer.Render(m.cluster(t, renderer, addOn.Name, hub))
		if err != nil {
			document(t, out, map[string]any{"cluster": m.Name, "refused": err.Error()})
			continue
		}
		document(t, out, summary(t, addOn, m.Name, rendered))
		objects, err := rendered.Objects()
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			document(t, out, o.Object)
		}
	}
}

// cluster is the member as rendering sees it, with its ManagedClusterAddOn.
func (m exampleMember) cluster(t *testing.T, renderer *render.Renderer, addOn string, hub hubState) render.Cluster {
	t.Helper()
	c := render.Cluster{Name: m.Name, KubeVersion: m.KubeVersion}
	for _, p := range m.Placements {
		namespace, name, _ := strings.Cut(p, "/")
		c.Placements = append(c.Placements, v1alpha1.PlacementReference{Namespace: namespace, Name: name})
	}
	own := hub.addOns[m.Name+"/"+addOn]
	if own == nil {
		return c
	}
	c.Values = own.Annotations[valuesAnnotation]
	c.Hosting = own.Annotations[addonv1alpha1.HostingClusterNameAnnotationKey]
	for _, named := range own.Spec.Configs {
		if !renderer.Supports(named.Group, named.Resource) {
			t.Fatalf("%s: %s", m.Name, render.UnsupportedMessage(named.Group, named.Resource))
		}
		reference := render.ConfigReference{Group: named.Group, Resource: named.Resource, Namespace: named.Namespace, Name: named.Name}
		if hub.configs[reference] == nil {
			t.Fatalf("%s names %s, which is not in hub/", m.Name, reference)
		}
		config, err := load.LiveConfig(addOn, reference, hub.configs[reference])
		if err != nil {
			t.Fatal(err)
		}
		c.Configs = append(c.Configs, config)
	}
	return c
}

// summary is what AddonFlow says and writes of a cluster, apart from its objects.
func summary(t *testing.T, addOn load.AddOn, cluster string, rendered render.Rendered) map[string]any {
	t.Helper()
	works, _, err := rendered.Works(render.Owner{Name: addOn.Name, Namespace: cluster, Revision: addOn.Digest}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hooks, err := rendered.HookWorks(render.Owner{Name: addOn.Name, Namespace: cluster, Revision: addOn.Digest})
	if err != nil {
		t.Fatal(err)
	}
	found, err := registration.Registrations(rendered.Registration, addOn.Name, cluster, registration.Found{})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	hashes := map[string]string{}
	for _, work := range slices.Concat(works, hooks) {
		names = append(names, work.Namespace+"/"+work.Name)
		if text := work.Annotations[workv1.ManifestConfigSpecHashAnnotationKey]; text != "" {
			if err := json.Unmarshal([]byte(text), &hashes); err != nil {
				t.Fatal(err)
			}
		}
	}
	references := []string{}
	for _, c := range rendered.ConfigReferences {
		references = append(references, c.String())
	}
	return map[string]any{
		"cluster": cluster, "template": rendered.Template, "namespace": rendered.Namespace,
		"configReferences": references, "configSpecHash": slices.Sorted(maps.Keys(hashes)),
		"registrations": found, "works": names,
	}
}

func document(t *testing.T, out *strings.Builder, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString("---\n" + string(text))
}
