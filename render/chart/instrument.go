package chart

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template/parse"
)

// Names of what is written into every template. A chart that names one itself is
// refused.
const (
	ownPrefix = "addonflow_"
	// depthVariable holds how deep a template is, for the templates it calls.
	depthVariable = "$" + ownPrefix + "depth"
	// enterFunction, textFunction and roundFunction begin a template, a branch and a
	// round of a loop: each pays for the text that stands in it.
	enterFunction = ownPrefix + "enter"
	textFunction  = ownPrefix + "text"
	roundFunction = ownPrefix + "round"
	// endFunction ends a file, atFunction tells the next template how deep it is.
	endFunction = ownPrefix + "end"
	atFunction  = ownPrefix + "at"
	// nameFunction and tplFunction take the first argument of include and tpl.
	nameFunction  = ownPrefix + "name"
	tplFunction   = ownPrefix + "tpl"
	printFunction = ownPrefix + "print"
	seeFunction   = ownPrefix + "see"
	// compareFunction sees what eq and ne compare, payFunction what a method returns and
	// ofFunction what a method is called of.
	compareFunction = ownPrefix + "compare"
	payFunction     = ownPrefix + "pay"
	// takeFunction is given what Helm's formats are given, madeFunction what they return.
	takeFunction = ownPrefix + "take"
	madeFunction = ownPrefix + "made"
	// needFunction refuses what is missing.
	needFunction = ownPrefix + "need"
	// overFunction sees what a loop goes over, argumentFunction what a method is given.
	overFunction     = ownPrefix + "over"
	argumentFunction = ownPrefix + "argument"
	ofFunction       = ownPrefix + "of"
)

// deciding are Go's own functions, which know types that no function of ours can have,
// that decide by a text; comparing those of them that write their arguments into an error.
const (
	deciding  = " lt le gt ge len index slice call "
	comparing = " eq ne "
)

// asking are the functions that ask whether there is a value.
const asking = " and coalesce default empty kindIs not or required ternary "

// methods are those of Helm's types that do work, judged those of them that write all
// there is. A field of the name is none the worse for it.
const (
	methods = " AsConfig AsSecrets Get GetBytes Glob Has Lines YAML Encode Table PathValue "
	judged  = " AsConfig AsSecrets YAML Encode "
)

// maxName is how long the name of a template may be, which an error holds once for each
// level that it passes.
const maxName = 1000

// maxOpened is how many blocks a text may open: each may stand in the one before it, and
// Go's parser takes stack for each, without a bound.
const maxOpened = 10_000

var opened = regexp.MustCompile(`\{\{-?\s*(?:else\s+)?(?:if|with|range|define|block)`)

// maxDeclared is how many variables a template may declare: each is looked for among all.
const maxDeclared = 1000

// instrument returns the text of a template with counting and watching written into it:
// a step into every round of a loop, a level into every template, the price of a text
// where it stands, and what is printed or compared goes through a function that sees it.
// Everything is written between what stands there, so that each line stays where it is.
func (x *execution) instrument(name, text string) (string, error) {
	if len(opened.FindAllStringIndex(text, maxOpened+1)) > maxOpened {
		return "", fmt.Errorf("template: %s:1: %w", name, &refusal{fmt.Sprintf("opens more than %d blocks", maxOpened), "split it into several files"})
	}
	trees, err := parse.Parse(name, text, "", "", x.known)
	if err != nil {
		return "", err
	}
	i := instrumenter{execution: x, text: text, ends: map[parse.Node]int{}}
	for defined, tree := range trees {
		if len(defined) > maxName {
			return "", fmt.Errorf("template: %s:1: %w", name, &refusal{fmt.Sprintf("the name of a template is longer than %d bytes", maxName), ""})
		}
		x.templates++
		if parse.IsEmptyTree(tree.Root) { // stays so: it overrides nothing
			x.blank = max(x.blank, int64(len(tree.Root.String())))
			continue
		}
		i.declared = 0
		i.list(tree.Root, depthVariable+" := "+enterFunction)
		if defined == name {
			i.end()
		}
	}
	if i.err != nil {
		return "", fmt.Errorf("template: %s:%w", name, i.err)
	}
	return i.written(), x.budget.step(int64(i.all))
}

