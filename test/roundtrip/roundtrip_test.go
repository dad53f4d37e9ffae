package roundtrip

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// ocmHash is OCM's GetSpecHash (addon-framework pkg/utils), word by word: every field
// but these four, as Go's JSON, hashed.
func ocmHash(t *testing.T, live *unstructured.Unstructured) string {
	t.Helper()
	rest := maps.Clone(live.Object)
	for _, field := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(rest, field)
	}
	text, err := json.Marshal(rest)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// startHub starts a hub that is stopped with the test.
func startHub(t *testing.T) client.Client {
	t.Helper()
	h := hubtest.Start(t, hub.Options{Namespaces: []string{"cluster3"}})
	c, err := client.New(h.Config(), client.Options{Scheme: hub.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// build returns the objects of a directory.
func build(t *testing.T, dir string) ([]gitsource.Object, problem.List) {
	t.Helper()
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tree.Build(t.Context(), gitsource.BuildOptions{})
}

// loadTree loads objects without a hub.
func loadTree(objects []gitsource.Object) (load.Commit, problem.List) {
	located := make([]load.Located, 0, len(objects))
	for _, o := range objects {
		located = append(located, o)
	}
	return load.Load(located, nil, load.Options{})
}

// TestHashes: the hash computed from a file equals the one that OCM computes from the object on
// the hub, whatever the API server pruned and defaulted in it.
func TestHashes(t *testing.T) {
	admin := startHub(t)
	hashed := 0
	for _, dir := range []string{"testdata/ocm", "../../examples/hello", "../../examples/overlay/production", "../../examples/progressive"} {
		objects, problems := build(t, dir)
		commit, more := loadTree(objects)
		if err := append(problems, more...).Err(); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, object := range commit.Objects {
			kind := object.GetKind()
			if kind != "AddOnTemplate" && kind != "AddOnDeploymentConfig" {
				continue
			}
			hashed++
			t.Run(filepath.Base(dir)+"/"+kind+"/"+object.GetName(), func(t *testing.T) {
				want, err := render.SpecHash(object)
				if err != nil {
					t.Fatal(err)
				}
				declared := declaredAs(t, objects, object)
				if err := admin.Create(t.Context(), declared); err != nil {
					t.Fatal(err)
				}
				live := &unstructured.Unstructured{}
				live.SetGroupVersionKind(declared.GroupVersionKind())
				if err := admin.Get(t.Context(), client.ObjectKeyFromObject(declared), live); err != nil {
					t.Fatal(err)
				}
				if got := ocmHash(t, live); got != want {
					t.Errorf("the hub's is hashed as %s, the file's as %s", got, want)
				}
			})
		}
	}
	if hashed < 9 {
		t.Errorf("only %d objects were compared", hashed)
	}
}

// declaredAs is the object as its file has it, in the one version that the hub of the
// tests serves; OCM's v1beta1 of these kinds has the same schema and no conversion.
func declaredAs(t *testing.T, objects []gitsource.Object, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == object.GetKind() && o.GetName() == object.GetName() && o.GetNamespace() == object.GetNamespace() {
			declared := o.DeepCopy()
			declared.SetAPIVersion("addon.open-cluster-management.io/v1alpha1")
			return declared
		}
	}
	t.Fatalf("%s %s is in no file", object.GetKind(), object.GetName())
	return nil
}

// TestManifests: lint accepts every manifest of an AddOnTemplate that the API server accepts,
// and refuses every one that the API server refuses.
func TestManifests(t *testing.T) {
	admin := startHub(t)
	for name, c := range map[string]struct {
		metadata string
		// refused by both.
		refused bool
		// stricter is why lint refuses a manifest that the server would store.
		stricter string
	}{
		"plain":                        {metadata: "{name: a, namespace: b}"},
		"cluster-scoped":               {metadata: "{name: a}"},
		"namespace is a variable":      {metadata: `{name: a, namespace: "{{INSTALL_NAMESPACE}}"}`, refused: true},
		"namespace holds a variable":   {metadata: `{name: a, namespace: "x-{{CLUSTER_NAME}}"}`, refused: true},
		"name is a variable":           {metadata: `{name: "{{CLUSTER_NAME}}", namespace: b}`},
		"name holds a variable":        {metadata: `{name: "x-{{CLUSTER_NAME}}", namespace: b}`},
		"namespace in upper case":      {metadata: `{name: a, namespace: B}`, refused: true},
		"namespace too long":           {metadata: `{name: a, namespace: ` + strings.Repeat("b", 64) + `}`, refused: true},
		"name with a slash":            {metadata: `{name: a/b, namespace: b}`, refused: true},
		"name is a dot":                {metadata: `{name: ., namespace: b}`, refused: true},
		"label key":                    {metadata: `{name: a, namespace: b, labels: {"a b": c}}`, refused: true},
		"label value":                  {metadata: `{name: a, namespace: b, labels: {a: "b c"}}`, refused: true},
		"label value is a variable":    {metadata: `{name: a, namespace: b, labels: {a: "{{CLUSTER_NAME}}"}}`, refused: true},
		"annotation key":               {metadata: `{name: a, namespace: b, annotations: {"a b": c}}`, refused: true},
		"annotation value is anything": {metadata: `{name: a, namespace: b, annotations: {a: "{{CLUSTER_NAME}} <&>"}}`},
		"finalizer":                    {metadata: `{name: a, namespace: b, finalizers: [example.com/a]}`, stricter: "no controller would remove them"},
		"no name":                      {metadata: `{namespace: b}`, stricter: "a manifest must say which object it is"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			text := "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {name: a}\nspec:\n" +
				"  addonName: a\n  agentSpec:\n    workload:\n      manifests:\n" +
				"      - apiVersion: v1\n        kind: ConfigMap\n        metadata: " + c.metadata + "\n"
			if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			objects, problems := build(t, dir)
			if len(problems) > 0 || len(objects) != 1 {
				t.Fatal(problems)
			}
			_, problems = loadTree(objects)
			err := admin.Create(t.Context(), objects[0].DeepCopy(), client.DryRunAll)
			if err != nil && !apierrors.IsInvalid(err) {
				t.Fatal(err)
			}
			switch {
			case (err != nil) != c.refused:
				t.Errorf("the hub says: %v", err)
			case (len(problems) > 0) != (c.refused || c.stricter != ""):
				t.Errorf("the hub says: %v, and lint: %v", err, problems)
			}
		})
	}
}
