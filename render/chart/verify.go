package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Verify refuses a folder whose rendering hangs on the order of a map, and a chart
// that Helm's own engine renders to something else. Render must have succeeded with
// the same input, which has no Mark: Helm's engine knows no bounds. The error is an
// *Error.
func (c *Chart) Verify(in Input) error {
	forward, _, err := c.texts(&execution{}, in, newCapabilities(in.KubeVersion))
	if err != nil {
		return asError(err)
	}
	backward, _, err := c.texts(&execution{backwards: true}, in, newCapabilities(in.KubeVersion))
	if err != nil {
		return asError(err)
	}
	if name := firstDifference(forward, backward); name != "" {
		return &Error{
			File: c.fileOf(name), Message: "renders differently from one time to the next: it hangs on the order of keys or values of a dict",
			Hint: "sort what keys returns: keys $dict | sortAlpha",
		}
	}
	if c.helm == nil {
		return nil
	}
	return c.compareWithHelm(in, forward)
}

func (c *Chart) compareWithHelm(in Input, ours map[string]string) error {
	helm, values, err := c.prepare(in)
	if err != nil {
		return err
	}
	known := builtCapabilities()
	if version, err := newCapabilities(in.KubeVersion).KubeVersion(); err == nil {
		known.KubeVersion = *version
	}
	theirs, err := engine.Engine{}.Render(helm, chartutil.Values{
		"Chart": helm.Metadata, "Capabilities": known, "Release": release(in), "Values": chartutil.Values(values),
	})
	if err != nil {
		return &Error{Message: fmt.Sprintf("Helm's own engine does not render it: %.400s", strings.ReplaceAll(err.Error(), "\n", " "))}
	}
	if name := firstDifference(ours, theirs); name != "" {
		return &Error{File: c.fileOf(name), Message: "Helm's own engine renders something else", Hint: "please report the chart"}
	}
	return nil
}

// firstDifference names the first template that only one has, or that differs.
func firstDifference(a, b map[string]string) string {
	names := slices.Sorted(maps.Keys(a))
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	for _, name := range names {
		text, inA := a[name]
		other, inB := b[name]
		if !inA || !inB || text != other {
			return name
		}
	}
	return ""
}
