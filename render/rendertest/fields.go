package rendertest

import (
	"testing"

	"sigs.k8s.io/yaml"
)

// Fields reads YAML into unstructured JSON.
func Fields(tb testing.TB, text string) map[string]any {
	tb.Helper()
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		tb.Fatalf("%v in\n%s", err, text)
	}
	return fields
}

// At returns the value at a path of names and indexes, nil if there is none.
func At(value any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			fields, _ := value.(map[string]any)
			value = fields[step]
		case int:
			items, _ := value.([]any)
			if step >= len(items) {
				return nil
			}
			value = items[step]
		}
	}
	return value
}
