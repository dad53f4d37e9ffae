package commitstatus

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/addonflow/addonflow/api/brief"
)

const (
	// DescriptionLimit is GitHub's limit in characters; it refuses a longer description with 422. Forges with a
	// higher limit also get at most 140; a lower limit is in the row of its forge.
	DescriptionLimit = 140
	// ContextLimit keeps a context readable in a list of checks. A lower limit is in the row of its forge.
	ContextLimit = 100
	// shortSHA is how many digits of a commit a text shows.
	shortSHA = 10

	ellipsis = "…"
)

// oneLine returns the text as a description: visible, and at most DescriptionLimit characters.
func oneLine(text string) string { return brief.Line(text, DescriptionLimit) }

// ContextName returns the parts as a context, joined by slashes: ContextName("addonflow", "hello", "canary") is
// "addonflow/hello/canary". Empty parts are omitted; spaces and invisible characters become dashes. A context over
// ContextLimit is cut and ends in a digest of the whole, so that two long names stay different.
func ContextName(parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, part := range parts {
		part = strings.Trim(strings.ReplaceAll(brief.OneLine(part), " ", "-"), "/")
		if part != "" {
			kept = append(kept, part)
		}
	}
	return cutContext(ContextLimit, strings.Join(kept, "/"))
}

// cutContext returns a context in at most limit characters.
func cutContext(limit int, name string) string {
	if utf8.RuneCountInString(name) <= limit {
		return name
	}
	digest := "-" + shortDigest(name)
	return strings.TrimRight(firstRunes(name, limit-len(digest)), "/") + digest
}

// shortDigest distinguishes texts; it is "" for an empty text.
func shortDigest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// command finds the command in a text that the reader is to run: at the end of a clause, or in parentheses.
var command = regexp.MustCompile(`; addonflow [^;,()]+| \((?:git restore|pull request|addonflow) [^()]+\)`)

// Shorten returns the text in at most limit characters. If it is longer, parts are cut in this order: the middle of
// its paths; the end of the texts in parentheses, the longest first, because counts follow there; its own end; the
// command that it names. The text after a command keeps its beginning, which names the first cluster:
//
//	halted in canary: 1 failed (eu-01: no value for ZONE (Deployment….image)), 2 in flight, 20 untouched
//	fleet 2/10, waits for approval qa: 1 of 2 approved… (addonflow approve hello fleet)
//	rolled back to 1111111111 from 2222222222 (git restore …): halted in canary: 1 failed (c1: past i…
func Shorten(limit int, text string) string {
	text = brief.OneLine(text)
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	at := command.FindStringIndex(text)
	if at == nil {
		return shorten(limit, text)
	}
	before, run, after := text[:at[0]], text[at[0]:at[1]], text[at[1]:]
	room := limit - utf8.RuneCountInString(run)
	if room < 2*shortestPlace {
		return shorten(limit, text)
	}
	before = shorten(max(room-shortestEnd, room-utf8.RuneCountInString(after)), before)
	return strings.TrimSpace(before + run + strings.TrimRight(brief.Cut(after, room-utf8.RuneCountInString(before)), " "))
}

// shorten is Shorten for a text without a command.
func shorten(limit int, text string) string {
	words := strings.Split(text, " ")
	over := utf8.RuneCountInString(text) - limit
	for over > 0 {
		longest, length := -1, shortestPlace
		for i, word := range words {
			if n := utf8.RuneCountInString(word); n > length && strings.ContainsAny(word, "/.[") {
				longest, length = i, n
			}
		}
		if longest < 0 {
			break
		}
		words[longest] = cutMiddle(words[longest], max(shortestPlace, length-over))
		over -= length - utf8.RuneCountInString(words[longest])
	}
	text = strings.Join(words, " ")
	for _, least := range []int{shortestPlace, 1} {
		for over > 0 {
			start, end := longestParentheses(text)
			length := utf8.RuneCountInString(text[start:end])
			if length <= least {
				break
			}
			cut := brief.Cut(text[start:end], max(least, length-over))
			text, over = text[:start]+cut+text[end:], over-length+utf8.RuneCountInString(cut)
		}
	}
	return brief.Cut(text, limit)
}

// longestParentheses returns the begin and end of the longest text between outer parentheses; both are 0 if there is
// none.
func longestParentheses(text string) (start, end int) {
	depth, open := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			if depth++; depth == 1 {
				open = i + 1
			}
		case r == ')' && depth > 0:
			if depth--; depth == 0 && i-open > end-start {
				start, end = open, i
			}
		}
	}
	return start, end
}

// cutMiddle shortens s to limit characters. It keeps a third of them from the beginning, which names the object, and
// the rest from the end, which names the problem.
func cutMiddle(s string, limit int) string {
	runes := []rune(s)
	if len(runes) <= limit {
		return s
	}
	if limit < 2 {
		return brief.Cut(s, limit)
	}
	front := (limit - 1) / 3
	return strings.TrimRight(string(runes[:front]), " ") + ellipsis + strings.TrimLeft(string(runes[len(runes)-(limit-1-front):]), " ")
}

// Refusal is why a commit was refused.
type Refusal struct {
	// Problem is the error, Hint how to fix it.
	Problem, Hint string
	// More counts the other problems.
	More int
	// Place is the file and line, Object the object there.
	Place, Object string
}

// Text returns "problem; hint (and 3 more) at file:line: object" in at most limit characters. If the text is too
// long, first the hint is dropped, then the middle of object, place and problem.
func (r Refusal) Text(limit int) string {
	more := ""
	if r.More > 0 {
		more = fmt.Sprintf(" (and %d more)", r.More)
	}
	problem, at := brief.OneLine(r.Problem), ""
	if place := cutMiddle(brief.OneLine(r.Place), limit/3); place != "" {
		at = " at " + place
	}
	length := func(parts ...string) int { return utf8.RuneCountInString(strings.Join(parts, "")) }
	object := brief.OneLine(r.Object)
	separator := ": "
	if at == "" {
		separator = " at "
	}
	if object != "" {
		object = separator + object
	}
	if hint := "; " + brief.OneLine(r.Hint); r.Hint != "" && length(problem, hint, more, at, object) <= limit {
		problem += hint
	}
	if room := limit - length(problem, more, at); length(object) > room {
		object = strings.TrimPrefix(object, separator)
		if room -= length(separator); room >= shortestPlace {
			object = separator + cutMiddle(object, room)
		} else {
			object = ""
		}
	}
	return Shorten(limit-length(more, at, object), problem) + more + at + object
}

// shortestPlace is the shortest part of a place that helps to find it.
const shortestPlace = 20

// shortestEnd is the least number of characters that stay of the text after a command. The text before the command is
// about the present, and names clusters.
const shortestEnd = 12

// firstRunes returns the first n characters of s, which has more than n.
func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
