package chart

import (
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Names of the functions that are written into every template. A chart that calls
// one itself is refused.
const (
	ownPrefix     = "addonflow_"
	stepFunction  = ownPrefix + "step"
	enterFunction = ownPrefix + "enter"
	leaveFunction = ownPrefix + "leave"
	printFunction = ownPrefix + "print"
	seeFunction   = ownPrefix + "see"
	// compareFunction sees what eq and ne compare, payFunction what a method returns.
	compareFunction = ownPrefix + "compare"
	payFunction     = ownPrefix + "pay"
	// needFunction refuses what is missing.
	needFunction = ownPrefix + "need"
)

// deciding are Go's own functions, which know types that no function of ours can have,
// that decide by a text; comparing those of them that write their arguments into an error.
const (
	deciding  = " lt le gt ge len index slice call "
	comparing = " eq ne "
)

// asking are the functions that ask whether there is a value.
const asking = " and coalesce default empty kindIs not or required ternary "

// methods are those of .Files that do work. A field of the name is none the worse for it.
const methods = " AsConfig AsSecrets Get GetBytes Glob Lines "

// instrument writes counting and watching into the templates that were parsed since
// the last time: a step into every round of a loop, a level into every template, and
// what is printed or compared goes through a function that sees it.
func (x *execution) instrument(t *template.Template) error {
	for _, parsed := range t.Templates() {
		if parsed.Tree == nil || x.seen[parsed.Tree] {
			continue
		}
		x.seen[parsed.Tree] = true
		i := instrumenter{execution: x}
		root := parsed.Root
		i.list(root)
		if i.foreign != "" {
			return fmt.Errorf("template: %s:1: function %q not defined", parsed.Name(), i.foreign)
		}
		root.Nodes = append(append([]parse.Node{action(root.Pos, enterFunction)}, root.Nodes...), action(root.Pos, leaveFunction))
		if err := x.budget.step(int64(i.nodes)); err != nil {
			return err
		}
	}
	return nil
}

type instrumenter struct {
	*execution
	nodes int
	// asked: whatever is read is asked for, so that it may be missing.
	asked bool
	// foreign is one of our own functions that the chart names.
	foreign string
}

func (i *instrumenter) list(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		i.nodes++
		switch node := node.(type) {
		case *parse.ActionNode:
			i.action(node.Pipe)
		case *parse.IfNode:
			i.branch(&node.BranchNode)
		case *parse.WithNode:
			i.branch(&node.BranchNode)
		case *parse.RangeNode:
			i.branch(&node.BranchNode)
			node.List.Nodes = append([]parse.Node{action(node.Pos, stepFunction)}, node.List.Nodes...)
		case *parse.TemplateNode:
			i.pipe(node.Pipe)
		default:
		}
	}
}

// action prints, or keeps in a variable what may then be asked for.
func (i *instrumenter) action(pipe *parse.PipeNode) {
	kept := len(pipe.Decl) > 0
	if kept && len(pipe.Cmds) == 1 && len(pipe.Cmds[0].Args) == 1 {
		i.ask(pipe)
		return
	}
	i.pipe(pipe)
	if !kept {
		pipe.Cmds = append(pipe.Cmds, command(pipe.Pos, printFunction))
	}
}

func (i *instrumenter) branch(b *parse.BranchNode) {
	i.ask(b.Pipe)
	i.list(b.List)
	i.list(b.ElseList)
}

// ask is pipe for what may be missing: a condition, or a value that is kept as it is.
func (i *instrumenter) ask(pipe *parse.PipeNode) {
	before := i.asked
	i.asked = true
	i.pipe(pipe)
	i.asked = before
}

// pipe lets what goes into a deciding function be seen: its arguments, and what is
// piped into it.
func (i *instrumenter) pipe(pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	var cmds []*parse.CommandNode
	for n, cmd := range pipe.Cmds {
		i.nodes++
		watch := ""
		if name, ok := cmd.Args[0].(*parse.IdentifierNode); ok {
			watch = watching(name.Ident)
			i.notice(name.Ident)
		}
		if watch != "" && n > 0 {
			cmds = append(cmds, command(cmd.Pos, watch))
		}
		read := cmd.Args[0]
		i.arguments(cmd, watch)
		cmds = append(cmds, cmd)
		if worksAt(read) {
			cmds = append(cmds, command(cmd.Pos, payFunction))
		}
		if i.needs(read) && len(cmd.Args) == 1 && (n+1 == len(pipe.Cmds) || !asks(pipe.Cmds[n+1])) {
			cmds = append(cmds, need(read))
		}
	}
	pipe.Cmds = cmds
}

