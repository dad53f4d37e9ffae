package render

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestHealthExpressionsThatAreRefused(t *testing.T) {
	cases := map[string]struct{ reason, text, message, hint string }{
		"syntax":         {"nothing to evaluate", "feedback.x ==", "column 14: Syntax error: mismatched input '<EOF>'", "it can read feedback"},
		"unknown name":   {"it is not defined", "status.ready == 1", "column 1: undeclared reference to 'status'", "it can read feedback"},
		"unknown call":   {"it does not exist", "feedback.x.reverse2() == 1", "column 20: undeclared reference to 'reverse2'", ""},
		"no boolean":     {"a number", "1 + 2", "is not a boolean but of type int", "compare it"},
		"no type":        {"what it is shows on the cluster only", "feedback.ready", "is not a boolean but of a type that only shows on the cluster", "feedback.ready == true"},
		"true":           {"nothing would ever be unwell", "true", "reads neither feedback nor conditions", "read what the cluster reports"},
		"false":          {"nothing would ever be well", "1 == 2", "reads neither feedback nor conditions", ""},
		"name only":      {"is the same however the cluster is", "metadata.name == 'x'", "reads neither feedback nor conditions", ""},
		"always true":    {"whatever is reported", "feedback.x == 1 || true", "is always true", ""},
		"always false":   {"whatever is reported", "feedback.x == 1 && 1 > 2", "is always false", ""},
		"three loops":    {"over all that is reported", "feedback.all(a, feedback.all(b, feedback.all(c, a + b + c != 'x')))", "may cost", "nest fewer loops"},
		"too long":       {"it is over the limit", "feedback.x == '" + strings.Repeat("x", maxExpression) + "'", "has 1040 characters, at most 1024 are allowed", ""},
		"no such field":  {"conditions come with three", "feedback.x == 1 || conditions.Available.lastTransitionTime != ''", `reads "lastTransitionTime", which a condition does not have`, "it has status, reason, message"},
		"nor by index":   {"however it is written", "conditions['Available']['observed'] == 'x'", `reads "observed", which a condition does not have`, ""},
		"nor in a loop":  {"of whichever", "conditions.exists(k, conditions[k].state == 'True')", `reads "state", which a condition does not have`, ""},
		"no such name":   {"metadata has two", "feedback.x == 1 && metadata.uid != ''", `reads "uid", which metadata does not have`, "it has name, namespace"},
		"condition type": {"a condition is not text", "conditions.Applied == 'True'", "column 20: found no matching overload", ""},
	}
	env, err := newCELEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, why := compileExpression(env, c.text)
			if why == nil {
				t.Fatalf("%s: %s is taken", c.reason, c.text)
			}
			if !strings.Contains(why.message, c.message) || !strings.Contains(why.hint, c.hint) || strings.Contains(why.message, "\n") {
				t.Errorf("%s: got %q, hint %q", c.reason, why.message, why.hint)
			}
		})
	}
}

