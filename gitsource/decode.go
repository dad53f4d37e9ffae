package gitsource

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/addonflow/addonflow/api/brief"
)

// Limits of one file. With aliases, YAML can become much larger than the file: 62 KB can expand to 40 MB with a
// string of 2 KB and many references to it.
const (
	maxDepth     = 100
	maxAliases   = 100
	minAllowance = 64 << 10
	expansion    = 10
	nodeCost     = 16
)

// nodeDecoder turns YAML nodes into JSON types. It accepts values with exactly one meaning. All other values become
// mistakes.
type nodeDecoder struct {
	mistakes []mistake
	// stopped: the file is refused as a whole, because further decoding could cost too much.
	stopped bool
	// typed nodes come from kustomize, which sets their tags correctly but not their style.
	typed bool
	// lines of the file; none for a result of kustomize.
	lines [][]rune

	allowance       int // bytes that aliases may still add
	aliases, inside int // aliases met so far; how many of them enclose the current node
	open            []*yaml.Node
}

func (d *nodeDecoder) wrong(n *yaml.Node, format string, args ...any) *mistake {
	d.mistakes = append(d.mistakes, mistake{line: n.Line, reason: InvalidYAML, message: fmt.Sprintf(format, args...)})
	return &d.mistakes[len(d.mistakes)-1]
}

func (d *nodeDecoder) stop(n *yaml.Node, m mistake) {
	if !d.stopped {
		m.line = n.Line
		d.mistakes = append(d.mistakes, m)
		d.stopped = true
	}
}

func (d *nodeDecoder) decode(n *yaml.Node) any { return d.value(n, 1) }

func (d *nodeDecoder) value(n *yaml.Node, depth int) any {
	if d.stopped {
		return nil
	}
	if depth > maxDepth {
		d.stop(n, mistake{reason: LimitExceeded, message: fmt.Sprintf("nested more than %d levels deep", maxDepth)})
		return nil
	}
	if d.inside > 0 {
		if d.allowance -= len(n.Value) + nodeCost; d.allowance < 0 {
			d.stop(n, mistake{reason: AliasLimitExceeded, message: fmt.Sprintf(
				"aliases make the file more than %d times as large", expansion), hint: "write the values out"})
			return nil
		}
	}
	if !d.standardTag(n) {
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return d.alias(n, depth)
	case yaml.MappingNode:
		return d.mapping(n, depth)
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			out = append(out, d.value(item, depth+1))
		}
		return out
	case yaml.ScalarNode:
		return d.scalar(n)
	case yaml.DocumentNode:
	}
	return nil
}

// standardTag refuses tags that only some programs can read. The parser accepts any tag, and changes the value of
// !!binary.
func (d *nodeDecoder) standardTag(n *yaml.Node) bool {
	if d.bareTag(n) {
		d.wrong(n, "the tag ! is not allowed")
		return false
	}
	if n.Style&yaml.TaggedStyle == 0 {
		return true
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
		return true
	}
	d.wrong(n, "the tag %s is not allowed", brief.Printable(n.Tag))
	return false
}

var bareTagPattern = regexp.MustCompile(`^(?:&\S+\s(?:\s|#.*\n)*)?!(?:\s|[,\]}]|$)`)

// bareTag finds a ! before a value, which makes the value a string. The parser drops the !, so only the text shows
// it.
func (d *nodeDecoder) bareTag(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Line < 1 || n.Line > len(d.lines) {
		return false
	}
	line, from := d.lines[n.Line-1], n.Column-1
	if from < 0 || from >= len(line) || line[from] != '!' && line[from] != '&' {
		return false
	}
	const enough = 200
	text := line[from:min(len(line), from+enough)]
	for _, next := range d.lines[n.Line:] { // an anchor may be on a line before
		if len(text) >= enough {
			break
		}
		text = append(append(slices.Clip(text), '\n'), next[:min(len(next), enough)]...)
	}
	return bareTagPattern.MatchString(string(text))
}

