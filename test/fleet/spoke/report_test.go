package spoke

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

func at(seconds int) time.Time {
	return time.Date(2026, time.March, 1, 12, 0, seconds, 0, time.UTC)
}

// rules sets feedback rules as AddonFlow does.
func rules(work *workv1.ManifestWork, paths ...workv1.JsonPath) {
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "default", Name: "hello"},
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}},
	}}
}

func allPaths() []workv1.JsonPath {
	return []workv1.JsonPath{
		{Name: "addonflow.digest", Path: `.metadata.annotations.addonflow\.io/digest`},
		{Name: "addonflow.generation", Path: ".metadata.generation"},
		{Name: "addonflow.observedGeneration", Path: ".status.observedGeneration"},
		{Name: "addonflow.desired", Path: ".spec.replicas"},
		{Name: "addonflow.updated", Path: ".status.updatedReplicas"},
		{Name: "addonflow.ready", Path: ".status.readyReplicas"},
		{Name: "addonflow.progressing", Path: `.status.conditions[?(@.type=="Progressing")].reason`},
		{Name: "addonflow.paused", Path: ".spec.paused"},
	}
}

// values flattens feedback for comparison.
func values(manifest workv1.ManifestCondition) map[string]any {
	found := map[string]any{}
	for _, v := range manifest.StatusFeedbacks.Values {
		switch v.Value.Type {
		case workv1.Integer:
			found[v.Name] = *v.Value.Integer
		case workv1.String:
			found[v.Name] = *v.Value.String
		case workv1.Boolean:
			found[v.Name] = *v.Value.Boolean
		case workv1.JsonRaw:
			found[v.Name] = "raw: " + *v.Value.JsonRaw
		}
	}
	return found
}

func report(t *testing.T, c *Cluster, status *workv1.ManifestWorkStatus, work *workv1.ManifestWork, view View, now time.Time) {
	t.Helper()
	if err := c.ReportAvailable(status, work, view, now); err != nil {
		t.Fatal(err)
	}
}

func TestFeedbackLagsBehindTheChange(t *testing.T) {
	c := newCluster(Options{})
	var status workv1.ManifestWorkStatus
	first := workOf(t, 1, deploymentYAML(1, "hello:v1", "d1"))
	rules(first, allPaths()...)
	ReportApplied(&status, 1, c.Apply(first), at(0))
	settle(t, c, first)
	report(t, c, &status, first, c.Truth(), at(0))
	settled := map[string]any{
		"addonflow.digest": "d1", "addonflow.generation": int64(1), "addonflow.observedGeneration": int64(1),
		"addonflow.desired": int64(1), "addonflow.updated": int64(1), "addonflow.ready": int64(1),
		"addonflow.progressing": "NewReplicaSetAvailable",
	}
	if diff := cmp.Diff(settled, values(status.ResourceStatus.Manifests[0])); diff != "" {
		t.Errorf("settled: -want +got:\n%s", diff)
	}

	second := workOf(t, 2, deploymentYAML(1, "hello:bad", "d2"))
	rules(second, allPaths()...)
	ReportApplied(&status, 2, c.Apply(second), at(1))
	if diff := cmp.Diff(settled, values(status.ResourceStatus.Manifests[0])); diff != "" {
		t.Errorf("applied, feedback is still the old content's: -want +got:\n%s", diff)
	}
	applied := meta.FindStatusCondition(status.Conditions, workv1.WorkApplied)
	available := meta.FindStatusCondition(status.Conditions, workv1.WorkAvailable)
	if applied.ObservedGeneration != 2 || available.ObservedGeneration != 1 {
		t.Errorf("observed generations: Applied %d, Available %d", applied.ObservedGeneration, available.ObservedGeneration)
	}

	report(t, c, &status, second, c.Truth(), at(2))
	lagging := map[string]any{
		"addonflow.digest": "d2", "addonflow.generation": int64(2), "addonflow.observedGeneration": int64(1),
		"addonflow.desired": int64(1), "addonflow.updated": int64(1), "addonflow.ready": int64(1),
		"addonflow.progressing": "NewReplicaSetAvailable",
	}
	if diff := cmp.Diff(lagging, values(status.ResourceStatus.Manifests[0])); diff != "" {
		t.Errorf("the controller has not looked yet: -want +got:\n%s", diff)
	}
}

