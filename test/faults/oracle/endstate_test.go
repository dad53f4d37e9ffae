package oracle_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/addonflow/addonflow/test/faults/oracle"
)

// A workload that was deleted on its cluster and made again is the same afterwards: its conditions are in
// another order, and its generations begin again.
func TestEndState_OfAWorkThatWasMadeAnew(t *testing.T) {
	state := func(manifest string) map[string]string {
		t.Helper()
		content := map[string]any{}
		if err := json.Unmarshal([]byte(`{"status": {"resourceStatus": {"manifests": [`+manifest+`]}}}`), &content); err != nil {
			t.Fatal(err)
		}
		return oracle.EndState(map[string]oracle.Object{
			"/registry/work.open-cluster-management.io/manifestworks/cluster-1/work": {Content: content},
		}, strings.NewReplacer())
	}
	const (
		applied   = `{"type": "Applied", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
		available = `{"type": "Available", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
		missing   = `{"type": "Available", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}`
	)
	feedback := func(generation, replicas string) string {
		return `"statusFeedback": {"values": [{"name": "addonflow.generation", "fieldValue": {"type": "Integer", "integer": ` + generation +
			`}}, {"name": "ReadyReplicas", "fieldValue": {"type": "Integer", "integer": ` + replicas + `}}]}`
	}
	first := state(`{"conditions": [` + applied + `, ` + available + `], ` + feedback("2", "1") + `}`)
	anew := state(`{"conditions": [` + available + `, ` + applied + `], ` + feedback("1", "1") + `}`)
	if d := oracle.Differences(first, anew); len(d) > 0 {
		t.Errorf("the same work differs: %q", d)
	}
	worse := state(`{"conditions": [` + applied + `, ` + missing + `], ` + feedback("2", "0") + `}`)
	if d := oracle.Differences(first, worse); len(d) != 2 {
		t.Errorf("got %q, want the differences of a condition and of a value", d)
	}
}
