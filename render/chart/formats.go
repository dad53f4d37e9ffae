package chart

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"
)

// The functions below are Helm's, down to how they answer an error: as text, or as
// a map with one entry Error.

const errorKey = "Error"

func toYAML(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(text), "\n")
}

func toYAMLPretty(v any) string {
	var text bytes.Buffer
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func fromYAML(text string) map[string]any {
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		out[errorKey] = err.Error()
	}
	return out
}

func fromYAMLArray(text string) []any {
	out := []any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		out = []any{err.Error()}
	}
	return out
}

func toTOML(v any) string {
	var text bytes.Buffer
	if err := toml.NewEncoder(&text).Encode(v); err != nil {
		return err.Error()
	}
	return text.String()
}

func fromTOML(text string) map[string]any {
	out := map[string]any{}
	if err := toml.Unmarshal([]byte(text), &out); err != nil {
		out[errorKey] = err.Error()
	}
	return out
}

func toJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

func fromJSON(text string) map[string]any {
	out := map[string]any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		out[errorKey] = err.Error()
	}
	return out
}

func fromJSONArray(text string) []any {
	out := []any{}
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		out = []any{err.Error()}
	}
	return out
}