func TestConditionsAreOCMs(t *testing.T) {
	c := newCluster(Options{})
	var status workv1.ManifestWorkStatus
	work := workOf(t, 3, deploymentYAML(1, "hello:v1", "d1"))
	ReportApplied(&status, work.Generation, c.Apply(work), at(0))
	report(t, c, &status, work, c.Truth(), at(0))
	transition := metav1.NewTime(at(0))
	want := workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{
			{Type: "Applied", Status: "True", ObservedGeneration: 3, Reason: "AppliedManifestWorkComplete", Message: "Apply manifest work complete", LastTransitionTime: transition},
			{Type: "Available", Status: "True", ObservedGeneration: 3, Reason: "ResourcesAvailable", Message: "All resources are available", LastTransitionTime: transition},
		},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Name: "hello", Namespace: "default"},
			Conditions: []metav1.Condition{
				{Type: "Applied", Status: "True", ObservedGeneration: 3, Reason: "AppliedManifestComplete", Message: "Apply manifest complete", LastTransitionTime: transition},
				{Type: "Available", Status: "True", Reason: "ResourceAvailable", Message: "Resource is available", LastTransitionTime: transition},
				{Type: "StatusFeedbackSynced", Status: "True", Reason: "NoStatusFeedbackSynced", LastTransitionTime: transition},
			},
		}}},
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}

	again := *status.DeepCopy()
	ReportApplied(&again, work.Generation, c.Apply(work), at(9))
	report(t, c, &again, work, c.Truth(), at(9))
	if diff := cmp.Diff(status, again); diff != "" {
		t.Errorf("nothing happened and the report differs: -want +got:\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	namespaced := strings.Replace(deploymentYAML(1, "hello:v1", "d1"), "namespace: default", "namespace: elsewhere", 1)
	namespace := `{apiVersion: v1, kind: Namespace, metadata: {name: elsewhere}}`
	custom := `{apiVersion: example.com/v1, kind: Note, metadata: {name: n, namespace: default}, spec: {}}`
	crd := `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: notes.example.com},
		spec: {group: example.com, scope: Namespaced, names: {kind: Note, plural: notes}, versions: [{name: v1, served: true}]}}`
	for name, tc := range map[string]struct {
		manifests []string
		want      string
	}{
		"NoNamespace":   {manifests: []string{namespaced}, want: `namespaces "elsewhere" not found`},
		"NamespaceLast": {manifests: []string{namespaced, namespace}},
		"NoCRD":         {manifests: []string{custom}, want: `the server doesn't have a resource type "Note"`},
		"CRDLast":       {manifests: []string{custom, crd}},
		"Type":          {manifests: []string{deploymentYAML(1, "hello:v1", "d") + "  paused: maybe\n"}, want: `cannot be handled as a Deployment`},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Options{})
			work := workOf(t, 1, tc.manifests...)
			results := c.Apply(work)
			var status workv1.ManifestWorkStatus
			ReportApplied(&status, 1, results, at(0))
			report(t, c, &status, work, c.Truth(), at(0))
			refused := meta.IsStatusConditionFalse(status.Conditions, workv1.WorkApplied)
			if refused != (tc.want != "") {
				t.Fatalf("%+v", status.Conditions)
			}
			if !refused {
				return
			}
			condition := meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions, workv1.ManifestApplied)
			if condition.Reason != "AppliedManifestFailed" || !strings.Contains(condition.Message, tc.want) {
				t.Errorf("%+v", condition)
			}
			if meta.IsStatusConditionTrue(status.Conditions, workv1.WorkAvailable) {
				t.Errorf("what was refused is available: %+v", status.Conditions)
			}
		})
	}
}