// An expression has the same meaning as in Flux's healthCheckExprs: the same functions, the
// same numbers, the same errors for missing values.
func TestHealthExpressionsAgreeWithFlux(t *testing.T) {
	values := map[string]any{
		feedbackVariable: map[string]any{"n": int64(3), "ratio": "0.5", "text": "a,b", "ok": true, "raw": map[string]any{"list": []any{int64(1), "x"}}},
		conditionsVariable: map[string]map[string]string{
			"Applied": {"status": "True", "reason": "AppliedManifestComplete", "message": ""},
		},
		metadataKey: map[string]string{"name": "w", "namespace": "ns"}, "apiVersion": "apps/v1", "kind": "Deployment",
	}
	env, err := newCELEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"feedback.n >= 1", "feedback.n > 2.5", "feedback.n == 4", "feedback.absent == 1", "has(feedback.absent) && feedback.absent == 1",
		"feedback[?'absent'].orValue(7) == 7", "double(feedback.ratio) < 1.0", "feedback.text.split(',').size() == 2", "feedback.ok == true",
		"feedback.raw.list.exists(v, v == 'x')", "sets.contains(feedback.raw.list, [1])", "feedback.n / 0 == 1", "feedback.n.startsWith('x')",
		"conditions.Applied.status == 'True'", "'Available' in conditions && conditions.Available.status == 'True'", "conditions.Available.status == 'True'",
		"metadata.namespace == 'ns' && feedback.n == 3", "kind == 'Deployment' ? feedback.n == 3 : feedback.n == 0", "timestamp('2024-01-01T00:00:00Z').getFullYear() == 2024 && feedback.ok == true",
	} {
		t.Run(text, func(t *testing.T) {
			ours, why := compileExpression(env, text)
			if why != nil {
				t.Fatalf("refused: %s", why.message)
			}
			theirs, err := cel.NewExpression(text)
			if err != nil {
				t.Fatal(err)
			}
			got, gotErr := ours.holds(values)
			want, wantErr := theirs.EvaluateBoolean(t.Context(), values)
			if got != want || (gotErr == nil) != (wantErr == nil) {
				t.Errorf("ours %v (%v), Flux's %v (%v)", got, gotErr, want, wantErr)
			}
		})
	}
}

// A managed cluster may report as much as it likes; the cost of judging it stays bounded.
func TestHealthExpressionStopsAtItsCost(t *testing.T) {
	env, err := newCELEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	e, why := compileExpression(env, "feedback.all(a, feedback.all(b, a != b || a == b))")
	if why != nil {
		t.Fatal(why.message)
	}
	feedback := map[string]any{}
	for i := range 2000 {
		feedback[fmt.Sprintf("v%d", i)] = "x"
	}
	if _, err := e.holds(map[string]any{feedbackVariable: feedback}); err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
		t.Errorf("got %v", err)
	}
}