// arguments walks into those of one command.
func (i *instrumenter) arguments(cmd *parse.CommandNode, watch string) {
	before := i.asked
	i.asked = before || asks(cmd)
	for a, arg := range cmd.Args {
		cmd.Args[a] = i.argument(arg, watch)
		if a > 0 && worksAt(arg) {
			cmd.Args[a] = wrapped(cmd.Args[a], payFunction)
		}
		if a > 0 && i.needs(arg) {
			call := need(arg)
			call.Args = append(call.Args, cmd.Args[a])
			cmd.Args[a] = piped(call)
		}
	}
	i.asked = before
}

// needs tells whether a node reads what must be there.
func (i *instrumenter) needs(node parse.Node) bool {
	switch node := node.(type) {
	case *parse.FieldNode, *parse.ChainNode:
		return i.strict && !i.asked
	case *parse.VariableNode:
		return i.strict && !i.asked && (len(node.Ident) > 1 || node.Ident[0] != "$")
	}
	return false
}

// asks tells whether a command asks for a value.
func asks(cmd *parse.CommandNode) bool {
	name, ok := cmd.Args[0].(*parse.IdentifierNode)
	return ok && among(asking, name.Ident)
}

// need is a call that refuses what a node reads, if that is missing.
func need(node parse.Node) *parse.CommandNode {
	call, name := command(node.Position(), needFunction), node.String()
	call.Args = append(call.Args, &parse.StringNode{NodeType: parse.NodeString, Pos: node.Position(), Quoted: strconv.Quote(name), Text: name})
	return call
}

// watching is the function that sees the arguments of one of Go's own; "" for others.
func watching(name string) string {
	switch {
	case among(comparing, name):
		return compareFunction
	case among(deciding, name):
		return seeFunction
	}
	return ""
}

// worksAt tells whether a node may call a method of .Files.
func worksAt(node parse.Node) bool {
	var path []string
	switch node := node.(type) {
	case *parse.FieldNode:
		path = node.Ident
	case *parse.VariableNode:
		path = node.Ident
	case *parse.ChainNode:
		path = node.Field
	}
	return len(path) > 0 && among(methods, path[len(path)-1])
}

// wrapped is a node as the argument of a function.
func wrapped(node parse.Node, function string) parse.Node {
	call := command(node.Position(), function)
	call.Args = append(call.Args, node)
	return piped(call)
}

// piped is a call as an argument.
func piped(call *parse.CommandNode) *parse.PipeNode {
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: call.Pos, Cmds: []*parse.CommandNode{call}}
}

func (i *instrumenter) notice(function string) {
	if strings.HasPrefix(function, ownPrefix) {
		i.foreign = function
	}
}

// argument walks into an argument and wraps it, if somebody watches.
func (i *instrumenter) argument(arg parse.Node, watch string) parse.Node {
	switch node := arg.(type) {
	case *parse.PipeNode:
		i.pipe(node)
	case *parse.ChainNode:
		node.Node = i.argument(node.Node, "")
	case *parse.StringNode:
		i.alone = i.alone || i.marked(node.Text)
		return arg
	case *parse.IdentifierNode:
		i.notice(node.Ident)
		return arg
	case *parse.FieldNode, *parse.VariableNode, *parse.DotNode:
	default:
		return arg
	}
	if watch == "" {
		return arg
	}
	return wrapped(arg, watch)
}

func command(at parse.Pos, function string) *parse.CommandNode {
	name := parse.NewIdentifier(function).SetPos(at)
	return &parse.CommandNode{NodeType: parse.NodeCommand, Pos: at, Args: []parse.Node{name}}
}

// action calls a function that prints nothing.
func action(at parse.Pos, function string) *parse.ActionNode {
	return &parse.ActionNode{NodeType: parse.NodeAction, Pos: at, Pipe: &parse.PipeNode{
		NodeType: parse.NodePipe, Pos: at, Cmds: []*parse.CommandNode{command(at, function)},
	}}
}
