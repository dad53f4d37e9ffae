package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/load"
)

// put writes one more file into a directory.
func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lintOf returns what lint prints of a directory, and its exit code.
func lintOf(t *testing.T, args ...string) (code int, out, hints string) {
	t.Helper()
	s := newStage(t)
	code = s.run(t.Context(), append([]string{"lint"}, args...)...)
	return code, s.out.String(), s.err.String()
}

func TestLint_ListsHubSideObjectsOnceAndTogether(t *testing.T) {
	dir := broken(t, "", "", "")
	for i := range 3 {
		put(t, dir, fmt.Sprintf("z-role-%d.yaml", i), fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: role-%d}\n", i))
	}
	code, out, _ := lintOf(t, dir)
	if code != exitFailed || strings.Count(out, "\n") != 1 {
		t.Fatalf("exit code %d: %q, want one problem", code, out)
	}
	for _, want := range []string{
		"z-role-0.yaml:1: ClusterRole/role-0: rbac.authorization.k8s.io/v1 ClusterRole is not supported",
		"3 objects of the commit are not: ClusterRole/role-0 (z-role-0.yaml:1), ClusterRole/role-1 (z-role-1.yaml:1)",
		"apply them with what sets up your hub, from outside spec.path, or name their files in spec.ignore",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %q", want, out)
		}
	}
	_, out, _ = lintOf(t, dir, "--ignore", "z-role-[12].yaml")
	if want := "apply it with what sets up your hub, from outside spec.path, or name its file in spec.ignore"; !strings.Contains(out, want) {
		t.Errorf("%q is missing in %q", want, out)
	}
	if code, out, _ := lintOf(t, dir, "--ignore", "z-role-*.yaml"); code != 0 {
		t.Errorf("ignored: exit code %d: %s", code, out)
	}
}

func TestLint_IgnoresWhatTheSourceIgnores(t *testing.T) {
	dir := broken(t, "", "", "")
	for _, part := range []string{"base", "overlay"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if text, err := os.ReadFile(filepath.Join(dir, e.Name())); err == nil {
				put(t, dir, filepath.Join("hello", part, e.Name()), string(text))
			}
		}
	}
	if code, out, _ := lintOf(t, filepath.Join(dir, "hello")); code != exitFailed || !strings.Contains(out, "already") {
		t.Errorf("two directories with the same objects: exit code %d: %s", code, out)
	}
	if code, out, _ := lintOf(t, filepath.Join(dir, "hello"), "--ignore", "overlay/"); code != 0 {
		t.Errorf("one of them ignored: exit code %d: %s", code, out)
	}
}

func TestLint_AcceptsManagedClusterSetBinding(t *testing.T) {
	dir := broken(t, "", "", "")
	const binding = "apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: global, namespace: default}\nspec: {clusterSet: global}\n"
	put(t, dir, "binding.yaml", binding)
	if code, out, _ := lintOf(t, dir); code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	put(t, dir, "binding.yaml", strings.Replace(binding, "clusterSet:", "clusterset:", 1))
	if code, out, _ := lintOf(t, dir); code != exitFailed || !strings.Contains(out, "did you mean clusterSet?") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestLint_RefusesAnAddOnTemplateThatNoOCMServes(t *testing.T) {
	dir := broken(t, "addontemplate.yaml", "addon.open-cluster-management.io/v1alpha1", "addon.open-cluster-management.io/v1beta1")
	const want = "no OCM serves this version; write addon.open-cluster-management.io/v1alpha1"
	if code, out, _ := lintOf(t, dir); code != exitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %q, want %q", code, out, want)
	}
}

func TestLint_RefusesAnEmptyStrategyType(t *testing.T) {
	dir := broken(t, "clustermanagementaddon.yaml", "      name: all\n", "      name: all\n      rolloutStrategy:\n        type: \"\"\n")
	const want = `rolloutStrategy.type: "": must be a strategy; one of All, Progressive and ProgressivePerGroup`
	if code, out, _ := lintOf(t, dir); code != exitFailed || !strings.Contains(out, want) {
		t.Errorf("exit code %d: %q, want %q", code, out, want)
	}
}