func TestObjectsLeaveWithTheirWork(t *testing.T) {
	c := newCluster(Options{})
	configMap := `{apiVersion: v1, kind: ConfigMap, metadata: {name: hello, namespace: default}}`
	apply(t, c, workOf(t, 1, deploymentYAML(1, "hello:v1", "d1"), configMap))
	other := workOf(t, 1, configMap)
	other.Name = "other"
	apply(t, c, other)
	if diff := cmp.Diff([]string{"ConfigMap/default/hello", "Deployment/default/hello"}, c.Objects()); diff != "" {
		t.Error(diff)
	}
	apply(t, c, workOf(t, 2, configMap))
	c.Delete("addon-hello-deploy-0")
	if diff := cmp.Diff([]string{"ConfigMap/default/hello"}, c.Objects()); diff != "" {
		t.Errorf("the other work still lists it: %s", diff)
	}
	c.Delete("other")
	if got := c.Objects(); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestUpdateStrategies(t *testing.T) {
	for strategy, want := range map[workv1.UpdateStrategyType]string{
		workv1.UpdateStrategyTypeUpdate:     "hello:v2",
		workv1.UpdateStrategyTypeCreateOnly: "hello:v1",
		workv1.UpdateStrategyTypeReadOnly:   "",
	} {
		c := newCluster(Options{})
		for i, image := range []string{"hello:v1", "hello:v2"} {
			work := workOf(t, int64(i+1), deploymentYAML(1, image, "d"))
			rules(work)
			work.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: strategy}
			apply(t, c, work)
			settle(t, c, work)
		}
		if got := strings.Join(c.Running()["Deployment/default/hello"].Images, ","); got != want {
			t.Errorf("%s runs %q, want %q", strategy, got, want)
		}
	}
}

func TestFeedbackValues(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		rule    workv1.FeedbackRule
		want    map[string]any
		failure string
	}{
		"WellKnown": {
			rule: workv1.FeedbackRule{Type: workv1.WellKnownStatusType},
			want: map[string]any{"ReadyReplicas": int64(1), "Replicas": int64(1), "AvailableReplicas": int64(1)},
		},
		"Absent": {
			reason: "an absent path is not a value and no error",
			rule:   jsonPaths(workv1.JsonPath{Name: "x", Path: ".status.nothing.here"}),
			want:   map[string]any{},
		},
		"Boolean": {
			rule: jsonPaths(workv1.JsonPath{Name: "x", Path: ".spec.paused"}),
			want: map[string]any{"x": false},
		},
		"NotScalar": {
			reason:  "a list is an error, the others are there",
			rule:    jsonPaths(workv1.JsonPath{Name: "x", Path: ".status.conditions"}, workv1.JsonPath{Name: "y", Path: ".kind"}),
			want:    map[string]any{"y": "Deployment"},
			failure: "Sync status feedback failed with error the type []interface {} of the value for x is not found",
		},
		"Unparsable": {
			rule:    jsonPaths(workv1.JsonPath{Name: "x", Path: ".status["}),
			want:    map[string]any{},
			failure: "failed to parse json path .status[ of x with error",
		},
		"OtherVersion": {
			rule:    jsonPaths(workv1.JsonPath{Name: "x", Path: ".kind", Version: "v2"}),
			want:    map[string]any{},
			failure: "version set in the path x is not matched",
		},
		"Bracket": {
			reason: "the spelling with brackets finds nothing, so rules must not use it",
			rule:   jsonPaths(workv1.JsonPath{Name: "x", Path: `.metadata.annotations['addonflow.io/digest']`}),
			want:   map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(Options{})
			work := workOf(t, 1, deploymentYAML(1, "hello:v1", "d")+"  paused: false\n")
			rules(work)
			work.Spec.ManifestConfigs[0].FeedbackRules = []workv1.FeedbackRule{tc.rule}
			var status workv1.ManifestWorkStatus
			ReportApplied(&status, 1, c.Apply(work), at(0))
			settle(t, c, work)
			report(t, c, &status, work, c.Truth(), at(0))
			if diff := cmp.Diff(tc.want, values(status.ResourceStatus.Manifests[0])); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			synced := meta.FindStatusCondition(status.ResourceStatus.Manifests[0].Conditions, "StatusFeedbackSynced")
			if (synced.Status == metav1.ConditionFalse) != (tc.failure != "") || !strings.Contains(synced.Message, tc.failure) {
				t.Errorf("%s: %+v", tc.reason, synced)
			}
		})
	}
}

