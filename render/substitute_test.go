package render

import (
	"encoding/json"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/addonflow/addonflow/render/flaw"
)

// shape is a document with every string scalar replaced, so that only its shape is left, which
// no value may change.
func shape(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, v := range value {
			out[key] = shape(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = shape(v)
		}
		return out
	case string:
		return "string"
	}
	return value
}

func encoded(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// FuzzSubstitute asserts that no value changes the shape of any document, that substitution
// does not change its input, and that the result depends on the value only where the variable
// was.
func FuzzSubstitute(f *testing.F) {
	for _, value := range []string{
		"", "x", `a","evil":"1`, "x\nkind: Secret", "{{B}}", "{{A}}", "}}", "{{", "\u2028", `\`, `\u0022`, "<script>", "null", "1", "true", "\xff",
	} {
		f.Add(`{"a":"{{A}}","b":["x{{A}}y",{"c":"{{ A }}"},1,true,null],"{{ k }}":"{{A"}`, value)
	}
	f.Add(`{"a":"{{{A}}}"}`, "x")
	f.Fuzz(func(t *testing.T, document, value string) {
		var before map[string]any
		if json.Unmarshal([]byte(document), &before) != nil || !utf8.ValidString(value) {
			t.Skip()
		}
		was := encoded(t, before)
		var found findings
		s := &substitution{values: map[string]string{"A": value}, found: &found}
		after := s.value(before, "spec")
		if encoded(t, before) != was {
			t.Fatal("substitution changed its input")
		}
		if got, want := encoded(t, shape(after)), encoded(t, shape(before)); got != want {
			t.Fatalf("shape changed:\n%s\n%s", want, got)
		}
		if !slices.ContainsFunc(found.list, func(f Finding) bool { return f.Reason == flaw.ReasonUnresolvedVariable }) {
			again := &substitution{values: map[string]string{"A": "{{A}}"}, found: &findings{}}
			if got := encoded(t, again.value(before, "spec")); got != was {
				t.Fatalf("text besides variables changed:\n%s\n%s", was, got)
			}
		}
	})
}

func TestVariableInTheNameOfAFieldIsRefused(t *testing.T) {
	template := `agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {"{{CLUSTER_NAME}}": x}}]}}`
	found := newRenderer(t, contentOf(t, template, "")).Check()
	if len(found) != 1 || found[0].Reason != flaw.ReasonInvalidTemplate ||
		found[0].Field != "spec.agentSpec.workload.manifests[0].data[{{CLUSTER_NAME}}]" {
		t.Errorf("got %v", found)
	}
}
