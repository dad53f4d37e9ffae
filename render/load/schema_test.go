package load

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// apiModule is the directory of the pinned open-cluster-management.io/api.
func apiModule(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "open-cluster-management.io/api").Output()
	if err != nil {
		t.Fatalf("cannot find the api module: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func TestEmbeddedCRDsAreTheModules(t *testing.T) {
	dirs := []string{"addon/v1beta1", "addon/v1alpha1", "cluster/v1beta1", "cluster/v1beta2"} // the first with the file, because it serves most versions
	module := apiModule(t)
	entries, err := fs.ReadDir(crds, "crds")
	if err != nil || len(entries) != 5 {
		t.Fatalf("embedded are %v (%v), want five CRDs", entries, err)
	}
	for _, entry := range entries {
		embedded, err := fs.ReadFile(crds, path.Join("crds", entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(dirs, func(dir string) bool {
			_, err := os.Stat(filepath.Join(module, dir, entry.Name()))
			return err == nil
		})
		if i < 0 {
			t.Errorf("%s is no longer in the module", entry.Name())
			continue
		}
		original, err := os.ReadFile(filepath.Join(module, dirs[i], entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if string(original) != string(embedded) {
			t.Errorf("%s differs from the module's; copy it from %s", entry.Name(), dirs[i])
		}
	}
}

func TestCompiledKinds(t *testing.T) {
	want := map[string]bool{ // namespaced or not, by kind and version
		"ClusterManagementAddOn v1alpha1": false, "ClusterManagementAddOn v1beta1": false,
		"AddOnTemplate v1alpha1":         false,
		"AddOnDeploymentConfig v1alpha1": true, "AddOnDeploymentConfig v1beta1": true,
		"Placement v1beta1": true, "ManagedClusterSetBinding v1beta2": true, "AddOnHubConfig v1alpha1": false, "AddOnRollout v1alpha1": true,
	}
	got := map[string]bool{}
	for kind, s := range schemasForTest(t) {
		got[kind.Kind+" "+kind.Version] = s.namespaced
		if s.storage != "v1alpha1" && kind.Group != placementGroup {
			t.Errorf("%s is stored as %s", kind, s.storage)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds with a schema (-want +got):\n%s", diff)
	}
}

// normalised is the normal form of a YAML document that must have no flaws.
func normalised(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	declared := document(t, "x.yaml", text).GetUnstructured()
	listed := map[schema.GroupResource]bool{{Resource: "configmaps"}: true, {Group: "example.com", Resource: "things"}: true}
	object, flaws := schemasForTest(t).normalise(declared, roleOf(declared.GroupVersionKind(), listed))
	if len(flaws) > 0 {
		t.Fatalf("unexpected flaws: %v", flaws)
	}
	return object
}

func TestNormalise(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"DefaultOfAConfig": {
			reason: "the default of agentInstallNamespace is what OCM hashes",
			in:     "apiVersion: addon.open-cluster-management.io/v1beta1\nkind: AddOnDeploymentConfig\nmetadata: {name: a, namespace: b, generation: 7}\nspec: {}\nstatus: {}\n",
			want:   `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnDeploymentConfig","metadata":{"name":"a","namespace":"b"},"spec":{"agentInstallNamespace":"open-cluster-management-agent-addon"}}`,
		},
		"EmptyInstallNamespaceStays": {
			reason: "an empty namespace means the template's and is no absent one",
			in:     "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: a, namespace: b}\nspec: {agentInstallNamespace: ''}\n",
			want:   `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnDeploymentConfig","metadata":{"name":"a","namespace":"b"},"spec":{"agentInstallNamespace":""}}`,
		},
		"NullsAreDropped": {
			reason: "the API server prunes nulls that have no default and defaults those that have",
			in:     "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: a, namespace: b}\nspec: {agentInstallNamespace: null, nodePlacement: null}\n",
			want:   `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnDeploymentConfig","metadata":{"name":"a","namespace":"b"},"spec":{"agentInstallNamespace":"open-cluster-management-agent-addon"}}`,
		},
		"DefaultsOfATemplate": {
			reason: "every default of the AddOnTemplate schema, and the metadata of manifests as the API server writes it",
			in: `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata: {name: a, namespace: dropped}
spec:
  addonName: a
  agentSpec:
    deleteOption: {}
    workload:
      manifests:
      - {apiVersion: v1, kind: ConfigMap, metadata: {name: c, creationTimestamp: null}, data: null, status: {}}
    manifestConfigs:
    - resourceIdentifier: {resource: configmaps, name: c}
      updateStrategy: {serverSideApply: {ignoreFields: [{jsonPaths: [.data]}]}}
`,
			want: `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"AddOnTemplate","metadata":{"name":"a"},"spec":{"addonName":"a","agentSpec":{` +
				`"deleteOption":{"propagationPolicy":"Foreground"},` +
				`"manifestConfigs":[{"feedbackScrapeType":"Poll","resourceIdentifier":{"name":"c","resource":"configmaps"},"updateStrategy":{"serverSideApply":{"fieldManager":"work-agent","ignoreFields":[{"condition":"OnSpokePresent","jsonPaths":[".data"]}]},"type":"Update"}}],` +
				`"workload":{"manifests":[{"apiVersion":"v1","data":null,"kind":"ConfigMap","metadata":{"name":"c"},"status":{}}]}}}}`,
		},
		"AddOnOfVersionBeta": {
			reason: "the default list is v1alpha1's, the sentinel is no default, the pace keeps its spelling",
			in: `apiVersion: addon.open-cluster-management.io/v1beta1
kind: ClusterManagementAddOn
metadata: {name: a}
spec:
  defaultConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, name: t}
  - {resource: configmaps, name: __reserved_no_default__}
  installStrategy:
    type: Placements
    placements: [{namespace: b, name: c, rolloutStrategy: {type: Progressive, progressive: {minSuccessTime: 1h}}}]
`,
			want: `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ClusterManagementAddOn","metadata":{"name":"a"},"spec":{` +
				`"installStrategy":{"placements":[{"name":"c","namespace":"b","rolloutStrategy":{"progressive":{"maxFailures":0,"minSuccessTime":"1h","progressDeadline":"None"},"type":"Progressive"}}],"type":"Placements"},` +
				`"supportedConfigs":[{"defaultConfig":{"name":"t"},"group":"addon.open-cluster-management.io","resource":"addontemplates"},{"group":"","resource":"configmaps"}]}}`,
		},
		"Namespace": {
			reason: "nothing of a Namespace but its metadata is declared",
			in:     "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {b: c}}\nspec: {}\nstatus: {phase: Active}\n",
			want:   `{"apiVersion":"v1","kind":"Namespace","metadata":{"labels":{"b":"c"},"name":"a"}}`,
		},
		"ConfigMap": {
			reason: "a kind with a Go type is checked by it and kept as it is",
			in:     "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}\ndata: {x: 'y', e: null}\nimmutable: null\nbinaryData: {z: aGk=}\n",
			want:   `{"apiVersion":"v1","binaryData":{"z":"aGk="},"data":{"e":"","x":"y"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`,
		},
		"KindOnlyTheHubKnows": {
			reason: "without a schema nothing is added or taken away but status and metadata",
			in:     "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a, generation: 2}\nspec: {x: null, z: 1.5}\nstatus: {}\n",
			want:   `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"x":null,"z":1.5}}`,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			once := normalised(t, c.in)
			got, err := json.Marshal(once.Object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			twice := normalised(t, string(got))
			if diff := cmp.Diff(once.Object, twice.Object); diff != "" {
				t.Errorf("a normal form is its own (-once +twice):\n%s", diff)
			}
		})
	}
}

// TestStoredIsNormalised reads back an object as a hub would serve it.
func TestStoredIsNormalised(t *testing.T) {
	for path, text := range hello() {
		declared := document(t, path, text).GetUnstructured()
		r := roleOf(declared.GroupVersionKind(), nil)
		if r == roleRollout || r == roleNamespace {
			continue // never read from the hub by this package
		}
		object, _ := schemasForTest(t).normalise(declared, r)
		live := object.DeepCopy()
		live.SetUID("1")
		live.SetResourceVersion("2")
		live.SetGeneration(3)
		live.SetFinalizers([]string{"a/b"})
		live.Object["status"] = map[string]any{"x": "y"}
		stored, err := schemasForTest(t).stored(live, r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(object.Object, stored.Object); diff != "" {
			t.Errorf("%s read back (-declared +stored):\n%s", path, diff)
		}
	}
}