func jsonPaths(paths ...workv1.JsonPath) workv1.FeedbackRule {
	return workv1.FeedbackRule{Type: workv1.JSONPathsType, JsonPaths: paths}
}

func TestFirstEntryWithRulesIsTaken(t *testing.T) {
	entry := func(name string, rules ...workv1.FeedbackRule) workv1.ManifestConfigOption {
		return workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*", Name: name},
			FeedbackRules:      rules,
		}
	}
	m := workv1.ManifestResourceMeta{Group: "apps", Resource: "deployments", Namespace: "default", Name: "hello"}
	got := configOf(m, []workv1.ManifestConfigOption{
		entry("other", jsonPaths(workv1.JsonPath{Name: "other"})),
		entry("hel*"),
		entry("h*o", jsonPaths(workv1.JsonPath{Name: "first"})),
		entry("*", jsonPaths(workv1.JsonPath{Name: "second"})),
	})
	if diff := cmp.Diff([]workv1.FeedbackRule{jsonPaths(workv1.JsonPath{Name: "first"})}, got.FeedbackRules); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPretend(t *testing.T) {
	c := newCluster(Options{})
	old := workOf(t, 1, deploymentYAML(1, "hello:v1", "d1"))
	apply(t, c, old)
	settle(t, c, old)
	next := workOf(t, 2, deploymentYAML(1, "hello:bad", "d2"),
		strings.ReplaceAll(deploymentYAML(1, "hello:bad", "d2"), "name: hello\n", "name: second\n"))
	rules(next, allPaths()...)
	next.Spec.ManifestConfigs[0].ResourceIdentifier.Name = "*"
	var status workv1.ManifestWorkStatus
	ReportApplied(&status, 2, c.Identify(next, nil), at(0))
	report(t, c, &status, next, c.Pretend(next), at(0))
	if !meta.IsStatusConditionTrue(status.Conditions, workv1.WorkAvailable) {
		t.Errorf("%+v", status.Conditions)
	}
	want := map[string]any{
		"addonflow.digest": "d1", "addonflow.generation": int64(1), "addonflow.observedGeneration": int64(1),
		"addonflow.desired": int64(1), "addonflow.updated": int64(1), "addonflow.ready": int64(1),
		"addonflow.progressing": "NewReplicaSetAvailable",
	}
	if diff := cmp.Diff(want, values(status.ResourceStatus.Manifests[0])); diff != "" {
		t.Errorf("what was there before: -want +got:\n%s", diff)
	}
	delete(want, "addonflow.digest")
	if diff := cmp.Diff(want, values(status.ResourceStatus.Manifests[1])); diff != "" {
		t.Errorf("what was not: -want +got:\n%s", diff)
	}
	if got := c.Running()["Deployment/default/hello"].Images; got[0] != "hello:v1" {
		t.Errorf("a lie changed the cluster: %v", got)
	}
}

func TestIdentifyRefuses(t *testing.T) {
	c := newCluster(Options{})
	var status workv1.ManifestWorkStatus
	ReportApplied(&status, 1, c.Identify(workOf(t, 1, deploymentYAML(1, "hello:v1", "d")), errors.New("admission webhook said no")), at(0))
	if !meta.IsStatusConditionFalse(status.Conditions, workv1.WorkApplied) {
		t.Errorf("%+v", status.Conditions)
	}
	if len(c.Objects()) != 0 {
		t.Errorf("refused and there: %v", c.Objects())
	}
}
