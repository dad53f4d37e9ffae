package ocm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// flat is an object as a map of paths to scalars, as JSON.
type flat map[string]string

// flatten lists the leaves of a JSON value by path. It skips null, empty lists and empty
// structs: typed clients write them, untyped ones do not, and readers do not distinguish them.
func flatten(into flat, path string, value any) {
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for key, field := range v {
			flatten(into, path+"."+key, field)
		}
	case []any:
		for i, item := range v {
			flatten(into, fmt.Sprintf("%s[%s]", path, itemKey(item, i)), item)
		}
	default:
		text, err := json.Marshal(v)
		Expect(err).NotTo(HaveOccurred())
		into[path] = shortened(string(text))
	}
}

// itemKey identifies an item of a list, so that an order without a meaning is not compared.
func itemKey(item any, index int) string {
	fields, ok := item.(map[string]any)
	if !ok {
		return fmt.Sprint(index)
	}
	for _, key := range []string{"name", "containerPort", "mountPath"} {
		if name, ok := fields[key]; ok {
			return fmt.Sprint(name)
		}
	}
	return fmt.Sprint(index)
}

// shortened keeps a difference readable.
func shortened(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", text[:most], len(text))
}

// generic turns a typed object into JSON values.
func generic(typed any) any {
	GinkgoHelper()
	text, err := json.Marshal(typed)
	Expect(err).NotTo(HaveOccurred())
	var out any
	Expect(json.Unmarshal(text, &out)).To(Succeed())
	return out
}

// difference lists where two worlds differ, a line each, sorted by path.
func difference(ocm, addonflow flat) []string {
	paths := map[string]bool{}
	for path := range ocm {
		paths[path] = true
	}
	for path := range addonflow {
		paths[path] = true
	}
	var lines []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if a, b := ocm[path], addonflow[path]; a != b {
			lines = append(lines, fmt.Sprintf("%s: %s -> %s", path, orNothing(a), orNothing(b)))
		}
	}
	return lines
}

func orNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}

// without drops keys from a map, by a rule, and returns nil when none is left.
func without(m map[string]string, drop func(string) bool) map[string]string {
	out := maps.Clone(m)
	maps.DeleteFunc(out, func(key, _ string) bool { return drop(key) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// join is a path.
func join(parts ...string) string { return strings.Join(parts, "/") }
