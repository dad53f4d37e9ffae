package problem

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Reason classifies a problem; its values are those of the documented bad inputs.
type Reason string

// Shown is how many problems a List prints before it counts the rest.
const Shown = 20

// Problem is one thing wrong with an input. Empty parts are omitted from its text and of its JSON,
// which is part of what `lint` and `plan` print.
type Problem struct {
	Reason Reason `json:"-"`
	// Path of the file in the repository and line in it, 1-based; 0: unknown.
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"`
	// Kind and name of the object.
	Kind string `json:"kind,omitempty"`
	Name string `json:"name,omitempty"`
	// Field is the path of the field, such as spec.agentSpec.workload.manifests[2].
	Field string `json:"field,omitempty"`
	// Message says what is wrong; Hint what would be right.
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// String returns path:line: Kind/name: field: problem; hint. It is always one line: text from a
// file can neither start a second line nor control a terminal.
func (p Problem) String() string {
	var b strings.Builder
	if p.Path != "" {
		b.WriteString(visible(p.Path))
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Kind != "" {
		b.WriteString(visible(p.Kind))
		if p.Name != "" {
			b.WriteString("/" + visible(p.Name))
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(visible(p.Field) + ": ")
	}
	b.WriteString(visible(p.Message))
	if p.Hint != "" {
		b.WriteString("; " + visible(p.Hint))
	}
	return b.String()
}

// List is every problem of one input. Problems of an earlier check come first, because later
// ones may follow from them. A nil or empty List is not an error; use Err.
type List []Problem

// Err returns the list as an error, or nil when it is empty.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// Then appends the problems of a later check. It drops those about a field that already has a
// problem, and about its parents and children: they would repeat it in other words.
func (l List) Then(later List) List {
	said, around := map[Problem]bool{}, map[Problem]bool{}
	for _, p := range l {
		said[p.at(p.Field)] = true
		for field := range parents(p.Field) {
			around[p.at(field)] = true
		}
	}
	out := slices.Clone(l)
	for _, p := range later {
		again := around[p.at(p.Field)]
		for field := range parents(p.Field) {
			again = again || said[p.at(field)]
		}
		if !again {
			out = append(out, p)
		}
	}
	return out
}

// at is a field of the problem's object.
func (p Problem) at(field string) Problem {
	return Problem{Path: p.Path, Kind: p.Kind, Name: p.Name, Field: field}
}

// parents returns the field and everything around it, up to the object itself.
func parents(field string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := yield(field); more && field != ""; more = yield(field) {
			field = field[:max(0, strings.LastIndexAny(field, ".["))]
		}
	}
}

// Error returns the first Shown problems, one a line, and how many more there are.
func (l List) Error() string {
	var b strings.Builder
	for i, p := range l {
		if i == Shown {
			fmt.Fprintf(&b, "and %d more", len(l)-Shown)
			break
		}
		b.WriteString(p.String())
		if i < len(l)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Sorted returns a copy ordered by path, line, object, field and message.
func (l List) Sorted() List {
	s := slices.Clone(l)
	slices.SortStableFunc(s, func(a, b Problem) int {
		return cmp.Or(
			strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Field, b.Field), strings.Compare(a.Message, b.Message),
		)
	})
	return s
}
