package chart

import (
	"fmt"
	"reflect"
	"strings"
)

// Bounds of one rendering. A chart of two hundred templates takes about a
// hundredth of each.
const (
	// maxSteps counts loop rounds, function calls and, where a function walks a
	// value, the parts of that value.
	maxSteps = 2_000_000
	// maxBytes is all text that functions and templates produce, whatever becomes of it.
	maxBytes = 64 << 20
	// maxDepth is how deep templates, and values, may be nested. Helm allows a
	// thousand levels of each name.
	maxDepth = 200
	// maxList is the longest list a function may make.
	maxList = 100_000
)

// budget is what one rendering may still use.
type budget struct {
	steps, bytes int64
	// depth is the level of the template that is entered next.
	depth int
}

func newBudget() budget { return budget{steps: maxSteps, bytes: maxBytes, depth: 1} }

func (b *budget) step(n int64) error {
	if b.steps -= n; b.steps < 0 {
		return &refusal{fmt.Sprintf("takes more than %d steps to render", int64(maxSteps)), "look for nested loops"}
	}
	return nil
}

func (b *budget) produce(n int64) error {
	if b.bytes -= n; b.bytes < 0 {
		return &refusal{fmt.Sprintf("produces more than %d MiB of text while it renders", maxBytes>>20), "look for text that is repeated"}
	}
	return nil
}

// fits refuses, before a function runs, a result that will not fit.
func (b *budget) fits(n int64) error {
	if n > b.bytes || n < 0 {
		return b.produce(b.bytes + 1)
	}
	return nil
}

func (b *budget) enter() error {
	if b.depth > maxDepth {
		return &refusal{fmt.Sprintf("templates call each other more than %d levels deep", maxDepth), "look for a template that includes itself"}
	}
	return b.step(8) // a call costs what a few rounds of a loop do
}

// walk visits every part of a value as a function that writes or copies it would,
// once for each way that leads to it, and pays for it. It returns whether text
// holds mark among the values, and among the keys.
func (b *budget) walk(v any, mark string) (inValue, inKey bool, err error) {
	w := walker{budget: b, mark: mark}
	err = w.visit(v, 0)
	return w.inValue, w.inKey, err
}

// indented is how far YAML and JSON indent a level.
const indented = 2

type walker struct {
	*budget
	mark           string
	inValue, inKey bool
	text           int64 // bytes, each as often as it would be written
}

// write counts a text that whoever walks the value may write, each line of it indented as
// deep as it is.
func (w *walker) write(text string, depth int) error {
	w.text += int64(len(text)) + int64(indented*depth*(1+strings.Count(text, "\n")))
	if err := w.fits(w.text); err != nil {
		return err
	}
	return w.step(1 + int64(len(text)>>10))
}

func (w *walker) marked(s string) bool { return w.mark != "" && strings.Contains(s, w.mark) }

func (w *walker) visit(v any, depth int) error {
	if depth > maxDepth {
		return &refusal{fmt.Sprintf("a value is nested more than %d levels deep", maxDepth), "look for a dict that was set into itself"}
	}
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return w.write("", depth)
	case string:
		w.inValue = w.inValue || w.marked(v)
		return w.write(v, depth)
	case map[string]any:
		for key, item := range v {
			w.inKey = w.inKey || w.marked(key)
			if err := w.write(key, depth); err != nil {
				return err
			}
			if err := w.visit(item, depth+1); err != nil {
				return err
			}
		}
		return w.write("", depth)
	case []any:
		for _, item := range v {
			if err := w.visit(item, depth+1); err != nil {
				return err
			}
		}
		return w.write("", depth)
	default:
		return w.visitOther(reflect.ValueOf(v), depth)
	}
}

// visitOther visits what functions return beside plain JSON: lists of strings,
// maps of strings, and the values Helm brings.
func (w *walker) visitOther(v reflect.Value, depth int) error {
	if err := w.write("", depth); err != nil {
		return err
	}
	switch v.Kind() {
	case reflect.String:
		w.inValue = w.inValue || w.marked(v.String())
		return w.write(v.String(), depth)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			w.text += int64(v.Len())
			return w.step(int64(v.Len() >> 10))
		}
		for i := range v.Len() {
			if err := w.visitField(v.Index(i), depth); err != nil {
				return err
			}
		}
	case reflect.Map:
		return w.visitMap(v, depth)
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return w.visitField(v.Elem(), depth)
		}
	case reflect.Struct:
		return w.visitStruct(v, depth)
	default:
	}
	return nil
}

func (w *walker) visitMap(v reflect.Value, depth int) error {
	for entries := v.MapRange(); entries.Next(); {
		w.inKey = w.inKey || entries.Key().Kind() == reflect.String && w.marked(entries.Key().String())
		if err := w.visitField(entries.Value(), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) visitStruct(v reflect.Value, depth int) error {
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		if err := w.visitField(v.Field(i), depth); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) visitField(v reflect.Value, depth int) error {
	if !v.CanInterface() {
		return nil
	}
	return w.visit(v.Interface(), depth+1)
}
