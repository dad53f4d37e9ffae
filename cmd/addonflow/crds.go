package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/addonflow/addonflow/render/load"
)

// bindCRDs declares the flag for the schemas of configuration kinds that only a hub knows.
func bindCRDs(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "crds", "", "File or directory with the CustomResourceDefinitions of configuration kinds of your own, as the hub has them.")
}

// readCRDs reads the CustomResourceDefinitions of a file, also in Lists, or of the YAML files of a directory. It ignores
// other objects. The path "" has no definitions.
func readCRDs(path string) (load.Lookup, error) {
	hub := load.Lookup{}
	if path == "" {
		return hub, nil
	}
	err := filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
		switch ext := filepath.Ext(name); {
		case err != nil:
			return err
		case entry.IsDir(), name != path && ext != ".yaml" && ext != ".yml" && ext != ".json":
			return nil
		}
		return addCRDs(hub, name)
	})
	if err != nil {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot read --crds=%s: %w", path, err)}
	}
	if len(hub) == 0 {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("cannot use --crds=%s: there is no CustomResourceDefinition", path)}
	}
	return hub, nil
}

// addCRDs adds the CustomResourceDefinitions of one file.
func addCRDs(hub load.Lookup, name string) error {
	text, err := os.ReadFile(name) //nolint:gosec // the user names the file
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text)+1)
	for {
		var document any
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, value := range objectsIn(document, "", "") {
			object := &unstructured.Unstructured{Object: value}
			kind := object.GroupVersionKind()
			if kind.Group != apiextensionsv1.GroupName || kind.Kind != "CustomResourceDefinition" {
				continue
			}
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
			hub[load.DefinitionOf(schema.GroupResource{Group: group, Resource: plural})] = object
		}
	}
}
