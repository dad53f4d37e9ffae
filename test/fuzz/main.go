// Command fuzz runs every native fuzz target of the tree, each for an equal part of the time, and
// ends with a line `N passed, N failed`. An input that fails is kept by Go below the package's
// testdata, where every later test runs it.
//
//	go run ./test/fuzz -for 2m
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// errFailed is returned when a target failed.
var errFailed = errors.New("there are failures")

func main() {
	all := flag.Duration("for", 2*time.Minute, "how long to fuzz, without the time to compile")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *all, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
}

// suite is a package with targets, and its compiled test.
type suite struct {
	dir, program string
	targets      []string
}

// run fuzzes the packages below the working directory.
func run(ctx context.Context, all time.Duration, out io.Writer) error {
	programs, err := filepath.Abs("bin/fuzz")
	if err != nil {
		return err
	}
	dirs, err := packages(ctx)
	if err != nil {
		return err
	}
	var suites []suite
	n := 0
	for _, dir := range dirs {
		s, err := compile(ctx, dir, filepath.Join(programs, strings.ReplaceAll(dir, "/", "-")+".test"))
		if err != nil {
			return err
		}
		suites, n = append(suites, s), n+len(s.targets)
	}
	if n == 0 {
		return errors.New("there are no targets")
	}
	each := (all / time.Duration(n)).Round(100 * time.Millisecond)
	var failures []string
	for _, s := range suites {
		for _, target := range s.targets {
			text, err := s.fuzz(ctx, target, each, filepath.Join(programs, "corpus"))
			if err != nil {
				failures = append(failures, fmt.Sprintf("✗ %s %s\n%s", s.dir, target, text))
				fmt.Fprintf(out, "✗ %s %s (its output is at the end)\n", s.dir, target)
				continue
			}
			fmt.Fprintf(out, "✔ %s %s\n%s", s.dir, target, progress(text))
		}
	}
	for _, failure := range failures {
		fmt.Fprint(out, failure)
	}
	fmt.Fprintf(out, "%d targets, %s each\n%d passed, %d failed\n", n, each, n-len(failures), len(failures))
	if len(failures) > 0 {
		return errFailed
	}
	return nil
}

// packages are the directories with targets, sorted.
func packages(ctx context.Context) ([]string, error) {
	found, err := exec.CommandContext(ctx, "git", "grep", "--untracked", "-lE", `^func Fuzz[A-Z]`, "--", "*_test.go").Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the targets: %w", err)
	}
	var dirs []string
	for file := range strings.Lines(string(found)) {
		dirs = append(dirs, filepath.Dir(strings.TrimSpace(file)))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// instrumented makes the compiler add the instructions that guide a fuzzer to this module's
// packages. The flag -fuzz adds them to all dependencies too, which takes many minutes to compile.
const instrumented = "-gcflags=github.com/addonflow/addonflow/...=-d=libfuzzer"

// compile builds the test of a package with those instructions, and lists its targets.
func compile(ctx context.Context, dir, program string) (suite, error) {
	build := exec.CommandContext(ctx, "go", "test", "-c", instrumented, "-o", program, "./"+dir)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return suite{}, fmt.Errorf("cannot compile the test of %s: %w", dir, err)
	}
	list := exec.CommandContext(ctx, program, "-test.list", "^Fuzz")
	list.Dir = dir
	text, err := list.Output()
	if err != nil {
		return suite{}, fmt.Errorf("cannot list the targets of %s: %w", dir, err)
	}
	return suite{dir: dir, program: program, targets: strings.Fields(string(text))}, nil
}

// fuzz runs one target for the duration, counted from its first line. What it finds interesting is
// kept in the cache for the next time. An interrupt ends the run: before Go 1.27 the end of
// -test.fuzztime can be taken for a failure of the target (https://go.dev/issue/75804).
func (s suite) fuzz(ctx context.Context, target string, d time.Duration, cache string) ([]byte, error) {
	command := exec.CommandContext(ctx, s.program,
		"-test.run=^$", "-test.fuzz=^"+target+"$", "-test.fuzzcachedir="+filepath.Join(cache, s.dir))
	command.Dir = s.dir
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		return nil, err
	}
	// The first line comes when the interrupt is already caught.
	lines := bufio.NewReader(output)
	first, err := lines.ReadBytes('\n')
	if err != nil {
		return first, errors.Join(err, command.Wait())
	}
	end := time.AfterFunc(d, func() { _ = command.Process.Signal(os.Interrupt) })
	defer end.Stop()
	rest, err := io.ReadAll(lines)
	return append(first, rest...), errors.Join(err, command.Wait())
}

// progress is the last line with a number of executions.
func progress(text []byte) string {
	last := ""
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte("execs:")) {
			last = "    " + string(line)
		}
	}
	return last
}
