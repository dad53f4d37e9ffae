package chart

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
)

// Input is what a folder is rendered with.
type Input struct {
	// Release and Namespace are .Release.Name and .Release.Namespace.
	Release, Namespace string
	// Values go over the chart's own.
	Values map[string]any
	// BuiltIns go over Values. For a folder of manifests every one of them can be
	// written with a capital letter as well.
	BuiltIns map[string]any
	// KubeVersion is what the managed cluster reports; "" until it does.
	KubeVersion string
	// Mark stands for the name of the cluster among the BuiltIns where the result
	// is for every cluster; "" where it is for one.
	Mark string
}

// Output is what a folder renders to.
type Output struct {
	// Manifests are CRDs first, then the objects by file, in their order there.
	Manifests []Manifest
	// ReadsKubeVersion: clusters of other versions may get something else.
	ReadsKubeVersion bool
	// Alone: the name of the cluster decided something. With a Mark the result is
	// good for nobody then.
	Alone bool
}

// Render renders the folder. The error is an *Error. When Output.Alone is true with
// an error, the error may come from the Mark and not be true of any cluster.
func (c *Chart) Render(in Input) (Output, error) {
	x := &execution{mark: in.Mark}
	capabilities := newCapabilities(in.KubeVersion)
	texts, crds, err := c.texts(x, in, capabilities)
	out := Output{ReadsKubeVersion: capabilities.read, Alone: x.alone}
	if err != nil {
		return out, asError(err)
	}
	if out.Manifests, err = c.manifests(texts, crds, in); err != nil {
		return out, asError(err)
	}
	out.Alone = out.Alone || in.Mark != "" && slices.ContainsFunc(out.Manifests, func(m Manifest) bool {
		return ambiguous(m.Fields, in.Mark)
	})
	return out, nil
}

// texts renders the templates.
func (c *Chart) texts(x *execution, in Input, capabilities *capabilities) (texts map[string]string, crds []Document, err error) {
	if c.helm == nil {
		texts, err = c.manifestTexts(x, in, capabilities)
		return texts, nil, err
	}
	helm, values, err := c.prepare(in)
	if err != nil {
		return nil, nil, err
	}
	if helm.Metadata.KubeVersion != "" {
		if err := capabilities.satisfy(helm.Metadata.KubeVersion); err != nil {
			return nil, nil, err
		}
	}
	sources := map[string]source{}
	collect(helm, sources, map[string]any{
		"Release": release(in), "Capabilities": capabilities, "Values": chartValues(values),
	})
	texts, err = x.run(sources, func(name string) bool { return strings.HasPrefix(path.Base(name), "_") })
	if err != nil {
		return nil, nil, c.templateError(err)
	}
	for _, crd := range helm.CRDObjects() {
		crds = append(crds, Document{File: c.fileOf(crd.Filename), Text: string(crd.File.Data)})
	}
	return texts, crds, nil
}

// prepare reads the chart anew and brings values and dependencies together, as
// `helm install` does.
func (c *Chart) prepare(in Input) (*helmchart.Chart, map[string]any, error) {
	helm, err := c.read()
	if err != nil {
		return nil, nil, err
	}
	values, err := helmNumbers(MergeValues(in.Values, in.BuiltIns))
	if err != nil {
		return nil, nil, err
	}
	agree(helm.Values, values)
	if err := chartutil.ProcessDependenciesWithMerge(helm, values); err != nil {
		return nil, nil, &Error{File: chartFile, Message: fmt.Sprintf("dependencies: %v", err)}
	}
	all, err := chartutil.CoalesceValues(helm, values)
	if err != nil {
		return nil, nil, &Error{File: "values.yaml", Message: err.Error()}
	}
	if err := checkSchemas(helm, "", named(all, in.Mark), in.BuiltIns); err != nil {
		return nil, nil, err
	}
	return helm, all, nil
}

// anyName stands for the name of any cluster where a schema looks at it.
const anyName = "cluster1"

// named returns values with a name for the mark.
func named(values map[string]any, mark string) map[string]any {
	if mark == "" {
		return values
	}
	out, _ := rename(values, mark).(map[string]any)
	return out
}

