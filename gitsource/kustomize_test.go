package gitsource

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/addonflow/addonflow/api/problem"
)

// fields is every place in a kustomization from which kustomize reads a path or URL; %s is the
// placeholder for it. The value is the reason with which a URL is refused.
var fields = map[string]struct {
	text   string
	reason problem.Reason
}{
	"resources":                   {"resources: [%q]", RemoteResourceDenied},
	"components":                  {"components: [%q]", RemoteResourceDenied},
	"bases":                       {"bases: [%q]", RemoteResourceDenied},
	"configurations":              {"configurations: [%q]", RemoteResourceDenied},
	"crds":                        {"crds: [%q]", RemoteResourceDenied},
	"openapi":                     {"openapi: {path: %q}", RemoteResourceDenied},
	"openapi.version":             {"resources: [a.yaml]\nopenapi: {version: %q}", RenderFailed},
	"patches":                     {"patches: [{path: %q}]", RemoteResourceDenied},
	"patches.patch":               {"resources: [a.yaml]\npatches: [{patch: %q, target: {kind: ConfigMap}}]", RenderFailed},
	"patchesJson6902.patch":       {"resources: [a.yaml]\npatchesJson6902: [{patch: %q, target: {kind: ConfigMap, name: a, version: v1}}]", RenderFailed},
	"patchesStrategicMerge":       {"patchesStrategicMerge: [%q]", RemoteResourceDenied},
	"patchesJson6902":             {"patchesJson6902: [{path: %q, target: {kind: ConfigMap, name: a, version: v1}}]", RemoteResourceDenied},
	"replacements":                {"replacements: [{path: %q}]", RemoteResourceDenied},
	"configMapGenerator.files":    {"configMapGenerator: [{name: g, files: [%q]}]", RemoteResourceDenied},
	"configMapGenerator.envs":     {"configMapGenerator: [{name: g, envs: [%q]}]", RemoteResourceDenied},
	"configMapGenerator.env":      {"configMapGenerator: [{name: g, env: %q}]", RemoteResourceDenied},
	"secretGenerator.files":       {"secretGenerator: [{name: g, files: [%q]}]", RemoteResourceDenied},
	"secretGenerator.envs":        {"secretGenerator: [{name: g, envs: [%q]}]", RemoteResourceDenied},
	"secretGenerator.env":         {"secretGenerator: [{name: g, env: %q}]", RemoteResourceDenied},
	"generators":                  {"generators: [%q]", RemoteResourceDenied},
	"transformers":                {"transformers: [%q]", RemoteResourceDenied},
	"validators":                  {"validators: [%q]", RemoteResourceDenied},
	"helmCharts":                  {"helmCharts: [{name: c, repo: %q}]", PluginDenied},
	"helmCharts.valuesFile":       {"helmCharts: [{name: c, valuesFile: %q}]", PluginDenied},
	"helmGlobals":                 {"helmGlobals: {chartHome: %q}", PluginDenied},
	"helmChartInflationGenerator": {"helmChartInflationGenerator: [{chartName: c, chartRepoUrl: %q}]", PluginDenied},
	"keyed files":                 {"configMapGenerator: [{name: g, files: [%q]}]", RemoteResourceDenied},
	"inline patch plugin": {
		"transformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, path: %q, target: {kind: ConfigMap}}", PluginDenied,
	},
	"inline plugin in another case": {
		"transformers:\n- |-\n  {apiVersion: builtin, kind: PatchTransformer, metadata: {name: p}, Path: %q, target: {kind: ConfigMap}}", PluginDenied,
	},
	"inline generator": {
		"generators:\n- |-\n  {apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: p}, files: [%q]}", PluginDenied,
	},
	"inline helm": {
		"generators:\n- |-\n  {apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: p}, name: c, repo: %q}", PluginDenied,
	},
	"a URL that is YAML": {"patchesStrategicMerge: [\"%s: {kind: x}\"]", RemoteResourceDenied},
}

// intruder listens for every way kustomize could leave the repository: HTTP, and
// programs on the PATH.
type intruder struct {
	url  string
	hits atomic.Int32
	runs string
}

