package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/addonflow/addonflow/test/faults/proxy"
)

// point is one run of the reference workload with faults.
type point struct {
	// name identifies it on the command line; class is its row of the matrix.
	name, class string
	faults      []proxy.Fault
	// operators is how many run at once; 0: one.
	operators int
	// leaders: they elect one of them. flags are given to them.
	leaders bool
	flags   []string
	// upgraded: the first is of the commit before. rolledBack: the second is, with the definitions of this one.
	// clocked: their clock can be set.
	upgraded, rolledBack, clocked bool
	// shrinks: the fleet has fewer clusters for a while, which past rollouts and their statuses say.
	// restores: older statuses are written back. forgets: beta's rollout loses its status. forges: its status says
	// that it failed. flaps: an agent reports for a while, every other time, that its content does not run.
	// leaves: clusters leave that are to prove content, so that it may fail because they left. prunes: beta's
	// revisions that are no target are lost.
	shrinks, restores, forgets, forges, flaps, leaves, prunes bool
	// gone are parts of the keys of objects that the point deletes.
	gone []string
	// disturb is called when each step begins, and runs beside it.
	disturb disturbance
	// repeats is how many statuses may be repeated although no answer of the forge was lost.
	repeats int
}

// planned is how many faults are to strike, at least.
func (p point) planned() int {
	if len(p.faults) == 0 {
		return 1
	}
	n := 0
	for _, f := range p.faults {
		n += f.Times
		if f.Again > 0 {
			n++
		}
	}
	return n
}

var unprintable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// file is the name as part of a path.
func (p point) file() string { return strings.Trim(unprintable.ReplaceAllString(p.name, "-"), "-") }

// positions are the first, the middle and the last of n writes.
func positions(n int) []int { return slices.Compact([]int{1, (n + 1) / 2, n}) }

// regressions are the names of points that found a mistake, which is fixed. They run first.
var regressions = []string{
	"stale cache of addonrollouts",               // a removal that the watch did not show yet ended the commit
	"zombie leader, seed 3",                      // a process that stood still applied the commit that it had seen before
	"clock of operator steps, seed 4",            // after a step back, a recall returned to older content than the last green one
	"older status of AddOnSource fleet, seed 15", // marks that were restored in the middle of a post hid a verdict
	"hand edit: a rollout's status lost",         // a verdict was not posted after the forge had shown something else
}

// matrix lists every point, from the writes of the undisturbed run. A short run takes the classes in
// this order: first those that strike most often, last those with a point that runs as a regression anyway.
func matrix(r *reference) []point {
	outer := slices.Concat(servers(), olderStatuses(), flaps(), edits(), agents(), outside(), watches(r))
	return slices.Concat(kills(r), mixed(outer), doubles(r), twins(r), answers(r), outer, zombies(), clocks(), upgrades(r))
}

// choose are the points with one of the words in their name; words are separated by |. A word that is a whole name
// chooses only that point. A word that is the name of a crash makes that crash the only fault of a run.
func choose(all []point, r *reference, words string) []point {
	var chosen []point
	for word := range strings.SplitSeq(words, "|") {
		named := func(p point) bool { return p.name == word }
		if !slices.ContainsFunc(all, named) {
			named = func(p point) bool { return strings.Contains(p.name, word) }
		}
		for _, p := range all {
			if named(p) {
				chosen = append(chosen, p)
			}
		}
		for _, f := range everyKill(r) {
			if f.String() == word {
				chosen = append(chosen, point{name: word, class: "kill -9", faults: []proxy.Fault{f}})
			}
		}
	}
	return chosen
}

// everyKill are kill -9 before and after every kind of write, at its first, middle and last one,
// in the order in which the undisturbed run makes those writes.
func everyKill(r *reference) []proxy.Fault {
	var all []proxy.Fault
	seen := map[string]int{}
	for _, class := range r.Order {
		seen[class]++
		if !slices.Contains(positions(r.Writes[class]), seen[class]) {
			continue
		}
		for _, action := range []proxy.Action{proxy.KillBefore, proxy.KillAfter} {
			all = append(all, proxy.Fault{Class: class, At: seen[class], Times: 1, Action: action})
		}
	}
	return all
}

// killsEach is how many crashes a run has: far enough from each other that the operator has
// recovered from one before the next.
const killsEach = 8

// kills distributes the kills over runs, so that the kills of one run are far from each other.
func kills(r *reference) []point {
	all := everyKill(r)
	runs := make([]point, (len(all)+killsEach-1)/killsEach)
	for i, f := range all {
		runs[i%len(runs)].faults = append(runs[i%len(runs)].faults, f)
	}
	for i := range runs {
		runs[i].name, runs[i].class = fmt.Sprintf("kill -9, run %d of %d", i+1, len(runs)), "kill -9"
	}
	return runs
}

// doubles are two crashes in a row, four times a run: the second one few writes after the first.
func doubles(r *reference) []point {
	const pairs, near = 4, 8
	var all []point
	for seed := range seeds {
		p := point{name: fmt.Sprintf("double crash, seed %d", seed+1), class: "double crashes"}
		dice := dice(p.name, "")
		seen := map[string]int{}
		part := len(r.Order) / pairs
		next := dice.IntN(part)
		for i, class := range r.Order {
			seen[class]++
			if i != next {
				continue
			}
			next = (i/part+1)*part + dice.IntN(part-near)
			action := []proxy.Action{proxy.KillBefore, proxy.KillAfter}[dice.IntN(2)]
			p.faults = append(p.faults, proxy.Fault{Class: class, At: seen[class], Times: 1, Action: action, Again: 1 + dice.IntN(near)})
		}
		all = append(all, p)
	}
	return all
}

// upgrades are an operator of the commit before that is replaced after a write; and an operator that is replaced by
// that one, which is replaced in turn after some writes more.
func upgrades(r *reference) []point {
	const points, stays, writesPerPost = 8, 60, 7
	var upgraded, rolledBack []point
	seen := map[string]int{}
	for i, class := range r.Order {
		seen[class]++
		if (i+1)%(len(r.Order)/(points+1)) != 0 || len(upgraded) == points {
			continue
		}
		f := proxy.Fault{Class: class, At: seen[class], Times: 1, Action: proxy.KillAfter}
		upgraded = append(upgraded, point{name: fmt.Sprintf("upgrade after %s #%d", f.Class, f.At), class: "upgrade", faults: []proxy.Fault{f}, upgraded: true})
		f.Again = stays
		if strings.HasPrefix(class, "post ") {
			f.Again = stays / writesPerPost // the proxy of the forge counts its own
		}
		rolledBack = append(rolledBack, point{name: fmt.Sprintf("operator rolled back after %s #%d", f.Class, f.At), class: "operator rolled back", faults: []proxy.Fault{f}, rolledBack: true})
	}
	return slices.Concat(upgraded, rolledBack)
}

// answers are wrong answers to every kind of write: twice, then all is well.
func answers(r *reference) []point {
	var all []point
	for _, action := range proxy.Answers() {
		for _, at := range []string{"first", "middle", "last"} {
			p := point{name: fmt.Sprintf("%s at the %s write of every class", action, at), class: "wrong answers"}
			for _, class := range slices.Sorted(maps.Keys(r.Writes)) {
				n := r.Writes[class]
				position := map[string]int{"first": 1, "middle": (n + 1) / 2, "last": n}[at]
				p.faults = append(p.faults, proxy.Fault{Class: class, At: position, Times: 2, Action: action})
			}
			all = append(all, p)
		}
	}
	return all
}
