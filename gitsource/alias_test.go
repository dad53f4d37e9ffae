package gitsource

import (
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKustomizeOfOrdinaryNames(t *testing.T) {
	for _, name := range []string{"a b", "ü", "c++", "a@b", "a..b", "(1)", "日本", "addonflow-alias.6162", "x,y=z", "a%20b"} {
		t.Run(name, func(t *testing.T) {
			files := tree{
				name + "/top/kustomization.yaml":              "resources: [\"../" + name + " base\", \"./" + name + ".yaml\"]\npatches: [{path: \"./" + name + "-patch.yaml\"}]\n",
				name + "/top/" + name + ".yaml":               "# first\n" + configMap("top", "v"),
				name + "/top/" + name + "-patch.yaml":         "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base, labels: {l: v}}\n",
				name + "/" + name + " base/kustomization.yml": "resources: [\"./" + name + ".yaml\"]\n",
				name + "/" + name + " base/" + name + ".yaml": configMap("base", "v"),
			}
			objects, problems := files.local(t).Build(t.Context(), BuildOptions{Path: name + "/top"})
			if len(problems) > 0 || len(objects) != 2 {
				t.Fatalf("got %d objects and %v", len(objects), lines(problems))
			}
			for i, want := range []string{path.Join(name, name+" base", name+".yaml"), path.Join(name, "top", name+".yaml")} {
				if got, _ := objects[i].Position(""); got != want {
					t.Errorf("object %s comes from %q, want %q", objects[i].GetName(), got, want)
				}
			}
			if objects[0].GetLabels()["l"] != "v" {
				t.Error("the patch was not applied")
			}
		})
	}
}

func TestKustomizeErrorsNameFilesAsTheyAre(t *testing.T) {
	files := tree{
		"a b/kustomization.yaml": "resources: [ü c.yaml]\npatches: [{path: p q.yaml}]\n",
		"a b/ü c.yaml":           configMap("a", "v"),
		"a b/p q.yaml":           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nobody}\n",
	}
	_, problems := files.local(t).Build(t.Context(), BuildOptions{Path: "a b"})
	if len(problems) != 1 || strings.Contains(problems.Error(), aliasPrefix) {
		t.Errorf("got %v", lines(problems))
	}
}

func TestNameThatLooksRemote(t *testing.T) {
	files := tree{"kustomization.yaml": "resources:\n- ns@2.yaml\n", "ns@2.yaml": configMap("a", "v")}
	_, problems := files.local(t).Build(t.Context(), BuildOptions{})
	want := []string{"RemoteResourceDenied kustomization.yaml:2: resources[0]: ns@2.yaml could be read as a place outside of the repository; write ./ns@2.yaml"}
	if diff := cmp.Diff(want, lines(problems)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	files["kustomization.yaml"] = "resources:\n- ./ns@2.yaml\n"
	objects, problems := files.local(t).Build(t.Context(), BuildOptions{})
	if len(objects) != 1 || len(problems) > 0 {
		t.Errorf("got %d objects and %v", len(objects), lines(problems))
	}
}

func FuzzAlias(f *testing.F) {
	f.Add("a b/c++", "a b/c+")
	f.Add("addonflow-alias.61", "a")
	f.Add("x/../ü", "ü")
	f.Fuzz(func(t *testing.T, one, other string) {
		a, b := path.Clean("/"+one), path.Clean("/"+other)
		if got := unaliased(aliased(a)); got != a {
			t.Errorf("%q came back as %q", a, got)
		}
		if a != b && aliased(a) == aliased(b) {
			t.Errorf("%q and %q have one alias", a, b)
		}
	})
}
