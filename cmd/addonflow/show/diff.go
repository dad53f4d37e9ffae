package show

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Diff returns what differs between two sets of objects as a unified diff per object, in the
// order of after; objects that are only in before come last. The values of Secrets are masked.
func (s Style) Diff(before, after []*unstructured.Unstructured) (string, error) {
	old, names, err := texts(before, after, "before")
	if err != nil {
		return "", err
	}
	newer, order, err := texts(after, before, "after")
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	var b strings.Builder
	for _, name := range order {
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(old[name])), FromFile: side(name, old[name]),
			B: slices.Collect(strings.Lines(newer[name])), ToFile: side(name, newer[name]),
			Context: 3,
		})
		if err != nil {
			return "", fmt.Errorf("cannot compare %s: %w", name, err)
		}
		for line := range strings.Lines(text) {
			b.WriteString(s.paint(colourOf(line), strings.TrimSuffix(line, "\n")) + "\n")
		}
	}
	return b.String(), nil
}

// side is the name of an object in the header of a diff.
func side(name, text string) string {
	if text == "" {
		return "(absent)"
	}
	return name
}

// colourOf is the colour of a line of a diff.
func colourOf(line string) colour {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return bold
	case strings.HasPrefix(line, "@@"):
		return blue
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "+"):
		return green
	}
	return plain
}

// texts are objects as YAML by name, and the names in order. Objects of one name, which in hosted
// mode are on different clusters, are one text. others are those that they are compared with.
func texts(objects, others []*unstructured.Unstructured, when string) (map[string]string, []string, error) {
	found, order := map[string]string{}, []string(nil)
	for _, o := range objects {
		name := objectName(o)
		text, err := yaml.Marshal(masked(o, others, when).Object)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot print %s: %w", name, err)
		}
		if _, ok := found[name]; !ok {
			order = append(order, name)
		}
		found[name] += string(text)
	}
	return found, order, nil
}

// objectName is such as apps/v1 Deployment agents/hello.
func objectName(o *unstructured.Unstructured) string {
	return o.GetAPIVersion() + " " + o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// mask stands for a value of a Secret.
const mask = "***"

// masked is an object without the values of a Secret. A value that differs from the one that it
// is compared with says when it is from, so that the change is seen.
func masked(o *unstructured.Unstructured, others []*unstructured.Unstructured, when string) *unstructured.Unstructured {
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return o
	}
	at := slices.IndexFunc(others, func(other *unstructured.Unstructured) bool { return objectName(other) == objectName(o) })
	out := o.DeepCopy()
	for _, field := range []string{"data", "stringData"} {
		values, isMap := out.Object[field].(map[string]any)
		if !isMap && out.Object[field] != nil {
			out.Object[field] = mask // no Secret is like that, and no value may be shown
		}
		for key, value := range values {
			values[key] = mask
			if at < 0 {
				continue
			}
			other, there, _ := unstructured.NestedFieldNoCopy(others[at].Object, field, key)
			if there && !reflect.DeepEqual(other, value) {
				values[key] = mask + " (" + when + ")"
			}
		}
	}
	return out
}
