package docs_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/controllers/addonsource"
	"github.com/addonflow/addonflow/controllers/renderworker"
	"github.com/addonflow/addonflow/examples"
	"github.com/addonflow/addonflow/gitsource"
	"github.com/addonflow/addonflow/render/load"
)

var update = flag.Bool("update", false, "write the messages in bad-inputs.md anew; commit the difference only if it reads well")

const (
	source   = "addondeploymentconfig.yaml"
	rollout  = "addonrollout.yaml"
	template = "addontemplate.yaml"
	addOn    = "clustermanagementaddon.yaml"
	kustom   = "kustomization.yaml"
	resource = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- addontemplate.yaml\n"
)

// badInput is one way to get an example wrong.
type badInput struct {
	what string
	// in file, from is replaced by to; without from, the file is added.
	file, from, to string
}

// packaged is the section that is about examples/chart; the others are about
// examples/hello.
const packaged = "Packages (in `examples/chart`)"

// badPackages are the rows about an AddOnPackage.
func badPackages() []badInput {
	const (
		pkg    = "addonpackage.yaml"
		daemon = "chart/templates/daemonset.yaml"
		args   = "        - --cluster="
	)
	line := func(text string) string { return "        - " + text + "\n" + args }
	return []badInput{
		{"an unknown field", pkg, "  helm:", "  chart:"},
		{"a missing folder", pkg, "path: chart", "path: charts"},
		{"a folder outside the repository", pkg, "path: chart", "path: ../../chart"},
		{"a folder that holds the package", pkg, "path: chart", "path: ."},
		{"a chart by tag", pkg, "path: chart", "oci: registry.example.com/charts/log-shipper:1.4.2"},
		{"two places of a chart", pkg, "    path: chart\n", "    path: chart\n    oci: registry.example.com/charts/log-shipper@sha256:" + strings.Repeat("a", 64) + "\n"},
		{"a folder without a chart", "chart/Chart.yaml", "name: log-shipper\n", ""},
		{"a missing value file", pkg, "values-fleet.yaml", "values-prod.yaml"},
		{"a value file with invalid YAML", "values-fleet.yaml", "agent:", "agent: {"},
		{"a missing add-on", pkg, "addOn: log-shipper", "addOn: logshipper"},
		{"a package and a template", "clustermanagementaddon.yaml", "  supportedConfigs:\n", "  supportedConfigs:\n  - group: addon.open-cluster-management.io\n    resource: addontemplates\n"},
		{"a function that does not exist", daemon, args, line("{{ shout .Values.receiver }}")},
		{"a field of a missing value", daemon, args, line("{{ .Values.sink.url }}")},
		{"a template that does not end", daemon, "      {{- end }}\n", ""},
		{"invalid YAML after rendering", daemon, "kind: DaemonSet", "kind: DaemonSet: x"},
		{"a value the chart's schema refuses", "values-fleet.yaml", "https://", "http://"},
		{"a value that is built in", pkg, "  values:\n", "  values:\n    clusterName: x\n"},
		{"a field that Kubernetes does not know", daemon, "      containers:\n", "      hostnetwork: true\n      containers:\n"},
		{"a variable of another type", "addondeploymentconfig.yaml", `value: "2"`, `value: "many"`},
		{"random numbers", daemon, args, line("{{ randAlphaNum 8 }}")},
		{"the time", daemon, args, line("{{ now }}")},
		{"a lookup on the cluster", daemon, args, line(`{{ (lookup "v1" "Namespace" "" "x").metadata }}`)},
		{"a lookup on the network", daemon, args, line(`{{ getHostByName "example.com" }}`)},
		{"the order of a map", daemon, args, line(`{{ keys .Values | join "," }}`)},
		{"a loop without an end", daemon, args, line(`{{ $l := until 10000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}`)},
		{"a hook", "chart/templates/serviceaccount.yaml", "metadata:\n", "metadata:\n  annotations: {helm.sh/hook: pre-install}\n"},
		{"a dependency that is not committed", "chart/Chart.yaml", "type: application", "dependencies:\n- {name: common, version: 1.x.x, repository: https://charts.example.com}\ntype: application"},
		{"a schema from elsewhere", "chart/values.schema.json", `{"type": "string", "minLength": 1}`, `{"$ref": "https://example.com/image.json"}`},
		{"a file that is too large", "chart/logo.svg", "", strings.Repeat("x", 1<<20+1)},
	}
}

