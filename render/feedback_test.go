package render

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/render/flaw"
	"github.com/addonflow/addonflow/render/rendertest"
)

// wellKnownPaths are those of the work agent.
var wellKnownPaths = map[string][]workv1.JsonPath{
	"Deployment": {{Name: "ReadyReplicas", Path: ".status.readyReplicas"}, {Name: "Replicas", Path: ".status.replicas"}, {Name: "AvailableReplicas", Path: ".status.availableReplicas"}},
	"DaemonSet":  {{Name: "NumberReady", Path: ".status.numberReady"}, {Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"}, {Name: "NumberAvailable", Path: ".status.numberAvailable"}},
	"Job":        {{Name: "JobComplete", Path: `.status.conditions[?(@.type=="Complete")].status`}, {Name: "JobSucceeded", Path: ".status.succeeded"}},
}

// answers evaluates the feedback rules for an object as the work agent does: the
// first matching entry with rules, JSON paths in braces, missing keys allowed,
// strings, integers and booleans only.
func answers(tb testing.TB, object map[string]any, options []workv1.ManifestConfigOption) []workv1.FeedbackValue {
	tb.Helper()
	var out []workv1.FeedbackValue
	for _, rule := range effectOn(IdentityOf(object).resource(), options).FeedbackRules {
		paths := rule.JsonPaths
		if rule.Type == workv1.WellKnownStatusType {
			paths = wellKnownPaths[IdentityOf(object).Kind]
		}
		for _, path := range paths {
			j := jsonpath.New(path.Name).AllowMissingKeys(true)
			if err := j.Parse("{" + path.Path + "}"); err != nil {
				tb.Fatalf("path %s: %v", path.Path, err)
			}
			results, err := j.FindResults(object)
			if err != nil {
				tb.Fatalf("path %s: %v", path.Path, err)
			}
			if len(results) == 0 || len(results[0]) == 0 {
				continue
			}
			value := workv1.FieldValue{}
			switch v := results[0][0].Interface().(type) {
			case int64:
				value = workv1.FieldValue{Type: workv1.Integer, Integer: &v}
			case string:
				value = workv1.FieldValue{Type: workv1.String, String: &v}
			case bool:
				value = workv1.FieldValue{Type: workv1.Boolean, Boolean: &v}
			default:
				tb.Fatalf("path %s: an agent returns no %T", path.Path, v)
			}
			out = append(out, workv1.FeedbackValue{Name: path.Name, Value: value})
		}
	}
	return out
}

// askedFor returns the manifestConfigs of a work with one workload.
func askedFor(t *testing.T, kind, spec, configs string) []workv1.ManifestConfigOption {
	t.Helper()
	template := "agentSpec: {workload: {manifests: [{apiVersion: " + versionOf(kind) + ", kind: " + kind +
		", metadata: {name: w, namespace: ns}, spec: " + spec + "}]}, manifestConfigs: " + configs + "}"
	works, _, err := renderedFor(t, contentOf(t, template, ""), Cluster{Name: "cluster1"}).Works(Owner{Name: "hello", Namespace: "cluster1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return works[0].Spec.ManifestConfigs
}

func names(options []workv1.ManifestConfigOption) string {
	var out []string
	for _, rule := range options[0].FeedbackRules {
		if rule.Type == workv1.WellKnownStatusType {
			out = append(out, "WellKnownStatus")
		}
		for _, path := range rule.JsonPaths {
			out = append(out, strings.TrimPrefix(path.Name, "addonflow."))
		}
	}
	return strings.Join(out, " ")
}

func TestFeedbackRulesOfWorkloads(t *testing.T) {
	const (
		deployment = "generation observedGeneration desired total updated ready available reason message since"
		entry      = "resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: w}"
		userRule   = "feedbackRules: [{type: JSONPaths, jsonPaths: [{name: mine, path: .x}]}]"
	)
	cases := map[string]struct{ reason, kind, spec, configs, want string }{
		"Deployment":          {"and what OCM asks", "Deployment", "{}", "[]", "digest " + deployment + " WellKnownStatus"},
		"DaemonSet":           {"and what OCM asks", "DaemonSet", "{}", "[]", "digest generation observedGeneration desired updated ready available WellKnownStatus"},
		"DaemonSet OnDelete":  {"holds updates back", "DaemonSet", "{updateStrategy: {type: OnDelete}}", "[]", "digest generation observedGeneration desired ready available WellKnownStatus"},
		"StatefulSet":         {"with revisions", "StatefulSet", "{}", "[]", "digest generation observedGeneration desired total updated ready available currentRevision updateRevision"},
		"StatefulSet part":    {"holds updates back", "StatefulSet", "{updateStrategy: {rollingUpdate: {partition: 1}}}", "[]", "digest generation observedGeneration desired total ready available"},
		"StatefulSet part 0":  {"holds nothing back", "StatefulSet", "{updateStrategy: {rollingUpdate: {partition: 0}}}", "[]", "digest generation observedGeneration desired total updated ready available currentRevision updateRevision"},
		"Job":                 {"is never updated", "Job", "{}", "[]", "generation complete failed reason message"},
		"Job of the server":   {"gets the digest by server-side apply", "Job", "{}", "[{resourceIdentifier: {group: batch, resource: jobs, namespace: '*', name: w}, updateStrategy: {type: ServerSideApply}}]", "digest generation complete failed reason message"},
		"CronJob":             {"exists", "CronJob", "{}", "[]", "digest generation"},
		"ReplicaSet":          {"has no count of updated pods", "ReplicaSet", "{}", "[]", "digest generation observedGeneration desired total ready available"},
		"ReplicationControl":  {"as a ReplicaSet", "ReplicationController", "{}", "[]", "digest generation observedGeneration desired total ready available"},
		"Pod":                 {"ready, or ended", "Pod", "{}", "[]", "digest ready phase reason message"},
		"CreateOnly":          {"carries no digest", "Deployment", "{}", "[{" + entry + ", updateStrategy: {type: CreateOnly}}]", deployment + " WellKnownStatus"},
		"ReadOnly":            {"carries no digest", "Deployment", "{}", "[{" + entry + ", updateStrategy: {type: ReadOnly}}]", deployment + " WellKnownStatus"},
		"complete":            {"is updated no more once complete", "Job", "{}", "[{resourceIdentifier: {group: batch, resource: jobs, namespace: '*', name: w}, conditionRules: [{condition: Complete, type: WellKnownConditions}]}]", "generation complete failed reason message"},
		"template's rules":    {"are kept", "Deployment", "{}", "[{" + entry + ", " + userRule + "}]", "digest " + deployment + " WellKnownStatus mine"},
		"wildcard":            {"is what the agent would take", "Deployment", "{}", "[{resourceIdentifier: {group: apps, resource: deployments, namespace: '*', name: 'w*'}, " + userRule + "}]", "digest " + deployment + " WellKnownStatus mine"},
		"first with rules":    {"counts", "Deployment", "{}", "[{" + entry + ", updateStrategy: {type: Update}}, {" + entry + ", " + userRule + "}]", "digest " + deployment + " WellKnownStatus mine"},
		"no match":            {"adds nothing", "Deployment", "{}", "[{resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: other}, " + userRule + "}]", "digest " + deployment + " WellKnownStatus"},
		"well-known asked":    {"once", "Deployment", "{}", "[{" + entry + ", feedbackRules: [{type: WellKnownStatus}]}]", "digest " + deployment + " WellKnownStatus"},
		"own ReadyReplicas":   {"a name stands once, the template's goes first", "Deployment", "{}", "[{" + entry + ", feedbackRules: [{type: JSONPaths, jsonPaths: [{name: ReadyReplicas, path: .x}]}]}]", "digest " + deployment + " ReadyReplicas"},
		"both of one name":    {"a name stands once", "Deployment", "{}", "[{" + entry + ", feedbackRules: [{type: WellKnownStatus}, {type: JSONPaths, jsonPaths: [{name: ReadyReplicas, path: .x}]}]}]", "digest " + deployment + " WellKnownStatus"},
		"the same name twice": {"a name stands once", "Deployment", "{}", "[{" + entry + ", feedbackRules: [{type: JSONPaths, jsonPaths: [{name: mine, path: .x}]}, {type: JSONPaths, jsonPaths: [{name: mine, path: .y}]}]}]", "digest " + deployment + " WellKnownStatus mine"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := askedFor(t, c.kind, c.spec, c.configs)
			if diff := cmp.Diff(c.want, names(options)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			if len(options) > 1 && names(options[1:]) == "" && options[1].UpdateStrategy == nil && options[1].ConditionRules == nil {
				t.Errorf("the template's entry is gone: %v", options[1])
			}
		})
	}
}

func TestAnswersOfARealObject(t *testing.T) {
	object := rendertest.Fields(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: ns, generation: 7, annotations: {addonflow.io/digest: d}}
spec: {replicas: 2}
status:
  observedGeneration: 7
  replicas: 3
  updatedReplicas: 1
  conditions:
  - {type: Available, reason: MinimumReplicasAvailable}
  - {type: Progressing, reason: ProgressDeadlineExceeded, message: timed out, lastUpdateTime: "2024-01-01T00:00:00Z"}
`)
	integersIn(object)
	got := map[string]any{}
	for _, v := range answers(t, object, askedFor(t, "Deployment", "{}", "[]")) {
		if got[v.Name] != nil {
			t.Errorf("%s stands twice", v.Name)
		}
		if v.Value.Integer != nil {
			got[v.Name] = *v.Value.Integer
		}
		if v.Value.String != nil {
			got[v.Name] = *v.Value.String
		}
	}
	want := map[string]any{
		valueDigest: "d", valueGeneration: int64(7), valueObservedGeneration: int64(7), valueDesired: int64(2), valueTotal: int64(3), valueUpdated: int64(1),
		valueReason: "ProgressDeadlineExceeded", valueMessage: "timed out", valueSince: "2024-01-01T00:00:00Z", "Replicas": int64(3),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// integersIn converts whole floats to integers, as in a live object.
func integersIn(fields map[string]any) {
	for _, key := range slices.Collect(maps.Keys(fields)) {
		switch v := fields[key].(type) {
		case float64:
			fields[key] = int64(v)
		case map[string]any:
			integersIn(v)
		}
	}
}

func TestReservedValueNamesAreRefused(t *testing.T) {
	template := "agentSpec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}, manifestConfigs: [{resourceIdentifier: {resource: configmaps, name: a}, feedbackRules: [{type: JSONPaths, jsonPaths: [{name: addonflow.digest, path: .x}]}]}]}"
	found := newRenderer(t, contentOf(t, template, "")).Check()
	if len(found) != 1 || found[0].Reason != flaw.ReasonInvalidTemplate {
		t.Errorf("got %v", found)
	}
}
