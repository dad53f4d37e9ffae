package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/proposal"
	"github.com/addonflow/addonflow/render/chart"
)

// repository is examples/hello in a Git repository, on branch main; HEAD is branch change.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) repository {
	t.Helper()
	r := repository{t, broken(t, "", "", "")}
	r.git("init", "-q", "-b", "main")
	r.commit()
	r.git("checkout", "-q", "-b", "change")
	return r
}

func (r repository) git(args ...string) {
	r.t.Helper()
	c := exec.CommandContext(r.t.Context(), "git", append([]string{"-C", r.dir, "-c", "user.name=Ana", "-c", "user.email=ana@example.com"}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		r.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (r repository) commit() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "change")
}

// replace changes a file of the work tree.
func (r repository) replace(file, from, to string) {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		r.t.Fatalf("%s does not hold %q", file, from)
	}
	put(r.t, r.dir, file, strings.Replace(string(text), from, to, 1))
}

// plan returns what plan prints, and its exit code.
func (r repository) plan(args ...string) (code int, out, hints string) {
	r.t.Helper()
	s := newStage(r.t)
	code = s.run(r.t.Context(), append([]string{"plan", "--path", r.dir}, args...)...)
	return code, s.out.String(), s.err.String()
}

// planned is the plan as data.
func (r repository) planned(args ...string) proposal.Proposal {
	r.t.Helper()
	code, out, hints := r.plan(append(args, "-o", "json")...)
	if code != 0 {
		r.t.Fatalf("exit code %d: %s%s", code, out, hints)
	}
	var p proposal.Proposal
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		r.t.Fatal(err)
	}
	return p
}

const fourClusters = `
apiVersion: v1
kind: List
items:
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-1, labels: {stage: canary}}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-2}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-3}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-4}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {clusterSets: [global]}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: canary, namespace: default}
spec: {clusterSets: [global], predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {stage: canary}}}}]}
`

