package chart

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Error is a mistake in one file. File is relative to the folder, and "" if no file is at
// fault; Line is 1-based, and 0 if unknown.
type Error struct {
	File    string
	Line    int
	Message string
	Hint    string
}

// Error returns file:line: message; hint.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// refusal is an error of a function that the engine itself refuses, with a hint.
type refusal struct {
	message, hint string
}

func (r *refusal) Error() string { return r.message }

// place matches the position in Go's template errors: template:line: or template:line:column:.
var place = regexp.MustCompile(`template: ([^\s:]+):(\d+)(?::\d+)?: `)

// Two forms in which Helm rewrites some errors of text/template: with the position in parentheses,
// or on a line of its own.
var (
	lineBreaks = regexp.MustCompile(`\n\s*`)
	relaid     = regexp.MustCompile(`(?m)^(?:[a-z]+ error at \()?([^\s:()]+:\d+(?::\d+)?)(?:\): |\n\s+)`)
)

// written matches functions that this package adds to the manifests of a folder, where Go
// quotes them in an error.
var written = regexp.MustCompile(`error calling ` + ownPrefix + `[a-z]*: |\s*\| ` + ownPrefix + `[a-z]* "[^"]*"|` +
	ownPrefix + `[a-z]+ (?:"[^"]*" )?|` + ownPrefix + `[a-z]*(\.\.\.)| at <` + ownPrefix + `[a-z]+>`)

// shownMessage bounds the text of one failure: a chart may quote whole files.
const shownMessage = 400

// templateError converts an error of text/template into one of a file. Of nested calls the
// innermost position counts: that is the line to fix.
func (c *Chart) templateError(err error) *Error {
	text := err.Error()
	if !strings.HasPrefix(text, "template: ") {
		text = lineBreaks.ReplaceAllString(relaid.ReplaceAllString(text, "template: $1: "), " ")
	}
	out := &Error{Message: text}
	all := place.FindAllStringSubmatchIndex(text, -1)
	for n, at := range slices.Backward(all) {
		if n == len(all)-1 {
			out.Message = text[at[1]:]
		}
		// Text that tpl renders has no file; the template that called tpl has.
		template := text[at[2]:at[3]]
		if file := c.writtenIn(template); c.has(file) {
			out.File = file
			if c.helm == nil {
				out.Message = strings.ReplaceAll(out.Message, strconv.Quote(template), strconv.Quote(file))
			}
			out.Line, _ = strconv.Atoi(text[at[4]:at[5]])
			break
		}
	}
	out.Message = written.ReplaceAllString(out.Message, "$1")
	if r, ok := errors.AsType[*refusal](err); ok {
		out.Message, out.Hint = r.message, r.hint
	}
	out.Message = strings.ReplaceAll(strings.TrimSpace(out.Message), "\n", " ")
	return out
}

func (c *Chart) has(file string) bool {
	return slices.ContainsFunc(c.files, func(f File) bool { return f.Path == file })
}

// fileOf returns the file of a template, whose name starts with its chart's.
func (c *Chart) fileOf(template string) string {
	if c.helm == nil {
		return template
	}
	return strings.TrimPrefix(template, c.helm.Name()+"/")
}

// writtenIn returns the file that contains a template. Files of a folder have the names of
// partials.
func (c *Chart) writtenIn(template string) string {
	if c.helm == nil {
		return path.Join(path.Dir(template), strings.TrimPrefix(path.Base(template), filePrefix))
	}
	return c.fileOf(template)
}
