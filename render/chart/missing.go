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
	// needFunction refuses a value that is missing.
	needFunction = ownPrefix + "need"
	// tplFunction is given the text that tpl renders.
	tplFunction = ownPrefix + "tpl"
)

// asking are the functions that ask whether there is a value.
const asking = " and coalesce default empty kindIs not or required ternary "

// shownName bounds what an error shows of an expression.
const shownName = 80

func among(list, name string) bool { return strings.Contains(list, " "+name+" ") }

// need refuses a value that is not there.
func need(name string, v any) (any, error) {
	if v == nil {
		return nil, &refusal{"no value for " + name, "set it in values, or ask whether there is one with if, with or default"}
	}
	return v, nil
}

// needing returns the text of a manifest in which a value that is missing is an error
// where it is used, and none where the template asks for it. Helm's engine knows only
// charts, where a missing value is empty. Everything is written between what stands
// there, so that each line stays where it is. A text that cannot be parsed is returned
// as it is: Helm's engine says what is wrong.
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

// needs gathers what is to be written where.
type needs struct {
	text  string
	edits []edit
	// ends are the offsets after expressions in parentheses.
	ends map[parse.Node]int
	// asked: the template asks for whatever is read, so that it may be missing.
	asked bool
}

// edit is a text to write at an offset.
type edit struct {
	at   int
	text string
}

func (n *needs) write(at int, text string) { n.edits = append(n.edits, edit{at, text}) }

// written is the text with the edits. Those at one offset stay in their order.
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

// action prints, or keeps in a variable what may then be asked for.
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

// ask is pipe for what may be missing: a condition, or a value that is kept as it is.
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

// arguments walks into those of one command.
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

// within walks into what stands in parentheses.
func (n *needs) within(arg parse.Node) {
	switch node := arg.(type) {
	case *parse.PipeNode:
		n.pipe(node)
	case *parse.ChainNode:
		n.within(node.Node)
	}
}

// reads tells whether a node reads what must be there.
func (n *needs) reads(node parse.Node) bool {
	switch node := node.(type) {
	case *parse.FieldNode, *parse.ChainNode:
		return !n.asked
	case *parse.VariableNode:
		return !n.asked && (len(node.Ident) > 1 || node.Ident[0] != "$")
	}
	return false
}

// asks tells whether a command asks for a value.
func asks(cmd *parse.CommandNode) bool {
	name, ok := cmd.Args[0].(*parse.IdentifierNode)
	return ok && among(asking, name.Ident)
}

// need is the call that refuses what a node reads, if that is missing.
func (n *needs) need(node parse.Node) string {
	start, end := n.startOf(node), n.endOf(node)
	name := strings.ToValidUTF8(n.text[start:min(end, start+shownName)], "")
	return fmt.Sprintf("%s %s", needFunction, strconv.Quote(name))
}

// startOf is the offset of the first byte of a node that can be an argument. The parser
// keeps that of the second name of a.b.c.
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
	case *parse.PipeNode: // from its parenthesis
		at = strings.LastIndexByte(n.text[:at], '(')
	}
	return at
}

// endOf is the offset after the last byte of a node that can be an argument.
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
	case *parse.PipeNode: // to its parenthesis
		cmd := node.Cmds[len(node.Cmds)-1]
		at = n.endOf(cmd.Args[len(cmd.Args)-1])
		at += strings.IndexByte(n.text[at:], ')') + 1
	default:
		return n.startOf(node) + len(node.String())
	}
	n.ends[node] = at
	return at
}
