package gitsource

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/problem"
)

// localConfig is kustomize's annotation for objects that are only its input.
const localConfig = "config.kubernetes.io/local-config"

// identity identifies an object in a build. Two objects must not have the same identity. It has no version, because
// v1alpha1 and v1beta1 of one name are one object on the hub.
type identity struct{ group, kind, namespace, name string }

func (s source) identity() identity {
	version, _ := s.value["apiVersion"].(string)
	kind, _ := s.value["kind"].(string)
	meta, _ := s.value["metadata"].(map[string]any)
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	group := ""
	if gv, err := schema.ParseGroupVersion(version); err == nil {
		group = gv.Group
	}
	return identity{group: group, kind: kind, namespace: namespace, name: name}
}

func (s source) problem(reason problem.Reason, format string, args ...any) problem.Problem {
	id := s.identity()
	p := problem.Problem{
		Reason: reason, Path: s.path, Kind: brief.Printable(id.kind), Name: brief.Printable(id.name),
		Message: fmt.Sprintf(format, args...),
	}
	if s.node != nil {
		p.Line = s.node.Line
	}
	return p
}

// manifests turns the documents of a file into objects. It splits Lists, and reports every document that is not an
// object.
func manifests(path string, docs []document) ([]source, problem.List) {
	var out []source
	var problems problem.List
	for _, doc := range docs {
		found, wrong := objects(path, "", doc)
		out, problems = append(out, found...), append(problems, wrong...)
	}
	return out, problems
}

func objects(path, field string, doc document) ([]source, problem.List) {
	value, ok := doc.value.(map[string]any)
	if !ok {
		reason := InvalidYAML
		if field != "" {
			reason = InvalidManifest
		}
		return nil, problem.List{{
			Reason: reason, Path: path, Line: doc.node.Line, Field: field,
			Message: "expected an object, found " + describe(doc.value),
		}}
	}
	s := source{path: path, node: doc.node, value: value}
	if items, ok := listItems(s); ok {
		return expand(s, field, items)
	}
	if s.value["kind"] == "List" {
		return nil, problem.List{withoutItems(s)}
	}
	if problems := checkManifest(s); len(problems) > 0 {
		return nil, problems
	}
	return []source{s}, nil
}

// listItems returns the items of a List of any kind, and false for an object that is not a
// List.
func listItems(s source) ([]any, bool) {
	kind, _ := s.value["kind"].(string)
	items, ok := s.value["items"].([]any)
	return items, ok && strings.HasSuffix(kind, "List")
}

// withoutItems is the problem of a List without items. Only the kind List is certainly a list, because other kinds
// may end in List, too.
func withoutItems(s source) problem.Problem {
	items, present := s.value["items"]
	p := s.problem(InvalidManifest, "must be a list, found %s", describe(items))
	p.Field, p.Line = "items", s.line("items")
	if misspelt := s.misspelt("items"); !present && misspelt != "" {
		return s.unknown(misspelt, "items")
	}
	if !present {
		p.Message = "the field is missing"
	}
	return p
}

// misspelt returns the name of a field that differs only in case, or "" if the object has the
// field itself or no such name.
func (s source) misspelt(field string) string {
	if _, present := s.value[field]; present {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(s.value)) {
		if strings.EqualFold(name, field) {
			return name
		}
	}
	return ""
}

func (s source) unknown(name, field string) problem.Problem {
	p := s.problem(InvalidManifest, "unknown field")
	p.Field, p.Line, p.Hint = name, s.line(name), "did you mean "+field+"?"
	return p
}

func expand(list source, field string, items []any) ([]source, problem.List) {
	var out []source
	var problems problem.List
	_, node := child(list.node, "items")
	for i, item := range items {
		place := strings.TrimPrefix(fmt.Sprintf("%s.items[%d]", field, i), ".")
		at := list.node
		if node != nil {
			if _, n := child(node, fmt.Sprint(i)); n != nil {
				at = resolved(n)
			}
		}
		found, wrong := objects(list.path, place, document{node: at, value: item})
		out, problems = append(out, found...), append(problems, wrong...)
	}
	return out, problems
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// checkManifest checks the fields that every object must have.
func checkManifest(s source) problem.List {
	if _, ok := s.value["sops"].(map[string]any); ok {
		p := s.problem(EncryptedContent, "the object is encrypted with sops, and nothing here decrypts")
		p.Hint = "secrets do not belong in add-on content; refer to one that is on the cluster"
		return problem.List{p}
	}
	var problems problem.List
	require := func(field string, value any, present bool) {
		switch text, ok := value.(string); {
		case !present && s.misspelt(topLevel(field)) != "":
			name := topLevel(field)
			problems = append(problems, s.unknown(s.misspelt(name), name))
		case !present || value == nil:
			p := s.problem(InvalidManifest, "the field is missing")
			p.Field = field
			problems = append(problems, p)
		case !ok || text == "":
			p := s.problem(InvalidManifest, "must be a string, found %s", describe(value))
			if ok {
				p.Message = "is empty"
			}
			p.Field, p.Line = field, s.line(field)
			problems = append(problems, p)
		}
	}
	version, ok := s.value["apiVersion"]
	require("apiVersion", version, ok)
	kind, ok := s.value["kind"]
	require("kind", kind, ok)
	meta, isMap := s.value["metadata"].(map[string]any)
	if s.value["metadata"] != nil && !isMap {
		p := s.problem(InvalidManifest, "must be an object, found %s", describe(s.value["metadata"]))
		p.Field, p.Line = "metadata", s.line("metadata")
		return append(problems, p)
	}
	if _, generated := meta["generateName"]; generated {
		p := s.problem(InvalidManifest, "is not allowed: the name must be the same every time")
		p.Field, p.Line, p.Hint = "metadata.generateName", s.line("metadata.generateName"), "set metadata.name"
		return append(problems, p)
	}
	name, ok := meta["name"]
	require("metadata.name", name, ok)
	if namespace, ok := meta["namespace"]; ok && namespace != nil {
		if _, isText := namespace.(string); !isText {
			require("metadata.namespace", namespace, true)
		}
	}
	return problems
}

// topLevel returns the first step of a field's path.
func topLevel(field string) string {
	name, _, _ := strings.Cut(field, ".")
	return name
}

func (s source) line(field string) int {
	line, _ := s.locate(splitField(field))
	return line
}

// local reports whether an object must not be applied.
func local(value map[string]any) bool {
	meta, _ := value["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	return annotations[localConfig] == "true"
}