func watch(t *testing.T) *intruder {
	t.Helper()
	i := &intruder{runs: filepath.Join(t.TempDir(), "runs")}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.hits.Add(1)
		_, _ = w.Write([]byte(configMap("remote", "v")))
	}))
	t.Cleanup(s.Close)
	i.url = s.URL
	bin := t.TempDir()
	for _, program := range []string{"git", "helm", "docker", "podman", "sh", "bash"} {
		script := "#!/bin/sh\necho \"$0 $*\" >> " + i.runs + "\nexit 1\n"
		if err := os.WriteFile(filepath.Join(bin, program), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	return i
}

func (i *intruder) check(t *testing.T) {
	t.Helper()
	if n := i.hits.Load(); n != 0 {
		t.Errorf("%d requests reached the server", n)
	}
	if ran, err := os.ReadFile(i.runs); err == nil {
		t.Errorf("programs ran: %s", ran)
	}
}

// TestKustomizeWouldFetch proves that the intruder notices a fetch: kustomize by itself does
// fetch.
func TestKustomizeWouldFetch(t *testing.T) {
	i := watch(t)
	for _, resource := range []string{i.url + "/x.yaml", "git@127.0.0.1:a/b"} {
		fs := filesys.MakeFsInMemory()
		if err := fs.WriteFile("/kustomization.yaml", fmt.Appendf(nil, "resources: [%q]\n", resource)); err != nil {
			t.Fatal(err)
		}
		_, _ = runKustomize(t.Context(), fs, "/")
	}
	ran, err := os.ReadFile(i.runs)
	if i.hits.Load() == 0 || err != nil || len(ran) == 0 {
		t.Errorf("kustomize made %d requests and ran %q: this test would not notice it", i.hits.Load(), ran)
	}
}

// TestURLsInKustomizationsAreRefusedWithoutARequest: every field that could carry a URL, in every spelling, is refused with a
// named error and without a request.
func TestURLsInKustomizationsAreRefusedWithoutARequest(t *testing.T) {
	i := watch(t)
	host := strings.TrimPrefix(i.url, "http://")
	spellings := []string{
		i.url + "/x.yaml", "HTTP://" + host + "/x.yaml", "git::" + i.url + "/a/b.git", i.url + "/a/b?ref=main", i.url + "//a/b",
		"ssh://git@" + host + "/a/b", "git@" + host + ":a/b.git", "ana:" + canary + "@" + host + "/a/b", "github.com/kubernetes-sigs/kustomize",
		"GitHub.com:kubernetes-sigs/kustomize", "file:///etc/passwd", "http://ana:" + canary + "@" + host + "/x.yaml?token=" + canary,
	}
	for name, field := range fields {
		t.Run(name, func(t *testing.T) {
			for _, url := range spellings {
				if name == "keyed files" {
					url = "key=" + url
				}
				text := field.text
				if name == "a URL that is YAML" {
					text = strings.ReplaceAll(text, "%s", "%[1]s")
				}
				problems := buildWith(t, fmt.Sprintf(text, url))
				if !hasReason(problems, field.reason) {
					t.Errorf("%s: got %v, want %s", url, lines(problems), field.reason)
				}
				for _, p := range problems {
					if strings.Contains(p.String(), canary) {
						t.Errorf("%s: the problem shows a secret: %s", url, p)
					}
				}
			}
		})
	}
	i.check(t)
}

// buildWith builds a directory with a kustomization, a resource and what else is given.
func buildWith(t *testing.T, kustomization string, more ...string) problem.List {
	t.Helper()
	files := tree{"kustomization.yaml": kustomization + "\n", "a.yaml": configMap("a", "v")}
	for pair := range slices.Chunk(more, 2) {
		files[pair[0]] = pair[len(pair)-1]
	}
	_, problems := files.local(t).Build(t.Context(), BuildOptions{})
	return problems
}

func hasReason(problems problem.List, r problem.Reason) bool {
	for _, p := range problems {
		if p.Reason == r {
			return true
		}
	}
	return false
}

// TestURLsInNamedFilesAreRefusedWithoutARequest: a URL in a file that a kustomization names is refused in the same way;
// text that kustomize reads as plain text is not.
func TestURLsInNamedFilesAreRefusedWithoutARequest(t *testing.T) {
	i := watch(t)
	url := i.url + "/x.yaml"
	plugin := "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: p}\npath: " + url + "\ntarget: {kind: ConfigMap}\n"
	for name, c := range map[string]struct {
		kustomization string
		file          string
		want          problem.Reason
	}{
		"a nested kustomization":  {"resources: [sub]", "resources: [" + url + "]\n", RemoteResourceDenied},
		"a component's resource":  {"resources: [a.yaml]\ncomponents: [sub]", "kind: Component\nresources: [" + url + "]\n", RemoteResourceDenied},
		"a component's patch":     {"resources: [a.yaml]\ncomponents: [sub]", "kind: Component\npatches: [{path: " + url + "}]\n", RemoteResourceDenied},
		"a component's env file":  {"resources: [a.yaml]\ncomponents: [sub]", "kind: Component\nsecretGenerator: [{name: s, envs: [" + url + "]}]\n", RemoteResourceDenied},
		"a component's component": {"resources: [a.yaml]\ncomponents: [sub]", "kind: Component\ncomponents: [" + url + "]\n", RemoteResourceDenied},
		"a replacement's file":    {"resources: [a.yaml]\nreplacements: [{path: sub/kustomization.yaml}]", "- path: " + url + "\n", ""},
		"a configuration's file":  {"resources: [a.yaml]\nconfigurations: [sub/kustomization.yaml]", "namePrefix: [{path: '" + url + "'}]\n", ""},
		"a transformer's file":    {"resources: [a.yaml]\ntransformers: [sub/kustomization.yaml]", plugin, PluginDenied},
		"a transformer's base":    {"resources: [a.yaml]\ntransformers: [sub]", "resources: [../a.yaml]\n", RenderFailed},
		"a crd's schema":          {"resources: [a.yaml]\ncrds: [sub/kustomization.yaml]", "{\"x\": {\"Schema\": {\"properties\": {\"spec\": {\"$ref\": \"" + url + "\"}}}}}", ""},
		"an OpenAPI schema":       {"resources: [a.yaml]\nopenapi: {path: sub/kustomization.yaml}", "{\"definitions\": {\"x\": {\"$ref\": \"" + url + "\"}}}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems := buildWith(t, c.kustomization, "sub/kustomization.yaml", c.file)
			if c.want != "" && !hasReason(problems, c.want) {
				t.Errorf("got %v, want %s", lines(problems), c.want)
			}
		})
	}
	i.check(t)
}

