package addonsource

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render"
)

// built returns the objects of a directory with the given files.
func built(t *testing.T, files map[string]string) []gitsource.Object {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, problems := tree.Build(t.Context(), gitsource.BuildOptions{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	return objects
}

const (
	compiledAddOn = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata:
  name: hello
spec:
  supportedConfigs:
  - group: addon.open-cluster-management.io
    resource: addontemplates
    defaultConfig:
      name: hello
  installStrategy:
    type: Placements
    placements:
    - namespace: default
      name: all
      rolloutStrategy:
        type: Progressive
        progressive:
          maxConcurrency: 10%
`
	compiledTemplate = `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnTemplate
metadata:
  name: hello
spec:
  addonName: hello
  agentSpec:
    workload:
      manifests:
      - apiVersion: v1
        kind: ConfigMap
        metadata:
          name: hello
          namespace: open-cluster-management-agent-addon
`
	compiledRollout = `apiVersion: addonflow.io/v1alpha1
kind: AddOnRollout
metadata:
  name: hello
spec:
  stages:
  - name: canary
    placement:
      namespace: default
      name: canary
    maxConcurrency: 1
`
)

func TestCompile(t *testing.T) {
	cases := map[string]struct {
		reason string
		files  map[string]string
		allow  []string
		want   []string
	}{
		"Good": {
			reason: "nothing is wrong",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": compiledRollout},
		},
		"WrittenZero": {
			reason: "a 0 that was written is not the default, and is said once",
			files:  map[string]string{"a.yaml": strings.Replace(compiledAddOn, "maxConcurrency: 10%", "maxConcurrency: 0", 1), "t.yaml": compiledTemplate},
			want:   []string{"a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0].rolloutStrategy.progressive.maxConcurrency: 0"},
		},
		"BadStage": {
			reason: "a stage is positioned in the file of the rollout",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate, "r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxConcurrency: 150%", 1)},
			want:   []string{"r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: "},
		},
		"All": {
			reason: "every problem is listed, in order of files",
			files: map[string]string{
				"a.yaml": strings.Replace(compiledAddOn, "maxConcurrency: 10%", "maxConcurrency: -1", 1),
				"t.yaml": compiledTemplate + "        data:\n          greeting: '{{MISSING}}'\n",
				"r.yaml": strings.Replace(compiledRollout, "maxConcurrency: 1", "maxFailures: many", 1),
			},
			want: []string{"a.yaml:19: ", "r.yaml:11: ", "t.yaml:16: "},
		},
		"NotAllowed": {
			reason: "a source declares only what it may",
			files:  map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate},
			allow:  []string{"other"},
			want:   []string{"a.yaml:4: ClusterManagementAddOn/hello: metadata.name", "t.yaml:6: "},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			commit, problems := Compile(built(t, c.files), render.Lookup{}, CompileOptions{AddOns: c.allow})
			if len(problems) != len(c.want) {
				t.Fatalf("%s: got %d problems, want %d:\n%s", c.reason, len(problems), len(c.want), problems.Error())
			}
			for i, prefix := range c.want {
				if got := problems[i].String(); !strings.HasPrefix(got, prefix) {
					t.Errorf("%s: problem %d is %q, want it to begin with %q", c.reason, i, got, prefix)
				}
			}
			if len(c.want) == 0 && (len(commit.AddOns) != 1 || commit.AddOns[0].Digest == "" || len(commit.Missing) > 0) {
				t.Errorf("%s: got %+v", c.reason, commit)
			}
		})
	}
}
