package chart

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// schemaURL names a chart's schema while it is compiled; nothing is read from it.
const schemaURL = "chart:values.schema.json"

// nothing refuses everything that a schema tries to load. Helm would fetch URLs and open files.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, and nothing is loaded; copy what it needs into $defs", url)
}

// checkSchemas checks values against the values.schema.json of a chart and its sub-charts. A
// closed schema need not list the built-in values, because users did not set them.
func checkSchemas(c *helmchart.Chart, at string, values, builtIns map[string]any) error {
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values, builtIns); err != nil {
			return &Error{File: at + "values.schema.json", Message: err.Error()}
		}
	}
	for _, dependency := range c.Dependencies() {
		under, ok := values[dependency.Name()].(map[string]any)
		if !ok {
			continue // not enabled, or without values
		}
		if err := checkSchemas(dependency, at+"charts/"+dependency.Name()+"/", under, nil); err != nil {
			return err
		}
	}
	return nil
}

func checkSchema(text []byte, values, builtIns map[string]any) error {
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nothing{})
	if err := compiler.AddResource(schemaURL, schema); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		inOrder(invalid.Err)
	}
	if err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	err = compiled.Validate(values)
	if unknown := refusedNames(err, builtIns); len(unknown) > 0 {
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(name string, _ any) bool { return slices.Contains(unknown, name) })
		err = compiled.Validate(values)
	}
	if err != nil {
		inOrder(err)
		_, rest, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("the values do not meet the chart's schema: %s", strings.Join(strings.Fields(rest), " "))
	}
	return nil
}

// refusedNames lists the built-in values that a schema refuses only because it does not list
// them.
func refusedNames(err error, builtIns map[string]any) []string {
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	var out []string
	if additional, ok := failed.ErrorKind.(*kind.AdditionalProperties); ok && len(failed.InstanceLocation) == 0 {
		for _, name := range additional.Properties {
			if _, builtIn := builtIns[name]; builtIn {
				out = append(out, name)
			}
		}
	}
	for _, cause := range failed.Causes {
		out = append(out, refusedNames(cause, builtIns)...)
	}
	return out
}

// inOrder sorts the validator's errors, which come in the random order of Go's maps.
func inOrder(err error) {
	failed, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return
	}
	if additional, ok := failed.ErrorKind.(*kind.AdditionalProperties); ok {
		slices.Sort(additional.Properties)
	}
	for _, cause := range failed.Causes {
		inOrder(cause)
	}
	slices.SortFunc(failed.Causes, func(a, b *jsonschema.ValidationError) int { return strings.Compare(a.Error(), b.Error()) })
}
