package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// steepest is the exponent that cost may grow with; 1 is a cost per cluster that does not change.
	steepest = 1.05
	// scaleSteps are install, upgrade and revert.
	scaleSteps = 3
	// The document has the figures between these lines.
	figuresBegin, figuresEnd = "<!-- figures: make scale -->", "<!-- end of figures -->"
)

// scale measures every size that is not in the state yet, each in a process of its own, and writes the document.
func scale(ctx context.Context, s settings, sizes, state, document string) error {
	sum, err := programSum(s.operator)
	if err != nil {
		return err
	}
	if s.heartbeat == 0 {
		s.heartbeat = time.Minute
	}
	var all []figures
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1 {
			return fmt.Errorf("cannot measure %q clusters: want numbers with commas between", size)
		}
		f, err := measured(ctx, s, n, sum, filepath.Join(state, size+".json"))
		if err != nil {
			return fmt.Errorf("cannot measure %d clusters: %w", n, err)
		}
		all = append(all, f)
	}
	text, err := scaleText(all)
	if err != nil {
		return err
	}
	if err := replaceFigures(document, text); err != nil {
		return err
	}
	fmt.Printf("%s\nwritten into %s\n", text, document)
	return steep(all)
}

// measured returns the figures of a size, of the state if that has them of this operator.
func measured(ctx context.Context, s settings, n int, sum, file string) (figures, error) {
	if f, ok, err := stored(file); err != nil || ok && f.Operator == sum && f.Heartbeat == s.heartbeat {
		return f, err
	}
	self, err := os.Executable()
	if err != nil {
		return figures{}, err
	}
	limit := 10*time.Minute + time.Duration(n)*time.Second
	command := exec.CommandContext(ctx, self, "-clusters", strconv.Itoa(n), "-operator", s.operator, "-steps", strconv.Itoa(scaleSteps),
		"-heartbeat", s.heartbeat.String(), "-timeout", limit.String(), "-out", file)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) } // so that it ends its hub
	if err := command.Run(); err != nil {
		return figures{}, err
	}
	f, ok, err := stored(file)
	if err == nil && !ok {
		err = errors.New("it stored no figures")
	}
	return f, err
}

// cost is what is fitted.
type cost struct {
	name string
	of   func(figures) float64
}

// costs of all steps together.
func costs() []cost {
	sum := func(of func(stepFigures) float64) func(figures) float64 {
		return func(f figures) float64 {
			all := 0.0
			for _, s := range f.Steps {
				all += of(s)
			}
			return all
		}
	}
	return []cost{
		{"CPU time of the operator", sum(func(s stepFigures) float64 { return s.Operator.Seconds() })},
		{"CPU time of the API server and etcd", sum(func(s stepFigures) float64 { return (s.Server + s.Etcd).Seconds() })},
		{"requests", sum(func(s stepFigures) float64 { return s.Requests })},
		{"memory kept at rest", func(f figures) float64 { return float64(f.Live) }},
	}
}

// exponent is that of the power of the number of clusters which fits a cost best.
func exponent(all []figures, of func(figures) float64) float64 {
	slope, _ := line(all, func(f figures) float64 { return math.Log(float64(f.Clusters)) }, func(f figures) float64 { return math.Log(of(f)) })
	return slope
}

// line is the straight line through points with the least squares.
func line(all []figures, x, y func(figures) float64) (slope, atZero float64) {
	var sx, sy, sxx, sxy float64
	for _, f := range all {
		sx, sy = sx+x(f), sy+y(f)
		sxx, sxy = sxx+x(f)*x(f), sxy+x(f)*y(f)
	}
	n := float64(len(all))
	slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return slope, (sy - slope*sx) / n
}

// steep is an error if a cost grows too fast.
func steep(all []figures) error {
	var errs []error
	for _, c := range costs() {
		if e := exponent(all, c.of); e > steepest {
			errs = append(errs, fmt.Errorf("%s: grows with exponent %.2f, at most %.2f is promised", c.name, e, steepest))
		}
	}
	return errors.Join(errs...)
}

// replaceFigures writes the text between the marks of a document.
func replaceFigures(document, text string) error {
	old, err := os.ReadFile(document)
	if err != nil {
		return fmt.Errorf("cannot write the figures: %w", err)
	}
	head, rest, ok := strings.Cut(string(old), figuresBegin)
	_, tail, also := strings.Cut(rest, figuresEnd)
	if !ok || !also {
		return fmt.Errorf("cannot write the figures: %s has no lines %q and %q", document, figuresBegin, figuresEnd)
	}
	return os.WriteFile(document, []byte(head+figuresBegin+"\n\n"+strings.TrimSpace(text)+"\n\n"+figuresEnd+tail), 0o644)
}
