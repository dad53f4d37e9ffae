package chart

import (
	"strings"
	"testing"
)

// TestClosedSchemasNeedNotKnowBuiltInValues: the closed schema of any chart is accepted, also
// if it does not list OCM's values; a value that a user set is checked by the schema all the
// same.
func TestClosedSchemasNeedNotKnowBuiltInValues(t *testing.T) {
	const own = `"greeting": {"type": "string"}, "replicas": {}, "global": {}`
	for name, c := range map[string]struct{ reason, schema, want string }{
		"closed":   {"users do not set built-in values", `{"additionalProperties": false, "properties": {` + own + `}}`, ""},
		"referred": {"wherever it is closed", `{"$ref": "#/$defs/all", "$defs": {"all": {"additionalProperties": false, "properties": {` + own + `}}}}`, ""},
		"for OCM":  {"what it lists is there", `{"additionalProperties": false, "required": ["clusterName"], "properties": {` + own + `, "clusterName": {"minLength": 1}, "addonInstallNamespace": {}}}`, ""},
		"wrong":    {"what it lists is checked", `{"additionalProperties": false, "properties": {` + own + `, "clusterName": {"maxLength": 1}, "addonInstallNamespace": {}}}`, "at '/clusterName'"},
		"user's":   {"a value that a user set is refused", `{"additionalProperties": false, "properties": {"greeting": {}, "global": {}}}`, "additional properties 'replicas' not allowed"},
		"below":    {"so is what is not at the top", `{"properties": {"nested": {"additionalProperties": false}}}`, "additional properties 'clusterName' not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			from := minimal(settings("{{ .Values.clusterName }}")).with("values.schema.json", c.schema)
			if name == "below" {
				from = from.with("values.yaml", "nested: {clusterName: x}\n")
			}
			_, err := loaded(t, from).Render(inputOfCluster1())
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s: %v", c.reason, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: got %v, want %q", c.reason, err, c.want)
			}
		})
	}
}

// TestTypesHaveHelmsNames: types that replace Helm's have the same names in templates, and printing an address is
// refused.
func TestTypesHaveHelmsNames(t *testing.T) {
	for value, want := range map[string]string{
		`{{ typeOf .Capabilities | quote }}`: "*common.Capabilities",
		`{{ typeOf .Files }}`:                "engine.files",
		`{{ typeOf .Values }}`:               "common.Values",
		`{{ typeIs "*common.Capabilities" .Capabilities }}{{ typeIsLike "common.Capabilities" .Capabilities }}!`: "truetrue!",
		`{{ typeIs "string" .Values.greeting }}{{ typeIsLike "int" .Values.greeting }}!`:                         "truefalse!",
		`"{{ printf "100%%pure" }}"`: "100%pure",
	} {
		from := minimal(settings(value))
		if got := it(t, from, inputOfCluster1()); got != want {
			t.Errorf("%s: got %v, want %v", value, got, want)
		}
		verified(t, from, inputOfCluster1())
	}
	for _, value := range []string{`{{ printf "%p" .Values }}`, `{{ printf "%-8p" .Values }}`, `{{ printf "%s %[2]p" "a" .Values }}`} {
		_, err := loaded(t, minimal(settings(value))).Render(inputOfCluster1())
		if err == nil || !strings.Contains(err.Error(), "writes an address in memory") {
			t.Errorf("%s: %v", value, err)
		}
	}
}