func rename(value any, mark string) any {
	switch value := value.(type) {
	case chartutil.Values:
		return rename(map[string]any(value), mark)
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[key] = rename(item, mark)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = rename(item, mark)
		}
		return out
	case string:
		return strings.ReplaceAll(value, mark, anyName)
	default:
		return value
	}
}

// agree removes from a chart's own values those that are an object where the new
// ones are not, or the other way round: the new ones stand either way, and Helm
// would print a warning to the operator's log.
func agree(own, over map[string]any) {
	for key, value := range over {
		mine, known := own[key]
		object, isObject := value.(map[string]any)
		mineObject, mineIsObject := mine.(map[string]any)
		switch {
		case !known || mine == nil || value == nil:
		case isObject != mineIsObject:
			delete(own, key)
		case isObject:
			agree(mineObject, object)
		}
	}
}

// chartValues is .Values, with the methods Helm's has.
type chartValues map[string]any

// YAML is refused: Helm's writes whatever the values hold, without bounds.
func (chartValues) YAML() (string, error) {
	return "", &refusal{".Values.YAML is not available in a package", "write toYaml .Values"}
}

// AsMap returns the values.
func (v chartValues) AsMap() map[string]any { return v }

// Table returns the object at a path of names separated by dots.
func (v chartValues) Table(name string) (chartValues, error) {
	table, err := chartutil.Values(v).Table(name)
	return chartValues(table), err
}

// PathValue returns what is no object at a path of names separated by dots.
func (v chartValues) PathValue(path string) (any, error) { return chartutil.Values(v).PathValue(path) }

func release(in Input) map[string]any {
	return map[string]any{
		"Name": in.Release, "Namespace": in.Namespace, "Service": "Helm",
		"IsInstall": true, "IsUpgrade": false, "Revision": 1,
	}
}

// collect gathers the templates of a chart and its sub-charts with what each is
// given, as Helm's engine does.
func collect(c *helmchart.Chart, sources map[string]source, given map[string]any) map[string]any {
	subcharts := map[string]any{}
	next := map[string]any{
		"Chart": struct {
			helmchart.Metadata
			IsRoot bool
		}{*c.Metadata, c.IsRoot()},
		"Files": newFiles(c.Files), "Release": given["Release"], "Capabilities": given["Capabilities"],
		"Values": chartValues{}, "Subcharts": subcharts,
	}
	values, _ := given["Values"].(chartValues)
	if c.IsRoot() {
		next["Values"] = values
	} else if own, err := values.Table(c.Name()); err == nil {
		next["Values"] = own
	}
	for _, child := range c.Dependencies() {
		subcharts[child.Name()] = collect(child, sources, next)
	}
	library := strings.EqualFold(c.Metadata.Type, "library")
	for _, t := range c.Templates {
		if !library || strings.HasPrefix(path.Base(t.Name), "_") {
			sources[path.Join(c.ChartFullPath(), t.Name)] = source{text: string(t.Data), values: next}
		}
	}
	return next
}

// manifestTexts renders a folder of manifests: its values are at the top, beside
// the built-in ones in both spellings, and under .Values as in a chart.
func (c *Chart) manifestTexts(x *execution, in Input, capabilities *capabilities) (map[string]string, error) {
	values, err := helmNumbers(MergeValues(in.Values, in.BuiltIns))
	if err != nil {
		return nil, err
	}
	given := maps.Clone(values)
	for name, value := range in.BuiltIns {
		given[strings.ToUpper(name[:1])+name[1:]] = value
	}
	addStructs(given)
	given["Values"], given["Release"], given["Capabilities"] = values, release(in), capabilities
	sources := map[string]source{}
	for _, f := range c.files {
		if isManifest(f.Path) || isPartial(f.Path) {
			sources[f.Path] = source{text: string(f.Content), values: given}
		}
	}
	x.strict = true
	texts, err := x.run(sources, isPartial)
	if err != nil {
		return nil, c.templateError(err)
	}
	return texts, nil
}
