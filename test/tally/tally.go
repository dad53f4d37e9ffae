package main

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is a line of `go test -json`; see `go doc cmd/test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
}

// test names one test; an empty Name is its package.
type test struct {
	Package, Name string
}

// specs is how many passed and failed, in a ginkgo suite or in a package.
type specs struct {
	passed, failed int
}

var (
	colour = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// specLine is the last line of ginkgo without colours.
	specLine = regexp.MustCompile(`-- (\d+) Passed \| (\d+) Failed \|`)
	// specFailed is the first line of what ginkgo says of a failed spec, specPlace the last.
	specFailed = regexp.MustCompile(`^ *\[FAILED\] (.*)`)
	specPlace  = regexp.MustCompile(`^ *In \[.*\] at: (\S+)`)
)

type tally struct {
	w                       io.Writer
	passed, failed, skipped int
	// culprits names what failed, in the order it did.
	culprits []string

	// output of tests that have not passed yet.
	output map[test][]string
	// inner holds the tests that have subtests: how many of those failed.
	inner  map[test]int
	suites map[test]specs
	// saying is the text of the failed spec that ginkgo is printing; said is "file:line: text" of those before it.
	saying map[test][]string
	said   map[test][]string
	// inPackage counts the tests and the failures of each package.
	inPackage map[string]specs
}

func newTally(w io.Writer) *tally {
	return &tally{
		w:         w,
		output:    map[test][]string{},
		inner:     map[test]int{},
		suites:    map[test]specs{},
		saying:    map[test][]string{},
		said:      map[test][]string{},
		inPackage: map[string]specs{},
	}
}

// line takes one line of input; what is not an event is passed on unchanged.
func (t *tally) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		fmt.Fprintf(t.w, "%s", line)
		return
	}
	at := test{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.w, e.Output)
	case "run":
		for parent, ok := at.parent(); ok; parent, ok = parent.parent() {
			t.inner[parent] += 0 // known to have subtests
		}
	case "output":
		t.keep(at, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			t.endPackage(e)
		} else {
			t.endTest(at, e.Action)
		}
	}
}

func (t *tally) keep(at test, output string) {
	t.output[at] = append(t.output[at], output)
	line := colour.ReplaceAllString(output, "")
	if found := specLine.FindStringSubmatch(line); found != nil {
		passed, _ := strconv.Atoi(found[1]) // digits by the expression
		failed, _ := strconv.Atoi(found[2])
		t.suites[at] = specs{passed, failed}
	}
	if found := specFailed.FindStringSubmatch(line); found != nil {
		t.saying[at] = strings.Fields(found[1])
	} else if found := specPlace.FindStringSubmatch(line); found != nil {
		t.said[at] = append(t.said[at], found[1]+": "+strings.Join(t.saying[at], " "))
	} else if len(t.saying[at]) > 0 {
		t.saying[at] = append(t.saying[at], strings.Fields(line)...)
	}
}

// endTest counts a finished test; a test with subtests was counted as those, unless it failed
// and none of them did.
func (t *tally) endTest(at test, action string) {
	innerFailed, hasInner := t.inner[at]
	suite := t.suites[at]
	switch {
	case action == "fail":
		t.show(at)
		for parent, ok := at.parent(); ok; parent, ok = parent.parent() {
			t.inner[parent]++
		}
		if suite.failed == 0 && innerFailed == 0 {
			suite.failed = 1
		}
		if innerFailed == 0 {
			t.culprits = append(t.culprits, at.Package+" "+at.Name)
			t.culprits = append(t.culprits, t.said[at]...)
		}
		t.count(at.Package, suite)
	case action == "skip":
		t.skipped++
		t.show(at)
	case suite != specs{}:
		t.count(at.Package, suite)
	case !hasInner:
		t.count(at.Package, specs{passed: 1})
	}
	delete(t.output, at)
}

// endPackage prints the package's line. A package that failed although none of its tests did
// (it does not build, it panicked, it timed out) is one failure. It shows the output of a
// failed package and of its unfinished tests.
func (t *tally) endPackage(e event) {
	failed := e.Action == "fail"
	if failed && t.inPackage[e.Package].failed == 0 {
		t.count(e.Package, specs{failed: 1})
		t.culprits = append(t.culprits, e.Package)
	}
	for _, at := range t.unfinished(e.Package) {
		if failed {
			t.show(at)
		}
		delete(t.output, at)
	}
	counted := t.inPackage[e.Package]
	switch {
	case failed:
		fmt.Fprintf(t.w, "FAIL  %s  %.1fs  %d passed, %d failed\n", e.Package, e.Elapsed, counted.passed, counted.failed)
	case counted != specs{}:
		fmt.Fprintf(t.w, "ok    %s  %.1fs  %d passed\n", e.Package, e.Elapsed, counted.passed)
	}
}

// unfinished lists the package and its tests whose output is still held, by name.
func (t *tally) unfinished(pkg string) []test {
	var held []test
	for at := range t.output {
		if at.Package == pkg {
			held = append(held, at)
		}
	}
	slices.SortFunc(held, func(a, b test) int { return strings.Compare(a.Name, b.Name) })
	return held
}

func (t *tally) count(pkg string, s specs) {
	t.passed += s.passed
	t.failed += s.failed
	sum := t.inPackage[pkg]
	t.inPackage[pkg] = specs{sum.passed + s.passed, sum.failed + s.failed}
}

func (t *tally) show(at test) {
	for _, output := range t.output[at] {
		fmt.Fprint(t.w, output)
	}
}

// parent is the test that at is a subtest of.
func (at test) parent() (test, bool) {
	cut := strings.LastIndex(at.Name, "/")
	if cut < 0 {
		return test{}, false
	}
	return test{at.Package, at.Name[:cut]}, true
}
