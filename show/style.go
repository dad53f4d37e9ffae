package show

import (
	"strings"
	"unicode/utf8"
)

// Style describes the abilities of the terminal. The zero value is plain text of any width, as
// for a file or a pipe.
type Style struct {
	// Colour allows ANSI colours.
	Colour bool
	// Width is the length to which lines are cut, with an ellipsis; 0: no cut.
	Width int
	// Height is the number of lines to which a drawing is cut; 0: no cut.
	Height int
}

// colour is an ANSI code.
type colour string

const (
	plain  colour = ""
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
	bold   colour = "1"
)

// paint colours a text. The text must be padded before, because the codes have no width.
func (s Style) paint(c colour, text string) string {
	if !s.Colour || c == plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Cut shortens every line of a text to the width, and the text to one line less than the height, for the line of the
// cursor. Colours do not count.
func (s Style) Cut(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if s.Height > 1 && len(lines) > s.Height-1 {
		lines = append(lines[:s.Height-2], "…")
	}
	for i, line := range lines {
		lines[i] = cutLine(line, s.Width)
	}
	return strings.Join(lines, "\n") + "\n"
}

// cutLine keeps the first width-1 visible runes of a line that is too long.
func cutLine(line string, width int) string {
	if width <= 1 || visible(line) <= width {
		return line
	}
	var b strings.Builder
	seen, escaped, coloured := 0, false, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped, coloured = true, true
		case escaped:
			escaped = r != 'm'
		case seen == width-1:
			b.WriteRune('…')
			if coloured {
				b.WriteString("\x1b[0m")
			}
			return b.String()
		default:
			seen++
		}
		b.WriteRune(r)
	}
	return b.String()
}

// visible counts the columns of a line.
func visible(line string) int {
	n, escaped := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			n++
		}
	}
	return n
}

// pad fills a text with spaces up to the width.
func pad(text string, width int) string {
	if n := utf8.RuneCountInString(text); n < width {
		return text + strings.Repeat(" ", width-n)
	}
	return text
}

// barWidth is how many cells a progress bar has.
const barWidth = 20

// progressBar draws done of total as a progress bar. It is full only if all are done, and empty only if none is done.
func progressBar(done, total int32) string {
	filled := 0
	if total > 0 {
		filled = int(int64(min(max(done, 0), total)) * barWidth / int64(total))
		if filled == 0 && done > 0 {
			filled = 1
		}
	}
	return strings.Repeat("█", filled) + strings.Repeat("░", barWidth-filled)
}
