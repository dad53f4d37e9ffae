package chart

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// helmCase is a file of testdata/charts: a comment that says what the chart shows, and its
// files, each after a line "-- path --". Those below given/ are files of values that override
// the chart's own, in order. The comment "refused: ..." is AddonFlow's error for a chart that
// Helm renders, "wrong: ..." for one that Helm refuses too.
type helmCase struct {
	files   tree
	given   []string
	refused string
	wrong   string
}

func readHelmCase(t *testing.T, name string) helmCase {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	c := helmCase{files: tree{}}
	file := ""
	for line := range strings.Lines(string(text)) {
		if name, isName := strings.CutPrefix(strings.TrimSpace(line), "-- "); isName && strings.HasSuffix(name, " --") {
			file = strings.TrimSuffix(name, " --")
			c.files[file] = ""
			continue
		}
		if file != "" {
			c.files[file] += line
			continue
		}
		if says, refused := strings.CutPrefix(strings.TrimSpace(line), "refused: "); refused {
			c.refused = says
		}
		if says, wrong := strings.CutPrefix(strings.TrimSpace(line), "wrong: "); wrong {
			c.wrong = says
		}
	}
	for _, file := range slices.Sorted(maps.Keys(c.files)) {
		if strings.HasPrefix(file, "given/") {
			c.given = append(c.given, c.files[file])
			delete(c.files, file)
		}
	}
	return c
}

// TestChartsAreHelms renders realistic charts twice, with Helm and with this package: loader,
// values, dependencies, capabilities, schema, engine and the split into documents.
func TestChartsAreHelms(t *testing.T) {
	paths, err := filepath.Glob("testdata/charts/*.txt")
	if err != nil || len(paths) < 30 {
		t.Fatalf("%d charts: %v", len(paths), err)
	}
	for _, file := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			c := readHelmCase(t, file)
			theirs, helmErr := c.helm()
			ours, err := c.ours(t)
			if says := c.refused + c.wrong; says != "" {
				if (helmErr != nil) != (c.wrong != "") || err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q; Helm: %v", err, says, helmErr)
				}
				return
			}
			if err != nil || helmErr != nil {
				t.Fatalf("ours: %v, Helm's: %v", err, helmErr)
			}
			if diff := cmp.Diff(theirs, ours); diff != "" {
				t.Errorf("(-Helm's +ours):\n%s", diff)
			}
		})
	}
}

// input is the input of a chart. Its values are read as an AddOnPackage's are.
func (c helmCase) input(t *testing.T) Input {
	t.Helper()
	in := inputOfCluster1()
	for _, text := range c.given {
		converted, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		if err := utiljson.Unmarshal(converted, &values); err != nil {
			t.Fatal(err)
		}
		in.Values = MergeValues(in.Values, values)
	}
	return in
}

// ours returns the texts rendered by this package, and the objects in them.
func (c helmCase) ours(t *testing.T) (map[string]any, error) {
	t.Helper()
	loaded, err := Load(c.files.files())
	if err != nil {
		return nil, err
	}
	in := c.input(t)
	rendered, err := loaded.Render(in)
	if err != nil {
		return nil, err
	}
	texts, crds, err := loaded.texts(&execution{}, in)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name, text := range texts {
		out[name] = text
	}
	for _, crd := range crds {
		out["crd "+crd.File] = crd.Text
	}
	objects := 0
	for _, m := range rendered {
		if m.Fields["kind"] != "CustomResourceDefinition" || !strings.HasPrefix(m.File, "crds/") {
			objects++
		}
	}
	out["objects"] = objects
	return out, nil
}

// helm returns the same by Helm's library alone, as `helm template` uses it.
func (c helmCase) helm() (map[string]any, error) {
	in := inputOfCluster1()
	values := map[string]any{}
	for _, text := range append(slices.Clone(c.given), builtInText(in)) {
		next, err := common.ReadValues([]byte(text))
		if err != nil {
			return nil, err
		}
		values = util.MergeTables(next, values)
	}
	var files []*archive.BufferedFile
	for _, f := range c.files.files() {
		files = append(files, &archive.BufferedFile{Name: f.Path, Data: f.Content})
	}
	chart, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if err := chartutil.ProcessDependencies(chart, values); err != nil {
		return nil, err
	}
	given, err := util.ToRenderValues(chart, values,
		common.ReleaseOptions{Name: in.Release, Namespace: in.Namespace, Revision: 1, IsInstall: true}, helmCapabilities(in))
	if err != nil {
		return nil, err
	}
	texts, err := engine.Render(chart, given)
	if err != nil {
		return nil, err
	}
	out, objects := map[string]any{}, 0
	for name, text := range texts {
		if path.Base(name) == "NOTES.txt" || path.Base(path.Dir(name)) == "tests" {
			continue // neither is installed
		}
		out[name] = text
		for _, document := range releaseutil.SplitManifests(text) {
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				return nil, err
			}
			if len(object) > 0 {
				objects++
			}
		}
	}
	for _, crd := range chart.CRDObjects() {
		out["crd "+strings.TrimPrefix(crd.Filename, chart.Name()+"/")] = string(crd.File.Data)
	}
	out["objects"] = objects
	return out, nil
}

// builtInText returns the built-in values as the last file of values.
func builtInText(in Input) string {
	text, _ := yaml.Marshal(in.BuiltIns)
	return string(text)
}
