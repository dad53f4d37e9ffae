package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Document is a text with YAML documents and the file it comes from.
type Document struct {
	File, Text string
}

// Manifest is one object.
type Manifest struct {
	// File it was rendered from, relative to the folder.
	File string
	// Fields as plain JSON: int64, float64, []any and map[string]any.
	Fields map[string]any
}

const (
	kindKey     = "kind"
	metadataKey = "metadata"

	hookAnnotation = "helm.sh/hook"
	keepAnnotation = "helm.sh/resource-policy"
)

// Bounds of one document, and of all, before they are parsed: each byte can become a node of a
// hundred bytes. A ManifestWork and an add-on have lower limits.
const (
	maxDocument  = 2 << 20
	maxDocuments = 32 << 20
)

// separator is Helm's: text may follow on the same line, because templates that trim the newline
// after it, such as cert-manager's, render "---apiVersion: v1".
var separator = regexp.MustCompile(`(?m)^---[ \t]*`)

// manifests reads the objects of the CRD files and of the rendered templates.
func (c *Chart) manifests(texts map[string]string, crds []Document, in Input) ([]Manifest, error) {
	slices.SortFunc(crds, func(a, b Document) int { return strings.Compare(a.File, b.File) })
	documents := slices.Clone(crds)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		documents = append(documents, Document{File: c.fileOf(name), Text: texts[name]})
	}
	var out []Manifest
	total := 0
	for _, d := range documents {
		if total += len(d.Text); total > maxDocuments {
			return nil, &Error{File: d.File, Message: fmt.Sprintf("with what is rendered before it, renders more than %d MiB of manifests", maxDocuments>>20)}
		}
		c.at(d.File)
		read, err := d.manifests()
		if err != nil {
			return nil, err
		}
		out = append(out, read...)
	}
	if len(out) == 0 {
		return nil, &Error{Message: "renders no object", Hint: "the hub accepts no work without manifests"}
	}
	place := newPlacer(out, in.Namespace)
	for _, m := range out {
		trim(m.Fields)
		place.namespace(m.Fields)
	}
	return out, nil
}

func (d Document) manifests() ([]Manifest, error) {
	var out []Manifest
	for _, text := range separator.Split(d.Text, -1) {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(text) > maxDocument {
			return nil, &Error{File: d.File, Message: fmt.Sprintf("renders a document of more than %d MiB, which no hub accepts", maxDocument>>20)}
		}
		// As Helm ends a document: the newline may be part of a block scalar at its end.
		text = strings.TrimRight(text, " \t\r\n") + "\n"
		if err := checkExpansion([]byte(text)); err != nil {
			return nil, &Error{File: d.File, Message: "what it renders " + err.Error()}
		}
		converted, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, &Error{File: d.File, Message: fmt.Sprintf("what it renders is not YAML: %v", err), Hint: "helm template --debug shows it"}
		}
		var value any
		if err := utiljson.Unmarshal(converted, &value); err != nil {
			return nil, &Error{File: d.File, Message: fmt.Sprintf("what it renders is not YAML: %v", err)}
		}
		read, err := d.objects(value)
		if err != nil {
			return nil, err
		}
		out = append(out, read...)
	}
	return out, nil
}

// objects are those of one document: itself, or the items of a List.
func (d Document) objects(value any) ([]Manifest, error) {
	if value == nil {
		return nil, nil
	}
	fields, isObject := value.(map[string]any)
	if !isObject {
		return nil, &Error{File: d.File, Message: "renders a document that is not an object"}
	}
	if len(fields) == 0 {
		return nil, nil
	}
	if items, isList := fields["items"].([]any); isList && fields[kindKey] == "List" {
		var out []Manifest
		for _, item := range items {
			read, err := d.objects(item)
			if err != nil {
				return nil, err
			}
			out = append(out, read...)
		}
		return out, nil
	}
	return d.object(fields)
}

// object refuses a hook and skips a test.
func (d Document) object(fields map[string]any) ([]Manifest, error) {
	name := func(value any) string {
		text, _ := value.(string)
		return text
	}
	metadata, _ := fields[metadataKey].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	hook, isHook := annotations[hookAnnotation]
	if isHook {
		if kinds := strings.ReplaceAll(name(hook), " ", ""); kinds == "test" || kinds == "test-success" || kinds == "test-failure" {
			return nil, nil
		}
		return nil, &Error{
			File:    d.File,
			Message: fmt.Sprintf("%s %q is a Helm hook (%v), and hooks do not run: the agent applies all objects at once", name(fields[kindKey]), name(metadata["name"]), hook),
			Hint:    "turn the hook off in the values, or remove the annotation",
		}
	}
	if annotations[keepAnnotation] == "keep" {
		annotations[orphanAnnotation] = ""
	}
	return []Manifest{{File: d.File, Fields: fields}}, nil
}

// orphanAnnotation is OCM's equivalent of helm.sh/resource-policy: keep.
const orphanAnnotation = "addon.open-cluster-management.io/deletion-orphan"