// placementsYAML is what examples/hello takes from its hub.
const placementsYAML = `apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: all, namespace: default}
spec: {decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "true"}}}}]}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata: {name: canary, namespace: default}
spec: {numberOfClusters: 2}
`

func TestLint_WarnsOfProbableMistakes(t *testing.T) {
	for name, c := range map[string]struct{ file, from, to, want string }{
		"StageWithoutPlacement": {
			"addonrollout.yaml", "      name: canary\n", "      name: canry\n",
			"addonrollout.yaml:11: AddOnRollout/hello: spec.stages[0].placement: Placement default/canry is not in the directory; did you mean canary? If not, the hub must have it",
		},
		"InstallWithoutPlacement": {
			"clustermanagementaddon.yaml", "      name: all\n", "      name: al\n",
			"clustermanagementaddon.yaml:23: ClusterManagementAddOn/hello: spec.installStrategy.placements[0]: Placement default/al is not in the directory; did you mean all? If not, the hub must have it",
		},
		"AbsentTemplate": {
			"clustermanagementaddon.yaml", "    defaultConfig:\n      name: hello\n", "    defaultConfig:\n      name: helo\n",
			"clustermanagementaddon.yaml:13: ClusterManagementAddOn/hello: spec.supportedConfigs[0].defaultConfig: AddOnTemplate helo is not in the directory; did you mean hello? If not, the hub must have it",
		},
		"ConfigurationOfAnotherNamespace": {
			"clustermanagementaddon.yaml", "      namespace: default\n      name: hello\n", "      namespace: other\n      name: hello\n",
			"clustermanagementaddon.yaml:17: ClusterManagementAddOn/hello: spec.supportedConfigs[1].defaultConfig: AddOnDeploymentConfig other/hello is not in the directory; did you mean default/hello? If not, the hub must have it",
		},
		"GroupOfNoPlacement": {
			"progressive/clustermanagementaddon.yaml", "groupName: canary", "groupName: canry",
			`clustermanagementaddon.yaml:34: ClusterManagementAddOn/audit-log: spec.installStrategy.placements[0].rolloutStrategy.progressivePerGroup.mandatoryDecisionGroups[0].groupName: no decision group of Placement default/by-region is named "canry"; did you mean canary?`,
		},
		"GroupOfTheStrategy": {
			"progressive/placement.yaml", "# The groups", "apiVersion: addonflow.io/v1alpha1\nkind: AddOnRollout\nmetadata: {name: audit-log}\nspec:\n" +
				"  strategy: {type: Progressive, progressive: {mandatoryDecisionGroups: [{groupName: canary}, {groupName: first}]}}\n---\n# The groups",
			`placement.yaml:5: AddOnRollout/audit-log: spec.strategy.progressive.mandatoryDecisionGroups[1].groupName: no decision group of Placement default/by-region is named "first"; the rollout stalls until it is defined in spec.decisionStrategy`,
		},
		"UnclosedVariable": {"addontemplate.yaml", "--greeting={{GREETING}}", "--greeting={{GREETING", "{{GREETING is never closed and kept as text; write {{GREETING}} for the value of a variable"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := broken(t, c.file, c.from, c.to)
			put(t, dir, "placements.yaml", placementsYAML)
			if _, out, hints := lintOf(t, dir); strings.Count(hints, "warning: ") != 1 || !strings.Contains(hints, c.want) {
				t.Errorf("got %q %q, want one warning with %q", out, hints, c.want)
			}
		})
	}
}

// fleetYAML is as kubectl prints clusters and what a hub decided about placement canary.
const fleetYAML = `apiVersion: v1
kind: List
items:
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-1, labels: {region: eu}}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-2, labels: {region: eu}}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: us-1, labels: {region: us}}}
- {apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: us-2, labels: {region: us}}}
---
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: PlacementDecisionList
items:
- metadata: {name: canary-decision-1, namespace: default, labels: {cluster.open-cluster-management.io/placement: canary}}
  status: {decisions: [{clusterName: us-2, reason: ""}]}
---
- {apiVersion: cluster.open-cluster-management.io/v1beta1, kind: Placement, metadata: {name: all, namespace: default}, spec: {clusterSets: [global]}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: default}}
`

