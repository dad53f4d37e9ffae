// Command trace judges a trace of a rollout: it checks for every ledger that was stored whether
// the second planner, of package rollouttest, allows it after everything that was seen and
// stored before.
//
//	go run ./test/trace FILE
//
// FILE has one step a line, as rollouttest.Step describes it; "-" reads standard input. Package
// recording writes the traces of suites that run an operator; a suite that fails names them.
// A trace that begins in the middle of a rollout says so in its first step ("start": true); otherwise a step that reads
// a record which no step of the trace wrote is not allowed. Records are believed if the trace begins with them, if another
// writer stored them, or if the step that wrote them has no input.
//
// Every step that is not allowed is printed with the rules that it breaks. The exit code is 1
// if there is one, and 2 if the trace cannot be read.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/addonflow/addonflow/test/rollouttest"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./test/trace FILE")
		os.Exit(2)
	}
	broken, err := judge(os.Args[1], os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(2)
	case broken > 0:
		os.Exit(1)
	}
}

// judge prints a verdict on every step that is not allowed, and the counts.
func judge(name string, out io.Writer) (broken int, err error) {
	in := io.Reader(os.Stdin)
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	steps, observed := 0, 0
	believed, err := rollouttest.CheckTrace(in, func(line int, s rollouttest.Step, verdict error) {
		steps++
		if s.Input != nil {
			observed++
		}
		if verdict != nil {
			broken++
			fmt.Fprintf(out, "%s:%d: not allowed: %v\n", name, line, verdict)
		}
	})
	if err == nil && steps == 0 {
		err = errors.New("there is no step in it")
	}
	fmt.Fprintf(out, "%d steps, %d with their input, %d records believed, %d not allowed\n", steps, observed, believed, broken)
	return broken, err
}
