package render

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func named1(names ...string) []Identity {
	ids := make([]Identity, 0, len(names))
	for _, name := range names {
		ids = append(ids, Identity{APIVersion: "v1", Kind: "ConfigMap", Name: name})
	}
	return ids
}

// splitNames runs split on objects given as name and size.
func splitNames(objects map[string]int, present ...[]string) [][]string {
	var in []sized
	for name, size := range objects { // in any order
		in = append(in, sized{id: named1(name)[0], size: size})
	}
	var ids [][]Identity
	for _, names := range present {
		ids = append(ids, named1(names...))
	}
	var out [][]string
	for _, part := range split(in, ids) {
		names := []string{}
		for _, i := range part {
			names = append(names, in[i].id.Name)
		}
		out = append(out, names)
	}
	return out
}

func TestSplit(t *testing.T) {
	const half = workRoom / 2
	cases := map[string]struct {
		reason  string
		objects map[string]int
		present [][]string
		want    [][]string
	}{
		"first install":      {"largest first, ties by name", map[string]int{"b": 10, "a": 10, "c": 20}, nil, [][]string{{"c", "a", "b"}}},
		"full":               {"80 % of the limit, then the next", map[string]int{"a": half, "b": half, "c": 1}, nil, [][]string{{"a"}, {"b", "c"}}},
		"stay":               {"where they are, in that order", map[string]int{"a": 10, "b": 20}, [][]string{{"b"}, {"a"}}, [][]string{{"b"}, {"a"}}},
		"removed":            {"go", map[string]int{"a": 10}, [][]string{{"x", "a", "y"}}, [][]string{{"a"}}},
		"empty":              {"is left, for deletion", map[string]int{"a": 10}, [][]string{{"a"}, {"x"}}, [][]string{{"a"}, {}}},
		"most room":          {"of the existing ones", map[string]int{"a": 300, "b": 100, "n": 5}, [][]string{{"a"}, {"b"}}, [][]string{{"a"}, {"b", "n"}}},
		"no room":            {"a new one", map[string]int{"a": workRoom, "n": 5}, [][]string{{"a"}}, [][]string{{"a"}, {"n"}}},
		"grown within limit": {"stay: moving would recreate them", map[string]int{"a": workRoom, "b": 1000}, [][]string{{"a", "b"}}, [][]string{{"a", "b"}}},
		"grown beyond":       {"the last leaves", map[string]int{"a": WorkLimit, "b": 1000}, [][]string{{"a", "b"}}, [][]string{{"a"}, {"b"}}},
		"large alone":        {"between 80 % and the limit", map[string]int{"a": WorkLimit - 1, "b": 1}, nil, [][]string{{"a"}, {"b"}}},
		"twice present":      {"the first keeps it", map[string]int{"a": 1}, [][]string{{"a"}, {"a"}}, [][]string{{"a"}, {}}},
		"nothing":            {"is no work", nil, nil, nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, splitNames(c.objects, c.present...)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

// simpleSplit does the same as split, in the simplest and slowest way.
func simpleSplit(objects []sized, present [][]Identity) [][]int {
	where := make([]int, len(objects)) // -1: not placed yet
	for o := range objects {
		where[o] = -1
	}
	parts := make([][]int, len(present))
	for p := range present {
		parts[p] = dumbKeep(objects, present[p], where)
	}
	added := [][]int(nil)
	for next := dumbNext(objects, where); next >= 0; next = dumbNext(objects, where) {
		where[next] = 0
		best := -1
		for p := range parts {
			if total(objects, parts[p])+objects[next].size < workRoom && (best < 0 || total(objects, parts[p]) < total(objects, parts[best])) {
				best = p
			}
		}
		switch last := len(added) - 1; {
		case best >= 0:
			parts[best] = append(parts[best], next)
		case last >= 0 && total(objects, added[last])+objects[next].size < workRoom:
			added[last] = append(added[last], next)
		default:
			added = append(added, []int{next})
		}
	}
	return append(parts, added...)
}

// dumbKeep returns what stays in an existing work.
func dumbKeep(objects []sized, ids []Identity, where []int) []int {
	var part []int
	for _, id := range ids {
		for o := range objects {
			if objects[o].id == id && where[o] < 0 {
				where[o] = 0
				part = append(part, o)
			}
		}
	}
	for total(objects, part) > WorkLimit && len(part) > 1 {
		where[part[len(part)-1]] = -1
		part = part[:len(part)-1]
	}
	return part
}

// dumbNext is the largest object that is not placed yet.
func dumbNext(objects []sized, where []int) int {
	next := -1
	for o := range objects {
		if where[o] < 0 && (next < 0 || objects[o].size > objects[next].size ||
			(objects[o].size == objects[next].size && fmt.Sprint(objects[o].id) < fmt.Sprint(objects[next].id))) {
			next = o
		}
	}
	return next
}

func TestSplitEqualsTheSimpleSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 12).Draw(t, "objects")
		objects := make([]sized, 0, count)
		for i := range count {
			size := rapid.OneOf(rapid.IntRange(1, 1000), rapid.IntRange(workRoom/3, WorkLimit)).Draw(t, "size")
			objects = append(objects, sized{id: named1(fmt.Sprintf("o%02d", i))[0], size: size})
		}
		present := make([][]Identity, rapid.IntRange(0, 3).Draw(t, "works"))
		for p := range present {
			for range rapid.IntRange(0, 6).Draw(t, "held") {
				present[p] = append(present[p], named1(fmt.Sprintf("o%02d", rapid.IntRange(0, 14).Draw(t, "which")))...)
			}
		}
		got := split(objects, present)
		if diff := cmp.Diff(simpleSplit(objects, present), got); diff != "" {
			t.Fatalf("(-dumb +split):\n%s", diff)
		}
		placedOnce(t, objects, got, len(present))
		// A second split moves nothing.
		again := make([][]Identity, len(got))
		for p, part := range got {
			for _, o := range part {
				again[p] = append(again[p], objects[o].id)
			}
		}
		if diff := cmp.Diff(got, split(objects, again)); diff != "" {
			t.Fatalf("a second time (-first +second):\n%s", diff)
		}
	})
}

// placedOnce asserts that every object is in one work and that no work is too large.
func placedOnce(t *rapid.T, objects []sized, parts [][]int, present int) {
	t.Helper()
	var all []int
	for p, part := range parts {
		if len(part) > 1 && total(objects, part) > WorkLimit {
			t.Fatalf("work %d has %d bytes", p, total(objects, part))
		}
		if p >= present && len(part) == 0 {
			t.Fatalf("work %d is new and empty", p)
		}
		all = append(all, part...)
	}
	slices.Sort(all)
	for i := range objects {
		if i >= len(all) || all[i] != i {
			t.Fatalf("objects placed: %v of %d", all, len(objects))
		}
	}
}
