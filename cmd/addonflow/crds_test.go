package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/render/load"
	"github.com/addonflow/addonflow/render/rendertest"
)

// ownKind is an add-on with a configuration of a user's own kind.
const ownKind = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: hello}
spec:
  supportedConfigs:
  - {group: addon.open-cluster-management.io, resource: addontemplates, defaultConfig: {name: hello}}
  - {group: example.com, resource: regions, defaultConfig: {namespace: default, name: home}}
---
apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: hello
  annotations: {addonflow.io/config-variables: "LEVEL=regions.example.com{.spec.level}"}
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata: {name: hello, namespace: default}
        data: {level: "{{LEVEL}}"}
---
apiVersion: example.com/v1
kind: Region
metadata: {name: home, namespace: default}
spec: {}
`

// ownDefinition fills in what ownKind's variable reads.
const ownDefinition = "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\n" + rendertest.RegionsDefinition

// TestCRDsOffline: the definition of a user's kind is a file's to give; without it the
// command says what it does not know.
func TestCRDsOffline(t *testing.T) {
	dir, crds := t.TempDir(), filepath.Join(t.TempDir(), "regions.yaml")
	list := filepath.Join(t.TempDir(), "list.yaml") // kubectl get crds -o yaml
	items := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(rendertest.RegionsDefinition, "\n", "\n  ")
	for name, text := range map[string]string{filepath.Join(dir, "hello.yaml"): ownKind, crds: ownDefinition, list: items} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		says string
	}{
		"lint, file":      {[]string{"lint", dir, "--crds", crds}, 0, "✔"},
		"lint, directory": {[]string{"lint", dir, "--crds", filepath.Dir(crds)}, 0, "✔"},
		"lint, list":      {[]string{"lint", dir, "--crds", list}, 0, "✔"},
		"lint, without":   {[]string{"lint", dir}, exitFailed, "without CustomResourceDefinition regions.example.com"},
		"render":          {[]string{"render", dir, "--crds", crds}, 0, "level: info"},
		"no definition":   {[]string{"lint", dir, "--crds", dir}, exitUsage, "there is no CustomResourceDefinition"},
		"no file":         {[]string{"lint", dir, "--crds", crds + "x"}, exitUsage, "cannot read --crds"},
		"no version":      {[]string{"lint", dir, "--crds", crds, "--kube-version", "new"}, exitUsage, "cannot use --kube-version=new"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			code := s.run(t.Context(), c.args...)
			if said := s.out.String() + s.err.String(); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d, want %d: %s", code, c.code, said)
			}
		})
	}
}

// FuzzCRDs: a definition that follows any other text as a document is read, or the file is refused by its name.
func FuzzCRDs(f *testing.F) {
	for _, before := range []string{
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n", rendertest.RegionsDefinition, `{"apiVersion":"v1","kind":"List","items":[{"kind":"x"}, 7]}`, "# only a comment", "---\n---", "[1]", "7",
		"a: |\n  ---\n  b", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: 7\n", "%YAML 1.1", "a: &a [*a]", "\x00", "{", "\ufeff",
	} {
		f.Add(before)
	}
	f.Fuzz(func(t *testing.T, before string) {
		name := filepath.Join(t.TempDir(), "crds.yaml")
		if err := os.WriteFile(name, []byte(before+"\n---\n"+rendertest.RegionsDefinition), 0o600); err != nil {
			t.Fatal(err)
		}
		hub, err := readCRDs(name)
		if err != nil {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("the error does not name the file: %v", err)
			}
			return
		}
		if hub[load.DefinitionOf(schema.GroupResource{Group: "example.com", Resource: "regions"})] == nil {
			t.Errorf("after %q, the definition is not read: %v", before, hub)
		}
		for at, object := range hub {
			if object.GetKind() != "CustomResourceDefinition" || at.Group != object.GroupVersionKind().Group {
				t.Errorf("%v is %v", at, object)
			}
		}
	})
}
