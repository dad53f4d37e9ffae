package main

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/addonflow/addonflow/show"
)

// terminal describes the abilities of the output.
type terminal struct {
	// interactive allows redrawing in place.
	interactive bool
	style       show.Style
}

// terminalOf reads the abilities from a file and the environment. Without a terminal, or with a dumb one, there is no
// colour and no redraw. NO_COLOR removes only the colour.
func terminalOf(file *os.File, getenv func(string) string) terminal {
	descriptor := int(file.Fd())
	if !term.IsTerminal(descriptor) {
		return terminal{}
	}
	t := terminalIn(getenv)
	if width, height, err := term.GetSize(descriptor); err == nil && t.interactive {
		t.style.Width, t.style.Height = width, height
	}
	return t
}

// terminalIn returns the abilities of a terminal of unknown size in an environment.
func terminalIn(getenv func(string) string) terminal {
	if getenv("TERM") == "dumb" {
		return terminal{}
	}
	return terminal{interactive: true, style: show.Style{Colour: getenv("NO_COLOR") == ""}}
}

// screen draws a picture over the previous one, without flicker.
type screen struct {
	out   io.Writer
	drawn bool
}

// draw shows a picture whose lines fit into the terminal.
func (s *screen) draw(picture string) error {
	var b strings.Builder
	if !s.drawn {
		b.WriteString("\x1b[2J")
		s.drawn = true
	}
	b.WriteString("\x1b[H")
	for line := range strings.Lines(picture) {
		b.WriteString(strings.TrimSuffix(line, "\n") + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(s.out, b.String())
	return err
}
