// Command mutants plants known mistakes in planner, ledger, removals and approvals, one at a
// time, and expects a test to fail for each: of package rollout, or of the package of the
// mistake if rollout does not have it.
//
//	go run ./test/mutants [NAME...]
//
// mutants.txt has the mistakes. Each is applied to a copy of its file, which the go command
// compiles instead of it (-overlay). It prints every mutant and its fate; the exit code is 1
// if one survives, and 2 if the tests fail without any, or a mutant does not apply or build.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed mutants.txt
var list string

// planner is the package of most mistakes.
const planner = "rollout"

// phase are tests of a package: those whose names match run, and not skip.
type phase struct{ run, skip string }

// phases are the tests that run for each mutant of a package. The first failure ends the run, so
// that fast tests come first.
func phases(tested string) []phase {
	if tested != planner {
		return []phase{{run: "."}}
	}
	return []phase{
		{run: ".", skip: "^(TestEveryFleet|TestHistories|TestProperty|TestOCM|TestLedger_HasRoom|TestMoments_PlanIsAFunction)"},
		{run: "^TestEveryFleet"},
		{run: "^TestHistories_KeepEveryPromise"},
	}
}

// mutant is one mistake: a text of a file and what replaces it.
type mutant struct{ name, why, file, old, new string }

func main() {
	survived, err := run(context.Background(), os.Args[1:])
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case survived > 0:
		os.Exit(1)
	}
}

func run(ctx context.Context, only []string) (survived int, err error) {
	mutants, err := parse(list)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	start := time.Now()
	for _, tested := range packages(mutants, only) {
		switch failed, err := test(ctx, dir, tested); {
		case err != nil:
			return 0, err
		case failed != "":
			return 0, fmt.Errorf("without a mutant %s of package %s fails", failed, tested)
		}
	}
	fmt.Printf("without a mutant the tests pass (%s)\n", time.Since(start).Round(time.Second))
	killed := 0
	for _, m := range mutants {
		if !m.chosen(only) {
			continue
		}
		begin := time.Now()
		by, err := m.killedBy(ctx, dir)
		took := time.Since(begin).Round(time.Second)
		switch {
		case ctx.Err() != nil:
			return survived, ctx.Err()
		case err != nil:
			survived++
			fmt.Printf("BROKEN    %-34s %v\n", m.name, err)
		case by == "":
			survived++
			fmt.Printf("SURVIVED  %-34s %s (%s, %s)\n", m.name, m.why, m.file, took)
		default:
			killed++
			fmt.Printf("killed    %-34s by %s (%s)\n", m.name, by, took)
		}
	}
	fmt.Printf("%d killed, %d survived (%s)\n", killed, survived, time.Since(start).Round(time.Second))
	return survived, nil
}

// chosen reports whether the mutant is among those that are asked for.
func (m mutant) chosen(only []string) bool { return len(only) == 0 || slices.Contains(only, m.name) }

// tested is the package whose tests are to kill the mutant. The planner's tests also cover the packages of times and
// positions. All other packages have their own tests.
func (m mutant) tested() string {
	switch dir := filepath.Dir(m.file); dir {
	case "rollout/clock", "rollout/positions":
		return planner
	default:
		return dir
	}
}

// packages are those whose tests run, each once.
func packages(mutants []mutant, only []string) []string {
	var found []string
	for _, m := range mutants {
		if m.chosen(only) && !slices.Contains(found, m.tested()) {
			found = append(found, m.tested())
		}
	}
	return found
}

// killedBy plants the mutant and returns the first test that fails; "" if none does.
func (m mutant) killedBy(ctx context.Context, dir string) (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("%s has the text to replace %d times; want once", m.file, n)
	}
	planted := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(planted, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600); err != nil {
		return "", err
	}
	file, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: planted}})
	if err != nil {
		return "", err
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		return "", err
	}
	return test(ctx, dir, m.tested(), "-overlay="+at)
}

var firstFailure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test builds the tests of a package and runs them until the first failure. It returns the name
// of the test that fails; "" if none does. The error is that of a build.
func test(ctx context.Context, dir, tested string, flags ...string) (failed string, err error) {
	binary := filepath.Join(dir, "mutant.test")
	build := append([]string{"test", "-c", "-vet=off", "-ldflags=-s -w", "-o", binary}, append(flags, "./"+tested)...)
	if output, err := exec.CommandContext(ctx, "go", build...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%.2000s", err, output)
	}
	for _, p := range phases(tested) {
		args := []string{"-test.short", "-test.failfast", "-test.timeout=5m", "-test.run=" + p.run, "-test.skip=" + p.skip}
		if tested == planner {
			args = append(args, "-rapid.seed=1", "-rapid.checks=100", "-rapid.nofailfile", "-rapid.shrinktime=1ms")
		}
		run := exec.CommandContext(ctx, binary, args...)
		run.Dir = tested
		output, err := run.CombinedOutput()
		if name := firstFailure.FindSubmatch(output); name != nil {
			return string(name[1]), nil
		}
		if err != nil {
			return "a panic or the time limit", nil //nolint:nilerr // a test that does not end well fails
		}
	}
	return "", nil
}

// parse reads mutants.txt.
func parse(text string) ([]mutant, error) {
	var found []mutant
	_, text, _ = strings.Cut(text, "\n== ")
	for block := range strings.SplitSeq(text, "\n== ") {
		head, rest, replaces := strings.Cut(block, "\n-- replace\n")
		old, replacement, by := strings.Cut(rest, "\n-- by\n")
		lines := strings.Split(head, "\n")
		if !replaces || !by || len(lines) != 3 {
			return nil, fmt.Errorf("mutants.txt: %q is not a mutant: a name, why, file, replace and by", lines[0])
		}
		found = append(found, mutant{
			name: lines[0], why: strings.TrimPrefix(lines[1], "why: "), file: strings.TrimPrefix(lines[2], "file: "),
			old: old, new: strings.TrimRight(replacement, "\n"),
		})
	}
	return found, nil
}