// TestPlan_SaysWhatANewImageDoes is the whole comment for the first change of every user.
func TestPlan_SaysWhatANewImageDoes(t *testing.T) {
	r := newRepository(t)
	r.replace("addontemplate.yaml", "hello:v1", "hello:v2")
	r.commit()
	r.git("checkout", "-q", "main")
	put(t, r.dir, "README.md", "main went on\n")
	r.commit()
	r.git("checkout", "-q", "change")
	put(t, r.dir, "uncommitted.yaml", "this is: [no YAML")
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(fleet, []byte(fourClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, hints := r.plan("-f", fleet)
	const want = "### AddonFlow plan: `HEAD into main`\n" + `
**1 add-on: hello; 4 cluster changes.**

#### ` + "`hello`" + `: new content, 4 of 4 clusters change

| stage | clusters | at once | waits | soak | begins | ends |
|---|---|---|---|---|---|---|
| ` + "`canary`" + ` | 1 | 1 | – | 10m | 0 | 12m |
| ` + "`everyone`" + ` | 3 | 1 | – | – | 12m | 18m |

- clusters of ` + "`canary`: `eu-1`" + `
- clusters of ` + "`everyone`: `eu-2, eu-3, eu-4`" + `
- about 18m if every cluster takes 2m, without the waits

<details><summary>4 clusters, such as eu-1, selected by default/all</summary>

` + "```diff" + `
--- apps/v1 Deployment open-cluster-management-agent-addon/hello
+++ apps/v1 Deployment open-cluster-management-agent-addon/hello
@@ -25,7 +25,7 @@
           value: eu-1
         - name: INSTALL_NAMESPACE
           value: open-cluster-management-agent-addon
-        image: registry.example.com/hello:v1
+        image: registry.example.com/hello:v2
         name: hello
         readinessProbe:
           httpGet:
` + "```" + `

</details>
`
	if code != 0 || out != want {
		t.Errorf("exit code %d: %s\n%s", code, hints, gocmp.Diff(want, out))
	}
}

// TestPlan_ShowsTheDiffForAFleetFileWithoutThePlacements: the Placements are on the hub only, and the file has the
// clusters alone.
func TestPlan_ShowsTheDiffForAFleetFileWithoutThePlacements(t *testing.T) {
	r := newRepository(t)
	r.replace("addontemplate.yaml", "hello:v1", "hello:v2")
	r.commit()
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	clusters, _, _ := strings.Cut(fourClusters, "---\n")
	if err := os.WriteFile(fleet, []byte(clusters), 0o600); err != nil {
		t.Fatal(err)
	}
	p, without := r.planned("-f", fleet), r.planned()
	if len(p.AddOns) != 1 || len(without.AddOns) != 1 || len(without.AddOns[0].Diffs) == 0 {
		t.Fatalf("got %+v, without a fleet %+v", p, without)
	}
	if diff := gocmp.Diff(without.AddOns[0].Diffs, p.AddOns[0].Diffs); diff != "" || len(p.AddOns[0].Stages) != 2 {
		t.Errorf("%s\n%+v", diff, p.AddOns[0])
	}
}

func TestPlan_RefusesWhatTheOperatorWouldRefuse(t *testing.T) {
	r := newRepository(t)
	r.replace("addonrollout.yaml", "minSuccessTime", "minSucessTime")
	r.commit()
	code, out, hints := r.plan()
	if code != exitFailed || !strings.Contains(out, "**Would be refused.**") || !strings.Contains(out, "did you mean minSuccessTime?") ||
		!strings.Contains(hints, "HEAD: 1 problem; nothing of it would be applied") {
		t.Errorf("exit code %d: %s%s", code, out, hints)
	}
	// The change that fixes a broken branch is accepted.
	code, out, hints = r.plan("--from", "HEAD", "--to", "main")
	if code != exitFailed {
		t.Errorf("main has nothing that the broken branch lacks: exit code %d: %s%s", code, out, hints)
	}
	r.git("branch", "broken")
	r.replace("addonrollout.yaml", "minSucessTime", "minSuccessTime")
	r.commit()
	p := r.planned("--from", "broken")
	if !p.BaseRefused || len(p.AddOns) != 1 || p.AddOns[0].Change != proposal.Unknown || len(p.AddOns[0].Stages) != 2 {
		t.Errorf("the fix: %+v", p)
	}
}

func TestPlan_AsksToRebaseIfBothSidesChangedAFile(t *testing.T) {
	r := newRepository(t)
	r.replace("addontemplate.yaml", "hello:v1", "hello:v2")
	r.commit()
	r.git("checkout", "-q", "main")
	r.replace("addontemplate.yaml", "replicas: 1", "replicas: 2")
	r.commit()
	r.git("checkout", "-q", "change")
	code, out, _ := r.plan()
	const conflict = "conflict: both sides changed it; rebase"
	if code != exitFailed || !strings.Contains(out, "addontemplate.yaml: "+conflict) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, help, _ := r.plan("--help"); !strings.Contains(help, `"`+conflict+`"`) {
		t.Errorf("the help does not quote it: %s", help)
	}
}

// TestPlan_SaysWhereAPathThatIsNotThereBegins: spec.path of a source begins at the root of the repository.
func TestPlan_SaysWhereAPathThatIsNotThereBegins(t *testing.T) {
	r := newRepository(t)
	put(t, r.dir, "addons/README.md", "add-ons\n")
	t.Chdir(filepath.Join(r.dir, "addons"))
	s := newStage(t)
	const want = "HEAD: 1 problem; nothing of it would be applied; --path is relative to the working directory"
	if code := s.run(t.Context(), "plan", "--path", "addons"); code != exitFailed || !strings.Contains(s.err.String(), want) {
		t.Errorf("exit code %d: %s%s", code, s.out.String(), s.err.String())
	}
}

func TestPlan_PolicyMovesNoCluster(t *testing.T) {
	r := newRepository(t)
	r.replace("addonrollout.yaml", "maxConcurrency: 25%", "maxConcurrency: 10%\n    gates: {before: [{name: release, type: approval, approval: {approvers: {groups: [leads]}}}]}")
	r.commit()
	p := r.planned()
	if len(p.AddOns) != 1 || !p.Assumed {
		t.Fatalf("got %+v", p)
	}
	a := p.AddOns[0]
	if a.Change != proposal.Policy || a.Clusters.Changed != 0 || len(a.Diffs) > 0 || !strings.Contains(strings.Join(a.Policy, "\n"), "+  - gates:") {
		t.Errorf("got %+v", a)
	}
	if got := a.Stages[1]; got.Clusters != 99 || got.AtOnce != 10 || strings.Join(got.Gates, "") != "after approval release" {
		t.Errorf("got %+v", got)
	}
}

// TestPlan_CountsOnlyClustersThatChange: a configuration of one placement moves the clusters of that
// placement, and a placement that selects other clusters brings the add-on to some and takes it from others.
func TestPlan_CountsOnlyClustersThatChange(t *testing.T) {
	r := newRepository(t)
	r.git("checkout", "-q", "main")
	r.replace("clustermanagementaddon.yaml", "      name: all\n", `      name: all
    - namespace: default
      name: canary
      configs: [{group: addon.open-cluster-management.io, resource: addondeploymentconfigs, namespace: default, name: canary}]
`)
	const config = "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: canary, namespace: default}\nspec: {customizedVariables: [{name: GREETING, value: one}]}\n"
	put(t, r.dir, "canary.yaml", config)
	r.commit()
	r.git("checkout", "-q", "-B", "change")
	put(t, r.dir, "canary.yaml", strings.Replace(config, "one", "two", 1))
	r.commit()
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(fleet, []byte(fourClusters), 0o600); err != nil {
		t.Fatal(err)
	}
	a := r.planned("-f", fleet).AddOns[0]
	if a.Clusters.Total != 4 || a.Clusters.Changed != 1 || len(a.Diffs) != 1 || a.Diffs[0].Cluster != "eu-1" || !strings.Contains(strings.Join(a.Diffs[0].Lines, "\n"), "+        - --greeting=two") {
		t.Errorf("got %+v, %+v", a.Clusters, a.Diffs)
	}
	if a.Duration != "12m" { // the clusters of everyone do not change
		t.Errorf("it takes %s: %+v", a.Duration, a.Stages)
	}
	r.git("checkout", "-q", "-B", "leave", "main")
	r.replace("clustermanagementaddon.yaml", "    - namespace: default\n      name: all\n", "")
	r.commit()
	a = r.planned("-f", fleet).AddOns[0]
	if a.Change != proposal.Policy || a.Clusters.Leaving != 3 || a.Clusters.Total != 1 {
		t.Errorf("%s %+v", a.Change, a.Clusters)
	}
}

func TestPlan_NewAndRemovedAddOn(t *testing.T) {
	r := newRepository(t)
	r.git("rm", "-q", "*.yaml")
	put(t, r.dir, "README.md", "empty\n")
	r.commit()
	a := r.planned().AddOns[0]
	if a.Change != proposal.Removed || a.Clusters.Leaving != 100 {
		t.Errorf("removed: %+v", a)
	}
	r.git("checkout", "-q", "main", "--", ".")
	r.commit()
	a = r.planned("--from", "HEAD~1").AddOns[0]
	if a.Change != proposal.Added || a.Clusters.Total != 100 || len(a.Diffs) != 1 || len(a.Stages) != 2 {
		t.Errorf("added: %+v", a)
	}
}

func TestPlan_MasksSecrets(t *testing.T) {
	r := newRepository(t)
	const secret = "apiVersion: v1\n        kind: Secret\n        metadata: {name: s, namespace: default}\n        stringData: {password: hunter2}\n      - "
	r.replace("addontemplate.yaml", "apiVersion: v1\n        kind: ServiceAccount", secret+"apiVersion: v1\n        kind: ServiceAccount")
	r.commit()
	code, out, hints := r.plan()
	if code != 0 || !strings.Contains(out, "+  password: '***'") || strings.Contains(out+hints, "hunter2") {
		t.Errorf("exit code %d: %s%s", code, out, hints)
	}
}

// TestPlan_ExitCodeSaysWhetherThereIsAPlan: only a verdict on the branch has the code of a verdict.
func TestPlan_ExitCodeSaysWhetherThereIsAPlan(t *testing.T) {
	elsewhere := newStage(t)
	if code := elsewhere.run(t.Context(), "plan", "--path", t.TempDir()); code != exitUsage {
		t.Errorf("in no clone: exit code %d: %s", code, elsewhere.err.String())
	}
	for name, c := range map[string]struct {
		change func(repository)
		want   int
		hint   string
	}{
		"more directories than are read": {func(r repository) {
			deep := strings.Repeat("d/", gitsource.DefaultLimits().Depth+1)
			r.git("checkout", "-q", "main")
			put(t, r.dir, deep+"one", "1")
			r.commit()
			r.git("checkout", "-q", "change")
			put(t, r.dir, deep+"two", "2")
		}, exitTimeout, "limit exceeded"},
		"a branch without a common commit": {func(r repository) {
			r.git("checkout", "-q", "--orphan", "another")
			put(t, r.dir, "README.md", "another\n")
		}, exitFailed, "no merge base"},
		"a rendering that is interrupted": {func(r repository) {
			put(t, r.dir, "agent/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: agent}\n")
			put(t, r.dir, "agent.yaml", `apiVersion: addon.open-cluster-management.io/v1alpha1
kind: ClusterManagementAddOn
metadata: {name: agent}
spec: {installStrategy: {type: Placements, placements: [{namespace: default, name: all}]}}
---
apiVersion: addonflow.io/v1alpha1
kind: AddOnPackage
metadata: {name: agent}
spec: {addOn: agent, manifests: {path: agent}}
`)
		}, exitTimeout, "try again"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRepository(t)
			c.change(r)
			r.commit()
			s := newStage(t)
			s.cli.charts = interrupted{}
			if code := s.run(t.Context(), "plan", "--path", r.dir); code != c.want || !strings.Contains(s.err.String(), c.hint) {
				t.Errorf("exit code %d: %s%s", code, s.out.String(), s.err.String())
			}
		})
	}
}

// interrupted renders nothing.
type interrupted struct{}

func (i interrupted) For(string) chart.Engine { return i }

func (interrupted) Admits(*chart.Source, []string) (string, error) { return "", chart.ErrInterrupted }

func (interrupted) Verify(*chart.Source, chart.Input) error { return chart.ErrInterrupted }

func (interrupted) Render(*chart.Source, chart.Input) ([]chart.Manifest, error) {
	return nil, chart.ErrInterrupted
}

func TestPlan_NamesACommitThatIsNotThere(t *testing.T) {
	r := newRepository(t)
	if code, _, hints := r.plan("--from", "origin/main"); code != exitNotFound || !strings.Contains(hints, `cannot find commit "origin/main"`) {
		t.Errorf("exit code %d: %s", code, hints)
	}
	if p := r.planned(); len(p.AddOns) != 0 || p.Unchanged != 1 {
		t.Errorf("no change: %+v", p)
	}
	if code, _, hints := r.plan("-o", "yaml"); code != exitUsage {
		t.Errorf("exit code %d: %s", code, hints)
	}
}
