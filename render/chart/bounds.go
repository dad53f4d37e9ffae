package chart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// maxWidth is how wide a format may pad.
const maxWidth = 9999

// An argument of a format becomes, at most, so much longer where it is quoted, and so long
// where it is a number.
const (
	maxQuoted = 4
	maxNumber = 400
)

// verb is what a format writes an argument by: how wide, how exactly, and as what. Of %p
// that is where the value is.
var verb = regexp.MustCompile(`(?s)%[-+# 0]*(?:\[[^]]*\])?(\*|[0-9]*)(?:\.(?:\[[^]]*\])?(\*|[0-9]*))?(?:\[[^]]*\])?(.)`)

// bound refuses, before a function runs, the calls whose result grows faster than
// their arguments.
func (x *execution) bound(name string, args []any) error {
	if err := x.payText(name, args); err != nil {
		return err
	}
	switch name {
	case "until", "untilStep", "seq":
		return x.boundList(args)
	case "repeat":
		return x.boundProduct(args, 0, 1)
	case "indent", "nindent":
		if text, ok := args[1].(string); ok {
			return x.fits(intOf(args[0]), int64(strings.Count(text, "\n")+1))
		}
	case "wrap", "wrapWith":
		return x.boundProduct([]any{textLength(args[len(args)-1]), args[len(args)-2]}, 0, 1)
	case "replace":
		if from, ok := args[0].(string); ok {
			text, _ := args[2].(string)
			return x.fits(int64(strings.Count(text, from)), int64(textLength(args[1])))
		}
	case "regexReplaceAll", "mustRegexReplaceAll", "regexReplaceAllLiteral", "mustRegexReplaceAllLiteral":
		return x.fits(int64(textLength(args[1])+1), int64(textLength(args[2])+1))
	case "html", "js", "urlquery": // a character can become six
		return x.boundEscape(args)
	case "join":
		return x.boundJoin(args)
	case "printf":
		format, _ := args[0].(string)
		return x.boundFormat(format, args[1:])
	case "addf", "add1f", "subf", "divf", "mulf":
		if len(args) > 64 {
			return &refusal{name + " takes too many numbers", "add them up in steps"}
		}
	}
	return nil
}

// boundFormat refuses what a format makes of any argument, and more than fits: each verb
// may write the longest of them.
func (x *execution) boundFormat(format string, args []any) error {
	var verbs, widest, longest int64
	for _, at := range verb.FindAllStringSubmatchIndex(format, -1) {
		verbs++
		if format[at[6]:at[7]] == "p" {
			return &refusal{"printf %p writes an address in memory, which differs each time", "write the value, or its type: typeOf"}
		}
		for n := 2; n < 6; n += 2 {
			if at[n] < 0 || at[n] == at[n+1] {
				continue
			}
			wide, err := strconv.ParseInt(format[at[n]:at[n+1]], 10, 64)
			if err != nil || wide > maxWidth {
				return &refusal{fmt.Sprintf("printf pads to more than %d characters", maxWidth), "write a smaller width"}
			}
			widest = max(widest, wide)
		}
	}
	for _, arg := range args {
		w := walker{budget: new(newBudget())} // it was paid for
		if err := w.visit(arg, 0); err != nil {
			return err
		}
		longest = max(longest, maxQuoted*w.text+(maxSteps-w.steps)*(maxNumber+widest))
	}
	return x.fits(verbs, longest)
}

// boundTOML refuses lists in lists, for each of which the parser takes stack, and tables in
// tables, whose whole names it keeps for each entry.
func (x *execution) boundTOML(text string) error {
	if strings.Count(text, "[")+strings.Count(text, "{") > maxOpened {
		return &refusal{fmt.Sprintf("TOML with more than %d brackets cannot be read", maxOpened), ""}
	}
	deep := 1
	for line := range strings.Lines(text) {
		deep = max(deep, strings.Count(line, ".")+strings.Count(line, "{"))
	}
	return x.fits(int64(strings.Count(text, "=")+deep), int64(32*deep))
}

// fits refuses a product of bytes that will not fit.
func (x *execution) fits(count, each int64) error {
	if count <= 0 || each <= 0 {
		return nil
	}
	if count > maxBytes || each > maxBytes {
		return x.budget.fits(-1)
	}
	return x.budget.fits(count * each)
}

// boundProduct is for a number of times a text.
func (x *execution) boundProduct(args []any, number, text int) error {
	return x.fits(intOf(args[number]), int64(textLength(args[text])))
}

// boundList is for the functions that count: from, by and to in any order make no
// longer list than the largest of them.
func (x *execution) boundList(args []any) error {
	for _, arg := range args {
		if n := intOf(arg); n > maxList || n < -maxList {
			return &refusal{fmt.Sprintf("a list of %d numbers is too long, at most %d", n, maxList), ""}
		}
	}
	return x.budget.step(maxListOf(args))
}

func maxListOf(args []any) int64 {
	var most int64
	for _, arg := range args {
		n := intOf(arg)
		most = max(most, n, -n)
	}
	return most
}

// boundJoin pays for the separators; what is joined was walked, which counts its parts.
func (x *execution) boundJoin(args []any) error {
	list, _ := args[1].([]any)
	var total int64
	for _, item := range list {
		total += int64(textLength(item) + textLength(args[0]))
	}
	return x.budget.fits(total)
}

func (x *execution) boundEscape(args []any) error {
	var total int64
	for _, arg := range args {
		total += int64(textLength(arg))
	}
	return x.fits(total, 6)
}

// textLength is the length of a text, 0 of anything else.
func textLength(v any) int {
	text, _ := v.(string)
	return len(text)
}

// intOf is the number that a counting function makes of an argument.
func intOf(v any) int64 {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 0, 64)
		return n
	default:
		return 0
	}
}
