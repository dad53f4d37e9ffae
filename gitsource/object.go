package gitsource

import (
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is one object that a commit declares, with its position in the files.
type Object struct {
	*unstructured.Unstructured
	source source
	// built is the directory whose kustomization built the object; "": it is from a plain file.
	built string
	// folders are the folders that the paths of an AddOnPackage name, by field.
	folders map[string]folder
}

// source is a document, or an item of a List in one, before kustomize.
type source struct {
	path  string
	node  *yaml.Node
	value map[string]any
}

// GetUnstructured returns the object itself.
func (o Object) GetUnstructured() *unstructured.Unstructured { return o.Unstructured }

// Position returns the file in which an object was written, and the line of a field such as
// spec.agentSpec.workload.manifests[2].spec.replicas. An empty field stands for the object.
//
// If kustomize did not change the object, the line is that of the field, or of its deepest written parent. If
// kustomize changed the object but not the value of the field, the line is that of the field; if it changed the
// value, that of the object. An object of a generator has the kustomization's path and line 0. If the file is
// unknown, both are empty.
func (o Object) Position(field string) (path string, line int) {
	s := o.source
	if s.node == nil {
		return s.path, 0
	}
	steps := splitField(field)
	at, whole := s.locate(steps)
	unchanged := reflect.DeepEqual(o.Object, s.value) ||
		whole && reflect.DeepEqual(walk(o.Object, steps), walk(s.value, steps))
	if !unchanged {
		at = s.node.Line
	}
	return s.path, at
}

// Written returns the text of a scalar as it was written, without quotes: 025 for the number
// 21. It is "" if the value is not a scalar, or if kustomize changed it.
func (o Object) Written(field string) string {
	steps := splitField(field)
	node := o.source.node
	for _, name := range steps {
		if node == nil {
			return ""
		}
		_, node = child(node, name)
	}
	if node == nil || !reflect.DeepEqual(walk(o.Object, steps), walk(o.source.value, steps)) {
		return ""
	}
	if node = resolved(node); node.Kind != yaml.ScalarNode {
		return ""
	}
	return node.Value
}

// locate returns the line of the deepest written part of a field. whole: that part is the field itself.
func (s source) locate(steps []string) (line int, whole bool) {
	node, line := s.node, s.node.Line
	for _, name := range steps {
		key, next := child(node, name)
		if next == nil {
			return line, false
		}
		node, line = next, key.Line
	}
	return line, len(steps) > 0
}

// splitField splits a field path into names and indices: spec.a[2]["x.y"] is spec, a, 2, x.y. An index is a number in
// brackets.
func splitField(field string) []string {
	var steps []string
	for field != "" {
		switch field[0] {
		case '.':
			field = field[1:]
		case '[':
			inside, rest := brackets(field)
			steps = append(steps, inside)
			field = rest
		default:
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			steps = append(steps, field[:end])
			field = field[end:]
		}
	}
	return steps
}

// brackets returns the content of the bracket at the start of s, unquoted, and the rest.
func brackets(s string) (inside, rest string) {
	if quoted, err := strconv.QuotedPrefix(s[1:]); err == nil && strings.HasPrefix(s[1+len(quoted):], "]") {
		text, err := strconv.Unquote(quoted)
		if err == nil {
			return text, s[len(quoted)+2:]
		}
	}
	inside, rest, _ = strings.Cut(s[1:], "]")
	return inside, rest
}

// child returns the node of a step, and the node on whose line it starts.
func child(n *yaml.Node, s string) (key, value *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == s && !isMerge(n.Content[i]) {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return nil, nil
}

func step(v any, s string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[s]
	case []any:
		if i, err := strconv.Atoi(s); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func walk(v any, steps []string) any {
	for _, s := range steps {
		v = step(v, s)
	}
	return v
}
