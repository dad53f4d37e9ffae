package chart

import (
	"fmt"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
)

// Input has the values and versions with which a folder is rendered.
type Input struct {
	// Release and Namespace are .Release.Name and .Release.Namespace.
	Release, Namespace string
	// Values override the chart's own.
	Values map[string]any
	// BuiltIns override Values. For a folder of manifests each of them can also be written with
	// a capital letter.
	BuiltIns map[string]any
	// KubeVersion is the version that the managed cluster reports; "" until it does.
	KubeVersion string
}

// Render renders the folder: CRDs first, then the objects by file, in the order of the file. The error is an *Error.
func (c *Chart) Render(in Input) ([]Manifest, error) {
	texts, crds, err := c.texts(&execution{}, in)
	if err != nil {
		return nil, asError(err)
	}
	manifests, err := c.manifests(texts, crds, in)
	if err != nil {
		return nil, asError(err)
	}
	return manifests, nil
}

// texts renders the templates.
func (c *Chart) texts(x *execution, in Input) (texts map[string]string, crds []Document, err error) {
	capabilities := newCapabilities(in.KubeVersion)
	x.enter = func(template string) { c.at(c.fileOf(template)) }
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
	announced(helm, map[*helmchart.Chart]bool{})
	texts, err = x.run(helm, common.Values{"Release": release(in), "Capabilities": capabilities, "Values": values})
	if err != nil {
		return nil, nil, c.templateError(err)
	}
	for _, crd := range helm.CRDObjects() {
		crds = append(crds, Document{File: c.fileOf(crd.Filename), Text: string(crd.File.Data)})
	}
	return texts, crds, nil
}

// prepare reads the chart again and merges values and dependencies, as `helm install` does.
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
	if err := checkSchemas(helm, "", all, in.BuiltIns); err != nil {
		return nil, nil, err
	}
	return helm, all, nil
}

// agree removes each of a chart's own values that is an object while the new value is not, and the reverse. The new
// values apply anyway, but Helm would print a warning to the operator's log.
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