// TestEveryPathField fails when a new version of kustomize adds a field that is not listed
// here.
func TestEveryPathField(t *testing.T) {
	// The fields that hold no path. Fields with a path are in references or refused.
	text := []string{
		"TypeMeta", "MetaData", "NamePrefix", "NameSuffix", "Namespace", "CommonLabels", "Labels", "CommonAnnotations",
		"Images", "ImageTags", "Replicas", "SortOptions", "GeneratorOptions", "BuildMetadata",
	}
	paths := []string{
		"OpenAPI", "PatchesStrategicMerge", "PatchesJson6902", "Patches", "Replacements", "Vars", "Resources", "Components", "Crds", "Bases",
		"ConfigMapGenerator", "SecretGenerator", "HelmGlobals", "HelmCharts", "HelmChartInflationGenerator", "Configurations", "Generators",
		"Transformers", "Validators",
	}
	var got []string
	for field := range reflect.TypeFor[types.Kustomization]().Fields() {
		got = append(got, field.Name)
	}
	known := map[string]bool{}
	for _, name := range append(text, paths...) {
		known[name] = true
	}
	for _, name := range got {
		if !known[name] {
			t.Errorf("kustomize has a field %s: does it hold a path?", name)
		}
	}
	for _, s := range []reflect.Type{
		reflect.TypeFor[types.KvPairSources](), reflect.TypeFor[types.Patch](), reflect.TypeFor[types.ReplacementField](),
		reflect.TypeFor[types.GeneratorArgs](), reflect.TypeFor[types.ConfigMapArgs](), reflect.TypeFor[types.SecretArgs](),
	} {
		want := map[string]int{
			"KvPairSources": 4, "Patch": 4, "ReplacementField": 2, "GeneratorArgs": 5, "ConfigMapArgs": 1, "SecretArgs": 2,
		}[s.Name()]
		if s.NumField() != want {
			t.Errorf("kustomize's %s has %d fields, %d were looked at", s.Name(), s.NumField(), want)
		}
	}
}

