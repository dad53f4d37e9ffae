package main

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/examples"
)

// trees are the examples, and how a cluster gets them.
func trees() map[string][]string {
	return map[string][]string{
		"hello":                    nil,
		"overlay/base":             nil,
		"overlay/production":       nil,
		"progressive":              {"--placement", "default/by-region"},
		"chart":                    nil,
		"registry":                 nil,
		"manifests":                nil,
		"node-exporter":            nil,
		"fleet-inventory":          nil,
		"config-policy-controller": nil,
		"cert-manager":             nil,
	}
}

// Every directory of the examples that holds YAML is tested: one that is added and
// forgotten here fails. What an AddOnPackage names is tested with it.
func TestEveryExampleDirectoryIsTested(t *testing.T) {
	var found []string
	err := fs.WalkDir(examples.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".yaml" && filepath.Dir(name) != "." && !strings.Contains(name, "/chart/") && !strings.HasPrefix(name, "manifests/manifests/") {
			found = append(found, filepath.Dir(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Compact(found) {
		if _, ok := trees()[dir]; !ok {
			t.Errorf("examples/%s is not tested", dir)
		}
	}
}

// TestReadmeLint: the README shows what lint says of examples/hello.
func TestReadmeLint(t *testing.T) {
	s := newStage(t)
	if code := s.run(t.Context(), "lint", "../../examples/hello"); code != 0 {
		t.Fatal(s.out.String())
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(strings.TrimSpace(s.err.String()), "../../", "")
	if !strings.Contains(string(readme), "$ addonflow lint examples/hello\n    "+strings.ReplaceAll(said, "\n", "\n    ")+"\n") {
		t.Errorf("the README does not show %q", said)
	}
}

func TestLintExamples(t *testing.T) {
	for dir := range trees() {
		t.Run(dir, func(t *testing.T) {
			s := newStage(t)
			if code := s.run(t.Context(), "lint", filepath.Join("../../examples", dir)); code != 0 {
				t.Errorf("exit code %d: %s%s", code, s.out.String(), s.err.String())
			}
			for line := range strings.Lines(s.err.String()) {
				if strings.Contains(line, "warning") && !strings.Contains(line, "the hub must have it") && (dir != "registry" || !strings.Contains(line, "the operator fetches it")) {
					t.Error(line)
				}
			}
		})
	}
}

func TestRenderExamples(t *testing.T) {
	for dir, flags := range trees() {
		t.Run(dir, func(t *testing.T) {
			s := newStage(t)
			args := append([]string{"render", filepath.Join("../../examples", dir), "--cluster", "eu-01"}, flags...)
			if dir == "registry" {
				if code := s.run(t.Context(), args...); code == 0 || !strings.Contains(s.err.String(), "its chart is in a registry, registry.example.com/charts/log-shipper") {
					t.Error(s.err.String())
				}
				return
			}
			if code := s.run(t.Context(), args...); code != 0 {
				t.Fatal(s.err.String())
			}
			objects := s.out.String()
			if strings.Contains(objects, "{{CLUSTER_NAME}}") || !strings.Contains(objects, "eu-01") {
				t.Errorf("the cluster's name is not filled in:\n%s", objects)
			}
			s.out.Reset()
			if code := s.run(t.Context(), append(args, "-o", "works")...); code != 0 {
				t.Fatal(s.err.String())
			}
			var work workv1.ManifestWork
			if err := yaml.UnmarshalStrict(s.out.Bytes(), &work); err != nil {
				t.Fatalf("%v in:\n%s", err, s.out.String())
			}
			if work.Namespace != "eu-01" || work.Kind != "ManifestWork" || len(work.Spec.Workload.Manifests) == 0 {
				t.Errorf("not a work of the cluster: %s", s.out.String())
			}
		})
	}
}

// TestRender_NamesTheAddOnsOfTheDirectory: a typo in --add-on is not taken for an empty directory.
func TestRender_NamesTheAddOnsOfTheDirectory(t *testing.T) {
	s := newStage(t)
	const want = `cannot find add-on "hallo" in ../../examples/hello; it has hello`
	if code := s.run(t.Context(), "render", "../../examples/hello", "--add-on", "hallo"); code != exitNotFound || !strings.Contains(s.err.String(), want) {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

// The output is long, so the test checks two facts of it.
func TestRenderOverlay(t *testing.T) {
	s := newStage(t)
	if code := s.run(t.Context(), "render", "../../examples/overlay/production"); code != 0 {
		t.Fatal(s.err.String())
	}
	for _, want := range []string{"image: mirror.example.com/node-metrics:1.4.0", "--receiver=https://metrics.example.com", "{{ $labels.node }} of cluster1"} {
		if !strings.Contains(s.out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, s.out.String())
		}
	}
}

// TestRenderInstallNamespace: what the user guide says of INSTALL_NAMESPACE, with the
// defaults that the hub would fill in.
func TestRenderInstallNamespace(t *testing.T) {
	for name, c := range map[string]struct{ config, want string }{
		"Default":  {"", "--greeting=open-cluster-management-agent-addon"},
		"Declared": {"  agentInstallNamespace: there\n", "--greeting=there"},
		"Yours":    {"  agentInstallNamespace: \"\"\n  customizedVariables: [{name: INSTALL_NAMESPACE, value: mine}]\n", "--greeting=mine"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := broken(t, "addontemplate.yaml", "{{GREETING}}", "{{INSTALL_NAMESPACE}}")
			config := "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnDeploymentConfig\nmetadata: {name: hello, namespace: default}\nspec:\n" +
				"  nodePlacement: {nodeSelector: {a: b}}\n" + c.config
			if err := os.WriteFile(filepath.Join(dir, "addondeploymentconfig.yaml"), []byte(config), 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStage(t)
			if code := s.run(t.Context(), "render", dir); code != 0 || !strings.Contains(s.out.String(), c.want) {
				t.Errorf("exit code %d, %q is missing in:\n%s%s", code, c.want, s.out.String(), s.err.String())
			}
		})
	}
}

func TestSourceExample(t *testing.T) {
	text, err := examples.Files.ReadFile("source.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var source v1alpha1.AddOnSource
	if err := yaml.UnmarshalStrict(text, &source); err != nil {
		t.Fatal(err)
	}
	if source.Namespace != corev1.NamespaceDefault || source.Spec.Path != "addons" {
		t.Errorf("unexpected source %+v", source.Spec)
	}
	if source.Spec.Prune {
		t.Error("the deletion of a source made from the example removes its add-ons from the fleet")
	}
}

// broken writes an example, hello unless file names another, with an edit into a directory
// of its own.
func broken(t *testing.T, file, from, to string) string {
	t.Helper()
	dir := t.TempDir()
	example, file := path.Split(file)
	err := fs.WalkDir(examples.Files, path.Clean(cmp.Or(example, "hello")), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := examples.Files.ReadFile(name)
		if err != nil {
			return err
		}
		if filepath.Base(name) == file {
			if !strings.Contains(string(text), from) {
				t.Fatalf("%s does not hold %q", file, from)
			}
			text = []byte(strings.Replace(string(text), from, to, 1))
		}
		return os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestLintProblems(t *testing.T) {
	for name, c := range map[string]struct {
		file, from, to string
		want           string
	}{
		"Variable":     {"addontemplate.yaml", "{{GREETING}}", "{{GRETING}}", "addontemplate.yaml:42: AddOnTemplate/hello: "},
		"UnknownField": {"addonrollout.yaml", "maxFailures", "maxFailure", "addonrollout.yaml:22: AddOnRollout/hello: "},
		"Pace":         {"addonrollout.yaml", "25%", "-25%", "addonrollout.yaml:20: AddOnRollout/hello: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			dir := broken(t, c.file, c.from, c.to)
			if code := s.run(t.Context(), "lint", dir); code != exitFailed {
				t.Errorf("exit code %d, want %d", code, exitFailed)
			}
			if got := s.out.String(); !strings.HasPrefix(got, c.want) || strings.Count(got, "\n") != 1 {
				t.Errorf("got %q, want one line that starts with %q", got, c.want)
			}
			if code := s.run(t.Context(), "render", dir); code != exitFailed {
				t.Errorf("render: exit code %d, want %d", code, exitFailed)
			}
		})
	}
}

// TestLintReadsOn: a file that cannot be read hides no problem of the other files, and its objects are not reported as
// missing.
func TestLintReadsOn(t *testing.T) {
	dir := broken(t, "addontemplate.yaml", "addonName: hello", "addonName: other")
	if err := os.WriteFile(filepath.Join(dir, "addondeploymentconfig.yaml"), []byte("a: b\n  c: d\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	if code := s.run(t.Context(), "lint", dir); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	got := strings.Split(strings.TrimSpace(s.out.String()), "\n")
	want := []string{"addondeploymentconfig.yaml:2: ", "clustermanagementaddon.yaml:"}
	if len(got) != len(want) || !strings.HasPrefix(got[0], want[0]) || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got %q, want lines that start with %q", got, want)
	}
	if text := s.err.String(); strings.Contains(text, "warning") || !strings.Contains(text, "2 problems") {
		t.Errorf("stderr is %q", text)
	}
}

// TestNothingToLint: a directory without any object is not a good commit.
func TestNothingToLint(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("# hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"lint", "render"} {
		s := newStage(t)
		if code := s.run(t.Context(), command, dir); code != exitNotFound || !strings.Contains(s.err.String(), "no *.yaml or *.yml file") {
			t.Errorf("%s: exit code %d, %q", command, code, s.err.String())
		}
	}
}

// TestLintNested: if the directory contains kustomizations in its subdirectories, or its kustomization needs files above
// it, the message names the directory to use instead.
func TestLintNested(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/overlay")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":           "taken twice: by the kustomizations in base and in production; let spec.path, or the argument of lint, be production, or list it in a kustomization.yaml at spec.path",
		"production": "the path ../base leaves the repository; the directory is in no Git work tree and so taken for the repository; name the one that holds both",
	} {
		s := newStage(t)
		if code := s.run(t.Context(), "lint", filepath.Join(dir, name)); code != exitFailed || !strings.Contains(s.out.String(), want) {
			t.Errorf("lint overlay/%s: exit code %d, %q does not hold %q", name, code, s.out.String(), want)
		}
	}
	if code := newStage(t).run(t.Context(), "lint", "../../examples/overlay/production"); code != 0 {
		t.Errorf("in a Git work tree: exit code %d", code)
	}
	put(t, dir, "kustomization.yaml", "resources: [production]\n")
	if code, out, _ := lintOf(t, dir); code != 0 {
		t.Errorf("with a kustomization that lists one of the two: exit code %d: %s", code, out)
	}
}

// What is not in the directory may be on the hub: a warning to lint, but nothing that
// can be rendered.
func TestMissingReference(t *testing.T) {
	dir := broken(t, "clustermanagementaddon.yaml", "      namespace: default\n      name: hello\n", "      namespace: default\n      name: elsewhere\n")
	s := newStage(t)
	if code := s.run(t.Context(), "lint", dir); code != 0 {
		t.Errorf("exit code %d: %s", code, s.out.String())
	}
	if want := "defaultConfig: AddOnDeploymentConfig default/elsewhere is not in the directory; the hub must have it"; !strings.Contains(s.err.String(), want) {
		t.Errorf("stderr %q does not hold %q", s.err.String(), want)
	}
	if code := s.run(t.Context(), "render", dir); code != exitFailed || s.out.Len() > 0 {
		t.Errorf("exit code %d, stdout %q", code, s.out.String())
	}
}

// TestLint_WarnsOfJobsThatTheAgentReplaces: OCM's work agent cannot update a Job.
func TestLint_WarnsOfJobsThatTheAgentReplaces(t *testing.T) {
	const job = "- {apiVersion: batch/v1, kind: Job, metadata: {name: migrate, namespace: default%s}, " +
		"spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: example.com/migrate}]}}}}\n"
	for name, tc := range map[string]struct {
		annotations, configs string
		warned               bool
	}{
		"by default":        {warned: true},
		"server-side apply": {configs: "    manifestConfigs: [{resourceIdentifier: {group: batch, resource: jobs, namespace: default, name: migrate}, updateStrategy: {type: ServerSideApply}}]\n"},
		"pre-delete hook":   {annotations: ", annotations: {addon.open-cluster-management.io/addon-pre-delete: ''}"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := broken(t, "addontemplate.yaml", "    workload:\n      manifests:\n", tc.configs+"    workload:\n      manifests:\n      "+fmt.Sprintf(job, tc.annotations))
			s := newStage(t)
			if code := s.run(t.Context(), "lint", dir); code != 0 {
				t.Errorf("exit code %d: %s", code, s.out.String())
			}
			if got := strings.Contains(s.err.String(), "OCM's work agent cannot update a Job: its spec is immutable; set updateStrategy ServerSideApply"); got != tc.warned {
				t.Errorf("warned: %t, want %t: %s", got, tc.warned, s.err.String())
			}
		})
	}
}

// TestLint_WarnsOfSecretsWithValues: what a template or chart brings is stored in Git and on the hub, where others can
// read it.
func TestLint_WarnsOfSecretsWithValues(t *testing.T) {
	const warning = "the values of Secret agent can be read in Git, in AddOnRevisions and in ManifestWorks; create the Secret on the managed clusters"
	for name, tc := range map[string]struct{ file, values, want string }{
		"stringData in a template": {"addontemplate.yaml", "stringData: {token: t0ps3cret}", "addontemplate.yaml:"},
		"data in a template":       {"addontemplate.yaml", "data: {token: dDBwczNjcmV0}", "addontemplate.yaml:"},
		"no values":                {"addontemplate.yaml", "type: Opaque", ""},
		"a chart":                  {"chart/chart/templates/secret.yaml", "stringData: {token: t0ps3cret}", "AddOnPackage/"},
	} {
		t.Run(name, func(t *testing.T) {
			secret := "{apiVersion: v1, kind: Secret, metadata: {name: agent, namespace: default}, " + tc.values + "}\n"
			dir := t.TempDir()
			if file, charted := strings.CutPrefix(tc.file, "chart/"); charted {
				example, err := fs.Sub(examples.Files, "chart")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.CopyFS(dir, example); err != nil {
					t.Fatal(err)
				}
				put(t, dir, file, secret)
			} else {
				dir = broken(t, tc.file, "      manifests:\n", "      manifests:\n      - "+secret)
			}
			code, out, hints := lintOf(t, dir)
			if code != 0 {
				t.Errorf("exit code %d: %s", code, out)
			}
			warned := 0
			for line := range strings.Lines(hints) {
				if strings.Contains(line, warning) && strings.Contains(line, tc.want) {
					warned++
				}
			}
			if warned != min(1, len(tc.want)) || strings.Contains(out+hints, "t0ps3cret") {
				t.Errorf("got %s", hints)
			}
		})
	}
}

// TestLintAndRender_RenderChartsWithinTheLimits: a chart that exhausts the memory ends in an error that names its template.
func TestLintAndRender_RenderChartsWithinTheLimits(t *testing.T) {
	example, err := fs.Sub(examples.Files, "chart")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, example); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "chart/templates/exhausts.yaml", "{{ toJson (until 50000000) }}")
	for _, command := range []string{"lint", "render"} {
		s := newStage(t)
		code := s.run(t.Context(), command, dir)
		if said := s.out.String() + s.err.String(); code != exitFailed || !strings.Contains(said, "templates/exhausts.yaml") || !strings.Contains(said, "MiB of memory to render") {
			t.Errorf("%s: exit code %d: %s", command, code, said)
		}
	}
}

// TestSpacedVariable: braces with spaces are text. If there is a variable of that name, lint warns with the line.
func TestSpacedVariable(t *testing.T) {
	dir := broken(t, "addontemplate.yaml", "{{GREETING}}", "{{ GREETING }} {{ CLUSTER_NAME}} {{ $labels.job }} {{ other }}")
	s := newStage(t)
	if code := s.run(t.Context(), "lint", dir); code != 0 {
		t.Errorf("exit code %d: %s", code, s.out.String())
	}
	said := s.err.String()
	for _, name := range []string{"GREETING", "CLUSTER_NAME"} {
		want := ": AddOnTemplate/hello: spec.agentSpec.workload.manifests[1].spec.template.spec.containers[0].args[0]: {{ " + name + " }} is kept as text; write {{" + name + "}} for the value of the variable\n"
		if !strings.Contains(said, "warning: addontemplate.yaml:42"+want) {
			t.Errorf("stderr %q does not hold %q", said, want)
		}
	}
	if n := strings.Count(said, "is kept as text"); n != 2 {
		t.Errorf("%d warnings in %q", n, said)
	}
	if code := s.run(t.Context(), "render", dir); code != 0 || !strings.Contains(s.out.String(), "{{ GREETING }} {{ CLUSTER_NAME}} {{ $labels.job }} {{ other }}") {
		t.Errorf("exit code %d; not kept as it is: %s", code, s.out.String())
	}
}

// TestLint_WarnsOfPatchesThatMatchNothing: kustomize accepts such a patch and drops it, so lint warns and refuses nothing.
func TestLint_WarnsOfPatchesThatMatchNothing(t *testing.T) {
	dir := broken(t, "addonrollout.yaml", "", "")
	text := "resources: [addontemplate.yaml, addondeploymentconfig.yaml, clustermanagementaddon.yaml, addonrollout.yaml]\n" +
		"patches:\n- target: {kind: AddOnRollout, name: helo}\n  patch: '[{op: remove, path: /spec/stages/0}]'\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newStage(t)
	code := s.run(t.Context(), "lint", dir)
	if want := "warning: kustomization.yaml:3: patches[0].target: matches no object: the patch changes nothing; "; code != 0 || !strings.Contains(s.err.String(), want) {
		t.Errorf("exit code %d, stderr %q does not hold %q", code, s.err.String(), want)
	}
}

func TestRenderUsage(t *testing.T) {
	for args, want := range map[string]int{
		"render nowhere": exitNotFound,
		"lint nowhere":   exitNotFound,
		"render ../../examples/chart --kube-version garbage":             exitUsage,
		"render ../../examples/chart --kube-version 1.32.1":              0,
		"lint ../../examples/source.yaml":                                exitUsage,
		"render ../../examples/hello --cluster Bad_Name":                 exitUsage,
		"render ../../examples/hello -o json":                            exitUsage,
		"render ../../examples/hello --placement all":                    exitUsage,
		"render ../../examples/hello --placement default/absent":         exitFailed,
		"render ../../examples/hello --add-on other":                     exitNotFound,
		"render ../../examples/progressive":                              exitFailed,
		"render ../../examples/hello --placement default/all --add-on=":  0,
		"render ../../examples/hello --image-registries {} --cluster x1": 0,
	} {
		t.Run(args, func(t *testing.T) {
			s := newStage(t)
			if got := s.run(t.Context(), strings.Fields(args)...); got != want {
				t.Errorf("exit code %d, want %d; %s", got, want, s.err.String())
			}
		})
	}
}

func TestVersion_IsPrinted(t *testing.T) {
	s := newStage(t)
	if code := s.run(t.Context(), "version"); code != 0 || !strings.HasPrefix(s.out.String(), "addonflow ") {
		t.Error(gocmp.Diff("addonflow ...", s.out.String()))
	}
}
