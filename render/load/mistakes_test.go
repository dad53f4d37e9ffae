package load

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/render/chart"
	"github.com/addonflow/addonflow/render/flaw"
)

// fieldsOf returns the paths of all named fields in a value.
func fieldsOf(at flaw.Path, value any) []flaw.Path {
	var fields []flaw.Path
	switch value := value.(type) {
	case map[string]any:
		for key, item := range value {
			fields = append(append(fields, at.Child(key)), fieldsOf(at.Child(key), item)...)
		}
	case []any:
		for i, item := range value {
			fields = append(fields, fieldsOf(at.Index(i), item)...)
		}
	}
	slices.Sort(fields)
	return fields
}

// spoil breaks the field that a path leads to: its name, or its type.
type spoil func(parent map[string]any, key string)

func spoils() map[string]spoil {
	rename := func(to func(key string) string) spoil {
		return func(parent map[string]any, key string) {
			parent[to(key)] = parent[key]
			delete(parent, key)
		}
	}
	return map[string]spoil{
		"misspelt": rename(func(key string) string { return key + "x" }),
		"strange":  rename(func(string) string { return "zzqqzz" }),
		"type": func(parent map[string]any, key string) {
			switch parent[key].(type) {
			case string:
				parent[key] = int64(1)
			case map[string]any:
				parent[key] = []any{"a"}
			default:
				parent[key] = "text"
			}
		},
	}
}

// spoilt returns the objects of hello with some fields of one object broken.
func spoilt(tb testing.TB, path string, fields map[flaw.Path]spoil) []Located {
	tb.Helper()
	var objects []Located
	for name, text := range hello() {
		o, isFile := document(tb, name, text).(file)
		if !isFile {
			tb.Fatal("no file")
		}
		for field, change := range fields {
			if name != path {
				continue
			}
			parent, value := map[string]any{}, any(o.object.Object)
			key, at := "", flaw.Path("")
			for _, name := range field.Steps() {
				if object, isObject := value.(map[string]any); isObject {
					parent, key = object, name
				}
				at = at.Child(name)
				value = at.In(o.object.Object)
			}
			if value != nil {
				change(parent, key)
			}
		}
		o.object = &unstructured.Unstructured{Object: o.object.Object}
		objects = append(objects, o)
	}
	return objects
}

// TestMistakeIsReportedFirst misspells every field of a valid commit, and gives it another
// type. The first problem is at that field, its parent or its siblings.
func TestMistakeIsReportedFirst(t *testing.T) {
	for path, text := range hello() {
		for _, field := range fieldsOf("", document(t, path, text).GetUnstructured().Object) {
			for how, change := range spoils() {
				_, problems := Load(spoilt(t, path, map[flaw.Path]spoil{field: change}), nil, Options{Charts: chart.InProcess{}, Namespace: "flow"})
				if len(problems) == 0 {
					continue // any value is valid in this field
				}
				first, beside := flaw.Path(problems[0].Field), parent(field)
				if inManifest(field) {
					beside = manifestOf(field) // a selector and its labels are in different parts of a manifest
				}
				if problems[0].Path != path || beside != "" && !first.Under(beside) && !field.Under(first) {
					t.Errorf("%s of %s, %s, is not reported first:\n%v", field, path, how, problems)
				}
			}
		}
	}
}

// TestTwoMistakesInOneObjectAreBothReported: a problem of one field does not hide that of
// another. A manifest without a kind is not checked further.
func TestTwoMistakesInOneObjectAreBothReported(t *testing.T) {
	paths := []string{addOnFile, templateFile, configFile, rolloutFile}
	fields := map[string][]flaw.Path{}
	for _, path := range paths {
		for _, field := range fieldsOf("", document(t, path, hello()[path]).GetUnstructured().Object) {
			if last := field.Last(); field.Under(specKey) && last != kindKey && last != apiVersionKey {
				fields[path] = append(fields[path], field)
			}
		}
	}
	problemsOf := func(path string, spoils map[flaw.Path]spoil) problem.List {
		_, problems := Load(spoilt(t, path, spoils), nil, Options{Charts: chart.InProcess{}, Namespace: "flow"})
		return problems
	}
	change := spoils()["type"]
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(rt, "file")
		a, b := rapid.SampledFrom(fields[path]).Draw(rt, "one"), rapid.SampledFrom(fields[path]).Draw(rt, "other")
		if a.Under(b) || b.Under(a) {
			return
		}
		both := problemsOf(path, map[flaw.Path]spoil{a: change, b: change})
		for _, field := range []flaw.Path{a, b} {
			single := problemsOf(path, map[flaw.Path]spoil{field: change})
			for _, alone := range single[:min(1, len(single))] { // the others follow from it
				if !slices.ContainsFunc(both, func(p problem.Problem) bool { return p.Field == alone.Field && p.Message == alone.Message }) {
					rt.Fatalf("%s beside %s: %s is not reported:\n%v", a, b, alone, both)
				}
			}
		}
	})
}

// parent is the object or list that holds the field.
func parent(p flaw.Path) flaw.Path {
	if strings.HasSuffix(string(p), "]") {
		return p[:strings.LastIndexByte(string(p), '[')]
	}
	return p[:max(0, strings.LastIndexByte(string(p), '.'))]
}
