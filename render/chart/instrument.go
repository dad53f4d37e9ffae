package chart

import (
	"fmt"
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
)

// deciding are Go's own functions, which know types that no function of ours can have,
// that decide by a text; comparing those of them that write their arguments into an error.
const (
	deciding  = " lt le gt ge len index slice call "
	comparing = " eq ne "
)

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
			i.pipe(node.Pipe)
			if len(node.Pipe.Decl) == 0 {
				node.Pipe.Cmds = append(node.Pipe.Cmds, command(node.Pos, printFunction))
			}
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

func (i *instrumenter) branch(b *parse.BranchNode) {
	i.pipe(b.Pipe)
	i.list(b.List)
	i.list(b.ElseList)
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
		for a, arg := range cmd.Args {
			cmd.Args[a] = i.argument(arg, watch)
			if a > 0 && worksAt(arg) {
				cmd.Args[a] = wrapped(cmd.Args[a], payFunction)
			}
		}
		cmds = append(cmds, cmd)
		if worksAt(cmd.Args[0]) {
			cmds = append(cmds, command(cmd.Pos, payFunction))
		}
	}
	pipe.Cmds = cmds
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
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: node.Position(), Cmds: []*parse.CommandNode{call}}
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