// instrumenter gathers what is to be written where.
type instrumenter struct {
	*execution
	text  string
	edits []edit
	// nodes are those of the list that is walked, all those of the text, and declared how
	// many variables a template has.
	nodes, all, declared int
	// ends are those of parentheses, each of which is looked at from all around it.
	ends map[parse.Node]int
	// asked: whatever is read is asked for, so that it may be missing.
	asked bool
	err   error
}

// edit is a text to write at an offset.
type edit struct {
	at   int
	text string
}

func (i *instrumenter) write(at int, text string) { i.edits = append(i.edits, edit{at, text}) }

// written is the text with the edits. Those at one offset stay in their order.
func (i *instrumenter) written() string {
	slices.SortStableFunc(i.edits, func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	from := 0
	for _, e := range i.edits {
		b.WriteString(i.text[from:e.at])
		b.WriteString(e.text)
		from = e.at
	}
	b.WriteString(i.text[from:])
	return b.String()
}

// begin writes an action to where a list begins, which is a text or an action. One that
// trims the text before it goes on doing so.
func (i *instrumenter) begin(at int, call string) {
	left := "{{"
	if rest, isAction := strings.CutPrefix(i.text[at:], "{{-"); isAction && strings.IndexAny(rest, " \t\r\n") == 0 {
		left = "{{- "
	}
	i.write(at, left+call+"}}")
}

// end writes the end of a file. A brace in the last place must not open it.
func (i *instrumenter) end() {
	at := len(i.text)
	if strings.HasSuffix(i.text, "{") {
		at--
	}
	i.write(at, "{{"+endFunction+"}}")
}

// list writes into a list of nodes what it begins with, and into each node.
func (i *instrumenter) list(list *parse.ListNode, call string) {
	if list == nil {
		return
	}
	text, before := 0, i.nodes
	if elseIf := i.elseIf(list); !elseIf {
		i.nodes = 0
		defer func() { i.all, i.nodes = i.all+i.nodes, before }()
	}
	for _, node := range list.Nodes {
		i.nodes++
		switch node := node.(type) {
		case *parse.TextNode:
			text += len(node.Text)
		case *parse.ActionNode:
			i.action(node.Pipe)
		case *parse.IfNode:
			i.branch(&node.BranchNode, textFunction)
		case *parse.WithNode:
			i.branch(&node.BranchNode, textFunction)
		case *parse.RangeNode:
			i.branch(&node.BranchNode, roundFunction)
			i.write(i.endOfPipe(node.Pipe), " | "+overFunction)
		case *parse.TemplateNode:
			i.call(node)
		default:
		}
	}
	if len(list.Nodes) > 0 && !i.elseIf(list) || call != textFunction {
		i.begin(int(list.Pos), call+" "+strconv.Itoa(text)+" "+strconv.Itoa(i.nodes))
	}
}

// elseIf tells the list of an {{else if}}, which begins in that action: nothing can be
// written before it, and the list around it pays.
func (i *instrumenter) elseIf(list *parse.ListNode) bool {
	if len(list.Nodes) != 1 || strings.HasPrefix(i.text[list.Pos:], "{{") {
		return false
	}
	kind := list.Nodes[0].Type()
	return kind == parse.NodeIf || kind == parse.NodeWith
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
		i.write(i.endOfPipe(pipe), " | "+printFunction)
	}
}

func (i *instrumenter) branch(b *parse.BranchNode, call string) {
	i.ask(b.Pipe)
	i.list(b.List, call)
	i.list(b.ElseList, textFunction)
}

