package rollout_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestEveryFieldIsDrawn: a property says nothing of a field that its generator never varies.
// Every field of an Input has several values among some hundred random moments. A new field
// fails here until drawInput draws it.
func TestEveryFieldIsDrawn(t *testing.T) {
	never := map[string]string{ // and why
		"AddOn":                              "stands in texts only",
		"Spec.RevisionHistoryLimit":          "read by Validate only",
		"Spec.Health":                        "not read by the planner",
		"Spec.Target.Digest":                 "one target is enough, among several revisions",
		"Spec.Target.Source":                 "not read by the planner",
		"Spec.Target.Revision":               "not read by the planner",
		"Spec.Target.Commit":                 "approvals differ instead",
		"Clusters[].NeededBy":                "package removal reads it",
		"Clusters[].Unwritten":               "tests of next and of the reconciler have it",
		"Clusters[].UnwrittenSince":          "as above",
		"Clusters[].Unremoved":               "tests of package removal and of the reconciler have it",
		"Ledger.Records[].RecordKey.Refusal": "as above",
		"Spec.Removal.Deleting":              "package removal reads it",
		"Spec.PolicyCommit":                  "not read by the planner",
		"Spec.PlacementDigest":               "not read by the planner",
		"Spec.OnFailure":                     "the caller reads it",
		"Spec.OnNewCommit":                   "the caller reads it",
		"Spec.Blocked":                       "the caller reads it",
		"Spec.DependsOn":                     "the caller reads it, as Clusters[].Waits",
		"Spec.Rollback":                      "the caller reads it",
		"Orders":                             "the histories have them",
		"Aborted":                            "the histories have it",
		"Withdrawn":                          "tests of the reconciler have it",
		"Ledger.Records[].Times":             "one cluster per group; the tests of the encoding have several",
		"Ledger.Removal":                     "package removal draws its own records",
		"Spec.Strategy.RollingUpdateWithPlacement.PlacementReference.Namespace": "one of two namespaces is enough, of stages and installs",
	}
	seen := map[string]map[string]bool{}
	draw := rapid.Custom(drawInput)
	for seed := range 400 {
		collect(seen, "", reflect.ValueOf(draw.Example(seed)))
	}
	var missing []string
	for path, values := range seen {
		// All has no soak and no budget, and a gate before a stage no errorAfter.
		refused := strings.Contains(path, "All.RolloutConfig.M") || strings.HasSuffix(path, "Before[].ErrorAfter")
		// The planner reads verdicts. Of how a gate is evaluated it reads only these.
		evaluated := strings.Contains(path, ".Gates.") && !strings.HasSuffix(path, "HoldsReverts") && !strings.HasSuffix(path, "ErrorAfter") &&
			!strings.HasSuffix(path, "Before[].Type") && !strings.HasSuffix(path, ".Name")
		if _, ok := never[path]; !ok && !refused && !evaluated && len(values) < 2 {
			missing = append(missing, path)
		}
		delete(never, path)
	}
	slices.Sort(missing)
	for _, path := range missing {
		t.Errorf("%s is never varied", path)
	}
	for path := range never {
		t.Errorf("%s is no field, or is never reached", path)
	}
}

// collect notes the values of every leaf below v.
func collect(seen map[string]map[string]bool, path string, v reflect.Value) {
	note := func(text string) {
		if seen[path] == nil {
			seen[path] = map[string]bool{}
		}
		seen[path][text] = true
	}
	if at, ok := reflect.TypeAssert[time.Time](v); ok {
		note(at.String())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			if path != "" {
				name = path + "." + name
			}
			collect(seen, name, v.Field(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			note("nil")
			return
		}
		note("set")
		collect(seen, path, v.Elem())
	case reflect.Slice:
		note(fmt.Sprint("of ", v.Len()))
		for i := range v.Len() {
			collect(seen, path+"[]", v.Index(i))
		}
	default:
		note(fmt.Sprint(v.Interface()))
	}
}
