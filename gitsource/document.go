package gitsource

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// document is one YAML document: its value in JSON types, as the API server would read it, and its nodes with their
// lines.
type document struct {
	node  *yaml.Node
	value any
}

// mistake is one error inside a file.
type mistake struct {
	line    int
	reason  problem.Reason
	message string
	hint    string
}

func (m mistake) at(path string) problem.Problem {
	return problem.Problem{Reason: m.reason, Path: path, Line: m.line, Message: m.message, Hint: m.hint}
}

const lfsPointer = "version https://git-lfs.github.com/spec/"

// decodeYAML reads every non-empty document of a file. A byte order mark and CRLF are ignored.
// After a syntax error the rest of the file is unknown; every other mistake is collected.
func decodeYAML(content []byte) ([]document, []mistake) {
	text, wrong := plainText(content)
	if wrong != nil {
		return nil, []mistake{*wrong}
	}
	d := &nodeDecoder{allowance: max(minAllowance, expansion*len(text)), lines: textLines(text)}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var docs []document
	for {
		node, err := nextDocument(decoder)
		if errors.Is(err, io.EOF) {
			return docs, d.mistakes
		}
		if err != nil {
			return docs, append(d.mistakes, syntaxMistake(text, err))
		}
		if isEmpty(node) {
			continue
		}
		value := d.decode(node)
		if d.stopped {
			return nil, d.mistakes
		}
		docs = append(docs, document{node: node, value: value})
	}
}

// lineBreak matches the end of a line for the parser.
var lineBreak = regexp.MustCompile("[\n\u0085\u2028\u2029]")

// textLines splits a text into lines of characters in the way in which the parser counts lines and columns: without
// the first byte order mark.
func textLines(text []byte) [][]rune {
	var out [][]rune
	for _, line := range lineBreak.Split(strings.TrimPrefix(string(text), "\ufeff"), -1) {
		out = append(out, []rune(line))
	}
	return out
}

// nextDocument reads one document. It recovers from panics, because the parser may panic on
// some inputs.
func nextDocument(decoder *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	var doc yaml.Node
	if err := decoder.Decode(&doc); err != nil {
		return nil, err
	}
	if doc.Kind == yaml.DocumentNode && len(doc.Content) > 0 {
		return doc.Content[0], nil
	}
	return nil, nil
}

func isEmpty(n *yaml.Node) bool {
	return n == nil || n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" && n.Style&^yaml.FlowStyle == 0
}

// plainText returns the content as UTF-8 with LF line ends.
func plainText(content []byte) ([]byte, *mistake) {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(content, []byte(mark)) {
			return nil, &mistake{line: 1, reason: InvalidEncoding, message: "UTF-16 at byte 0", hint: "save it as UTF-8"}
		}
	}
	if bytes.HasPrefix(content, []byte(lfsPointer)) {
		return nil, &mistake{
			line: 1, reason: LFSPointer, message: "the file is in Git LFS, the commit holds only a pointer to it",
			hint: "commit the file itself",
		}
	}
	for i, line := 0, 1; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return nil, &mistake{
				line: line, reason: InvalidEncoding,
				message: fmt.Sprintf("not UTF-8 at byte %d", i), hint: "save it as UTF-8",
			}
		case r == '\r' && !bytes.HasPrefix(content[i+size:], []byte("\n")):
			// YAML ends a line at this character, but most programs do not.
			return nil, &mistake{line: line, reason: InvalidYAML, message: "a carriage return without a line feed", hint: "end lines with LF"}
		case r < ' ' && r != '\n' && r != '\r' && r != '\t':
			return nil, &mistake{line: line, reason: InvalidYAML, message: fmt.Sprintf("control character %U", r)}
		case r == '\n':
			line++
		}
		i += size
	}
	return bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), nil
}

var (
	linePattern = regexp.MustCompile(`line (\d+): *`)
	// bracePattern finds a template variable at a position where YAML starts a mapping.
	bracePattern = regexp.MustCompile(`(?:^|[:\-,\[]\s+)(\{\{[^{}]*\}\}[^\s,\]}#]*)`)
	tabPattern   = regexp.MustCompile(`^ *\t`)
)

// syntaxMistake is the parser's error with the line and, for the most common mistakes, a hint.
func syntaxMistake(text []byte, err error) mistake {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	m := mistake{reason: InvalidYAML}
	if found := linePattern.FindStringSubmatch(message); found != nil {
		m.line, _ = strconv.Atoi(found[1])
		message = strings.Replace(message, found[0], "", 1)
	}
	m.line = cmp.Or(syntaxLine(text, err), m.line)
	m.message = brief.Printable(message)
	lines := strings.Split(string(text), "\n")
	if marker := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "<<<<<<< ") }); marker >= 0 {
		m.line, m.message, m.hint = marker+1, "an unresolved merge conflict begins here", "keep one of the two versions"
		return m
	}
	// The parser reports some mistakes one line too late.
	for _, line := range []int{m.line, m.line - 1, m.line + 1} {
		if line < 1 || line > len(lines) {
			continue
		}
		if tabPattern.MatchString(lines[line-1]) {
			m.line, m.message, m.hint = line, "tabs are not allowed for indentation", "use spaces"
			return m
		}
		if found := bracePattern.FindStringSubmatch(lines[line-1]); found != nil {
			m.line, m.hint = line, quoteHint(found[1])
			return m
		}
	}
	m.hint = syntaxHint(m.message)
	return m
}

// syntaxHint names the usual cause of a parser's error message.
func syntaxHint(message string) string {
	switch {
	case strings.HasPrefix(message, "did not find expected key"), strings.HasPrefix(message, "did not find expected '-' indicator"):
		return "check the indentation of this line and of those above"
	case strings.HasPrefix(message, "mapping values are not allowed"):
		return "check the indentation, or quote a value with a colon in it"
	case strings.HasPrefix(message, "could not find expected ':'"):
		return "end the key with a colon, or close the quote above"
	default:
		return ""
	}
}

func quoteHint(text string) string { return fmt.Sprintf(`quote it: "%s"`, brief.Printable(text)) }