// ask is pipe for what may be missing: a condition, or a value that is kept as it is.
func (i *instrumenter) ask(pipe *parse.PipeNode) {
	before := i.asked
	i.asked = true
	i.pipe(pipe)
	i.asked = before
}

// call tells a template how deep it is, with what it is given.
func (i *instrumenter) call(node *parse.TemplateNode) {
	const at = atFunction + " " + depthVariable
	if node.Pipe != nil {
		i.pipe(node.Pipe)
		i.write(i.endOfPipe(node.Pipe), " | "+at)
		return
	}
	name, err := strconv.QuotedPrefix(i.text[node.Pos:])
	if err != nil {
		i.fail(node.Pos, err)
	}
	i.write(int(node.Pos)+len(name), " "+at+" nil")
}

// fail keeps what is wrong at an offset.
func (i *instrumenter) fail(at parse.Pos, err error) {
	i.err = fmt.Errorf("%d: %w", 1+strings.Count(i.text[:at], "\n"), err)
}

// pipe lets what goes into a deciding function be seen: its arguments, and what is
// piped into it.
func (i *instrumenter) pipe(pipe *parse.PipeNode) {
	if i.declared += len(pipe.Decl); i.declared > maxDeclared {
		i.fail(pipe.Pos, &refusal{fmt.Sprintf("a template has more than %d variables", maxDeclared), "split it into several templates"})
	}
	for _, variable := range pipe.Decl {
		if strings.HasPrefix(variable.Ident[0], "$"+ownPrefix) {
			i.fail(variable.Pos, fmt.Errorf("variable %q cannot be used", variable.Ident[0]))
		}
	}
	for n, cmd := range pipe.Cmds {
		i.nodes++
		read := cmd.Args[0]
		watch, end := watching(read), i.endOf(cmd.Args[len(cmd.Args)-1])
		if watch != "" && n > 0 {
			i.write(int(cmd.Pos), watch+" | ")
		}
		i.arguments(cmd, watch)
		if after := seeing(read); after != "" {
			i.write(end, " | "+after)
		}
		if i.needs(read) && len(cmd.Args) == 1 && (n+1 == len(pipe.Cmds) || !asks(pipe.Cmds[n+1])) {
			i.write(end, " | "+i.need(read))
		}
	}
}

