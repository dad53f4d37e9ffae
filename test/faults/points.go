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
	// upgraded: the first is of the commit before. clocked: their clock can be set.
	upgraded, clocked bool
	// disturb is called when each step begins, and runs beside it.
	disturb disturbance
	// repeats is how many statuses may be repeated although no answer of the forge was lost, and
	// writes how many times as often a kind may be written as in the undisturbed run; 0: twice.
	repeats, writes int
}

var unprintable = regexp.MustCompile(`[^A-Za-z0-9]+`)

// file is the name as part of a path.
func (p point) file() string { return strings.Trim(unprintable.ReplaceAllString(p.name, "-"), "-") }

// positions are the first, the middle and the last of n writes.
func positions(n int) []int { return slices.Compact([]int{1, (n + 1) / 2, n}) }

// matrix lists every point, from the writes of the undisturbed run.
func matrix(r *reference) []point {
	return slices.Concat(kills(r), answers(r), twins(r), watches(r), servers(), outside(), agents(), edits())
}

// kills are kill -9 before and after every kind of write, at its first, middle and last one.
func kills(r *reference) []point {
	var all []point
	for _, class := range slices.Sorted(maps.Keys(r.Writes)) {
		for _, at := range positions(r.Writes[class]) {
			for _, action := range []proxy.Action{proxy.KillBefore, proxy.KillAfter} {
				all = append(all, single("kill -9", proxy.Fault{Class: class, At: at, Times: 1, Action: action}))
			}
		}
	}
	return all
}

// answers are wrong answers to every kind of write: twice, then all is well.
func answers(r *reference) []point {
	var all []point
	for _, action := range proxy.Answers() {
		for _, at := range []string{"first", "middle", "last"} {
			p := point{name: fmt.Sprintf("%s at the %s write of every class", action, at), class: "wrong answers"}
			for class, n := range r.Writes {
				position := map[string]int{"first": 1, "middle": (n + 1) / 2, "last": n}[at]
				p.faults = append(p.faults, proxy.Fault{Class: class, At: position, Times: 2, Action: action})
			}
			p.writes = 4
			all = append(all, p)
		}
	}
	return all
}

func single(class string, f proxy.Fault) point {
	return point{name: f.String(), class: class, faults: []proxy.Fault{f}}
}
