package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
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
	// restores: older statuses are written back. forgets: the rollouts that lose their status. forges: a status says
	// that a rollout failed. flaps: an agent reports for a while, every other time, that its content does not run.
	// leaves: clusters leave that are to prove content, so that it may fail because they left. prunes: beta's
	// revisions that are no target are lost.
	shrinks, restores, forges, flaps, leaves, prunes bool
	forgets                                          []string
	// gone are parts of the keys of objects that the point deletes.
	gone []string
	// disturb is called when each step begins, and runs beside it.
	disturb disturbance
	// atGate is called once for each commit that waits for its approval, before it is approved.
	atGate func(context.Context, *workload) error
	// repeats is how many statuses may be repeated although no answer of the forge was lost.
	repeats int
}

// unmet are the faults that never struck, or did not strike again, from how often each one did: the run made fewer writes
// of that kind.
func (p point) unmet(struck []int) []string {
	var unmet []string
	for i, f := range p.faults {
		if struck[i] == 0 || f.Again > 0 && struck[i] == 1 {
			unmet = append(unmet, f.String())
		}
	}
	return unmet
}

// idle is the violation of a point that proves nothing, because no fault struck.
const idle = "no fault of the point struck"

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
func matrix(r *reference, kills []point) []point {
	outer := slices.Concat(servers(), olderStatuses(), flaps(), edits(), agents(), outside(), watches(r))
	return slices.Concat(kills, mixed(outer), doubles(r), twins(r), answers(r), outer, zombies(), clocks(), upgrades(r))
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
				chosen = append(chosen, point{name: word, class: killClass, faults: []proxy.Fault{f}})
			}
		}
	}
	return chosen
}

// everyKill are kill -9 before and after every write,
// in the order in which the undisturbed run makes those writes.
func everyKill(r *reference) []proxy.Fault {
	var all []proxy.Fault
	seen := map[string]int{}
	for _, class := range r.Order {
		seen[class]++
		for _, action := range []proxy.Action{proxy.KillBefore, proxy.KillAfter} {
			all = append(all, proxy.Fault{Class: class, At: seen[class], Times: 1, Action: action})
		}
	}
	return all
}

// someKills are those at the first, middle and last write of each kind.
func someKills(r *reference) []proxy.Fault {
	return slices.DeleteFunc(everyKill(r), func(f proxy.Fault) bool { return !slices.Contains(positions(r.Writes[f.Class]), f.At) })
}

// killClass is the class of the points with crashes.
const killClass = "kill -9"

// The crashes of one run are so many. They are far enough from each other that the operator has recovered from one
// before the next: in a short run also from those that take long, which delay the end of the run.
const (
	killsEach     = 32
	someKillsEach = 8
)

// kills distributes kills over runs, so that the kills of one run are far from each other.
func kills(all []proxy.Fault, each int, name string) []point {
	runs := make([]point, (len(all)+each-1)/each)
	for i, f := range all {
		runs[i%len(runs)].faults = append(runs[i%len(runs)].faults, f)
	}
	for i := range runs {
		runs[i].name, runs[i].class = fmt.Sprintf("%s, run %d of %d", name, i+1, len(runs)), killClass
	}
	return runs
}

// killed are the points with crashes: in the full run at every write, in a short one at some.
func (o options) killed(r *reference) []point {
	if o.limit > 0 {
		return kills(someKills(r), someKillsEach, "kill -9 at some writes")
	}
	return kills(everyKill(r), killsEach, "kill -9 at every write")
}

// doubles are two crashes in a row, four times a run: the second one few writes after the first.
func doubles(r *reference) []point {
	const pairs, near = 4, 8
	part := len(r.Order) / pairs
	within := func(dice *rand.Rand, i int) int { return i*part + int(dice.Float64()*float64(part-near)) }
	var all []point
	for seed := range seeds {
		p := point{name: fmt.Sprintf("double crash, seed %d", seed+1), class: "double crashes"}
		dice := dice(p.name, "")
		seen := map[string]int{}
		next := within(dice, 0)
		for i, class := range r.Order {
			seen[class]++
			if i != next {
				continue
			}
			next = within(dice, i/part+1)
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
	const points, stays = 8, 60
	hub := 0 // the writes to the API server
	for _, class := range r.Order {
		if !strings.HasPrefix(class, "post ") && !strings.HasPrefix(class, "ask ") {
			hub++
		}
	}
	var upgraded, rolledBack []point
	for i := 1; i <= points; i++ {
		f := proxy.Fault{At: i * hub / (points + 1), Times: 1, Action: proxy.KillAfter}
		upgraded = append(upgraded, point{name: fmt.Sprintf("upgrade, moment %d of %d", i, points), class: "upgrade", faults: []proxy.Fault{f}, upgraded: true})
		f.Again = stays
		rolledBack = append(rolledBack, point{name: fmt.Sprintf("operator rolled back, moment %d of %d", i, points), class: "operator rolled back", faults: []proxy.Fault{f}, rolledBack: true})
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
