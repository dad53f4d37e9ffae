package addonsource

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/problem"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestProblemsOfTheHubNameWhatTheUserWrote: the operator makes an AddOnRollout from two files,
// or from one; a problem that the hub finds names the right file.
func TestProblemsOfTheHubNameWhatTheUserWrote(t *testing.T) {
	const pace = "rolloutStrategy.progressive.maxConcurrency"
	key := rolloutKey("team", "hello")
	of := func(field string) problem.List {
		return problem.List{{Kind: v1alpha1.AddOnRolloutKind, Name: "hello", Field: field, Message: "refused"}}
	}
	declared := map[string]string{"a.yaml": compiledAddOn, "t.yaml": compiledTemplate}
	for name, c := range map[string]struct{ rollout, field, want string }{
		"its ClusterManagementAddOn": {"", "spec.install.placements[0]." + pace, "a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0]." + pace + ": refused"},
		"no file of its own":         {"", "spec.target.commit", "a.yaml:1: ClusterManagementAddOn/hello: refused"},
		"both, the former":           {compiledRollout, "spec.install.placements[0]." + pace, "a.yaml:19: ClusterManagementAddOn/hello: spec.installStrategy.placements[0]." + pace + ": refused"},
		"its AddOnRollout":           {compiledRollout, "spec.stages[0].maxConcurrency", "r.yaml:11: AddOnRollout/hello: spec.stages[0].maxConcurrency: refused"},
	} {
		files := map[string]string{"a.yaml": declared["a.yaml"], "t.yaml": declared["t.yaml"]}
		if c.rollout != "" {
			files["r.yaml"] = c.rollout
		}
		objects, unread := built(t, files)
		if len(unread) > 0 {
			t.Fatal(unread)
		}
		got := asWritten(objects, key, of(c.field))
		if diff := cmp.Diff(c.want, got[0].String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