// TestKustomizeFailureNamesTheInnermostKustomization: kustomize wraps its error in one sentence
// for each directory on the way.
func TestKustomizeFailureNamesTheInnermostKustomization(t *testing.T) {
	const misses = "patches:\n- patch: '[{op: replace, path: /data/nothing/x, value: y}]'\n  target: {kind: ConfigMap}\n"
	const says = "replace operation does not apply: doc is missing path: /data/nothing/x: missing value"
	base := []string{"base/kustomization.yaml", "resources: [b.yaml]\n" + misses, "base/b.yaml", configMap("b", "v")}
	for name, c := range map[string]struct {
		kustomization string
		more          []string
		in            string
	}{
		"the only one": {"resources: [a.yaml]\n" + misses, nil, "kustomization.yaml:3"},
		"a base":       {"resources: [a.yaml, base]", base, "base/kustomization.yaml:3"},
		"a base below a base": {
			"resources: [über]", append(base, "über/kustomization.yaml", "resources: [../base]\n"), "base/kustomization.yaml:3",
		},
		"a component": {"resources: [a.yaml]\ncomponents: [c]", []string{"c/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" + misses}, "c/kustomization.yaml:4"},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(buildWith(t, c.kustomization, c.more...))
			if diff := cmp.Diff([]string{"RenderFailed " + c.in + ": patches[0].patch: " + says}, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestKustomizeProblems(t *testing.T) {
	const useFields = "; use the kustomization's own fields"
	const onlyThese = "is not allowed; only these are: AnnotationsTransformer, ImageTagTransformer, LabelTransformer, NamespaceTransformer, PrefixTransformer, ReplicaCountTransformer, SuffixTransformer" + useFields
	for name, c := range map[string]struct {
		kustomization string
		more          []string
		want          []string
	}{
		"unknown field":     {"resources: [a.yaml]\nresource: [b.yaml]", nil, []string{`RenderFailed kustomization.yaml:2: invalid Kustomization: unknown field "resource"`}},
		"wrong case":        {"Resources: [a.yaml]", nil, []string{`RenderFailed kustomization.yaml:1: invalid Kustomization: unknown field "Resources"`}},
		"further down":      {"resources: [a.yaml]\npatches:\n- path: p.yaml\n  paths: [x]", []string{"p.yaml", "[]"}, []string{`RenderFailed kustomization.yaml:4: invalid Kustomization: unknown field "patches[0].paths"`}},
		"bases":             {"bases: [b]", nil, []string{"RenderFailed kustomization.yaml:1: bases: 'bases' is deprecated; use 'resources' instead"}},
		"vars":              {"resources: [a.yaml]\nvars: [{name: X, objref: {kind: ConfigMap, name: a, apiVersion: v1}}]", nil, []string{"RenderFailed kustomization.yaml:2: vars: 'vars' is deprecated; use 'replacements' instead"}},
		"wrong type":        {"resources: [a.yaml]\nimages: [{name: x, newTag: 1.10}]", nil, []string{"RenderFailed kustomization.yaml:2: images.newTag: invalid Kustomization: must be a string, found a number; quote it"}},
		"kustomize's words": {"resources: [a.yaml]\npatches: [{path: p.yaml}]", []string{"p.yaml", configMap("none", "v")}, []string{`RenderFailed kustomization.yaml: no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/none.[noNs]"`}},
		"exec function": {
			"resources: [a.yaml]\ntransformers: [t.yaml]",
			[]string{"t.yaml", "apiVersion: example.com/v1\nkind: T\nmetadata:\n  name: t\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./x.sh}\n"},
			[]string{"PluginDenied t.yaml:1: T: would run a program or a container, which is not allowed" + useFields},
		},
		"container function": {
			"resources: [a.yaml]\nvalidators:\n- |-\n  apiVersion: example.com/v1\n  kind: T\n  metadata:\n    name: t\n    annotations:\n      config.kubernetes.io/function: |\n        container: {image: example.com/x}\n",
			nil,
			[]string{"PluginDenied kustomization.yaml:3: T: validators[0]: would run a program or a container, which is not allowed" + useFields},
		},
		"legacy plugin": {
			"resources: [a.yaml]\ngenerators: [g.yaml]",
			[]string{"g.yaml", "apiVersion: someteam.example.com/v1\nkind: ChartInflator\nmetadata: {name: x}\n"},
			[]string{"PluginDenied g.yaml:1: ChartInflator: is a plugin, which is not allowed" + useFields},
		},
		"builtin with files": {
			"resources: [a.yaml]\ntransformers: [t.yaml]",
			[]string{"t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: a.yaml\n"},
			[]string{"PluginDenied t.yaml:1: PatchTransformer: " + onlyThese},
		},
		"helmCharts":               {"helmCharts: [{name: x}]", nil, []string{"PluginDenied kustomization.yaml:1: helmCharts: runs helm, which is not allowed; commit the rendered chart"}},
		"cycle":                    {"resources: [sub]", []string{"sub/kustomization.yaml", "resources: [../sub2]\n", "sub2/kustomization.yaml", "resources: [../sub]\n"}, []string{"PathDenied sub2/kustomization.yaml:1: resources[0]: the bases form a cycle: sub -> sub2 -> sub"}},
		"itself":                   {"resources: [.]", nil, []string{"PathDenied kustomization.yaml:1: resources[0]: the bases form a cycle: . -> ."}},
		"outside":                  {"resources:\n- a.yaml\n- ../x.yaml", nil, []string{"PathDenied kustomization.yaml:3: resources[1]: the path ../x.yaml leaves the repository"}},
		"absolute":                 {"configMapGenerator: [{name: g, files: [x=/etc/passwd]}]", nil, []string{"PathDenied kustomization.yaml:1: configMapGenerator[0].files[0]: the path /etc/passwd is absolute"}},
		"link":                     {"resources: [l.yaml]", []string{"l.yaml", "-> a.yaml"}, []string{"PathDenied kustomization.yaml:1: resources[0]: l.yaml is a symbolic link"}},
		"linked directory":         {"resources: [l/a.yaml]", []string{"l", "-> sub", "sub/a.yaml", configMap("b", "v")}, []string{"PathDenied kustomization.yaml:1: resources[0]: l is a symbolic link"}},
		".git":                     {"configMapGenerator: [{name: g, files: [.git/HEAD]}]", nil, []string{"PathDenied kustomization.yaml:1: configMapGenerator[0].files[0]: the path .git/HEAD leads into .git"}},
		"two":                      {"resources: [a.yaml]", []string{"kustomization.yml", "resources: [a.yaml]\n"}, []string{"RenderFailed kustomization.yml: there is also kustomization.yaml; keep one of them"}},
		"none":                     {"resources: [sub]", []string{"sub/a.yaml", configMap("b", "v")}, []string{"RenderFailed kustomization.yaml:1: resources[0]: the directory sub has no kustomization.yaml"}},
		"empty":                    {"# nothing", nil, []string{"RenderFailed kustomization.yaml: the kustomization is empty"}},
		"an empty object":          {"{}", nil, []string{"RenderFailed kustomization.yaml: the kustomization is empty"}},
		"two documents":            {"resources: [a.yaml]\n---\nresources: [a.yaml]", nil, []string{"RenderFailed kustomization.yaml: a kustomization has one document, this has 2"}},
		"a list":                   {"- a.yaml", nil, []string{"RenderFailed kustomization.yaml:1: expected an object, found a list"}},
		"missing file":             {"resources:\n- a.yaml\n- b.yaml", nil, []string{"RenderFailed kustomization.yaml:3: resources[1]: b.yaml does not exist"}},
		"missing file, other case": {"resources: [A.yaml]", nil, []string{"RenderFailed kustomization.yaml:1: resources[0]: A.yaml does not exist; did you mean a.yaml"}},
		"a directory for a file":   {"resources: [a.yaml]\npatches: [{path: sub}]", []string{"sub/x", ""}, []string{"RenderFailed kustomization.yaml:2: patches[0].path: sub is a directory; a file is wanted here"}},
		"a file for a directory":   {"resources: [a.yaml]\ncomponents: [a.yaml]", nil, []string{"RenderFailed kustomization.yaml:2: components[0]: a.yaml is a file; a directory with a kustomization is wanted here"}},
		"mistakes in a resource":   {"resources: [b.yaml]", []string{"b.yaml", "a: 1\na: 2\n"}, []string{`InvalidYAML b.yaml:2: key "a" already set in line 1`}},
		"mistakes in a patch":      {"resources: [a.yaml]\npatches: [{path: p.yaml}]", []string{"p.yaml", "a: !x 1\n"}, []string{"InvalidYAML p.yaml:1: the tag !x is not allowed"}},
		"mistakes in an inline patch": {
			"resources: [a.yaml]\npatches:\n- patch: |-\n    a: 1\n    a: 2\n", nil,
			[]string{`InvalidYAML kustomization.yaml:5: patches[0].patch: key "a" already set in line 1`},
		},
		"braces":           {"resources: [a.yaml]\nnamePrefix: {{X}}", nil, []string{`InvalidYAML kustomization.yaml:2: a key must be a string, not a mapping or list; quote it: "{{X}}"`}},
		"no name":          {"resources: [b.yaml]", []string{"b.yaml", "apiVersion: v1\nkind: ConfigMap\n"}, []string{"InvalidManifest b.yaml:1: ConfigMap: metadata.name: the field is missing"}},
		"LFS for a value":  {"configMapGenerator: [{name: g, files: [big.bin]}]", []string{"big.bin", lfsPointer + "v1\n"}, []string{"LFSPointer big.bin:1: the file is in Git LFS, the commit holds only a pointer to it; commit the file itself"}},
		"a large resource": {"resources: [b.yaml]", []string{"b.yaml", strings.Repeat("#", 1<<20+1)}, []string{"LimitExceeded b.yaml: the file has 1048577 bytes, at most 1048576 are read"}},
		"a URL in place of a patch": {
			"resources: [a.yaml]\npatches:\n- patch: https://example.com/p.yaml\n  target: {kind: ConfigMap}", nil,
			[]string{"RenderFailed kustomization.yaml:3: patches[0].patch: expected an object or a list of operations, found a string; a file is named with path"},
		},
		"everything is listed": {
			"resources: [b.yaml, https://example.com/x, ../y]\nhelmCharts: [{name: x}]\nvars: []",
			[]string{"b.yaml", "x"},
			[]string{
				"InvalidYAML b.yaml:1: expected an object, found a string",
				"RemoteResourceDenied kustomization.yaml:1: resources[1]: https://example.com/x is outside of the repository; everything must be in the commit",
				"PathDenied kustomization.yaml:1: resources[2]: the path ../y leaves the repository",
				"PluginDenied kustomization.yaml:2: helmCharts: runs helm, which is not allowed; commit the rendered chart",
				"RenderFailed kustomization.yaml:3: vars: 'vars' is deprecated; use 'replacements' instead",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(buildWith(t, c.kustomization, c.more...))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestKustomizeMeansWhatYAMLSays: values that YAML 1.1 and 1.2 read differently have the same
// meaning with and without kustomize.
func TestKustomizeMeansWhatYAMLSays(t *testing.T) {
	data := "  bool: no\n  text: \"no\"\n  octal: 010\n  digits: \"010\"\n  float: 1.10\n  date: 2001-12-14\n  long: 9007199254740991\n  null: ~\n  del: \"\\x7f\\u2028\"\n"
	cm := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nspec:\n" + strings.ReplaceAll(data, "null: ~", "nil: ~")
	plain, problems := tree{"a.yaml": cm}.local(t).Build(t.Context(), BuildOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for name, kustomization := range map[string]string{
		"as it is":         "resources: [a.yaml]\n",
		"merge patch":      "resources: [a.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: ConfigMap\n    metadata: {name: a, labels: {x: \"true\"}}\n",
		"JSON patch":       "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: add, path: /metadata/labels, value: {x: \"true\"}}\n",
		"labels":           "resources: [a.yaml]\nlabels: [{pairs: {x: \"true\"}}]\n",
		"transformer":      "resources: [a.yaml]\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: LabelTransformer\n  metadata: {name: l}\n  labels: {x: \"true\"}\n  fieldSpecs: [{path: metadata/labels, create: true}]\n",
		"origin asked for": "resources: [a.yaml]\nbuildMetadata: [originAnnotations]\n",
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := tree{"a.yaml": cm, "kustomization.yaml": kustomization}.local(t).Build(t.Context(), BuildOptions{})
			if len(problems) > 0 {
				t.Fatal(lines(problems))
			}
			if diff := cmp.Diff(plain[0].Object["spec"], objects[0].Object["spec"]); diff != "" {
				t.Errorf("(-plain +kustomize)\n%s", diff)
			}
			wantOrigin := name == "origin asked for"
			if _, ok := objects[0].GetAnnotations()[originAnnotation]; ok != wantOrigin {
				t.Errorf("annotations are %v", objects[0].GetAnnotations())
			}
			if label, ok := objects[0].GetLabels()["x"]; ok && label != "true" {
				t.Errorf("the label is %q", label)
			}
		})
	}
}

// TestJSONPatchThatDoesNotApply: kustomize names the operation, and no position.
func TestJSONPatchThatDoesNotApply(t *testing.T) {
	for name, c := range map[string]struct{ kustomization, want string }{
		"Inline": {
			"resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, patch: '[{op: add, path: /data/x, value: z}]'}\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: remove, path: /data/missing}\n",
			"kustomization.yaml:5: patches[1].patch: ",
		},
		"File":    {"resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  path: p.yaml\n", "kustomization.yaml:4: patches[0].path: "},
		"Older":   {"resources: [a.yaml]\npatchesJson6902:\n- target: {kind: ConfigMap, name: a, version: v1}\n  path: p.yaml\n", "kustomization.yaml:4: patchesJson6902[0].path: "},
		"Longest": {"resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, patch: '[{op: add, path: /data, value: {z: z}}]'}\n- target: {kind: ConfigMap}\n  path: p.yaml\n", "kustomization.yaml:5: patches[1].path: "},
		"Either":  {"resources: [a.yaml]\npatches:\n- {target: {kind: ConfigMap}, path: p.yaml}\n- {target: {name: a}, path: p.yaml}\n", "kustomization.yaml: "},
		"OfABase": {"resources: [base]\n", "base/kustomization.yaml:3: patches[0].patch: "},
	} {
		t.Run(name, func(t *testing.T) {
			files := tree{
				"kustomization.yaml": c.kustomization, "a.yaml": configMap("a", "v"), "p.yaml": "- {op: remove, path: /data/missing}\n",
				"base/kustomization.yaml": "resources: [b.yaml]\npatches:\n- {target: {kind: ConfigMap}, patch: '[{op: remove, path: /data/missing}]'}\n", "base/b.yaml": configMap("b", "v"),
			}
			_, problems := files.local(t).Build(t.Context(), BuildOptions{})
			if len(problems) != 1 || !strings.HasPrefix(problems[0].String(), c.want) || !strings.Contains(problems[0].Message, "/data/missing") {
				t.Errorf("got %v, want %s...", problems, c.want)
			}
		})
	}
}

// TestRoundedNumbers: JSON patches convert integers to floating point. If that changes one,
// patched or not, it is an error.
func TestRoundedNumbers(t *testing.T) {
	patch := "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: add, path: /data/b, value: x}\n"
	for number, want := range map[string][]string{
		"9223372036854775807": {"RenderFailed a.yaml:6: ConfigMap/a: data.k: kustomize's JSON patches round 9223372036854775807 to 9223372036854775808; quote it, or use a strategic merge patch"},
		"9007199254740993":    {"RenderFailed a.yaml:6: ConfigMap/a: data.k: kustomize's JSON patches round 9007199254740993 to 9007199254740992; quote it, or use a strategic merge patch"},
		"9007199254740991":    nil,
		"1.5e300":             nil,
	} {
		if diff := cmp.Diff(want, lines(buildWith(t, patch, "a.yaml", configMap("a", number)))); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", number, diff)
		}
	}
}

func TestInlinePatchMeansWhatItSays(t *testing.T) {
	objects, problems := tree{
		"a.yaml":             configMap("a", "v"),
		"kustomization.yaml": "resources: [a.yaml]\npatches:\n- target: {kind: ConfigMap, name: a}\n  patch: |-\n    - {op: add, path: /data/b, value: no}\n    - {op: add, path: /data/c, value: \"no\"}\nconfigMapGenerator:\n- {name: g, literals: [l=no, y=1]}\ngeneratorOptions: {disableNameSuffixHash: true}\n",
	}.local(t).Build(t.Context(), BuildOptions{})
	if len(problems) > 0 {
		t.Fatal(lines(problems))
	}
	want := []any{map[string]any{"k": "v", "b": false, "c": "no"}, map[string]any{"l": "no", "y": "1"}}
	if diff := cmp.Diff(want, []any{objects[0].Object["data"], objects[1].Object["data"]}); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestOpenAPIStaysInItsBuild: kustomize keeps its schema in package variables; the schema of
// one source must not change how another's patches merge.
func TestOpenAPIStaysInItsBuild(t *testing.T) {
	files := func(openapi string) tree {
		return tree{
			"kustomization.yaml": openapi + "resources: [a.yaml]\npatches: [{path: p.yaml}]\n",
			"a.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {list: [{id: one, v: 1}]}\n",
			"p.yaml":             "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {list: [{id: two, v: 2}]}\n",
			"schema.json":        `{"definitions": {"T": {"properties": {"spec": {"properties": {"list": {"type": "array", "items": {"type": "object"}, "x-kubernetes-patch-merge-key": "id", "x-kubernetes-patch-strategy": "merge"}}}}, "x-kubernetes-group-version-kind": [{"group": "example.com", "version": "v1", "kind": "Thing"}]}}}`,
		}
	}
	length := func(f tree) int {
		t.Helper()
		objects, problems := f.local(t).Build(t.Context(), BuildOptions{})
		if len(problems) > 0 {
			t.Fatal(lines(problems))
		}
		list, _ := walk(objects[0].Object, []string{"spec", "list"}).([]any)
		return len(list)
	}
	for _, c := range []struct {
		openapi string
		want    int
	}{{"", 1}, {"openapi: {path: schema.json}\n", 2}, {"", 1}} {
		if got := length(files(c.openapi)); got != c.want {
			t.Errorf("with %q the list has %d items, want %d", c.openapi, got, c.want)
		}
	}
}

// FuzzPrewalk: whatever a kustomization says, no request is sent and no program runs.
func FuzzPrewalk(f *testing.F) {
	var hits atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		_, _ = w.Write([]byte(configMap("remote", "v")))
	}))
	f.Cleanup(s.Close)
	f.Setenv("PATH", f.TempDir())
	const mark = "http://HOST"
	for _, field := range fields {
		f.Add(strings.NewReplacer("%q", "\""+mark+"/x.yaml\"", "%s", mark+"/x").Replace(field.text), "a: 1")
	}
	f.Add("resources: [a.yaml]\ntransformers: [b.yaml]", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\nPATH: "+mark)
	f.Add("resources: [a.yaml, b.yaml]\nnamePrefix: x-", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}")
	f.Fuzz(func(t *testing.T, kustomization, file string) {
		there := strings.NewReplacer(mark, s.URL, "HTTP://HOST", strings.ToUpper(s.URL), "HOST", strings.TrimPrefix(s.URL, "http://"))
		problems := buildWith(t, there.Replace(kustomization), "b.yaml", there.Replace(file))
		if n := hits.Load(); n != 0 {
			t.Fatalf("%d requests for %q and %q, which gave %v", n, kustomization, file, lines(problems))
		}
	})
}

// TestRenewedFieldsMeanTheSame: deprecated fields, about which kustomize would print a warning,
// are rewritten and build to the same objects.
func TestRenewedFieldsMeanTheSame(t *testing.T) {
	const workload = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {app: a}}\n" +
		"  template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: 'x:1'}]}}\n"
	value := func() map[string]any {
		return map[string]any{
			"resources": []any{"a.yaml"}, "commonLabels": map[string]any{"team": "b"}, "imageTags": []any{map[string]any{"name": "x", "newTag": "2"}},
			"labels": []any{map[string]any{"pairs": map[string]any{"team": "c", "env": "d"}}}, "images": []any{map[string]any{"name": "x", "newName": "y"}},
		}
	}
	build := func(kustomization map[string]any) string {
		fs := filesys.MakeFsInMemory()
		for name, content := range map[string][]byte{"/kustomization.yaml": canonical(kustomization), "/a.yaml": []byte(workload)} {
			if err := fs.WriteFile(name, content); err != nil {
				t.Fatal(err)
			}
		}
		built, err := runKustomize(t.Context(), fs, "/")
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	now := value()
	renewed(now)
	if now["commonLabels"] != nil || now["imageTags"] != nil {
		t.Errorf("deprecated fields are left: %v", now)
	}
	if diff := cmp.Diff(build(value()), build(now)); diff != "" {
		t.Errorf("-deprecated +renewed:\n%s", diff)
	}
}
