package brief

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Shown is the number of names that are shown.
const Shown = 3

// Names returns all names as "a, b, c and 4 more".
func Names(all []string) string {
	return NamesOf(len(all), all)
}

// Listed returns all entries of a list that a user wrote: "[a b]", or "none".
func Listed(entries []string) string {
	if len(entries) == 0 {
		return "none"
	}
	return fmt.Sprint(entries)
}

// NamesOf is Names for a list of n names of which first holds at least the first Shown.
func NamesOf(n int, first []string) string {
	return cut(n, first, ", ", " and %d more")
}

// ReasonsOf is NamesOf for longer parts: "a: x; b: y; c: z; and 4 more".
func ReasonsOf(n int, first []string) string {
	return cut(n, first, "; ", "; and %d more")
}

func cut(n int, first []string, separator, rest string) string {
	first = first[:min(len(first), Shown)]
	text := strings.Join(first, separator)
	if more := n - len(first); more > 0 {
		text += fmt.Sprintf(rest, more)
	}
	return text
}

// Count is a number and its noun: "1 cluster", "3 clusters".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Duration is a duration without the zeros at its end: 10m, 1h.
func Duration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// OneLine returns text as one line of visible text: runs of spaces, control characters and
// format characters (which hide or reorder what follows them) become one space.
func OneLine(text string) string {
	visible := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	return strings.Join(strings.Fields(visible), " ")
}

// Printable replaces characters that could end a line of text. Unlike OneLine it keeps the rest as it is.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || (r >= 0x80 && r < 0xa0) {
			return '?'
		}
		return r
	}, text)
}

// Visible returns text with an escape for each character that is not seen as itself, such as one that hides or reorders
// what follows it. Unlike OneLine it keeps runs of spaces.
func Visible(text string) string {
	hidden := func(r rune) bool { return r != '\t' && r != ' ' && !unicode.IsPrint(r) }
	if strings.IndexFunc(text, hidden) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hidden(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// ellipsis ends a text that was cut.
const ellipsis = "…"

// Cut shortens text to limit characters. A shortened text ends in exactly one ellipsis, also if text was shortened
// before.
func Cut(text string, limit int) string {
	if limit <= 0 {
		return ""
	}
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return strings.TrimRight(string(runes[:limit-1]), " "+ellipsis) + ellipsis
}

// Line returns text as OneLine, in at most limit characters.
func Line(text string, limit int) string { return Cut(OneLine(text), limit) }
