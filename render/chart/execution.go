package chart

import (
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// ownPrefix begins the names of the functions that this package adds to templates.
const ownPrefix = "addonflow_"

// enterFunction is called at the beginning of each file, with its data.
const enterFunction = ownPrefix + "enter"

// execution is one run of a chart's templates.
type execution struct {
	// enter is called with the name of each template before it runs, if not nil.
	enter func(template string)
	// backwards: functions that list a map do so in the opposite order.
	backwards bool
	// given is the data of the manifests of a folder.
	given map[string]any
}

// run renders a chart with Helm's engine, and returns the texts by template.
func (x *execution) run(c *helmchart.Chart, values common.Values) (map[string]string, error) {
	return engine.Engine{CustomTemplateFuncs: x.functions()}.Render(c, values)
}

// announced makes each rendered file of a chart and its sub-charts call enterFunction when it
// begins. Aliases of a sub-chart share its files.
func announced(c *helmchart.Chart, seen map[*helmchart.Chart]bool) {
	if seen[c] {
		return
	}
	seen[c] = true
	templates := make([]*common.File, 0, len(c.Templates))
	for _, f := range c.Templates {
		if !strings.HasPrefix(path.Base(f.Name), "_") {
			f = &common.File{Name: f.Name, ModTime: f.ModTime, Data: append([]byte("{{"+enterFunction+" .}}"), f.Data...)}
		}
		templates = append(templates, f)
	}
	c.Templates = templates
	for _, dependency := range c.Dependencies() {
		announced(dependency, seen)
	}
}

// entered returns the name of the template that Helm runs. A file that is included by another file gets the data of
// that file, and therefore its name.
func (x *execution) entered(data any) string {
	values, _ := data.(common.Values)
	if values == nil {
		values, _ = data.(map[string]any)
	}
	template, _ := values["Template"].(common.Values)
	if name, isText := template["Name"].(string); isText && x.enter != nil {
		x.enter(name)
	}
	return ""
}
