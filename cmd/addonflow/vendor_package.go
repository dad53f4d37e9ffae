package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// packageFile is the file with the AddOnPackage of an add-on.
type packageFile struct {
	addOn, file string
	// text of the file; nil if there is none yet.
	text []byte
	// document is the position of the AddOnPackage among the documents of the file.
	document int
	// path is helm.path, "" without one.
	path string
}

// findPackage finds the AddOnPackage of an add-on in the YAML files below a directory.
func findPackage(dir, addOn string) (*packageFile, error) {
	var found *packageFile
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != dir && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || filepath.Ext(name) != ".yaml" && filepath.Ext(name) != ".yml":
			return nil
		}
		text, err := os.ReadFile(name) //nolint:gosec // the user names the directory
		if err != nil || !bytes.Contains(text, []byte(v1alpha1.AddOnPackageKind)) {
			return err
		}
		for i, document := range documentsOf(text) {
			if document.Kind != v1alpha1.AddOnPackageKind || document.Spec.AddOn != addOn {
				continue
			}
			if found != nil {
				return fmt.Errorf("cannot choose an AddOnPackage of add-on %q: %s and %s have one; name one directory with --dir", addOn, found.file, name)
			}
			found = &packageFile{addOn: addOn, file: name, text: text, document: i}
			if document.Spec.Helm.Kind == yamlv3.MappingNode {
				for at := 0; at+1 < len(document.Spec.Helm.Content); at += 2 {
					if document.Spec.Helm.Content[at].Value == "path" {
						found.path = document.Spec.Helm.Content[at+1].Value
					}
				}
			}
		}
		return nil
	})
	if err != nil || found != nil {
		return found, err
	}
	created := &packageFile{addOn: addOn, file: filepath.Join(dir, "addonpackage.yaml")}
	if _, err := os.Lstat(created.file); err == nil {
		return nil, fmt.Errorf("cannot write %s: it exists, and is not the AddOnPackage of add-on %q", created.file, addOn)
	}
	return created, nil
}

// packageDocument has the fields of a document that vendor reads.
type packageDocument struct {
	Kind string `yaml:"kind"`
	Spec struct {
		AddOn string      `yaml:"addOn"`
		Helm  yamlv3.Node `yaml:"helm"`
	} `yaml:"spec"`
}

// documentsOf returns the documents of a file, up to the first that cannot be read.
func documentsOf(text []byte) []packageDocument {
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	var out []packageDocument
	for {
		var document packageDocument
		err := decoder.Decode(&document)
		var mistyped *yamlv3.TypeError
		if errors.Is(err, io.EOF) || err != nil && !errors.As(err, &mistyped) {
			return out
		}
		out = append(out, document)
	}
}

// write sets the one field of helm, and keeps everything else as it is written.
func (p *packageFile) write(key, value string) error {
	text := fmt.Appendf(nil, "apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\nspec:\n  addOn: %[3]s\n  helm:\n    %s: %s\n",
		v1alpha1.GroupVersion, v1alpha1.AddOnPackageKind, p.addOn, key, value)
	if p.text != nil {
		helm := documentsOf(p.text)[p.document].Spec.Helm
		var edited bool
		if text, edited = replaceField(p.text, helm, key, value); !edited || !saysHelm(text, p.document, key, value) {
			return fmt.Errorf("cannot edit %s:%d: write %s: %s below helm of the AddOnPackage, in place of what is there", p.file, max(helm.Line, 1), key, value)
		}
	}
	return os.WriteFile(p.file, text, 0o644) //nolint:gosec // as git creates files
}

// replaceField replaces key and value of a mapping with one field, on one line.
func replaceField(text []byte, mapping yamlv3.Node, key, value string) ([]byte, bool) {
	if mapping.Kind != yamlv3.MappingNode || len(mapping.Content) != 2 {
		return nil, false
	}
	k, v := mapping.Content[0], mapping.Content[1]
	lines := strings.SplitAfter(string(text), "\n")
	if k.Line != v.Line || v.Kind != yamlv3.ScalarNode || k.Line > len(lines) || v.Column > len(lines[k.Line-1]) {
		return nil, false
	}
	line := lines[k.Line-1]
	written := line[v.Column-1:]
	length := len(v.Value)
	if v.Style&(yamlv3.SingleQuotedStyle|yamlv3.DoubleQuotedStyle) != 0 {
		length += 2
	}
	if length > len(written) {
		return nil, false
	}
	lines[k.Line-1] = line[:k.Column-1] + key + ": " + value + written[length:]
	return []byte(strings.Join(lines, "")), true
}

// saysHelm reports whether a document has exactly that field of helm.
func saysHelm(text []byte, document int, key, value string) bool {
	all := documentsOf(text)
	if document >= len(all) {
		return false
	}
	var helm map[string]string
	return all[document].Spec.Helm.Decode(&helm) == nil && len(helm) == 1 && helm[key] == value
}
