package chart

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

const (
	// needFunction refuses a missing value.
	needFunction = ownPrefix + "need"
	// tplFunction rewrites the text that tpl renders.
	tplFunction = ownPrefix + "tpl"
)

// asking are the functions that test whether there is a value.
const asking = " and coalesce default empty kindIs not or required ternary "

// shownName bounds the text of an expression in an error.
const shownName = 80

func among(list, name string) bool { return strings.Contains(list, " "+name+" ") }

func need(name string, v any) (any, error) {
	if v == nil {
		return nil, &refusal{"no value for " + name, "set it in values, or test for it with if, with or default"}
	}
	return v, nil
}

// needing rewrites the text of a manifest so that the use of a missing value is an error,
// unless the template tests for it. Helm's engine supports only charts, in which a missing
// value is empty. Everything is inserted on the same line, so that line numbers stay the same.
// A text that cannot be parsed is returned unchanged; Helm's engine reports the error.
func needing(text string) string {
	root := parse.New("manifest")
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, "", "", trees); err != nil {
		return text
	}
	n := needs{text: text, ends: map[parse.Node]int{}}
	for _, tree := range trees {
		n.list(tree.Root)
	}
	return n.written()
}

// needs collects the edits.
type needs struct {
	text  string
	edits []edit
	// ends are the offsets after expressions in parentheses.
	ends map[parse.Node]int
	// asked: the template tests for the values it reads, so they may be missing.
	asked bool
}

// edit is a text to write at an offset.
type edit struct {
	at   int
	text string
}

func (n *needs) write(at int, text string) { n.edits = append(n.edits, edit{at, text}) }

// written returns the text with the edits. Edits at one offset keep their order.
func (n *needs) written() string {
	slices.SortStableFunc(n.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	from := 0
	for _, e := range n.edits {
		b.WriteString(n.text[from:e.at])
		b.WriteString(e.text)
		from = e.at
	}
	b.WriteString(n.text[from:])
	return b.String()
}

func (n *needs) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			n.action(node.Pipe)
		case *parse.IfNode:
			n.branch(&node.BranchNode)
		case *parse.WithNode:
			n.branch(&node.BranchNode)
		case *parse.RangeNode:
			n.branch(&node.BranchNode)
		case *parse.TemplateNode:
			if node.Pipe != nil {
				n.pipe(node.Pipe)
			}
		default:
		}
	}
}

// action walks into an action. A value that the action only assigns to a variable may be missing,
// because the template may test the variable later.
func (n *needs) action(pipe *parse.PipeNode) {
	if len(pipe.Decl) > 0 && len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 1 {
		n.ask(pipe)
		return
	}
	n.pipe(pipe)
}

func (n *needs) branch(b *parse.BranchNode) {
	n.ask(b.Pipe)
	n.list(b.List)
	n.list(b.ElseList)
}

// ask walks into a pipe whose values may be missing: a condition, or a value that is only stored.
func (n *needs) ask(pipe *parse.PipeNode) {
	before := n.asked
	n.asked = true
	n.pipe(pipe)
	n.asked = before
}

func (n *needs) pipe(pipe *parse.PipeNode) {
	for at, cmd := range pipe.Cmds {
		n.arguments(cmd)
		read := cmd.Args[0]
		if n.reads(read) && len(cmd.Args) == 1 && (at+1 == len(pipe.Cmds) || !asks(pipe.Cmds[at+1])) {
			n.write(n.endOf(read), " | "+n.need(read))
		}
	}
}

// arguments walks into the arguments of one command.
func (n *needs) arguments(cmd *parse.CommandNode) {
	before := n.asked
	n.asked = before || asks(cmd)
	name, _ := cmd.Args[0].(*parse.IdentifierNode)
	for a, arg := range cmd.Args {
		var calls []string
		if a == 1 && name != nil && name.Ident == "tpl" {
			calls = append(calls, tplFunction)
		}
		if a > 0 && n.reads(arg) {
			calls = append(calls, n.need(arg))
		}
		for _, call := range calls {
			n.write(n.startOf(arg), "("+call+" ")
		}
		n.within(arg)
		n.write(n.endOf(arg), strings.Repeat(")", len(calls)))
	}
	n.asked = before
}

func (n *needs) within(arg parse.Node) {
	switch node := arg.(type) {
	case *parse.PipeNode:
		n.pipe(node)
	case *parse.ChainNode:
		n.within(node.Node)
	}
}

// reads reports whether a node reads a value that must not be missing.
func (n *needs) reads(node parse.Node) bool {
	switch node := node.(type) {
	case *parse.FieldNode, *parse.ChainNode:
		return !n.asked
	case *parse.VariableNode:
		return !n.asked && (len(node.Ident) > 1 || node.Ident[0] != "$")
	}
	return false
}

// asks reports whether a command tests for a value.
func asks(cmd *parse.CommandNode) bool {
	name, ok := cmd.Args[0].(*parse.IdentifierNode)
	return ok && among(asking, name.Ident)
}

// need returns the call that refuses the value that a node reads, if it is missing.
func (n *needs) need(node parse.Node) string {
	start, end := n.startOf(node), n.endOf(node)
	name := strings.ToValidUTF8(n.text[start:min(end, start+shownName)], "")
	return fmt.Sprintf("%s %s", needFunction, strconv.Quote(name))
}

// startOf returns the offset of the first byte of a node that can be an argument. For a.b.c the
// parser stores the offset of the second name.
func (n *needs) startOf(node parse.Node) int {
	at := int(node.Position())
	switch node := node.(type) {
	case *parse.FieldNode:
		if len(node.Ident) > 1 {
			at -= 1 + len(node.Ident[0])
		}
	case *parse.VariableNode:
		if len(node.Ident) > 1 {
			at -= len(node.Ident[0])
		}
	case *parse.ChainNode:
		at = n.startOf(node.Node)
	case *parse.PipeNode: // at its parenthesis
		at = strings.LastIndexByte(n.text[:at], '(')
	}
	return at
}

// endOf returns the offset after the last byte of a node that can be an argument.
func (n *needs) endOf(node parse.Node) int {
	if at, known := n.ends[node]; known {
		return at
	}
	at := 0
	switch node := node.(type) {
	case *parse.ChainNode:
		at = n.endOf(node.Node)
		for _, name := range node.Field {
			at += 1 + len(name)
		}
	case *parse.PipeNode: // after its parenthesis
		cmd := node.Cmds[len(node.Cmds)-1]
		at = n.endOf(cmd.Args[len(cmd.Args)-1])
		at += strings.IndexByte(n.text[at:], ')') + 1
	default:
		return n.startOf(node) + len(node.String())
	}
	n.ends[node] = at
	return at
}
