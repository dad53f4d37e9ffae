package chart

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	helmchart "helm.sh/helm/v4/pkg/chart/v2"
)

// schemaURL names a chart's schema while it is compiled; nothing is read from it.
const schemaURL = "chart:values.schema.json"

// nothing refuses what a schema wants to load. Helm would fetch URLs and open files.
type nothing struct{}

// Load is part of jsonschema.URLLoader.
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("the schema refers to %s, and nothing is loaded; copy what it needs into $defs", url)
}

// checkSchemas holds values to the values.schema.json of a chart and its sub-charts. A
// chart whose schema is closed need not know the built-in values: nobody chose to set
// them.
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
	if dynamic(schema) {
		return errors.New("cannot be used: it has a dynamic anchor; refer to #/$defs/name")
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
	within := counted(compiled)
	err = within.validate(compiled, values)
	if unknown := refusedNames(err, builtIns); len(unknown) > 0 {
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(name string, _ any) bool { return slices.Contains(unknown, name) })
		err = within.validate(compiled, values)
	}
	if errors.Is(err, errVisits) {
		return err
	}
	if err != nil {
		inOrder(err)
		_, rest, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("the values do not meet the chart's schema: %s", strings.Join(strings.Fields(rest), " "))
	}
	return nil
}

// refusedNames lists the built-in values that a schema refuses for their names alone.
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

// inOrder sorts what the validator found, which is in the order of Go's maps.
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

// maxVisits bounds how often the parts of a schema are held against a value: sixty lines
// that refer to the next one twice double sixty times.
const maxVisits = 1_000_000

// visits counts them, in the format of each part, which comes before what the part holds.
type visits struct {
	left int
	seen map[*jsonschema.Schema]bool
}

var errVisits = fmt.Errorf("cannot be used: its parts stand for more than %d schemas", maxVisits)

func counted(schema *jsonschema.Schema) *visits {
	v := &visits{left: maxVisits, seen: map[*jsonschema.Schema]bool{}}
	v.count(schema)
	return v
}

// validate is Validate within bounds.
func (v *visits) validate(schema *jsonschema.Schema, values map[string]any) error {
	err := schema.Validate(values)
	if v.left < 0 {
		return errVisits
	}
	return err
}

// count lets a schema, and all that it leads to, count. Beyond the bound each is an error
// before it leads on.
func (v *visits) count(schema *jsonschema.Schema) {
	if schema == nil || v.seen[schema] {
		return
	}
	v.seen[schema] = true
	parts := 1
	for _, field := range reflect.ValueOf(schema).Elem().Fields() {
		if field.CanInterface() {
			parts += v.within(field)
		}
	}
	own := cmp.Or(schema.Format, &jsonschema.Format{Validate: func(any) error { return nil }})
	schema.Format = &jsonschema.Format{Name: own.Name, Validate: func(value any) error {
		if v.left -= parts; v.left < 0 {
			return errVisits
		}
		return own.Validate(value)
	}}
}

// within is how many schemas a field of one holds.
func (v *visits) within(field reflect.Value) int {
	parts := 0
	switch field.Kind() {
	case reflect.Interface:
		if !field.IsNil() {
			return v.within(field.Elem())
		}
	case reflect.Pointer:
		if schema, isSchema := reflect.TypeAssert[*jsonschema.Schema](field); isSchema {
			v.count(schema)
			return 1
		}
		if dynamic, isDynamic := reflect.TypeAssert[*jsonschema.DynamicRef](field); isDynamic && dynamic != nil {
			v.count(dynamic.Ref)
			return 1
		}
	case reflect.Slice:
		for i := range field.Len() {
			parts += v.within(field.Index(i))
		}
	case reflect.Map:
		for entries := field.MapRange(); entries.Next(); {
			parts += v.within(entries.Value())
		}
	default:
	}
	return parts
}

// dynamic tells whether a schema says that it is found while values are validated, where
// nothing counts.
func dynamic(schema any) bool {
	switch schema := schema.(type) {
	case map[string]any:
		for key, part := range schema {
			if _, isText := part.(string); isText && key == "$dynamicAnchor" || key == "$recursiveAnchor" && part == true || dynamic(part) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(schema, dynamic)
	}
	return false
}
