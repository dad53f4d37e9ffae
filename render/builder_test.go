package render

import (
	"math"
	"testing"

	"github.com/addonflow/addonflow/render/flaw"
)

// TestWhatCannotBeEncodedIsFound: parsed JSON holds no such value. If one got there, the commit
// would be refused, without a panic.
func TestWhatCannotBeEncodedIsFound(t *testing.T) {
	b := &builder{template: &parsedTemplate{name: "hello"}}
	m := manifest{fields: map[string]any{"value": math.NaN()}}
	if text := b.encode(&m, m.fields); text != nil {
		t.Errorf("encoded as %q", text)
	}
	want := Finding{
		Template: "hello", Field: "spec.agentSpec.workload.manifests", Reason: flaw.ReasonInvalidManifest,
		Message: "cannot be encoded: json: unsupported value: NaN",
	}
	if len(b.found.list) != 1 || b.found.list[0] != want {
		t.Errorf("found %+v, want %+v", b.found.list, want)
	}
}
