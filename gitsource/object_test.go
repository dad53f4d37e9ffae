package gitsource

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const positioned = `# a comment
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
---
apiVersion: example.com/v1
kind: Thing
metadata:
  name: second
  labels:
    example.com/a.b: x
spec:
  list:
  - one: 1
  -
    two: 2
    deep: {er: {x: y}}
  shared: &s
    k: v
  alias: *s
`

func find(t *testing.T, objects []Object, kind, name string) Object {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	t.Fatalf("no %s/%s among %v", kind, name, names(objects))
	return Object{}
}

func TestPosition(t *testing.T) {
	kustomized := func(rest string) tree {
		return tree{"kustomization.yaml": "resources: [a.yaml]\n" + rest, "a.yaml": positioned}
	}
	type at map[string]int
	whole := at{
		"": 7, "kind": 8, "metadata.name": 10, `metadata.labels["example.com/a.b"]`: 12, "metadata.labels[example.com/a.b]": 12,
		"spec.list": 14, "spec.list[0].one": 15, "spec.list[1]": 17, "spec.list[1].deep.er.x": 18,
		"spec.alias": 21, "spec.alias.k": 20, "spec.missing": 13, "spec.list[7].x": 14, "nothing": 7,
	}
	for name, c := range map[string]struct {
		reason string
		files  tree
		name   string
		path   string
		want   at
	}{
		"as written":         {"without kustomize", tree{"a.yaml": positioned}, "second", "a.yaml", whole},
		"through kustomize":  {"with one that changes nothing", kustomized(""), "second", "a.yaml", whole},
		"another is changed": {"with one that changes another object", kustomized("patches:\n- target: {name: first}\n  patch: '[{op: add, path: /data, value: {a: b}}]'\n"), "second", "a.yaml", whole},
		"renamed": {
			"a prefix hides neither object nor unchanged fields",
			kustomized("namePrefix: x-\n"), "x-second", "a.yaml",
			at{"": 7, "metadata.name": 7, "spec.list[0].one": 15, "spec.missing": 7},
		},
		"patched": {
			"changed fields are where the object is",
			kustomized("patches:\n- target: {kind: Thing}\n  patch: '[{op: replace, path: /spec/list/0/one, value: 7}, {op: add, path: /spec/new, value: 1}]'\n"),
			"second", "a.yaml",
			at{"": 7, "spec.list[0].one": 7, "spec.new": 7, "spec.list[1].two": 17, "kind": 8},
		},
		"generated": {
			"what a generator made is where the generator is",
			kustomized("configMapGenerator: [{name: made, literals: [a=b]}]\ngeneratorOptions: {disableNameSuffixHash: true}\n"),
			"made", "kustomization.yaml",
			at{"": 0, "data.a": 0},
		},
		"in a base": {
			"a base's file is named from the top of the repository",
			tree{"kustomization.yaml": "resources: [sub/over]\n", "sub/over/kustomization.yaml": "resources: [../base]\n", "sub/base/kustomization.yaml": "resources: [a.yaml]\n", "sub/base/a.yaml": positioned},
			"second", "sub/base/a.yaml", whole,
		},
		"in a List": {
			"an item of a List",
			tree{"a.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Thing\n  metadata:\n    name: second\n"},
			"second", "a.yaml",
			at{"": 4, "metadata.name": 7},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, problems := c.files.local(t).Build(t.Context(), BuildOptions{})
			if len(problems) > 0 {
				t.Fatal(lines(problems))
			}
			kind := "Thing"
			if c.name == "made" {
				kind = "ConfigMap"
			}
			o := find(t, objects, kind, c.name)
			if o.GetUnstructured() != o.Unstructured {
				t.Error("GetUnstructured returns another object")
			}
			got := at{}
			for field := range c.want {
				path, line := o.Position(field)
				if path != c.path {
					t.Errorf("%s: %q is in %s, want %s", c.reason, field, path, c.path)
				}
				got[field] = line
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
			}
		})
	}
	if path, line := (Object{}).Position("spec"); path != "" || line != 0 {
		t.Errorf("an object from nowhere is at %s:%d", path, line)
	}
}

func TestSplitField(t *testing.T) {
	for in, want := range map[string][]string{
		"":                   nil,
		"spec":               {"spec"},
		"spec.a[2].b":        {"spec", "a", "2", "b"},
		`a["x.y"].b`:         {"a", "x.y", "b"},
		`a["x\"]y"]`:         {"a", `x"]y`},
		"a[x.y]":             {"a", "x.y"},
		"[0][1]":             {"0", "1"},
		"a[":                 {"a", ""},
		`a["`:                {"a", `"`},
		"a..b":               {"a", "b"},
		"spec.manifests[2].": {"spec", "manifests", "2"},
	} {
		if diff := cmp.Diff(want, splitField(in)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", in, diff)
		}
	}
}
