package chart

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
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
	texts, err = x.run(helm, common.Values{"Release": release(in), "Capabilities": capabilities, "Values": values})
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
func (c *Chart) prepare(in Input) (*helmchart.Chart, common.Values, error) {
	helm, err := c.read()
	if err != nil {
		return nil, nil, err
	}
	values, err := helmNumbers(MergeValues(in.Values, in.BuiltIns))
	if err != nil {
		return nil, nil, err
	}
	agree(helm.Values, values)
	if err := chartutil.ProcessDependencies(helm, values); err != nil {
		return nil, nil, &Error{File: chartFile, Message: fmt.Sprintf("dependencies: %v", err)}
	}
	all, err := util.CoalesceValues(helm, values)
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
	case common.Values:
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

func release(in Input) map[string]any {
	return map[string]any{
		"Name": in.Release, "Namespace": in.Namespace, "Service": "Helm",
		"IsInstall": true, "IsUpgrade": false, "Revision": 1,
	}
}