// arguments walks into those of one command.
func (i *instrumenter) arguments(cmd *parse.CommandNode, watch string) {
	before := i.asked
	i.asked = before || asks(cmd)
	for a, arg := range cmd.Args {
		calls := wrapping(cmd, a, watch)
		if a > 0 && i.needs(arg) {
			calls = slices.Insert(calls, 0, i.need(arg))
		}
		i.argument(arg, calls)
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

// shownName bounds what is shown of what is read.
const shownName = 80

// need is the call that refuses what a node reads, if that is missing.
func (i *instrumenter) need(node parse.Node) string {
	start, end := i.startOf(node), i.endOf(node)
	name := strings.ToValidUTF8(i.text[start:min(end, start+shownName)], "")
	return needFunction + " " + strconv.Quote(name)
}

// watching is the call that sees the arguments of a function of Go's or Helm's own, or of
// a method; "" for others.
func watching(called parse.Node) string {
	name, isFunction := called.(*parse.IdentifierNode)
	switch {
	case !isFunction && worksAt(called):
		return argumentFunction
	case isFunction && among(comparing, name.Ident):
		return compareFunction
	case isFunction && among(deciding, name.Ident):
		return seeFunction
	case isFunction && among(formats, name.Ident):
		return takeFunction + ` "` + name.Ident + `"`
	}
	return ""
}

// seeing is the call that sees what a method, or a function of Helm's own, returns.
func seeing(called parse.Node) string {
	name, isFunction := called.(*parse.IdentifierNode)
	switch {
	case isFunction && among(formats, name.Ident):
		return madeFunction
	case worksAt(called):
		return payFunction
	}
	return ""
}

// wrapping are the calls that an argument goes through, the last one first.
func wrapping(cmd *parse.CommandNode, a int, watch string) []string {
	var calls []string
	name, _ := cmd.Args[0].(*parse.IdentifierNode)
	if called := name != nil && (name.Ident == "include" || name.Ident == "tpl"); called && a > 0 {
		if a == len(cmd.Args)-1 { // evaluated last, so that nothing is called in between
			calls = append(calls, atFunction+" "+depthVariable)
		}
		if a == 1 && name.Ident == "include" {
			calls = append(calls, nameFunction)
		}
		if a == 1 && name.Ident == "tpl" {
			calls = append(calls, tplFunction+" "+depthVariable)
		}
	}
	if a > 0 && worksAt(cmd.Args[a]) {
		calls = append(calls, payFunction)
	}
	if a > 0 && watch != "" {
		calls = append(calls, watch)
	}
	return calls
}

// fieldsOf are the names after the dots of a node.
func fieldsOf(node parse.Node) []string {
	switch node := node.(type) {
	case *parse.FieldNode:
		return node.Ident
	case *parse.VariableNode:
		return node.Ident[1:]
	case *parse.ChainNode:
		return node.Field
	}
	return nil
}

// worksAt tells whether a node may end in a call of a method of Helm's.
func worksAt(node parse.Node) bool {
	path := fieldsOf(node)
	return len(path) > 0 && among(methods, path[len(path)-1])
}

// argument wraps an argument in calls, and walks into it.
func (i *instrumenter) argument(arg parse.Node, calls []string) {
	for _, call := range calls {
		i.write(i.startOf(arg), "("+call+" ")
	}
	i.receivers(arg)
	if text, isText := arg.(*parse.StringNode); isText {
		i.alone = i.alone || i.marked(text.Text)
	}
	i.write(i.endOf(arg), strings.Repeat(")", len(calls)))
}

// receivers lets what a judged method is called of be seen, and walks into what stands
// in parentheses.
func (i *instrumenter) receivers(arg parse.Node) {
	path, start := fieldsOf(arg), i.startOf(arg)
	for at, name := range slices.Backward(path) {
		if !among(judged, name) {
			continue
		}
		i.write(start, "("+ofFunction+` "`+name+`" `)
		if _, isField := arg.(*parse.FieldNode); isField && at == 0 {
			i.write(start, ".")
		}
	}
	switch node := arg.(type) {
	case *parse.PipeNode:
		i.pipe(node)
	case *parse.ChainNode:
		i.receivers(node.Node)
	}
	at := i.endOf(arg)
	for _, name := range path {
		at -= 1 + len(name)
	}
	for _, name := range path {
		if among(judged, name) {
			i.write(at, ")")
		}
		at += 1 + len(name)
	}
}

// startOf is the offset of the first byte of a node that can be an argument. The parser
// keeps that of the second name of a.b.c.
func (i *instrumenter) startOf(node parse.Node) int {
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
		at = i.startOf(node.Node)
	case *parse.PipeNode: // from its parenthesis
		at = strings.LastIndexByte(i.text[:at], '(')
	}
	return at
}

// endOf is the offset after the last byte of a node that can be an argument.
func (i *instrumenter) endOf(node parse.Node) int {
	if at, known := i.ends[node]; known {
		return at
	}
	at := 0
	switch node := node.(type) {
	case *parse.ChainNode:
		at = i.endOf(node.Node)
		for _, name := range node.Field {
			at += 1 + len(name)
		}
	case *parse.PipeNode: // to its parenthesis
		at = i.endOfPipe(node)
		at += strings.IndexByte(i.text[at:], ')') + 1
	default:
		return i.startOf(node) + len(node.String())
	}
	i.ends[node] = at
	return at
}

// endOfPipe is the offset after the last argument of a pipeline.
func (i *instrumenter) endOfPipe(pipe *parse.PipeNode) int {
	cmd := pipe.Cmds[len(pipe.Cmds)-1]
	return i.endOf(cmd.Args[len(cmd.Args)-1])
}
