package chart

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	helmchart "helm.sh/helm/v3/pkg/chart"
)

// schemaURL names a chart's schema while it is compiled; nothing is read from it.
const schemaURL = "chart:values.schema.json"

// nothing refuses what a schema wants to load. Helm would fetch URLs and open files.
type nothing struct{}

// Load is part of jsonschema.URLLoader.
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, and nothing is loaded; copy what it needs into $defs", url)
}

// checkSchemas holds values to the values.schema.json of a chart and its sub-charts.
func checkSchemas(c *helmchart.Chart, at string, values map[string]any) error {
	if c.Schema != nil {
		if err := checkSchema(c.Schema, values); err != nil {
			return &Error{File: at + "values.schema.json", Message: err.Error()}
		}
	}
	for _, dependency := range c.Dependencies() {
		under, ok := values[dependency.Name()].(map[string]any)
		if !ok {
			continue // not enabled, or without values
		}
		if err := checkSchemas(dependency, at+"charts/"+dependency.Name()+"/", under); err != nil {
			return err
		}
	}
	return nil
}

func checkSchema(text []byte, values map[string]any) error {
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
	if err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	if err := compiled.Validate(map[string]any(values)); err != nil {
		_, rest, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("the values do not meet the chart's schema: %s", strings.Join(strings.Fields(rest), " "))
	}
	return nil
}
