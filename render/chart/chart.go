package chart

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/yaml"
)

// File is one file of a folder. Path is relative to the folder, with slashes.
type File struct {
	Path    string
	Content []byte
}

// chartFile declares a chart.
const chartFile = "Chart.yaml"

// Chart is a folder that can be rendered. It is not changed by rendering and safe
// for concurrent use.
type Chart struct {
	files []File
	// helm is the chart as Helm read it; nil for a folder of manifests.
	helm *helmchart.Chart
	// enter is called with the file that is rendered or read next, if not nil.
	enter func(file string)
}

// Watched returns the chart with a function that Render and Verify call with each file
// before they render it, or read what was rendered from it.
func (c *Chart) Watched(enter func(file string)) *Chart {
	watched := *c
	watched.enter = enter
	return &watched
}

// at announces the next file.
func (c *Chart) at(file string) {
	if c.enter != nil {
		c.enter(file)
	}
}

// Load reads a Helm chart. The error is an *Error.
func Load(files []File) (*Chart, error) {
	files, err := unpacked(files)
	if err != nil {
		return nil, err
	}
	c := &Chart{files: files}
	if err := c.judge(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(files, func(f File) bool { return f.Path == chartFile }) {
		return nil, &Error{Message: "holds no Helm chart: Chart.yaml is missing", Hint: "helm.path names the folder with the Chart.yaml; for plain manifests use manifests.path"}
	}
	helm, err := c.read()
	if err != nil {
		return nil, err
	}
	c.helm = helm
	if strings.EqualFold(helm.Metadata.Type, "library") {
		return nil, &Error{File: chartFile, Message: "a library chart renders nothing by itself", Hint: "name a chart that uses it"}
	}
	return c, c.vendored(helm)
}

// LoadManifests reads a folder of Go-template manifests. Every .yaml, .yml and .json file in it
// is rendered; .tpl files are partials; other files are ignored. The error is an *Error.
func LoadManifests(files []File) (*Chart, error) {
	c := &Chart{files: files}
	if err := c.judge(); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(files, func(f File) bool { return isManifest(f.Path) }) {
		return nil, &Error{Message: "holds no manifest", Hint: "files that end in .yaml, .yml or .json are rendered"}
	}
	return c, nil
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(name)))
}

func isPartial(name string) bool {
	return strings.HasPrefix(path.Base(name), "_") || path.Ext(name) == ".tpl"
}

// readByHelm reports whether Helm's loader parses a file of a chart.
func readByHelm(name string) bool {
	return slices.Contains([]string{chartFile, "Chart.lock", "values.yaml", "requirements.yaml", "requirements.lock"}, path.Base(name))
}

// judge refuses aliases that expand to too much.
func (c *Chart) judge() error {
	for _, f := range c.files {
		if readByHelm(f.Path) {
			if err := checkExpansion(f.Content); err != nil {
				return &Error{File: f.Path, Message: err.Error()}
			}
		}
	}
	return nil
}

// read loads the chart again, because Helm changes what it renders. It drops test templates and
// notes, which are not installed.
func (c *Chart) read() (*helmchart.Chart, error) {
	buffered := make([]*archive.BufferedFile, 0, len(c.files))
	for _, f := range c.files {
		buffered = append(buffered, &archive.BufferedFile{Name: f.Path, Data: f.Content})
	}
	helm, err := loader.LoadFiles(buffered)
	if err != nil {
		return nil, &Error{File: chartFile, Message: fmt.Sprintf("Helm cannot load the chart: %v", err)}
	}
	prune(helm)
	return helm, nil
}

// prune drops files that are not installed, and sorts sub-charts, which the loader returns in
// random order.
func prune(c *helmchart.Chart) {
	c.Templates = slices.DeleteFunc(c.Templates, func(f *common.File) bool {
		return f == nil || path.Base(f.Name) == "NOTES.txt" || strings.HasPrefix(f.Name, "templates/tests/")
	})
	dependencies := slices.Clone(c.Dependencies())
	slices.SortStableFunc(dependencies, func(a, b *helmchart.Chart) int {
		return strings.Compare(a.Name()+" "+a.Metadata.Version, b.Name()+" "+b.Metadata.Version)
	})
	c.SetDependencies(dependencies...)
	for _, dependency := range dependencies {
		prune(dependency)
	}
}

// vendored refuses a chart whose dependencies are not all in the folder.
func (c *Chart) vendored(helm *helmchart.Chart) error {
	present := map[string]bool{}
	for _, dependency := range helm.Dependencies() {
		present[dependency.Name()] = true
		if err := c.vendored(dependency); err != nil {
			return err
		}
	}
	for _, wanted := range helm.Metadata.Dependencies {
		if wanted != nil && !present[wanted.Name] {
			return &Error{
				File: chartFile, Message: fmt.Sprintf("dependency %s of chart %s is not in its charts directory", wanted.Name, helm.Name()),
				Hint: "run helm dependency update and commit charts/; nothing is downloaded",
			}
		}
	}
	return nil
}

// yamlLine matches the line number in the parser's errors.
var yamlLine = regexp.MustCompile(`line (\d+): `)

// ReadValues reads a file of values. The error is an *Error without a file.
func ReadValues(content []byte) (map[string]any, error) {
	if err := checkExpansion(content); err != nil {
		return nil, &Error{Message: err.Error()}
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		failed := &Error{Message: fmt.Sprintf("cannot be read as values: %v", err)}
		if at := yamlLine.FindStringSubmatch(err.Error()); at != nil {
			failed.Line, _ = strconv.Atoi(at[1])
		}
		return nil, failed
	}
	return values, nil
}

// MergeValues returns values overridden by over: objects are merged, everything else is
// replaced, and a null stays, which removes the chart's own value. Neither argument is changed.
func MergeValues(values, over map[string]any) map[string]any {
	out := make(map[string]any, len(values)+len(over))
	maps.Copy(out, values)
	for key, value := range over {
		under, underIsObject := out[key].(map[string]any)
		object, isObject := value.(map[string]any)
		if isObject && underIsObject {
			value = MergeValues(under, object)
		}
		out[key] = value
	}
	return out
}

// helmNumbers returns a deep copy in which every number is a float64, as Helm converts values
// and charts therefore print them.
func helmNumbers(values map[string]any) (map[string]any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, &Error{Message: "values: " + err.Error()}
	}
	out := map[string]any{}
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, &Error{Message: "values: " + err.Error()}
	}
	return out, nil
}

// asError returns the error of a rendering, with a message of bounded length.
func asError(err error) *Error {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Message: err.Error()}
	}
	if len(e.Message) > shownMessage {
		e.Message = strings.ToValidUTF8(e.Message[:shownMessage], "") + "..."
	}
	return e
}
