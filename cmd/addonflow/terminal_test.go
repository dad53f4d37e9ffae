package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/show"
)

func TestTerminalIn(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		want        terminal
	}{
		"usual":           {map[string]string{"TERM": "xterm"}, terminal{interactive: true, style: show.Style{Colour: true}}},
		"NO_COLOR":        {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, terminal{interactive: true}},
		"NO_COLOR, empty": {map[string]string{"NO_COLOR": ""}, terminal{interactive: true, style: show.Style{Colour: true}}},
		"dumb":            {map[string]string{"TERM": "dumb"}, terminal{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := terminalIn(func(key string) string { return c.environment[key] }); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A pipe or a file is not a terminal, whatever the environment says.
func TestTerminalOfAFile(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	colourful := map[string]string{"TERM": "xterm-256color", "CLICOLOR_FORCE": "1"}
	if got := terminalOf(file, func(key string) string { return colourful[key] }); got != (terminal{}) {
		t.Errorf("got %+v: colour and redraw in a file", got)
	}
}

// TestFailedOutputIsAFailure: a full disk is a failure, for tables too, and no wrong usage.
func TestFailedOutputIsAFailure(t *testing.T) {
	for _, args := range []string{"get rollouts", "get clusters", "get rollouts -o yaml", "tree hello", "status hello", "lint ../../examples/hello", "version"} {
		s := newStage(t, hello(v1alpha1.PhaseSucceeded))
		s.cli.Out = output{full{}}
		want := exitFailed
		if strings.HasPrefix(args, "lint") {
			want = 0 // it has nothing to print
		}
		if code := s.run(t.Context(), strings.Fields(args)...); code != want {
			t.Errorf("%s: exit code %d, want %d; %s", args, code, want, s.err.String())
		}
	}
}

// full is a writer to a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
