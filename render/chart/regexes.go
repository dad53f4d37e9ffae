package chart

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	// stepWork is how many instructions of an expression, each looked at for a byte
	// of text, one step pays for: 13 ns each at worst.
	stepWork = 64
	// stepParsed is how many bytes of YAML, JSON or TOML one step pays for.
	stepParsed = 2
	// smallSearch is what is paid for a search without counting first what it finds.
	smallSearch = 1000
)

// parsing are the functions that read a text.
const parsing = " fromYaml fromYamlArray fromJson mustFromJson fromJsonArray fromToml "

// splitting are the functions that make a list of a text.
const splitting = " split splitList splitn "

// payText pays for the functions whose time hangs on more than the size of a value.
func (x *execution) payText(name string, args []any) error {
	switch {
	case among(parsing, name):
		text, _ := args[0].(string)
		if err := x.budget.step(int64(len(text) / stepParsed)); err != nil {
			return err
		}
		if name == "fromToml" {
			return x.boundTOML(text)
		}
		if !strings.Contains(name, "Yaml") {
			return nil
		}
		size, err := expansion([]byte(text))
		if err != nil {
			return err
		}
		return x.budget.produce(size)
	case among(splitting, name):
		by, _ := args[0].(string)
		text, _ := args[len(args)-1].(string)
		return x.budget.step(int64(strings.Count(text, by) + 1))
	case strings.Contains(strings.ToLower(name), "regex") && len(args) > 1:
		return x.payExpression(name, args)
	default:
		return nil
	}
}

// payExpression pays for a regular expression before it runs. The time is its
// program times the text, and for a function that finds every match, where each can
// look ahead to the end, times their number.
func (x *execution) payExpression(name string, args []any) error {
	pattern, _ := args[0].(string)
	text, _ := args[1].(string)
	if err := x.budget.step(int64(len(pattern))); err != nil {
		return err
	}
	parsed, program := compiled(pattern)
	if program == nil {
		return nil // the function says what Helm's does
	}
	size := int64(len(program.Inst))
	if err := x.budget.step(size); err != nil { // it was compiled, and is again
		return err
	}
	size *= 1 + int64(program.NumCap)/8 // what is captured is copied on the way
	once := 1 + size*int64(len(text)+1)/stepWork
	switch {
	case !strings.Contains(name, "All") && !strings.Contains(name, "Split"):
		return x.budget.step(once)
	case !endless(parsed): // a match is no longer than the program
		return x.budget.step(once + min(int64(len(text)), size)*once + int64(len(text)>>2))
	case once*int64(len(text)+1) <= smallSearch:
		return x.budget.step(once * int64(len(text)+1))
	}
	return x.payMatches(pattern, text, once)
}

// payMatches pays once for each match, and before it looks for them.
func (x *execution) payMatches(pattern, text string, once int64) error {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return err
	}
	for most := 1; ; most *= 2 {
		if err := x.budget.step(int64(most) * once); err != nil {
			return err
		}
		if found := len(expression.FindAllStringIndex(text, most)); found < most {
			return x.budget.step(int64(found) * once)
		}
	}
}

// endless reports whether an expression can match a text of any length.
func endless(e *syntax.Regexp) bool {
	if e.Op == syntax.OpStar || e.Op == syntax.OpPlus || e.Op == syntax.OpRepeat && e.Max < 0 {
		return true
	}
	return slices.ContainsFunc(e.Sub, endless)
}

// compiled returns an expression and its program, nil when it is none.
func compiled(pattern string) (*syntax.Regexp, *syntax.Prog) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, nil
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, nil
	}
	return parsed, program
}
