package chart

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"strings"
	"text/template"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
)

// longestName is how long the name of a cluster can be.
const longestName = 63

// quotedMark is how Go quotes the mark of a cluster's name.
const quotedMark = `\ufdd0`

// tplName is what Helm calls a text that tpl renders.
const tplName = "gotpl"

// tplSteps is what tpl costs whatever it renders: every function and template that
// the caller can call is copied.
const tplSteps = 400

// tplQuoted is how many bytes of a text that tpl renders, each once for every level that
// it is deep, one step pays for: should it fail, Helm quotes it at each of them.
const tplQuoted = 8

// stepNodes is how many nodes of a template one step pays for, beside what they call.
const stepNodes = 4

// noValue is what Go prints for nothing, and Helm takes out again.
const noValue = "<no value>"

// execution is one run of a chart's templates.
type execution struct {
	budget budget
	// nodes were executed and not paid for.
	nodes int64
	// mark stands in texts where the name of the cluster does; "" when it has one.
	mark string
	// alone: the name decided something, so that the result is good for this
	// cluster only.
	alone bool
	// backwards: maps without an order are read in the opposite one.
	backwards bool
	// strict: a value that is missing is an error where it is used; asking for it is none.
	strict bool
	// known are the functions that a chart can name.
	known template.FuncMap
	// templates is how many there are, blank the length of the longest that holds nothing
	// but space: nothing can be written into it, and whoever calls a template pays.
	templates, blank int64
	// instrumented are the charts whose templates were replaced.
	instrumented map[*helmchart.Chart]bool
	// given is what the manifests of a folder are given.
	given map[string]any
}

func (x *execution) marked(text string) bool { return x.mark != "" && strings.Contains(text, x.mark) }

// run renders a chart with Helm's engine, and returns the texts by template. The chart's
// templates are replaced by what is run, beside those of ours.
func (x *execution) run(c *helmchart.Chart, values common.Values, ours ...*common.File) (map[string]string, error) {
	functions := x.functions()
	x.budget, x.known = newBudget(), maps.Clone(functions)
	for name := range strings.FieldsSeq(helmsOwn) {
		x.known[name] = true
	}
	x.instrumented = map[*helmchart.Chart]bool{}
	if err := x.instrumentAll(c); err != nil {
		return nil, err
	}
	c.Templates = append(c.Templates, ours...)
	maps.Copy(functions, x.watchers())
	return engine.Engine{CustomTemplateFuncs: functions}.Render(c, values)
}

// instrumentAll replaces the templates of a chart and its sub-charts. Two of those can
// share one file, and two aliases of a chart share what is below it.
func (x *execution) instrumentAll(c *helmchart.Chart) error {
	if x.instrumented[c] {
		return nil
	}
	x.instrumented[c] = true
	templates := make([]*common.File, 0, len(c.Templates))
	for _, f := range c.Templates {
		text, err := x.instrument(path.Join(c.ChartFullPath(), f.Name), string(f.Data))
		if err != nil {
			return err
		}
		templates = append(templates, &common.File{Name: f.Name, Data: []byte(text)})
	}
	c.Templates = templates
	for _, dependency := range c.Dependencies() {
		if err := x.instrumentAll(dependency); err != nil {
			return err
		}
	}
	return nil
}

// watchers are the functions that instrument writes.
func (x *execution) watchers() template.FuncMap {
	return template.FuncMap{
		enterFunction: x.enter, textFunction: x.text, roundFunction: x.round, endFunction: x.end,
		atFunction: x.at, nameFunction: x.name, tplFunction: x.tpl,
		printFunction: x.print, seeFunction: x.see, compareFunction: x.compared, payFunction: x.paid, ofFunction: x.of, needFunction: x.need, overFunction: over, argumentFunction: x.argument,
		takeFunction: x.take, madeFunction: x.made, folderFunction: x.folder, calledFunction: x.called,
	}
}

// enter pays for a template and what stands in it, and returns how deep it is.
func (x *execution) enter(text, nodes int64) (int, error) {
	if err := x.budget.enter(); err != nil {
		return 0, err
	}
	_, err := x.text(text, nodes)
	return x.budget.depth, err
}

// text pays for what stands in a branch.
func (x *execution) text(length, nodes int64) (string, error) {
	x.nodes += nodes
	if err := x.budget.step(x.nodes / stepNodes); err != nil {
		return "", err
	}
	x.nodes %= stepNodes
	return "", x.budget.produce(length)
}

// round pays for a round of a loop.
func (x *execution) round(text, nodes int64) (string, error) {
	if err := x.budget.step(1); err != nil {
		return "", err
	}
	return x.text(text, nodes)
}

// end ends a file: the next one is not called by a template.
func (x *execution) end() string {
	x.budget.depth = 1
	return ""
}

// at carries on what the next template is given by one of a depth.
func (x *execution) at(depth int, v any) (any, error) {
	x.budget.depth = depth + 1
	return v, x.budget.produce(x.blank)
}

