package chart

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// longestName is how long the name of a cluster can be.
const longestName = 63

// quotedMark is how Go quotes the mark of a cluster's name.
const quotedMark = `\ufdd0`

// tplSteps is what tpl costs whatever it renders: every function and template that
// the caller can call is copied.
const tplSteps = 400

// noValue is what Go prints for nothing, and Helm takes out again.
const noValue = "<no value>"

// execution is one run of a chart's templates.
type execution struct {
	budget budget
	// mark stands in texts where the name of the cluster does; "" when it has one.
	mark string
	// alone: the name decided something, so that the result is good for this
	// cluster only.
	alone bool
	// backwards: maps without an order are read in the opposite one.
	backwards bool
	// strict: a value that is missing is an error where it is used; asking for it is none.
	strict bool
	seen   map[*parse.Tree]bool
}

// source is a template with what it is given.
type source struct {
	text   string
	values map[string]any
}

func (x *execution) marked(text string) bool { return x.mark != "" && strings.Contains(text, x.mark) }

// run renders every template that is no partial, and returns the texts by name.
func (x *execution) run(sources map[string]source, partial func(name string) bool) (map[string]string, error) {
	x.budget, x.seen = newBudget(), map[*parse.Tree]bool{}
	root := template.New("gotpl")
	x.options(root)
	root.Funcs(x.functions())
	root.Funcs(x.late(root))
	names := parseOrder(sources)
	for _, name := range names {
		if _, err := root.New(name).Parse(sources[name].text); err != nil {
			return nil, err
		}
	}
	if err := x.instrument(root); err != nil {
		return nil, err
	}
	out := make(map[string]string, len(names))
	for _, name := range names {
		if partial(name) {
			continue
		}
		values := sources[name].values
		values["Template"] = map[string]any{"Name": name, "BasePath": basePath(name)}
		text := &limited{budget: &x.budget}
		if err := root.ExecuteTemplate(text, name, values); err != nil {
			return nil, err
		}
		out[name] = strings.ReplaceAll(text.String(), noValue, "")
	}
	return out, nil
}

func (x *execution) options(t *template.Template) { t.Option("missingkey=zero") }

// parseOrder is Helm's: files deep in the tree first, so that those above override
// what they define.
func parseOrder(sources map[string]source) []string {
	return slices.SortedFunc(maps.Keys(sources), func(a, b string) int {
		if depth := strings.Count(b, "/") - strings.Count(a, "/"); depth != 0 {
			return depth
		}
		return strings.Compare(b, a)
	})
}

// basePath is the templates directory of the chart that a template belongs to.
func basePath(name string) string {
	if before, _, ok := cutLast(name, "/templates/"); ok {
		return before + "/templates"
	}
	return path.Dir(name)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// late are the functions that close over the templates they can call.
func (x *execution) late(t *template.Template) template.FuncMap {
	return template.FuncMap{
		"include": func(name string, values any) (string, error) {
			if err := x.before("include", []any{name}); err != nil {
				return "", err
			}
			text := &limited{budget: &x.budget}
			err := t.ExecuteTemplate(text, name, values)
			return text.String(), err
		},
		"tpl": func(text string, values any) (string, error) { return x.tpl(t, text, values) },
	}
}

// tpl renders a text that is a template itself, with all that the caller can call.
func (x *execution) tpl(parent *template.Template, text string, values any) (string, error) {
	if err := x.budget.step(int64(tplSteps + 2*len(parent.Templates()) + len(text)>>1)); err != nil {
		return "", err
	}
	t, err := parent.Clone()
	if err != nil {
		return "", fmt.Errorf("cannot clone template: %w", err)
	}
	x.options(t) // Clone forgets it
	t.Funcs(x.late(t))
	if t, err = t.New(parent.Name()).Parse(text); err != nil {
		return "", fmt.Errorf("cannot parse template %.80q: %w", text, err)
	}
	if err := x.instrument(t); err != nil {
		return "", err
	}
	out := &limited{budget: &x.budget}
	if err := t.Execute(out, values); err != nil {
		return "", fmt.Errorf("error during tpl function execution for %.80q: %w", text, err)
	}
	return strings.ReplaceAll(out.String(), noValue, ""), nil
}

// round is written into every round of a loop.
func (x *execution) round() (string, error) { return "", x.budget.step(1) }

func (x *execution) enterTemplate() (string, error) { return "", x.budget.enter() }

func (x *execution) leaveTemplate() string {
	x.budget.leave()
	return ""
}

// print is what Go does with the value of an action, after it was walked: fmt
// writes a value that contains itself for ever.
func (x *execution) print(v any) (string, error) {
	if v == nil {
		return noValue, nil
	}
	if text, isText := v.(string); isText {
		return text, nil
	}
	if kind := reflect.ValueOf(v).Kind(); kind == reflect.Func || kind == reflect.Chan {
		return "", fmt.Errorf("can't print a value of type %T", v)
	}
	_, inKey, err := x.budget.walk(v, x.mark)
	x.alone = x.alone || inKey
	if err != nil {
		return "", err
	}
	return fmt.Sprint(v), nil
}

// need refuses a value that is not there.
func (x *execution) need(name string, v any) (any, error) {
	if v == nil {
		return nil, &refusal{"no value for " + name, "set it in values, or ask whether there is one with if, with or default"}
	}
	return v, nil
}

// see notices a text with the name of the cluster on its way into a decision.
func (x *execution) see(v any) any {
	text, isText := v.(string)
	x.alone = x.alone || isText && x.marked(text)
	return v
}

// compared is see for what Go compares: it writes what cannot be compared into its
// error, and fmt writes a value that contains itself for ever.
func (x *execution) compared(v any) (any, error) {
	_, _, err := x.budget.walk(v, "")
	return x.see(v), err
}

// methodSteps is what a method of .Files costs whatever it returns.
const methodSteps = 100

// paid pays for what a method returned.
func (x *execution) paid(v any) (any, error) {
	if err := x.budget.step(methodSteps); err != nil {
		return nil, err
	}
	if err := x.budget.produce(int64(textLength(v))); err != nil {
		return nil, err
	}
	_, _, err := x.budget.walk(v, "")
	return v, err
}

// limited is a buffer that pays for what is written.
type limited struct {
	bytes.Buffer
	budget *budget
}

// Write is part of io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if err := l.budget.produce(int64(len(p))); err != nil {
		return 0, err
	}
	return l.Buffer.Write(p)
}
