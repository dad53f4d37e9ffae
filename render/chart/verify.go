package chart

import (
	"maps"
	"slices"
)

// Verify refuses a folder whose rendering hangs on the order of a map. The input has no
// Mark. The error is an *Error.
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
