package gitsource

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
)

const packageText = "apiVersion: addonflow.io/v1alpha1\nkind: AddOnPackage\nmetadata: {name: x}\nspec:\n  addOn: x\n  helm:\n    path: chart\n  valueFiles:\n  - values.yaml\n"

// withChart is a commit with a package; a template in a chart is not valid YAML.
func withChart() tree {
	return tree{
		"a/package.yaml":           packageText,
		"a/values.yaml":            "no: object of the commit\n",
		"a/other.yaml":             "apiVersion: v1\nkind: Namespace\nmetadata: {name: there}\n",
		"a/chart/Chart.yaml":       "name: x\n",
		"a/chart/templates/a.yaml": "{{ if }",
		"a/chart/templates/_b.tpl": "{{",
		"a/chart/.helmignore":      "*.md\nci/\n",
		"a/chart/README.md":        "# x",
		"a/chart/ci/values.yaml":   "x: [",
		"a/chart/.hidden":          "x",
		"b/unused/Chart.yaml":      "name: unused\n",
		"b/unused/templates/a.yml": "{{ if }",
	}
}

func (f tree) and(path, content string) tree {
	out := maps.Clone(f)
	if out[path] = content; content == "" {
		delete(out, path)
	}
	return out
}

func TestPackageFolders(t *testing.T) {
	cases := map[string]struct {
		commit tree
		path   string
		dir    string
	}{
		"Beside":        {withChart(), "a", "a/chart"},
		"WholeTree":     {withChart(), "", "a/chart"},
		"Kustomization": {withChart().and("a/kustomization.yaml", "resources: [package.yaml, other.yaml]\n"), "a", "a/chart"},
		"Above": {
			withChart().and("a/sub/package.yaml", strings.Replace(strings.Replace(packageText, "path: chart", "path: ../chart", 1), "- values", "- ../values", 1)).and("a/package.yaml", ""),
			"a", "a/chart",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems := c.commit.local(t).Build(t.Context(), BuildOptions{Path: c.path})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			i := slices.IndexFunc(objects, func(o Object) bool { return o.GetKind() == "AddOnPackage" })
			if i < 0 || len(objects) != 2 {
				t.Fatalf("objects are %v, want the package and the Namespace", names(objects))
			}
			dir, files := objects[i].Folder("spec.helm.path")
			want := []string{"Chart.yaml", "templates/_b.tpl", "templates/a.yaml"}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(files))); diff != "" || dir != c.dir {
				t.Errorf("folder %s (-want +got):\n%s", dir, diff)
			}
			if file, values := objects[i].Folder("spec.valueFiles[0]"); file != "a/values.yaml" || string(values[""]) != "no: object of the commit\n" {
				t.Errorf("value file %s: %q", file, values)
			}
		})
	}
}

// TestPackageThatCannotBeRead_IsTheOnlyProblem: its values and templates are no objects of the commit, and come before it
// in the order of files.
func TestPackageThatCannotBeRead_IsTheOnlyProblem(t *testing.T) {
	commit := withChart().and("a/zpackage.yaml", strings.Replace(packageText, "helm:\n    path: chart", "manifests:\n    path: templates", 1)+"  addOn: [\n").
		and("a/package.yaml", "").and("a/templates/agent.yaml", "{{ if }")
	_, problems := commit.local(t).Build(t.Context(), BuildOptions{Path: "a"})
	if len(problems) != 1 || problems[0].Path != "a/zpackage.yaml" || problems[0].Line < 9 {
		t.Errorf("got %v", problems)
	}
}

func TestPackageRefused(t *testing.T) {
	replaced := func(from, to string) tree {
		return withChart().and("a/package.yaml", strings.Replace(packageText, from, to, 1))
	}
	large := withChart()
	for _, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i"} {
		large["a/chart/files/"+n] = strings.Repeat("x", 1<<20)
	}
	cases := map[string]struct {
		commit tree
		reason problem.Reason
		line   int
		says   string
	}{
		"Missing":          {replaced("path: chart", "path: charts"), PathNotFound, 7, "a/charts does not exist"},
		"OtherCase":        {replaced("path: chart", "path: Chart"), PathNotFound, 7, "did you mean a/chart"},
		"Outside":          {replaced("path: chart", "path: ../../chart"), PathDenied, 7, "leaves the repository"},
		"Absolute":         {replaced("path: chart", "path: /chart"), PathDenied, 7, "is absolute"},
		"Remote":           {replaced("path: chart", "path: https://example.com/chart"), RemoteResourceDenied, 7, "outside of the repository"},
		"Git":              {replaced("path: chart", "path: ../.git"), PathDenied, 7, ".git"},
		"File":             {replaced("path: chart", "path: values.yaml"), PathNotFound, 7, "is a file"},
		"Itself":           {replaced("path: chart", "path: ."), PathDenied, 7, "holds the AddOnPackage itself"},
		"ValuesMissing":    {replaced("- values.yaml", "- nothere.yaml"), PathNotFound, 9, "a/nothere.yaml does not exist"},
		"ValuesDirectory":  {replaced("- values.yaml", "- chart"), PathNotFound, 9, "not a file"},
		"LinkInside":       {withChart().and("a/chart/templates/link.yaml", "-> a.yaml"), PathDenied, 7, "a symbolic link"},
		"LinkedFolder":     {replaced("path: chart", "path: link").and("a/link", "-> chart"), PathDenied, 7, "a symbolic link"},
		"LinkedValues":     {replaced("- values.yaml", "- link.yaml").and("a/link.yaml", "-> values.yaml"), PathDenied, 9, "a symbolic link"},
		"FileTooLarge":     {withChart().and("a/chart/big", strings.Repeat("x", 1<<20+1)), LimitExceeded, 7, "a/chart/big: the file has 1048577 bytes"},
		"FolderTooLarge":   {large, LimitExceeded, 7, "a/chart has more than 8388608 bytes"},
		"IgnoresTooMuch":   {withChart().and("a/chart/.helmignore", strings.Repeat("x\n", maxIgnored+1)), LimitExceeded, 7, "has more than 1000 lines"},
		"NamesThatCollide": {withChart().and("a/chart/templates/A.yaml", "x"), PathDenied, 7, "differs from"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, problems := c.commit.local(t).Build(t.Context(), BuildOptions{Path: "a"})
			i := slices.IndexFunc(problems, func(p problem.Problem) bool { return p.Kind == "AddOnPackage" })
			if i < 0 {
				t.Fatalf("no problem with the package among:\n%v", problems)
			}
			p := problems[i]
			if p.Reason != c.reason || p.Path != "a/package.yaml" || p.Line != c.line || !strings.Contains(p.String(), c.says) {
				t.Errorf("got %s: %v", p.Reason, p)
			}
		})
	}
}