func (d *nodeDecoder) alias(n *yaml.Node, depth int) any {
	if d.aliases++; d.aliases > maxAliases {
		d.stop(n, mistake{
			reason: AliasLimitExceeded, message: fmt.Sprintf("more than %d aliases", maxAliases),
			hint: "write the values out",
		})
		return nil
	}
	if slices.Contains(d.open, n.Alias) {
		d.stop(n, mistake{reason: InvalidYAML, message: fmt.Sprintf("the anchor %s contains itself", brief.Printable(n.Value))})
		return nil
	}
	d.open = append(d.open, n.Alias)
	d.inside++
	out := d.value(n.Alias, depth+1)
	d.inside--
	d.open = d.open[:len(d.open)-1]
	return out
}

// maxKey bounds a key as it is written in JSON. YAML parsers accept a quoted key only within 1024 characters.
const maxKey = 1000

func (d *nodeDecoder) mapping(n *yaml.Node, depth int) any {
	out := make(map[string]any, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !d.stopped; i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if isMerge(key) {
			merges = append(merges, value)
			continue
		}
		name, ok := d.key(key)
		if !ok {
			continue
		}
		if len(name) > maxKey/6 && len(canonical(name)) > maxKey { // six characters are the longest escape
			d.wrong(key, "a key of more than %d characters", maxKey)
			continue
		}
		if line, twice := lines[name]; twice {
			d.wrong(key, "key %q already set in line %d", name, line)
			continue
		}
		lines[name] = key.Line
		out[name] = d.value(value, depth+1)
	}
	for _, m := range merges {
		d.merge(out, m, depth+1)
	}
	return out
}

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.Value == "<<" && (key.Tag == "" || key.ShortTag() == "!!merge")
}

// merge adds the keys of a mapping, or of a list of mappings, that are not set yet.
func (d *nodeDecoder) merge(out map[string]any, n *yaml.Node, depth int) {
	var from []any
	switch v := d.value(n, depth).(type) {
	case map[string]any:
		from = []any{v}
	case []any:
		from = v
	}
	if len(from) == 0 && !d.stopped {
		d.wrong(n, "<< wants a mapping or a list of mappings")
	}
	for _, f := range from {
		values, ok := f.(map[string]any)
		if !ok {
			d.wrong(n, "<< wants a mapping or a list of mappings")
			return
		}
		for k, v := range values {
			if _, set := out[k]; !set {
				out[k] = v
			}
		}
	}
}

// key returns the name of a field. If a key is not a string, it is read as its text if the API server does the same
// (8080); otherwise it is refused (on, 010).
func (d *nodeDecoder) key(n *yaml.Node) (string, bool) {
	if !d.standardTag(n) {
		return "", false
	}
	switch n.Kind {
	case yaml.AliasNode:
		if v, ok := d.alias(n, 1).(string); ok {
			return v, true
		}
		if !d.stopped {
			d.wrong(n, "a key must be a string")
		}
		return "", false
	case yaml.ScalarNode:
	default:
		m := d.wrong(n, "a key must be a string, not a mapping or list")
		if name, ok := braces(n); ok {
			m.hint = quoteHint("{{" + name + "}}")
		}
		return "", false
	}
	if d.typed {
		return n.Value, true // in a result of kustomize, every key is a string
	}
	v, err := scalarValue(n, false)
	if s, ok := v.(string); ok && err == nil {
		return s, true
	}
	if err == nil && v != nil && jsonText(v) == n.Value {
		return n.Value, true
	}
	d.wrong(n, "the key %s is read as %s", brief.Printable(n.Value), describe(v)).hint = quoteHint(n.Value)
	return "", false
}

// braces recognises an unquoted {{NAME}}. YAML reads it as a mapping with a mapping as its key, whose key is NAME.
func braces(n *yaml.Node) (string, bool) {
	if n.Kind != yaml.MappingNode || len(n.Content) < 1 || n.Content[0].Kind != yaml.ScalarNode {
		return "", false
	}
	return strings.TrimSpace(n.Content[0].Value), true
}

func (d *nodeDecoder) scalar(n *yaml.Node) any {
	v, err := scalarValue(n, d.typed)
	if err != nil {
		d.wrong(n, "%s", err.Error()).hint = quoteHint(n.Value)
	}
	return v
}