func TestLint_EstimatesTheTimeOfARollout(t *testing.T) {
	dir := broken(t, "", "", "")
	fleet := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(fleet, []byte(fleetYAML), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, placements, want string }{
		{
			want: "pace of hello: canary 1 cluster, soak 10m; everyone 99 clusters, 25 at a time; about 20m if every cluster takes 2m\n" +
				"  assumed: 100 clusters, of which Placement default/canary selects 1; --fleet FILE counts yours\n",
		},
		{file: fleet, want: "pace of hello: canary 1 cluster, soak 10m; everyone 3 clusters, 1 at a time; about 18m if every cluster takes 2m\n✔"},
		{
			file: fleet, placements: strings.ReplaceAll(placementsYAML, "spec: {decision", "spec: {clusterSets: [eu], decision"),
			want: "addonrollout.yaml:11: AddOnRollout/hello: spec.stages[0].placement: the rollout never ends: " +
				"canary 0/0, held: Placement default/canary of stage canary selects no cluster of the install set; select one, or set whenEmpty: Pass\n✔",
		},
	} {
		put(t, dir, "placements.yaml", cmp.Or(c.placements, "# none\n"))
		args := []string{dir}
		if c.file != "" {
			args = append(args, "--fleet", c.file)
		}
		if code, out, hints := lintOf(t, args...); code != 0 || out != "" || !strings.Contains(hints, c.want) {
			t.Errorf("exit code %d, %q, %q; want %q", code, out, hints, c.want)
		}
	}
}