// badInputs are the rows of the document, in its order, by section.
func badInputs() []struct {
	title string
	rows  []badInput
} {
	health := func(prober, kind, current string) string {
		return "spec:\n  health:\n    prober: " + prober + "\n    healthCheckExprs:\n    - apiVersion: apps/v1\n      kind: " + kind + "\n      current: " + current + "\n"
	}
	pace := func(text string) string { return "      name: all\n      rolloutStrategy:\n        " + text }
	return []struct {
		title string
		rows  []badInput
	}{
		{"YAML", []badInput{
			{"a tab as indentation", source, "  name: hello", "\tname: hello"},
			{"a duplicate key", source, "  name: hello", "  name: hello\n  name: hello"},
			{"a file without an object", "notes.yaml", "", "hello\n"},
			{"a custom tag", "notes.yaml", "", "a: !foo b\n"},
			{"a variable without quotes", template, "replicas: 1", "replicas: {{N}}"},
			{"a value that YAML reads as a boolean or number", source, "value: Hello from Git", "value: no"},
			{"a file encrypted with sops", "settings.yaml", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nsops: {mac: x}\n"},
			{"a file in Git LFS", "big.yaml", "", "version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 12\n"},
		}},
		{"Kustomize", []badInput{
			{"a remote base", kustom, "", resource + "- https://example.com/base.yaml\n"},
			{"a chart", kustom, "", resource + "helmCharts:\n- name: x\n"},
			{"a plugin", kustom, "", resource + "transformers:\n- |-\n  apiVersion: example.com/v1\n  kind: Mine\n  metadata: {name: x}\n"},
			{"a path outside the repository", kustom, "", resource + "- ../../elsewhere\n"},
			{"a missing file", kustom, "", resource + "- nothere.yaml\n"},
			{"a deprecated field", kustom, "", resource + "vars: []\n"},
			{"a field that does not exist", kustom, "", resource + "resource: []\n"},
			{"a patch of a missing object", kustom, "", resource + "patches:\n- patch: '{apiVersion: v1, kind: Namespace, metadata: {name: x}}'\n"},
		}},
		{"Fields and kinds", []badInput{
			{"an unknown field", source, "customizedVariables", "customisedVariables"},
			{"a field in another case", source, "customizedVariables", "CustomizedVariables"},
			{"an unsupported kind", "secret.yaml", "", "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: default}\n"},
			{"an object that is declared twice", "again.yaml", "", "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {name: hello}\nspec: {addonName: hello, agentSpec: {workload: {manifests: []}}}\n"},
			{"a misspelt annotation of AddonFlow", addOn, "  name: hello\n", "  name: hello\n  annotations: {addonflow.io/merge-confgs: 'true'}\n"},
			{"a field that AddonFlow writes", rollout, "  stages:", "  target: {source: a, revision: b, digest: c, commit: d}\n  stages:"},
		}},
		{"References", []badInput{
			{"an AddOnRollout without its add-on", rollout, "name: hello", "name: helo"},
			{"a template of another add-on", template, "addonName: hello", "addonName: other"},
			{"no template for a placement", addOn, "    defaultConfig:\n      name: hello\n  - group", "  - group"},
			{"a Secret as configuration", addOn, "  installStrategy:", "  - resource: secrets\n  installStrategy:"},
			{"a placement listed twice", addOn, "      name: all", "      name: all\n    - namespace: default\n      name: all"},
		}},
		{"Paces", []badInput{
			{"a negative number", rollout, "maxConcurrency: 25%", "maxConcurrency: -1"},
			{"a fraction", rollout, "maxConcurrency: 25%", "maxConcurrency: 1.5"},
			{"a number that YAML reads as another", rollout, "maxConcurrency: 25%", "maxConcurrency: 025"},
			{"0 in a strategy", addOn, "      name: all", pace("type: Progressive\n        progressive:\n          maxConcurrency: 0")},
			{"a soak with All", addOn, "      name: all", pace("type: All\n        all:\n          minSuccessTime: 5m")},
			{"a block without its type", addOn, "      name: all", pace("progressive:\n          maxConcurrency: 3")},
			{"days as a deadline", rollout, "progressDeadline: 30m", "progressDeadline: 5d"},
			{"a word that a field does not know", rollout, "  stages:", "  onFailure: Foo\n  stages:"},
			{"an entry that blocks nothing", rollout, "  stages:", "  blocked: [{reason: leaks memory}]\n  stages:"},
			{"a gate that never asks", rollout, "    minSuccessTime: 10m", "    gates: {during: [{name: errors, type: webhook, failures: 0, webhook: {url: 'https://x.example'}}]}\n    minSuccessTime: 10m"},
			{"days as a soak", rollout, "minSuccessTime: 10m", "minSuccessTime: 5d"},
			{"a soak without an end", rollout, "minSuccessTime: 10m", "minSuccessTime: 9999999h"},
			{"two stages of one name", rollout, "name: everyone", "name: canary"},
			{"an add-on that depends on itself", rollout, "  stages:", "  dependsOn:\n  - addOn: hello\n  stages:"},
			{"labels beside placements", rollout, "  stages:", "  clusterLabelSelector: {matchLabels: {region: eu}}\n  stages:"},
		}},
		{"Health", []badInput{
			{"an unknown prober", rollout, "spec:\n", "spec:\n  health: {prober: Pods}\n"},
			{"expressions without prober CEL", rollout, "spec:\n", health("Work", "Deployment", "feedback.ReadyReplicas >= 1")},
			{"an unknown name", rollout, "spec:\n", health("CEL", "Deployment", "status.readyReplicas >= 1")},
			{"an expression that is not a boolean", rollout, "spec:\n", health("CEL", "Deployment", "feedback.ReadyReplicas")},
			{"an expression that is always true", rollout, "spec:\n", health("CEL", "Deployment", "feedback.ReadyReplicas >= 1 || true")},
			{"an expression that reads an unknown field of a condition", rollout, "spec:\n", health("CEL", "Deployment", "conditions.Available.lastTransitionTime != ''")},
			{"an expression that does not read the cluster", rollout, "spec:\n", health("CEL", "Deployment", "metadata.name == 'hello'")},
			{"feedback without a rule", rollout, "spec:\n", health("CEL", "Deployment", "feedback.readyReplicas >= 1")},
			{"nested loops", rollout, "spec:\n", health("CEL", "Deployment", "feedback.all(a, feedback.all(b, feedback.all(c, a != b)))")},
			{"an object that is in no template", rollout, "spec:\n", health("CEL", "DaemonSet", "feedback.NumberReady >= 1")},
		}},
		{"Variables", []badInput{
			{"a variable without a value", template, "{{GREETING}}", "{{GRETING}}"},
			{"an invalid name", source, "name: GREETING", "name: 9LIVES"},
			{"a built-in variable", source, "name: GREETING", "name: CLUSTER_NAME"},
		}},
		{"Manifests of a template", []badInput{
			{"no name", template, "          name: hello\n", ""},
			{"a field that the API server sets", template, "          name: hello\n", "          name: hello\n          uid: x\n"},
			{"a string for a number", template, "replicas: 1", "replicas: three"},
			{"a variable for a number", template, "replicas: 1", "replicas: '{{GREETING}}'"},
			{"a value that is not a list", template, "            containers:\n", "            volumes: 80\n            containers:\n"},
			{"a field that Kubernetes does not know", template, "replicas: 1", "replica: 1"},
			{"a kind that Kubernetes does not have", template, "kind: Deployment", "kind: Deploymnt"},
			{"a kind of another group", template, "apiVersion: apps/v1", "apiVersion: v1"},
			{"a selector of other pods", template, "            matchLabels:\n              app: hello", "            matchLabels:\n              app: helo"},
			{"an image without its tag", template, "image: registry.example.com/hello:v1", "image: 'registry.example.com/hello:'"},
			{"a port in quotes", template, "port: 8080", "port: '8080'"},
			{"a word in another case", template, "        spec:\n          replicas: 1", "        spec:\n          strategy: {type: recreate}"},
			{"an executor without its service account", template, "  agentSpec:\n", "  agentSpec:\n    executor: {subject: {type: ServiceAccount}}\n"},
			{"too large for a work", template, "{{GREETING}}", strings.Repeat("x", 600_000)},
		}},
		{"Registration", badRegistrations()},
		{packaged, badPackages()},
	}
}

// badRegistrations are the rows about what a template asks for its agents.
func badRegistrations() []badInput {
	row := func(what, blocks string) badInput {
		return badInput{what, template, "  agentSpec:", "  registration:\n" + blocks + "\n  agentSpec:"}
	}
	role := func(permission string) string {
		return "  - {type: KubeClient, kubeClient: {hubPermissions: [" + permission + "]}}"
	}
	in := func(namespace string) string {
		return role("{type: SingleNamespace, singleNamespace: {namespace: " + namespace + ", roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}}}")
	}
	subject := func(subject string) string {
		return "  - {type: CustomSigner, customSigner: {signerName: example.com/a, signingCA: {name: ca}, subject: " + subject + "}}"
	}
	return []badInput{
		row("a signer without its authority", "  - {type: CustomSigner, customSigner: {signerName: example.com/a}}"),
		row("a role that is never granted", role("{type: CurrentCluster, currentCluster: {clusterRoleName: cluster-admin}}")),
		row("a role of Kubernetes", role("{type: CurrentCluster, currentCluster: {clusterRoleName: 'system:node'}}")),
		row("a role in a namespace of Kubernetes", in("kube-system")),
		row("a role in an impossible namespace", in("Team_A")),
		row("an impossible name of a role", role("{type: CurrentCluster, currentCluster: {clusterRoleName: hello/agent}}")),
		row("a user of Kubernetes", subject("{user: 'system:admin'}")),
		row("a group of Kubernetes", subject("{user: a, groups: ['system:masters']}")),
	}
}

// treeOf is an example, by paths below it.
func treeOf(t *testing.T, example string) map[string]string {
	t.Helper()
	tree := map[string]string{}
	err := fs.WalkDir(examples.Files, example, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := examples.Files.ReadFile(name)
		tree[strings.TrimPrefix(name, example+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// lint checks a directory as `addonflow lint` does.
func lint(t *testing.T, tree map[string]string) problem.List {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil { // a work tree, as what is committed is
		t.Fatal(err)
	}
	for name, content := range tree {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	local, err := gitsource.TreeFromDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	objects, unread := local.Build(t.Context(), gitsource.BuildOptions{})
	limits := renderworker.DefaultLimits()
	limits.Deadline = time.Hour // a busy machine takes long over ten seconds of CPU time
	charts := renderworker.NewPool(renderworker.Options{Limits: limits})
	defer charts.Close()
	_, problems := addonsource.Compile(objects, nil, addonsource.CompileOptions{Unread: unread, Options: load.Options{Charts: charts.For(dir)}})
	return problems
}

// TestMain makes of the test binary a child that renders charts. Otherwise it expects that the tests leave no
// goroutine behind.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == renderworker.Command {
		if err := renderworker.Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// TestBadInputs compares the messages in bad-inputs.md with those of lint.
func TestBadInputs(t *testing.T) {
	var b strings.Builder
	for _, section := range badInputs() {
		fmt.Fprintf(&b, "\n## %s\n\n| what | message |\n|---|---|\n", section.title)
		example := "hello"
		if section.title == packaged {
			example = "chart"
		}
		for _, in := range section.rows {
			fmt.Fprintf(&b, "| %s | %s |\n", in.what, in.message(t, treeOf(t, example)))
		}
	}
	const begin, end = "<!-- begin: go test ./docs -update -->\n", "\n<!-- end -->"
	document := text(t, "docs/bad-inputs.md")
	before, rest, opened := strings.Cut(document, begin)
	got, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("bad-inputs.md has no lines %q and %q", begin, end)
	}
	if diff := cmp.Diff(b.String(), got); diff != "" {
		if *update {
			if err := os.WriteFile("bad-inputs.md", []byte(before+begin+b.String()+end+after), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("run go test ./docs -update and read the difference (-lint +document):\n%s", diff)
	}
}

// message is the first thing lint says about the input, as a cell of a table.
func (in badInput) message(t *testing.T, tree map[string]string) string {
	t.Helper()
	if in.from == "" && tree[in.file] == "" {
		tree[in.file] = in.to
	} else {
		if !strings.Contains(tree[in.file], in.from) {
			t.Fatalf("%s: %s has no %q", in.what, in.file, in.from)
		}
		tree[in.file] = strings.Replace(tree[in.file], in.from, in.to, 1)
	}
	problems := lint(t, tree)
	if len(problems) == 0 {
		t.Fatalf("%s: lint has nothing against it", in.what)
	}
	return "`" + strings.ReplaceAll(problems[0].String(), "|", `\|`) + "`"
}
