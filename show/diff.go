package show

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/addonflow/addonflow/api/brief"
)

// Diff returns the lines of DiffLines as text.
func (s Style) Diff(before, after []*unstructured.Unstructured) (string, error) {
	lines, err := DiffLines(before, after)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(s.paint(line.Kind.colour(), line.Text) + "\n")
	}
	return b.String(), nil
}

// DiffLine is one line of a unified diff.
type DiffLine struct {
	Kind DiffKind
	Text string
}

// DiffLines returns the differences between two sets of objects as one unified diff per object, in the order of
// after; objects that are only in before come last. The values of Secrets are masked. Invisible characters are shown
// as escapes, because a user decides by what the diff shows.
func DiffLines(before, after []*unstructured.Unstructured) ([]DiffLine, error) {
	old, names, err := texts(before, after, "before")
	if err != nil {
		return nil, err
	}
	newer, order, err := texts(after, before, "after")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	var out []DiffLine
	for _, name := range order {
		text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
			A: slices.Collect(strings.Lines(old[name])), FromFile: side(name, old[name]),
			B: slices.Collect(strings.Lines(newer[name])), ToFile: side(name, newer[name]),
			Context: 3,
		})
		if err != nil {
			return nil, fmt.Errorf("cannot compare %s: %w", name, err)
		}
		for line := range strings.Lines(text) {
			out = append(out, DiffLine{kindOf(line), brief.Visible(strings.TrimSuffix(line, "\n"))})
		}
	}
	return out, nil
}

// side is the name of an object in the header of a diff.
func side(name, text string) string {
	if text == "" {
		return "(absent)"
	}
	return name
}

// DiffKind is the kind of a line of a diff.
type DiffKind string

// The kinds of lines.
const (
	DiffObject DiffKind = "object" // names an object
	DiffPlace  DiffKind = "place"  // names a place in the object
	DiffBefore DiffKind = "before" // is only in before
	DiffAfter  DiffKind = "after"  // is only in after
	DiffSame   DiffKind = "same"   // is in both
)

func kindOf(line string) DiffKind {
	switch {
	case strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "):
		return DiffObject
	case strings.HasPrefix(line, "@@"):
		return DiffPlace
	case strings.HasPrefix(line, "-"):
		return DiffBefore
	case strings.HasPrefix(line, "+"):
		return DiffAfter
	}
	return DiffSame
}

func (k DiffKind) colour() colour {
	switch k {
	case DiffObject:
		return bold
	case DiffPlace:
		return blue
	case DiffBefore:
		return red
	case DiffAfter:
		return green
	case DiffSame:
	}
	return plain
}

// texts returns the objects as YAML by name, and the names in order. In hosted mode, two objects of one name can be
// on different clusters; they become one text. others are the objects of the other side of the diff.
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

// objectName is a name such as apps/v1 Deployment agents/hello.
func objectName(o *unstructured.Unstructured) string {
	return o.GetAPIVersion() + " " + o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

// mask stands for a value of a Secret.
const mask = "***"

// masked returns an object without the values of a Secret. A value that differs between the sides of the diff is
// marked with when, so that the change is visible.
func masked(o *unstructured.Unstructured, others []*unstructured.Unstructured, when string) *unstructured.Unstructured {
	if o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return o
	}
	at := slices.IndexFunc(others, func(other *unstructured.Unstructured) bool { return objectName(other) == objectName(o) })
	out := o.DeepCopy()
	// kubectl apply stores the values in this annotation, too.
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", corev1.LastAppliedConfigAnnotation)
	for _, field := range []string{"data", "stringData"} {
		values, isMap := out.Object[field].(map[string]any)
		if !isMap && out.Object[field] != nil {
			out.Object[field] = mask // a valid Secret has no such field, and no value may be shown
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
