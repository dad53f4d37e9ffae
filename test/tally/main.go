package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

var (
	errFailed  = errors.New("there are failures")
	errNothing = errors.New("no test ran")
)

// run copies the summary of the events in r to w and says how they ended.
func run(r io.Reader, w io.Writer) error {
	t := newTally(w)
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			t.line(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("cannot read test events: %w", err)
		}
	}

	for _, culprit := range t.culprits {
		fmt.Fprintln(w, "failed:", culprit)
	}
	if t.skipped > 0 {
		fmt.Fprintf(w, "%d skipped\n", t.skipped)
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", t.passed, t.failed)
	switch {
	case t.failed > 0:
		return errFailed
	case t.passed == 0:
		return errNothing
	}
	return nil
}
