package chart

import (
	"bytes"
	"maps"
	"path"
	"slices"
)

// verifications is how often a chart is rendered if .Files.AsConfig or AsSecrets may find two
// files of one name. Go's random map order decides which one Helm writes: two renderings in
// opposite orders are equal in less than one of four cases.
const verifications = 16

// Verify refuses a source whose rendering depends on the order of a map. The error is an
// *Error.
func (c *Chart) Verify(in Input) error {
	times := 2
	if c.namesFilesTwice() {
		times = verifications
	}
	first, _, err := c.texts(&execution{}, in)
	if err != nil {
		return asError(err)
	}
	for n := 1; n < times; n++ {
		backwards := n%2 == 1
		turned := *c
		if turned.files = slices.Clone(c.files); backwards {
			slices.Reverse(turned.files)
		}
		again, _, err := turned.texts(&execution{backwards: backwards}, in)
		if err != nil {
			return asError(err)
		}
		if name := firstDifference(first, again); name != "" {
			return &Error{
				File: c.fileOf(name), Message: "renders differently from one time to the next: it depends on the order of a map, or on an address in memory",
				Hint: "sort what keys returns: keys $dict | sortAlpha; let .Files.AsConfig and AsSecrets have one file of each name",
			}
		}
	}
	return nil
}

// namesFilesTwice reports whether two files of a chart have the same name and a file calls one
// of the methods that keep only one of them.
func (c *Chart) namesFilesTwice() bool {
	names, twice, asks := map[string]bool{}, false, false
	for _, f := range c.files {
		twice = twice || names[path.Base(f.Path)]
		names[path.Base(f.Path)] = true
		asks = asks || bytes.Contains(f.Content, []byte("AsConfig")) || bytes.Contains(f.Content, []byte("AsSecrets"))
	}
	return twice && asks
}

// firstDifference names the first template that is missing on one side, or that differs.
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
