package chart

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

const (
	// folderFunction returns the data of a manifest, calledFunction whether a partial was
	// called.
	folderFunction = ownPrefix + "folder"
	calledFunction = ownPrefix + "called"

	// filePrefix begins the name of the partial made from a file; no other file has such a
	// name.
	filePrefix = "_" + ownPrefix
)

// manifestTexts renders a folder of manifests: its values are at the top, beside the built-in
// ones in both spellings, and under .Values as in a chart. For Helm's engine the folder is a
// chart in which each file is a partial; a template with the name of the file renders the
// partial.
func (c *Chart) manifestTexts(x *execution, in Input, capabilities *capabilities) (map[string]string, error) {
	values, err := helmNumbers(MergeValues(in.Values, in.BuiltIns))
	if err != nil {
		return nil, err
	}
	x.given = maps.Clone(values)
	for name, value := range in.BuiltIns {
		x.given[strings.ToUpper(name[:1])+name[1:]] = value
	}
	addStructs(x.given)
	x.given["Values"], x.given["Release"], x.given["Capabilities"] = values, release(in), capabilities
	folder := &helmchart.Chart{Metadata: &helmchart.Metadata{}}
	var renderers []*common.File
	for _, f := range c.files {
		name := path.Join(path.Dir(f.Path), filePrefix+path.Base(f.Path))
		call := fmt.Sprintf("{{template %q (%s %q .)}}", name, folderFunction, f.Path)
		switch {
		case isPartial(f.Path):
			call = fmt.Sprintf("{{if %s .}}{{template %q .}}{{end}}", calledFunction, name)
		case !isManifest(f.Path):
			continue
		}
		folder.Templates = append(folder.Templates, &common.File{Name: name, Data: []byte(needing(string(f.Content)))})
		renderers = append(renderers, &common.File{Name: f.Path, Data: []byte(call)})
	}
	folder.Templates = append(folder.Templates, renderers...)
	texts, err := x.run(folder, common.Values{})
	if err != nil {
		return nil, c.templateError(err)
	}
	maps.DeleteFunc(texts, func(name, _ string) bool { return isPartial(name) })
	return texts, nil
}

// called reports whether another template called a template of a folder. The data of a call by
// Helm's engine differ from those of a call by a template.
func called(data any) bool {
	top, isTop := data.(common.Values)
	_, ofEngine := top["Subcharts"]
	return !isTop || !ofEngine
}

// folder returns the data of a file: that of the template that calls it, or the folder's
// values.
func (x *execution) folder(name string, data any) any {
	if called(data) {
		return data
	}
	if x.enter != nil {
		x.enter(name)
	}
	x.given["Template"] = map[string]any{"Name": name, "BasePath": path.Dir(name)}
	return x.given
}