func TestLint_SaysWhatItCannotEstimate(t *testing.T) {
	dir := broken(t, "", "", "")
	fleet := filepath.Join(t.TempDir(), "fleet.json")
	const cluster = `{"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster", "metadata": {"name": "eu-1"}}`
	if err := os.WriteFile(fleet, []byte(cluster), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "pace of hello: not estimated: Placement default/all is neither in the directory nor in the fleet\n"
	if code, out, hints := lintOf(t, dir, "--fleet", fleet); code != 0 || !strings.Contains(hints, want) {
		t.Errorf("exit code %d, %q, %q; want %q", code, out, hints, want)
	}
}

func TestLint_WarnsOfAStageThatHolds(t *testing.T) {
	dir := broken(t, "addonrollout.yaml", "maxConcurrency: 25%", "maxConcurrency: 0")
	const want = "addonrollout.yaml:20: AddOnRollout/hello: spec.stages[1].maxConcurrency: the rollout never ends: " +
		"everyone 0/99, held: maxConcurrency of stage everyone is 0; give a number from 1 to start the stage\n"
	if code, out, hints := lintOf(t, dir); code != 0 || !strings.Contains(hints, want) || strings.Contains(hints, "pace of") {
		t.Errorf("exit code %d, %q, %q; want %q and no pace", code, out, hints, want)
	}
}

func TestLint_PrintsJSON(t *testing.T) {
	var got lintResult
	code, out, hints := lintOf(t, broken(t, "", "", ""), "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || hints != "" {
		t.Fatalf("exit code %d, %v, %q: %s", code, err, hints, out)
	}
	want := []lintPace{{
		AddOn: "hello", Duration: "20m0s", PerCluster: "2m0s", Notes: []string{"100 clusters, of which Placement default/canary selects 1"},
		Stages: []lintStage{
			{Name: "canary", Clusters: 1, AtOnce: 1, Soak: "10m0s", Begins: "0s", Ends: "12m0s"},
			{Name: "everyone", Clusters: 99, AtOnce: 25, Begins: "12m0s", Ends: "20m0s"},
		},
	}}
	if diff := gocmp.Diff(want, got.Paces); diff != "" || len(got.Problems) != 0 || len(got.Warnings) != 2 {
		t.Errorf("%d problems, %d warnings, paces -want +got:\n%s", len(got.Problems), len(got.Warnings), diff)
	}
	code, out, _ = lintOf(t, broken(t, "addonrollout.yaml", "maxConcurrency: 25%", "maxConcurrency: 250%"), "-o", "json")
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitFailed || len(got.Problems) != 1 || got.Problems[0].Line != 20 {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
}

func TestLint_RefusesAFleetThatIsNone(t *testing.T) {
	dir := broken(t, "", "", "")
	for name, text := range map[string]string{
		"there is no ManagedCluster": "kind: List\napiVersion: v1\nitems: []\n",
		"cannot read --fleet":        "{",
		"ManagedCluster eu-1":        "{apiVersion: cluster.open-cluster-management.io/v1, kind: ManagedCluster, metadata: {name: eu-1}, spec: {taints: 7}}",
	} {
		put(t, dir, "fleet.txt", text)
		if code, _, hints := lintOf(t, dir, "--fleet", filepath.Join(dir, "fleet.txt")); code != exitUsage || !strings.Contains(hints, name) {
			t.Errorf("exit code %d, %q; want %q", code, hints, name)
		}
	}
	if code, _, _ := lintOf(t, dir, "-o", "yaml"); code != exitUsage {
		t.Errorf("-o yaml: exit code %d", code)
	}
}

func TestLint_WarnsOfWhatTheHubAsksForItsAgents(t *testing.T) {
	const registration = "spec:\n  registration:\n" +
		"  - type: KubeClient\n    kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: cm-admin}}]}\n" +
		"  - type: CustomSigner\n    customSigner: {signerName: example.com/agent, signingCA: {name: ca, namespace: kube-system}}\n"
	dir := broken(t, "addontemplate.yaml", "spec:\n", registration)
	code, out, hints := lintOf(t, dir)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	for _, want := range []string{
		`the hub must have ClusterRole/cm-admin`, `an admin allows it with the label addonflow.io/allow-hub-permission: "true" on it`,
		`customSigner.signingCA.namespace: no signing CA is taken from namespace "kube-system"; allowed: open-cluster-management-hub; an admin allows others by --signing-ca-namespaces`,
	} {
		if !strings.Contains(hints, want) {
			t.Errorf("%q is missing in %q", want, hints)
		}
	}
}

func TestLint_PrintsAHundredProblemsAnd64KiBAtMost(t *testing.T) {
	var many, long problem.List
	for i := range 250 {
		many = append(many, problem.Problem{Path: "a.yaml", Line: i + 1, Message: "wrong"})
		long = append(long, problem.Problem{Path: "a.yaml", Line: i + 1, Message: strings.Repeat("x", 10_000)})
	}
	out := shownProblems(many)
	if strings.Count(out, "\n") != mostProblems+1 || !strings.HasSuffix(out, "... and 150 more problems\n") {
		t.Errorf("got %d lines, the end is %q", strings.Count(out, "\n"), out[len(out)-40:])
	}
	if out := shownProblems(long); len(out) > mostProblemBytes+100 || !strings.HasSuffix(out, "... and 244 more problems\n") {
		t.Errorf("got %d bytes, the end is %q", len(out), out[len(out)-40:])
	}
	if out := shownProblems(many[:2]); out != "a.yaml:1: wrong\na.yaml:2: wrong\n" {
		t.Errorf("got %q", out)
	}
	printed := compiled{problems: long, commit: load.Commit{Warnings: many}}.asJSON(nil)
	if len(printed.Problems) != 6 || printed.MoreProblems != 244 || len(printed.Warnings) != mostProblems || printed.MoreWarnings != 150 {
		t.Errorf("as JSON: %d problems and %d more, %d warnings and %d more", len(printed.Problems), printed.MoreProblems, len(printed.Warnings), printed.MoreWarnings)
	}
}

// FuzzFleet: a fleet that kubectl printed is read or refused.
func FuzzFleet(f *testing.F) {
	f.Add([]byte("apiVersion: v1\nkind: List\nitems:\n- apiVersion: cluster.open-cluster-management.io/v1\n  kind: ManagedCluster\n  metadata: {name: c1}\n"))
	f.Add([]byte("apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: PlacementDecisionList\nitems: [{metadata: {name: 7}}, 3, [null]]\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := objectsOf(text)
		if err != nil {
			return
		}
		if known, err := knownFleet(objects); err == nil && len(known.Clusters)+len(known.Observed)+len(known.Sets)+len(known.Bindings) > len(objects) {
			t.Errorf("%d objects, but %+v", len(objects), known)
		}
	})
}
