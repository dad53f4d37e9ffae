package gitsource

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/test/gitserver"
)

type tree map[string]string

// local writes files below a directory that is the top of a repository.
func (f tree) local(tb testing.TB) *Tree {
	tb.Helper()
	top := tb.TempDir()
	f[".git/HEAD"] = "ref: refs/heads/main\n"
	for name, content := range f {
		place := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			tb.Fatal(err)
		}
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			if err := os.Symlink(target, place); err != nil {
				tb.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(place, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	out, err := TreeFromDir(top)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// names returns objects as kind/namespace/name.
func names(objects []Object) []string {
	var out []string
	for _, o := range objects {
		out = append(out, strings.Join([]string{o.GetKind(), o.GetNamespace(), o.GetName()}, "/"))
	}
	return out
}

func lines(problems problem.List) []string {
	var out []string
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%s %s", p.Reason, p))
	}
	return out
}

func TestBuildObjects(t *testing.T) {
	cm := func(name string) string { return configMap(name, "v") }
	kustomized := "resources: [cm.yaml]\nnamePrefix: x-\n"
	for name, c := range map[string]struct {
		reason string
		files  tree
		o      BuildOptions
		want   []string
	}{
		"every file": {
			"YAML below the path, sorted, hidden files left out",
			tree{"b.yml": cm("b"), "a/c.yaml": cm("c"), "a/d/e.yaml": cm("e"), "README.md": "no", ".hidden.yaml": "no", ".github/x.yaml": "no: no", "x.json": "{"},
			BuildOptions{},
			[]string{"ConfigMap//c", "ConfigMap//e", "ConfigMap//b"},
		},
		"a path":                {"only what is below it", tree{"a/c.yaml": cm("c"), "b/d.yaml": cm("d")}, BuildOptions{Path: "a"}, []string{"ConfigMap//c"}},
		"./ a path":             {"as Flux users write it", tree{"a/c.yaml": cm("c"), "b/d.yaml": cm("d")}, BuildOptions{Path: "./a/"}, []string{"ConfigMap//c"}},
		"./":                    {"the whole repository", tree{"c.yaml": cm("c")}, BuildOptions{Path: "./"}, []string{"ConfigMap//c"}},
		"nothing":               {"a directory without YAML", tree{"README.md": "no"}, BuildOptions{}, nil},
		"empty documents":       {"empty documents are no objects", tree{"c.yaml": "---\n---\n" + cm("c") + "---\n# end\n", "d.yaml": "# nothing\n"}, BuildOptions{}, []string{"ConfigMap//c"}},
		"byte order mark, CRLF": {"BOM and CRLF", tree{"c.yaml": "\xef\xbb\xbf" + strings.ReplaceAll(cm("c"), "\n", "\r\n")}, BuildOptions{}, []string{"ConfigMap//c"}},
		"kustomize":             {"a kustomization decides", tree{"kustomization.yaml": kustomized, "cm.yaml": cm("c"), "other.yaml": "not: [read"}, BuildOptions{}, []string{"ConfigMap//x-c"}},
		"other name":            {"as does one without a suffix", tree{"Kustomization": kustomized, "cm.yaml": cm("c")}, BuildOptions{}, []string{"ConfigMap//x-c"}},
		"nested":                {"a nested kustomization is built as one", tree{"a.yaml": cm("a"), "sub/kustomization.yml": kustomized, "sub/cm.yaml": cm("c"), "sub/other.yaml": "not: [read"}, BuildOptions{}, []string{"ConfigMap//a", "ConfigMap//x-c"}},
		"base":                  {"a base beside the path", tree{"over/kustomization.yaml": "resources: [../base]\nnamePrefix: y-\n", "base/kustomization.yaml": kustomized, "base/cm.yaml": cm("c")}, BuildOptions{Path: "over"}, []string{"ConfigMap//y-x-c"}},
		"file beside":           {"a file beside the kustomization's directory", tree{"over/kustomization.yaml": "resources: [../cm.yaml]\n", "cm.yaml": cm("c")}, BuildOptions{Path: "over"}, []string{"ConfigMap//c"}},
		"twice":                 {"one base in two ways", tree{"kustomization.yaml": "resources: [a, b]\n", "a/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\n", "b/kustomization.yaml": "resources: [../base]\nnamePrefix: b-\n", "base/kustomization.yaml": kustomized, "base/cm.yaml": cm("c")}, BuildOptions{}, []string{"ConfigMap//a-x-c", "ConfigMap//b-x-c"}},
		"component":             {"components", tree{"kustomization.yaml": "resources: [cm.yaml]\ncomponents: [part]\n", "cm.yaml": cm("c"), "part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamespace: ns\n"}, BuildOptions{}, []string{"ConfigMap/ns/c"}},
		"ignore":                {"spec.ignore", tree{"a.yaml": cm("a"), "b.yaml": cm("b"), "dir/c.yaml": cm("c"), "dir/d.yaml": cm("d")}, BuildOptions{Ignore: "# comment\nb.yaml\ndir/*\n!dir/d.yaml\n"}, []string{"ConfigMap//a", "ConfigMap//d"}},
		"ignored dir":           {"a directory, and a kustomization in it", tree{"a.yaml": cm("a"), "dir/kustomization.yaml": "x: y"}, BuildOptions{Ignore: "dir/"}, []string{"ConfigMap//a"}},
		"local config":          {"objects that are input to kustomize only", tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: {config.kubernetes.io/local-config: \"true\"}\n"}, BuildOptions{}, nil},
		"generators": {
			"files, env files and literals",
			tree{"kustomization.yaml": "generatorOptions: {disableNameSuffixHash: true}\nconfigMapGenerator:\n- name: g\n  files: [x.txt, y=sub/y.yaml]\n  envs: [e.env]\n  literals: [l=no]\n", "x.txt": "x", "sub/y.yaml": "not: [yaml", "e.env": "E=1\n"},
			BuildOptions{},
			[]string{"ConfigMap//g"},
		},
		"lists": {
			"Lists of any kind, in each other",
			tree{"l.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMapList\n  items:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"},
			BuildOptions{},
			[]string{"ConfigMap//a", "ConfigMap//b"},
		},
		"lists for kustomize": {
			"the same through kustomize",
			tree{"kustomization.yaml": "resources: [l.yaml]\nnamespace: ns\n", "l.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n"},
			BuildOptions{},
			[]string{"ConfigMap/ns/a", "ConfigMap/ns/b"},
		},
		"one name, two namespaces": {"are two objects", tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: one}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: two}\n"}, BuildOptions{}, []string{"ConfigMap/one/a", "ConfigMap/two/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := c.files.local(t).Build(t.Context(), c.o)
			if len(problems) > 0 {
				t.Fatalf("%s: %v", c.reason, lines(problems))
			}
			if diff := cmp.Diff(c.want, names(objects)); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

func TestBuildProblems(t *testing.T) {
	cm := configMap("a", "v")
	for name, c := range map[string]struct {
		files tree
		o     BuildOptions
		want  []string
	}{
		"one object in two files": {
			tree{"a.yaml": cm, "b.yaml": "# second\n" + cm},
			BuildOptions{},
			[]string{"DuplicateObject b.yaml:2: ConfigMap/a: already declared in a.yaml:1; keep one of them"},
		},
		"an ending in capitals": {
			tree{"a.yaml": cm, "b.YAML": configMap("b", "v")},
			BuildOptions{},
			[]string{"PathDenied b.YAML: would not be read: its ending is not in lower case; rename it to end in .yaml or .yml"},
		},
		"in two versions": {
			tree{"a.yaml": "apiVersion: addon.open-cluster-management.io/v1alpha1\nkind: AddOnTemplate\nmetadata: {name: a}\n---\napiVersion: addon.open-cluster-management.io/v1beta1\nkind: AddOnTemplate\nmetadata: {name: a}\n"},
			BuildOptions{},
			[]string{"DuplicateObject a.yaml:5: AddOnTemplate/a: already declared in a.yaml:1; keep one of them"},
		},
		"in two files of a kustomization": {
			tree{"kustomization.yaml": "resources: [a.yaml, b.yaml]\n", "a.yaml": cm, "b.yaml": cm},
			BuildOptions{},
			[]string{"DuplicateObject b.yaml:1: ConfigMap/a: already declared in a.yaml:1; keep one of them"},
		},
		"one file through two kustomizations": {
			tree{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": cm, "prod/kustomization.yaml": "resources: [../base]\n"},
			BuildOptions{},
			[]string{"DuplicateObject base/a.yaml:1: ConfigMap/a: taken twice: by the kustomizations in base and in prod; " +
				"let spec.path, or the argument of lint, be prod, or list it in a kustomization.yaml at spec.path"},
		},
		"one file through two overlays": {
			tree{
				"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": cm,
				"all/dev/kustomization.yaml": "resources: [../../base]\n", "all/prod/kustomization.yaml": "resources: [../../base]\n",
			},
			BuildOptions{Path: "all"},
			[]string{"DuplicateObject base/a.yaml:1: ConfigMap/a: taken twice: by the kustomizations in all/dev and in all/prod; " +
				"let spec.path, or the argument of lint, be one of the two, or list it in a kustomization.yaml at spec.path"},
		},
		"duplicate key": {
			tree{"a.yaml": cm + "  k: w\n"},
			BuildOptions{},
			[]string{`InvalidYAML a.yaml:7: key "k" already set in line 6`},
		},
		"a scalar": {tree{"a.yaml": "just text\n"}, BuildOptions{}, []string{"InvalidYAML a.yaml:1: expected an object, found a string"}},
		"a list":   {tree{"a.yaml": "# x\n- a\n"}, BuildOptions{}, []string{"InvalidYAML a.yaml:2: expected an object, found a list"}},
		"null in a List": {
			tree{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n- null\n-\n"},
			BuildOptions{},
			[]string{"InvalidManifest a.yaml:5: items[1]: expected an object, found null", "InvalidManifest a.yaml:6: items[2]: expected an object, found null"},
		},
		"null in a List in a List": {
			tree{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - ~\n"},
			BuildOptions{},
			[]string{"InvalidManifest a.yaml:7: items[0].items[0]: expected an object, found null"},
		},
		"a large file":            {tree{"a.yaml": "# " + strings.Repeat("x", 1<<20)}, BuildOptions{}, []string{"LimitExceeded a.yaml: the file has 1048578 bytes, at most 1048576 are read"}},
		"no name":                 {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:1: ConfigMap: metadata.name: the field is missing"}},
		"no metadata":             {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:1: ConfigMap: metadata.name: the field is missing"}},
		"an empty name":           {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ''}\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:3: ConfigMap: metadata.name: is empty"}},
		"a number":                {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 123\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:4: ConfigMap: metadata.name: must be a string, found the number 123"}},
		"generateName":            {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  generateName: a-\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:4: ConfigMap: metadata.generateName: is not allowed: the name must be the same every time; set metadata.name"}},
		"metadata a list":         {tree{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: []\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:3: ConfigMap: metadata: must be an object, found a list"}},
		"no kind, no version":     {tree{"a.yaml": "metadata: {name: a}\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:1: apiVersion: the field is missing", "InvalidManifest a.yaml:1: kind: the field is missing"}},
		"kind a boolean":          {tree{"a.yaml": "apiVersion: v1\nkind: on\nmetadata: {name: a}\n"}, BuildOptions{}, []string{"InvalidManifest a.yaml:2: kind: must be a string, found the boolean true"}},
		"sops":                    {tree{"a.yaml": cm + "sops: {mac: x}\n"}, BuildOptions{}, []string{"EncryptedContent a.yaml:1: ConfigMap/a: the object is encrypted with sops, and nothing here decrypts; secrets do not belong in add-on content; refer to one that is on the cluster"}},
		"a link":                  {tree{"a.yaml": "-> b.txt", "b.txt": cm}, BuildOptions{}, []string{"PathDenied a.yaml: is a symbolic link; only regular files are read"}},
		"a link to above":         {tree{"a/b.yaml": "-> ../../../etc/passwd"}, BuildOptions{}, []string{"PathDenied a/b.yaml: is a symbolic link; only regular files are read"}},
		"a linked dir":            {tree{"a": "-> b", "b/c.yaml": cm}, BuildOptions{}, []string{"PathDenied a: is a symbolic link; only regular files are read"}},
		"spec.path missing":       {tree{"a.yaml": cm}, BuildOptions{Path: "addons"}, []string{"PathNotFound spec.path: addons does not exist"}},
		"spec.path in part":       {tree{"addons/a.yaml": cm}, BuildOptions{Path: "addons/b/c"}, []string{"PathNotFound spec.path: addons/b/c does not exist: there is no addons/b"}},
		"spec.path in other case": {tree{"Addons/a.yaml": cm}, BuildOptions{Path: "addons"}, []string{"PathNotFound spec.path: addons does not exist; did you mean Addons"}},
		"spec.path a file":        {tree{"a.yaml": cm}, BuildOptions{Path: "a.yaml"}, []string{"PathNotFound spec.path: a.yaml is a file; name the directory it is in"}},
		"spec.path below a file":  {tree{"a.yaml": cm}, BuildOptions{Path: "a.yaml/b"}, []string{"PathNotFound spec.path: a.yaml/b does not exist: a.yaml is a file"}},
		"spec.path absolute":      {tree{"a/a.yaml": cm}, BuildOptions{Path: "/a"}, []string{"PathDenied spec.path: the path /a is absolute; paths start at the root of the repository: a"}},
		"spec.path above":         {tree{"a.yaml": cm}, BuildOptions{Path: "a/../../b"}, []string{"PathDenied spec.path: the path a/../../b leaves the repository"}},
		"spec.path a link":        {tree{"a": "-> b", "b/c.yaml": cm}, BuildOptions{Path: "a"}, []string{"PathDenied spec.path: a is a symbolic link"}},
		"spec.path .git":          {tree{"a.yaml": cm}, BuildOptions{Path: ".GIT"}, []string{"PathDenied spec.path: the path .GIT leads into .git"}},
		"spec.path ignored":       {tree{"a/b.yaml": cm}, BuildOptions{Path: "a", Ignore: "/a"}, []string{"PathNotFound spec.path: a is left out by spec.ignore"}},
		"names in two cases":      {tree{"a.yaml": cm, "A.yaml": configMap("b", "v")}, BuildOptions{}, []string{"PathDenied a.yaml: the name differs from A.yaml only in case or accents, which some file systems ignore"}},
		"names in two forms":      {tree{"\u00e9.yaml": cm, "e\u0301.yaml": configMap("b", "v")}, BuildOptions{}, []string{"PathDenied \u00e9.yaml: the name differs from e\u0301.yaml only in case or accents, which some file systems ignore"}},
		"a backslash":             {tree{`a\b.yaml`: cm}, BuildOptions{}, []string{`PathDenied a\b.yaml: the name "a\\b.yaml" cannot be used: it has a backslash, which is a directory on other machines; rename the file`}},
		"a broken base of two overlays": {
			tree{
				"one/kustomization.yaml": "resources: [../base]\n", "two/kustomization.yaml": "resources: [../base]\n",
				"base/kustomization.yaml": "resources: [a.yaml, b.yaml]\npatches: [{path: p.yaml}]\n",
				"base/a.yaml":             "a: [\n", "base/b.yaml": "apiVersion: v1\nkind: ConfigMap\n", "base/p.yaml": cm,
			},
			BuildOptions{},
			[]string{"InvalidYAML base/a.yaml:1: did not find expected node content", "InvalidManifest base/b.yaml:1: ConfigMap: metadata.name: the field is missing"},
		},
		"a broken kustomization of two overlays": {
			tree{
				"one/kustomization.yaml": "resources: [../base]\n", "two/kustomization.yaml": "resources: [../base]\n",
				"base/kustomization.yaml": "resources: [\n",
			},
			BuildOptions{},
			[]string{"InvalidYAML base/kustomization.yaml:1: did not find expected node content"},
		},
		"everything is listed": {
			tree{"a.yaml": "a: [\n", "b/c.yaml": "x\n", "b/d.yaml": "\xff", "e.yaml": "a: !x 1\nb: !y 2\n"},
			BuildOptions{},
			[]string{
				"InvalidYAML a.yaml:1: did not find expected node content",
				"InvalidYAML b/c.yaml:1: expected an object, found a string",
				"InvalidEncoding b/d.yaml:1: not UTF-8 at byte 0; save it as UTF-8",
				"InvalidYAML e.yaml:1: the tag !x is not allowed",
				"InvalidYAML e.yaml:2: the tag !y is not allowed",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := c.files.local(t).Build(t.Context(), c.o)
			if diff := cmp.Diff(c.want, lines(problems)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBuildReturnsWhatCouldBeRead(t *testing.T) {
	cm := configMap("whole", "v")
	for name, c := range map[string]struct {
		files tree
		want  []string
	}{
		"a syntax error":            {tree{"a.yaml": "a: [\n", "b.yaml": cm}, []string{"whole"}},
		"a syntax error further on": {tree{"a.yaml": configMap("half", "v") + "---\na: [\n", "b.yaml": cm}, []string{"whole"}},
		"no object beside one":      {tree{"a.yaml": "apiVersion: v1\nkind: X\n---\n" + cm}, []string{"whole"}},
		"a broken resource": {
			tree{"a/kustomization.yaml": "resources: [b.yaml, c.yaml]\n", "a/b.yaml": configMap("b", "v"), "a/c.yaml": "a: [\n", "d.yaml": cm},
			[]string{"whole"},
		},
		"a missing patch":            {tree{"kustomization.yaml": "resources: [b.yaml]\npatches: [{path: p.yaml}]\n", "b.yaml": cm}, nil},
		"a missing component":        {tree{"kustomization.yaml": "resources: [b.yaml]\ncomponents: [c]\n", "b.yaml": cm}, nil},
		"an unknown field":           {tree{"kustomization.yaml": "resources: [b.yaml]\npatchs: []\n", "b.yaml": cm}, nil},
		"an object that comes twice": {tree{"a.yaml": cm, "b.yaml": cm}, []string{"whole", "whole"}},
		"nothing":                    {tree{"a.yaml": "a: [\n"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := c.files.local(t).Build(t.Context(), BuildOptions{})
			if len(problems) != 1 {
				t.Errorf("got problems %v, want one", lines(problems))
			}
			var got []string
			for _, o := range objects {
				got = append(got, o.GetName())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBuildLimits(t *testing.T) {
	files := tree{}
	for i := range 30 {
		files[fmt.Sprintf("d/%02d.yaml", i)] = configMap(fmt.Sprintf("c%d", i), strings.Repeat("x", 1000))
	}
	files["a/b/c/d/e.yaml"] = configMap("deep", "v")
	for name, c := range map[string]struct {
		limits Limits
		want   string
	}{
		"files": {Limits{Files: 20}, "LimitExceeded d: more than 20 files and directories"},
		"total": {Limits{TotalBytes: 20_000}, "LimitExceeded d/18.yaml: all files together have more than 20000 bytes"},
		"depth": {Limits{Depth: 3}, "LimitExceeded a/b/c/d: 4 directories deep, at most 3 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := files.local(t)
			tr.limits = c.limits.withDefaults()
			_, problems := tr.Build(t.Context(), BuildOptions{})
			if diff := cmp.Diff([]string{c.want}, lines(problems)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBuildIsRepeatable(t *testing.T) {
	tr := tree{
		"kustomization.yaml": "resources: [a.yaml, b.yaml]\npatches:\n- path: p.yaml\n",
		"a.yaml":             configMap("a", "1"), "b.yaml": configMap("b", "2"),
		"p.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: patched}\n",
	}.local(t)
	first, problems := tr.Build(t.Context(), BuildOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	again, _ := tr.Build(t.Context(), BuildOptions{})
	for i := range first {
		if diff := cmp.Diff(first[i].Object, again[i].Object); diff != "" {
			t.Errorf("the second build differs: %s", diff)
		}
		first[i].Object["data"] = nil // a caller's changes to its objects must not reach the tree
	}
	third, _ := tr.Build(t.Context(), BuildOptions{})
	for i := range third {
		if diff := cmp.Diff(again[i].Object, third[i].Object); diff != "" {
			t.Errorf("a caller's change came back: %s", diff)
		}
	}
}

func TestBuildStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, files := range map[string]tree{
		"plain":     {"a.yaml": configMap("a", "v")},
		"kustomize": {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": configMap("a", "v")},
	} {
		objects, problems := files.local(t).Build(ctx, BuildOptions{})
		if objects != nil || len(problems) != 1 || problems[0].Reason != FetchFailed || !strings.Contains(problems[0].Message, "canceled") {
			t.Errorf("%s: got %v and %v", name, names(objects), lines(problems))
		}
	}
}

// TestUnusualEntriesInGit: links and submodules are refused where a build reaches
// them, and only there.
func TestUnusualEntriesInGit(t *testing.T) {
	s := serve(t, gitserver.Options{})
	h := newHistory(t, s)
	h.write("good", map[string]string{
		"good/a.yaml": configMap("a", "v"), "linked/b.yaml": configMap("b", "v"), "module/c.yaml": configMap("c", "v"),
		"over/kustomization.yaml": "resources: [../linked/link.yaml, ../module/sub]\n",
	})
	_, err := h.Symlink("link", "linked/link.yaml", "b.yaml")
	h.must(err)
	_, err = h.Submodule("module", "module/sub", "https://git.example/sub.git")
	h.must(err)
	tr, err := fetchMain(t.Context(), t, h.URL())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]string{
		"good":   nil,
		"linked": {"PathDenied linked/link.yaml: is a symbolic link; only regular files are read"},
		"module": {"PathDenied module/sub: is a submodule; only regular files are read"},
		"over": {
			"PathDenied over/kustomization.yaml:1: resources[0]: linked/link.yaml is a symbolic link",
			"PathDenied over/kustomization.yaml:1: resources[1]: module/sub is a submodule",
		},
	} {
		_, problems := tr.Build(t.Context(), BuildOptions{Path: path})
		if diff := cmp.Diff(want, lines(problems)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", path, diff)
		}
	}
}

func TestTreeFromDir(t *testing.T) {
	top := tree{"over/kustomization.yaml": "resources: [../base]\n", "base/kustomization.yaml": "resources: [cm.yaml]\n", "base/cm.yaml": configMap("a", "v")}.local(t)
	files, _ := top.files.(localFiles)
	dir := string(files)
	tr, err := TreeFromDir(filepath.Join(dir, "over"))
	if err != nil {
		t.Fatal(err)
	}
	objects, problems := tr.Build(t.Context(), BuildOptions{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if path, line := objects[0].Position(""); path != "base/cm.yaml" || line != 1 {
		t.Errorf("got %s:%d, want the path in the work tree", path, line)
	}
	if _, problems := tr.Build(t.Context(), BuildOptions{Path: "../base"}); len(problems) != 1 || problems[0].Reason != PathDenied {
		t.Errorf("got %v, want that a path outside of the directory is denied", lines(problems))
	}
	for name, dir := range map[string]string{"missing": filepath.Join(dir, "none"), "a file": filepath.Join(dir, "base", "cm.yaml")} {
		if _, err := TreeFromDir(dir); err == nil || !strings.Contains(err.Error(), "cannot read") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	alone := t.TempDir()
	if err := os.WriteFile(filepath.Join(alone, "kustomization.yaml"), []byte("resources: [../x.yaml]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if tr, err = TreeFromDir(alone); err != nil {
		t.Fatal(err)
	}
	if _, problems := tr.Build(t.Context(), BuildOptions{}); len(problems) != 1 || problems[0].Reason != PathDenied {
		t.Errorf("got %v, want that nothing above a directory without a repository is read", lines(problems))
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"a", "../a", "a/../../b", "/etc", `a\b`, "a/./b", ".git/config", "a/.GIT", "http://x", "a b", " a", "a\x00", "git@host:x", "github.com/a/b", "./github.com/a/b", "é"} {
		f.Add("dir/sub", s)
		f.Add("", s)
	}
	f.Fuzz(func(t *testing.T, dir, name string) {
		dir, fail := join("", dir)
		if fail != nil {
			return
		}
		got, fail := join(dir, name)
		if fail != nil {
			if fail.message == "" || strings.ContainsAny(fail.message, "\n\x00") {
				t.Errorf("%q is refused with %q", name, fail.message)
			}
			return
		}
		if got == "" {
			return
		}
		if !filepath.IsLocal(got) || got != filepath.ToSlash(filepath.Clean(got)) {
			t.Errorf("%q in %q gives %q", name, dir, got)
		}
		for segment := range strings.SplitSeq(got, "/") {
			if segment == "" || segment == "." || segment == ".." || strings.EqualFold(segment, ".git") {
				t.Errorf("%q in %q gives %q", name, dir, got)
			}
		}
	})
}

// FuzzIgnore: of all lines that match a path the last one decides, whatever the other lines are, and a line ends with LF
// or CRLF.
func FuzzIgnore(f *testing.F) {
	for _, text := range []string{"# comment\nb.yaml\ndir/*\n!dir/d.yaml\n", "**/a\n/**\n!/\n", "[a-\n\\\n\\#x\n! \n**b/c\n", "dir/\n", "*\n!*/\n", " \n#\n\n/"} {
		f.Add(text, "dir/d.yaml")
		f.Add(text, "#a[*]? \\!")
	}
	special := regexp.MustCompile(`[*?\[\\ ]`)
	f.Fuzz(func(t *testing.T, text, name string) {
		if !fs.ValidPath(name) || name == "." || strings.ContainsFunc(name, unicode.IsControl) || strings.Contains(text, "\r") {
			t.Skip()
		}
		literal := special.ReplaceAllString(name, `\$0`)
		for _, k := range []kind{regular, directory} {
			ignored := func(text string) bool { return (&builder{ignore: parseIgnore(text)}).ignored(name, k) }
			if !ignored(text+"\n/"+literal) || ignored(text+"\n!/"+literal) {
				t.Errorf("after %q, the last line %q or its negation does not decide about %q", text, "/"+literal, name)
			}
			if ignored(strings.ReplaceAll(text, "\n", "\r\n")) != ignored(text) {
				t.Errorf("%q with CRLF differs for %q", text, name)
			}
		}
	})
}
