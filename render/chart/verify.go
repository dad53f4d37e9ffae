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
		here, there := firstLine(ours[name], theirs[name])
		return &Error{
			File: c.fileOf(name), Message: fmt.Sprintf("Helm's own engine renders %.80q where %.80q is rendered here", there, here),
			Hint: "please report the chart",
		}
	}
	return nil
}

// firstLine returns the first line in which two texts differ.
func firstLine(a, b string) (inA, inB string) {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return linesA[i], linesB[i]
		}
	}
	return strings.Join(linesA[min(len(linesA), len(linesB)):], "\n"), strings.Join(linesB[min(len(linesA), len(linesB)):], "\n")
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