// name pays for an include.
func (x *execution) name(name string) (string, error) {
	return name, x.before("include", []any{name})
}

// tpl returns a text that Helm's tpl is to render.
func (x *execution) tpl(depth int, text string) (string, error) {
	if err := x.budget.step(tplSteps + 2*x.templates + int64(len(text)>>1)); err != nil {
		return "", err
	}
	instrumented, err := x.instrument(tplName, text)
	if err != nil {
		x.alone = x.alone || x.marked(text) // with a name in its place it may be one
		return "", fmt.Errorf("cannot parse template %.80q: %w", text, err)
	}
	return instrumented, x.budget.step(int64(len(instrumented) * depth / tplQuoted))
}

// print is what Go does with the value of an action, after it was walked: fmt
// writes a value that contains itself for ever.
func (x *execution) print(v any) (string, error) {
	text, isText := v.(string)
	switch {
	case isText:
	case v == nil:
		text = noValue
	default:
		if kind := reflect.ValueOf(v).Kind(); kind == reflect.Func || kind == reflect.Chan {
			return "", fmt.Errorf("can't print a value of type %T", v)
		}
		_, inKey, err := x.budget.walk(v, x.mark)
		x.alone = x.alone || inKey
		if err != nil {
			return "", err
		}
		text = fmt.Sprint(v)
	}
	return text, x.budget.produce(int64(len(text)))
}

// need refuses a value that is not there.
func (x *execution) need(name string, v any) (any, error) {
	if v == nil {
		return nil, &refusal{"no value for " + name, "set it in values, or ask whether there is one with if, with or default"}
	}
	return v, nil
}

// over is what a loop goes over. Go would write a text into its error, which is kept once
// for each level that it passes.
func over(v any) (any, error) {
	if textLength(v) > shownMessage {
		return nil, errors.New("range can't iterate over a text")
	}
	return v, nil
}

// see notices a text with the name of the cluster on its way into a decision, and pays for
// its length.
func (x *execution) see(v any) (any, error) {
	text, isText := v.(string)
	x.alone = x.alone || isText && x.marked(text)
	return v, x.budget.step(int64(len(text) >> 10))
}

// compared is see for what Go compares: it writes what cannot be compared into its
// error, and fmt writes a value that contains itself for ever.
func (x *execution) compared(v any) (any, error) {
	w := walker{budget: &x.budget}
	if err := w.visit(v, 0); err != nil {
		return nil, err
	}
	if _, isText := v.(string); !isText { // the error is kept once for each level that it passes
		if err := x.fits(maxDepth, w.text); err != nil {
			return nil, err
		}
	}
	return x.see(v)
}

// argument is compared for what a method is given, which it writes into its error.
func (x *execution) argument(v any) (any, error) {
	if textLength(v) > maxName {
		return nil, &refusal{fmt.Sprintf("a method is given a text of more than %d bytes", maxName), ""}
	}
	return x.compared(v)
}

// take pays for what a format of Helm's is given, made for what it returns.
func (x *execution) take(format string, v any) (any, error) { return v, x.before(format, []any{v}) }

func (x *execution) made(v any) (any, error) {
	if err := dateless(v); err != nil {
		return nil, err
	}
	return v, x.budget.produce(int64(textLength(v)))
}

// dateless refuses the dates that TOML knows: they come with methods, and those without a
// zone in that of the machine.
func dateless(v any) error {
	switch v := v.(type) {
	case time.Time:
		return &refusal{"TOML with a date cannot be read", "write the date as a text, in quotes"}
	case map[string]any:
		for _, item := range v {
			if err := dateless(item); err != nil {
				return err
			}
		}
	case []any:
		for _, item := range v {
			if err := dateless(item); err != nil {
				return err
			}
		}
	case []map[string]any:
		for _, item := range v {
			if err := dateless(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// methodSteps is what a method of .Files or .Values costs whatever it returns.
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

// of judges what a method that writes all of it is called of. Of two files of one name
// Helm writes either. That it takes a reflect.Value tells nothing from null, as Go does.
func (x *execution) of(method string, v reflect.Value) (reflect.Value, error) {
	for v.Kind() == reflect.Interface && !v.IsNil() {
		v = v.Elem()
	}
	switch {
	case !v.IsValid():
		return v, nil
	case v.Kind() == reflect.Interface:
		return v, fmt.Errorf("nil pointer evaluating interface {}.%s", method)
	case v.Type().String() != "engine.files":
		_, inKey, err := x.budget.walk(v.Interface(), x.mark)
		x.alone = x.alone || inKey
		return v, err
	}
	names := map[string]string{}
	for files := v.MapRange(); files.Next(); {
		name := files.Key().String()
		if other, twice := names[path.Base(name)]; twice {
			return v, &refusal{
				fmt.Sprintf("%s would write two files as %s: %s and %s", method, path.Base(name), min(name, other), max(name, other)),
				"choose one by .Files.Get, or by a narrower .Files.Glob",
			}
		}
		names[path.Base(name)] = name
	}
	return v, x.budget.step(int64(len(names)))
}
