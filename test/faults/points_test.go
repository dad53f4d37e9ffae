package main

import (
	"slices"
	"testing"

	"github.com/addonflow/addonflow/test/faults/proxy"
)

// written is an undisturbed run with these writes.
func written(order ...string) *reference {
	r := &reference{Order: order, Writes: map[string]int{}}
	for _, class := range order {
		r.Writes[class]++
	}
	return r
}

func TestFullRunKillsBeforeAndAfterEveryWrite(t *testing.T) {
	r := written("create a", "update b", "update b", "create a", "update b", "update b", "update b")
	struck := map[string]int{}
	for _, p := range (options{}).killed(r) {
		for _, f := range p.faults {
			struck[f.String()]++
		}
	}
	for class, n := range r.Writes {
		for at := 1; at <= n; at++ {
			for _, action := range []proxy.Action{proxy.KillBefore, proxy.KillAfter} {
				f := proxy.Fault{Class: class, At: at, Times: 1, Action: action}
				if struck[f.String()] != 1 {
					t.Errorf("%s strikes %d times, want once", f, struck[f.String()])
				}
			}
		}
	}
	some := (options{limit: 1}).killed(r)
	if n := len(some[0].faults) + len(some[1].faults); len(some) != 2 || n != 2*(2+3) {
		t.Errorf("a short run has %d kills in %d points, want the first, middle and last write of each kind", n, len(some))
	}
}

// A point whose faults never struck proves nothing.
func TestUnmetFaultsAreNamed(t *testing.T) {
	p := point{faults: []proxy.Fault{
		{Class: "create a", At: 1, Times: 2, Action: proxy.Conflict},
		{Class: "create a", At: 9, Times: 1, Action: proxy.KillAfter},
		{Class: "update b", At: 2, Times: 1, Action: proxy.KillBefore, Again: 3},
	}}
	want := []string{"kill-after at create a #9", "kill-before at update b #2 and 3 writes later"}
	if got := p.unmet([]int{1, 0, 1}); !slices.Equal(got, want) {
		t.Errorf("unmet are %q, want %q", got, want)
	}
}

// A new element takes choices of its own only.
func TestSeedsDoNotDependOnTheLengthsOfLists(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		before := pick("seed "+seed, names, itself)
		if after := pick("seed "+seed, append([]string{"new"}, names...), itself); after != before && after != "new" {
			t.Errorf("seed %s picks %s, and %s before the list had another element", seed, after, before)
		}
	}
}

// A kind may be written no more than twice as often, and none of its objects may.
func TestWritesAreCountedByObject(t *testing.T) {
	undisturbed := &reference{Applied: map[string]map[string]int{"works": {"c1/a": 2, "c2/a": 2}, "rollouts": {"a": 3}}}
	for name, c := range map[string]struct {
		seen map[string]map[string]int
		want []string
	}{
		"twice":            {seen: map[string]map[string]int{"works": {"c1/a": 4, "c2/a": 4}}},
		"one object":       {seen: map[string]map[string]int{"works": {"c1/a": 6, "c2/a": 1}}, want: []string{"6 writes of works c1/a; the undisturbed run has 2, and the faults demand 1"}},
		"a new object":     {seen: map[string]map[string]int{"works": {"c3/a": 5}}},
		"too many objects": {seen: map[string]map[string]int{"works": {"c1/a": 4, "c2/a": 4, "c3/a": 4}}, want: []string{"12 writes of works; the undisturbed run has 4, and the faults demand 1"}},
		"another kind":     {seen: map[string]map[string]int{"rollouts": {"a": 7}}, want: []string{"7 writes of rollouts; the undisturbed run has 3, and the faults demand 0", "7 writes of rollouts a; the undisturbed run has 3, and the faults demand 0"}},
	} {
		if got := (&result{}).count(&reference{Applied: c.seen}, undisturbed, map[string]int{"works": 1}); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