// celProber is a prober of one entry for kind App and its group.
func celProber(t *testing.T, e v1alpha1.HealthCheckExpr) Prober {
	t.Helper()
	e.APIVersion, e.Kind = "example.com/v1", "App"
	p, err := NewProber(&v1alpha1.Health{Prober: v1alpha1.ProberCEL, HealthCheckExprs: []v1alpha1.HealthCheckExpr{e}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// appWork is a work with a custom resource, whose phase the template's feedback rules return,
// and a Deployment.
func appWork(t *testing.T, strategy string) *workv1.ManifestWork {
	t.Helper()
	template := `agentSpec:
  workload:
    manifests:
    - {apiVersion: example.com/v1, kind: App, metadata: {name: app, namespace: ns}, spec: {}}
    - {apiVersion: apps/v1, kind: Deployment, metadata: {name: w, namespace: ns}, spec: {}}
  manifestConfigs:
  - resourceIdentifier: {group: example.com, resource: apps, namespace: ns, name: app}
    updateStrategy: {type: ` + strategy + `}
    feedbackRules: [{type: JSONPaths, jsonPaths: [{name: phase, path: .status.phase}, {name: ready, path: .status.ready}]}]`
	works, _, err := renderedFor(t, contentOf(t, template, ""), Cluster{Name: "cluster1"}).Works(Owner{Name: "hello", Namespace: "cluster1", Revision: "r"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return works[0]
}

// appLive is the live state that report merges over both objects of appWork.
const appLive = "{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, "

func TestCELDecidesHealth(t *testing.T) {
	ready := v1alpha1.HealthCheckExpr{
		InProgress: "feedback.phase == 'Starting'", Failed: "feedback.phase == 'Broken'",
		Current: "feedback.phase == 'Running' && conditions.Applied.status == 'True'", Degraded: "feedback.ready < 2",
	}
	cases := map[string]struct {
		reason, strategy, live string
		change                 func(*workv1.ManifestWork)
		want                   Observation
		available              Availability
	}{
		"current": {
			"and serves in full", "Update", appLive + "phase: Running, ready: 2}}", nil,
			Observation{Applied: true, Current: true, Verified: true},
			Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available."},
		},
		"degraded": {
			"has no part in a rollout", "Update", appLive + "phase: Running, ready: 1}}", nil,
			Observation{Applied: true, Current: true, Verified: true},
			Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available.", Degraded: "App app: feedback.ready < 2"},
		},
		"in progress": {
			"goes before the others", "Update", appLive + "phase: Starting}}", nil,
			Observation{Applied: true, Current: true, Reason: "App app: in progress: feedback.phase == 'Starting'"},
			Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err App app: in progress: feedback.phase == 'Starting'"},
		},
		"failed": {
			"now, not at the deadline", "Update", appLive + "phase: Broken}}", nil,
			Observation{Applied: true, Current: true, Failed: true, Reason: "App app: failed: feedback.phase == 'Broken'"},
			Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err App app: failed: feedback.phase == 'Broken'"},
		},
		"failed before": {
			"an object that carries no content cannot fail it", "CreateOnly", appLive + "phase: Broken}}", nil,
			Observation{Applied: true, Current: true, Reason: "App app: failed: feedback.phase == 'Broken'"},
			Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err App app: failed: feedback.phase == 'Broken'"},
		},
		"neither": {
			"is waited for", "Update", appLive + "phase: Odd}}", nil,
			Observation{Applied: true, Current: true, Reason: "App app: not current: feedback.phase == 'Running' && conditions.Applied.status == 'True'"},
			Availability{Status: metav1.ConditionFalse, Reason: "ProbeUnavailable", Message: "Probe addon unavailable with err App app: not current: feedback.phase == 'Running' && conditions.Applied.status == 'True'"},
		},
		"partial": {
			"what was not reported is not health", "Update", appLive + "ready: 2}}", nil,
			Observation{Applied: true, Reason: "App app: no such key: phase"},
			Availability{Status: metav1.ConditionUnknown, Reason: "NoProbeResult", Message: "Probe results are not returned"},
		},
		"stale": {
			"the phase of other content is not health", "Update",
			"{metadata: {generation: 2, annotations: {addonflow.io/digest: old}}, status: {observedGeneration: 2, phase: Running, ready: 2}}", nil,
			Observation{Applied: true, Reason: "apps app has not got the new content"},
			Availability{Status: metav1.ConditionUnknown, Reason: "NoProbeResult", Message: "Probe results are not returned"},
		},
		"unseen": {
			"its controller has not looked yet", "Update", strings.Replace(appLive, "observedGeneration: 2", "observedGeneration: 1", 1) + "phase: Running, ready: 2}}", nil,
			Observation{Applied: true, Reason: "apps app has not been seen by its controller"},
			Availability{Status: metav1.ConditionUnknown, Reason: "NoProbeResult", Message: "Probe results are not returned"},
		},
		"half a report": {
			"of one object of two", "Update", appLive + "phase: Running, ready: 2}}",
			func(w *workv1.ManifestWork) {
				w.Status.ResourceStatus.Manifests = w.Status.ResourceStatus.Manifests[:1]
			},
			Observation{Applied: true, Reason: "Deployment w has not been reported"},
			Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available."},
		},
		"a workload gave up": {
			"is a failure whatever the expressions say", "Update",
			appLive + "phase: Running, ready: 2, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded, message: late}]}}", nil,
			Observation{Applied: true, Current: true, Failed: true, Reason: "Deployment w: ProgressDeadlineExceeded: late"},
			Availability{Status: metav1.ConditionTrue, Reason: "ProbeAvailable", Message: "hello add-on is available."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work := report(t, appWork(t, c.strategy), c.live)
			for i := range work.Status.ResourceStatus.Manifests {
				work.Status.ResourceStatus.Manifests[i].Conditions = []metav1.Condition{{Type: "Applied", Status: metav1.ConditionTrue}}
			}
			if c.change != nil {
				c.change(work)
			}
			r := Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}}
			c.want.Revision, c.want.Digest = "r", work.Annotations[v1alpha1.DigestAnnotation]
			p := celProber(t, ready)
			if got := p.Observe(r); got != c.want {
				t.Errorf("%s: got %+v\nwant %+v", c.reason, got, c.want)
			}
			if got := p.Available(r); got != c.available {
				t.Errorf("%s: got %+v\nwant %+v", c.reason, got, c.available)
			}
		})
	}
}

func TestCELThatJudgesNothingIsNotHealth(t *testing.T) {
	p := celProber(t, v1alpha1.HealthCheckExpr{Name: "other", Current: "feedback.phase == 'Running'"})
	work := report(t, appWork(t, "Update"), appLive+"phase: Running}}")
	o := p.Observe(Report{AddOn: "hello", Works: []*workv1.ManifestWork{work}})
	if o.Verified || o.Reason != "healthCheckExprs[0]: no App is reported" {
		t.Errorf("got %+v", o)
	}
}

// If a template has feedback rules for an object, the object's current state matters: it
// carries the digest and must echo it, like a workload.
func TestObjectsWithFeedbackRulesEchoTheirContent(t *testing.T) {
	for strategy, echoes := range map[string]bool{"Update": true, "ServerSideApply": true, "CreateOnly": false, "ReadOnly": false} {
		work := appWork(t, strategy)
		i := slices.IndexFunc(identitiesOf(work), func(id Identity) bool { return id.Kind == "App" })
		if got := strings.Contains(string(work.Spec.Workload.Manifests[i].Raw), v1alpha1.DigestAnnotation); got != echoes {
			t.Errorf("%s: the App carries a digest: %v", strategy, got)
		}
		asked := effectOn(identitiesOf(work)[i].resource(), work.Spec.ManifestConfigs)
		want := map[bool]string{true: "digest generation observedGeneration phase ready", false: "phase ready"}[echoes]
		if got := names([]workv1.ManifestConfigOption{asked}); got != want {
			t.Errorf("%s: asked of the App: %s", strategy, got)
		}
	}
}

// FuzzExpression: an expression is refused in one line, or has the same value as in Flux, whatever a cluster reports.
func FuzzExpression(f *testing.F) {
	for _, text := range []string{
		"feedback.n >= 1 && feedback.ok == true", "feedback.text.split(',').size() == 2 || feedback.absent == 1", "feedback.raw.list.exists(v, v == 'x')",
		"has(feedback.absent) && feedback[?'absent'].orValue(7) == 7", "conditions.Applied.status == 'True' && metadata.name == 'w'", "feedback.n / 0 == 1",
		"feedback.all(a, feedback.all(b, feedback.all(c, a + b + c != 'x')))", "feedback.n ==\n 1 ? 'a' : feedback.text", "feedback.text.matches('[') || conditions.x.y == ''", "\x1b",
	} {
		f.Add(text, "a,x", int64(3))
	}
	env, err := newCELEnvironment()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, reported string, n int64) {
		ours, why := compileExpression(env, text)
		if why != nil {
			if why.message == "" || strings.Contains(why.message, "\n") || len(why.message) > 2*maxExpression {
				t.Errorf("%q is refused with %q", text, why.message)
			}
			return
		}
		theirs, err := cel.NewExpression(text)
		if err != nil {
			t.Fatalf("Flux refuses %q: %v", text, err)
		}
		values := map[string]any{
			feedbackVariable:   map[string]any{"n": n, "text": reported, "ok": n > 0, "raw": map[string]any{"list": []any{n, reported}}},
			conditionsVariable: map[string]map[string]string{"Applied": {"status": "True", "reason": reported, "message": ""}},
			metadataKey:        map[string]string{nameKey: "w", namespaceKey: "ns"}, apiVersionKey: "apps/v1", kindKey: "Deployment",
		}
		got, gotErr := ours.holds(values)
		want, wantErr := theirs.EvaluateBoolean(t.Context(), values)
		limited := gotErr != nil && strings.Contains(gotErr.Error(), "cost limit exceeded") // Flux has no limit
		if !limited && (got != want || (gotErr == nil) != (wantErr == nil)) {
			t.Errorf("%q: ours %v (%v), Flux's %v (%v)", text, got, gotErr, want, wantErr)
		}
	})
}
