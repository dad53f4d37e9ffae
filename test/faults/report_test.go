package main

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestReliabilityPageIsWrittenFromItsResults: the page has the form that make faults gives it now.
func TestReliabilityPageIsWrittenFromItsResults(t *testing.T) {
	const name = "../../docs/reliability.md"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := published(name)
	if err != nil {
		t.Fatal(err)
	}
	if document(s) != string(page) {
		t.Error("the page differs from what its results say: run make faults, or write the page from its last line")
	}
}

// TestPageKeepsTheClassesThatDidNotRunSince: the results of another machine are not lost with its state.
func TestPageKeepsTheClassesThatDidNotRunSince(t *testing.T) {
	earlier := summary{
		Rows:   []row{{Class: "a", Points: 1, Run: 1, Violations: 1, P50: 1}, {Class: "b", Points: 1, Run: 1, Faults: 3}},
		Broken: []string{"**a 1**: lost"},
		Ran:    []ran{{Class: "a", Commit: "old", Points: []string{"a 1"}}, {Class: "b", Commit: "old", Points: []string{"b 1"}}},
	}
	points := []point{{name: "a 1", class: "a"}, {name: "a 2", class: "a"}, {name: "b 1", class: "b"}}
	got := summarise(points, []result{{Point: "b 1", Class: "b", Commit: "new", Hits: 4}}, &reference{}).since(earlier)
	want := summary{
		Rows:   []row{{Class: "a", Points: 2, Run: 1, Violations: 1, P50: 1}, {Class: "b", Points: 1, Run: 1, Faults: 4}},
		Broken: []string{"**a 1**: lost"}, Missing: []string{"a 2"},
		Ran: []ran{{Class: "b", Commit: "new", Points: []string{"b 1"}}, {Class: "a", Commit: "old", Points: []string{"a 1"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the summary is %+v, want %+v", got, want)
	}
}

func TestPageNamesThePointsThatDidNotRun(t *testing.T) {
	points := []point{{name: "a flaps, seed 1", class: "a"}, {name: "a flaps, seed 2", class: "a"}, {name: "a made anew", class: "a"}}
	page := document(summarise(points, []result{{Point: "a flaps, seed 1", Class: "a", Commit: "new"}}, &reference{}))
	if want := "Points that did not run: a flaps, seed 2; a made anew."; !strings.Contains(page, want) {
		t.Errorf("the page does not have %q", want)
	}
}

func TestPageNamesSeedsOnce(t *testing.T) {
	got := joined([]string{"clusters flap, seed 2", "fleet flaps, seed 1", "clusters flap, seed 1", "clusters flap, seed 4", "409 at the first write"})
	if want := "clusters flap, seed 1-2,4; fleet flaps, seed 1; 409 at the first write"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
