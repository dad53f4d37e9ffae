package render

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render/rendertest"
)

const generation = 3

// versionOf is the API version of a kind of workload.
func versionOf(kind string) string {
	switch kind {
	case "Job", "CronJob":
		return "batch/v1"
	case "Pod", "ReplicationController":
		return "v1"
	}
	return "apps/v1"
}

// workOf is a work with one workload w in namespace ns, as Works builds it.
func workOf(t *testing.T, kind, spec, configs string) *workv1.ManifestWork {
	t.Helper()
	template := "agentSpec: {workload: {manifests: [{apiVersion: " + versionOf(kind) + ", kind: " + kind +
		", metadata: {name: w, namespace: ns}, spec: " + spec + "}]}, manifestConfigs: " + configs + "}"
	works, _, err := renderedFor(t, contentOf(t, template, ""), Cluster{Name: "cluster1"}).
		Works(Owner{Name: "hello", Namespace: "cluster1", Revision: "v1:sha256:revision"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return works[0]
}

// observed is what the default prober reads of add-on hello.
func observed(works []*workv1.ManifestWork) Observation {
	return Prober{}.Observe(Report{AddOn: "hello", Works: works})
}

// report returns the work with an agent's report, in which each live object is its manifest
// with the given fields (status, metadata) merged over it.
func report(tb testing.TB, work *workv1.ManifestWork, live string) *workv1.ManifestWork {
	tb.Helper()
	out := work.DeepCopy()
	out.Generation = generation
	for _, name := range []string{workv1.WorkApplied, workv1.WorkAvailable} {
		out.Status.Conditions = append(out.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, ObservedGeneration: generation})
	}
	for _, m := range out.Spec.Workload.Manifests {
		object := map[string]any{}
		if err := json.Unmarshal(m.Raw, &object); err != nil {
			tb.Fatal(err)
		}
		overlay(object, rendertest.Fields(tb, live))
		integersIn(object)
		id := IdentityOf(object)
		out.Status.ResourceStatus.Manifests = append(out.Status.ResourceStatus.Manifests, workv1.ManifestCondition{
			ResourceMeta: workv1.ManifestResourceMeta{
				Group: id.resource().Group, Resource: id.resource().Resource, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name,
			},
			StatusFeedbacks: workv1.StatusFeedbackResult{Values: answers(tb, object, out.Spec.ManifestConfigs)},
		})
	}
	return out
}

func overlay(object, over map[string]any) {
	for key, value := range over {
		below, ok := value.(map[string]any)
		if existing, is := object[key].(map[string]any); ok && is {
			overlay(existing, below)
			continue
		}
		object[key] = value
	}
}

func TestVerified_OnlyIfEveryWorkloadReportsTheContent(t *testing.T) {
	const (
		healthy  = "metadata: {generation: 2}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}"
		daemons  = "metadata: {generation: 2}\nstatus: {observedGeneration: 2, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberReady: 3, numberAvailable: 3}"
		stateful = healthy + "\n"
		exceeded = `conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: "ReplicaSet w-1 has timed out progressing."}]`
	)
	const createOnly = "[{resourceIdentifier: {group: apps, resource: deployments, namespace: ns, name: w}, updateStrategy: {type: CreateOnly}}]"
	verified := Observation{Applied: true, Current: true, Verified: true}
	progressing := func(reason string) Observation { return Observation{Applied: true, Current: true, Reason: reason} }
	stale := func(reason string) Observation { return Observation{Applied: true, Reason: reason} }
	failed := func(reason string) Observation {
		return Observation{Applied: true, Current: true, Failed: true, Reason: reason}
	}
	cases := map[string]struct {
		reason, kind, spec, configs, live string
		want                              Observation
	}{
		"Deployment":          {"all of it runs", "Deployment", "{}", "[]", healthy, verified},
		"bad image":           {"one replica: the new pod counts as updated, the old one is ready", "Deployment", "{}", "[]", "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}", progressing("Deployment w: 2 of 1 replicas there")},
		"bad image gave up":   {"in its own words", "Deployment", "{}", "[]", "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, " + exceeded + "}", failed("Deployment w: ProgressDeadlineExceeded: ReplicaSet w-1 has timed out progressing.")},
		"stale generation":    {"counts are of the old spec", "Deployment", "{}", "[]", strings.Replace(healthy, "observedGeneration: 2", "observedGeneration: 1", 1), stale("Deployment w has not been seen by its controller")},
		"stale failure":       {"is of the old spec", "Deployment", "{}", "[]", "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, " + exceeded + "}", stale("Deployment w has not been seen by its controller")},
		"other digest":        {"the agent has not got it", "Deployment", "{}", "[]", "metadata: {generation: 2, annotations: {addonflow.io/digest: old}}\nspec: {replicas: 2}\nstatus: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2}", stale("Deployment w has not got the new content")},
		"no status":           {"yet", "Deployment", "{}", "[]", "metadata: {generation: 1}\nspec: {replicas: 1}", stale("Deployment w has not been seen by its controller")},
		"zero replicas":       {"run", "Deployment", "{}", "[]", "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1}", verified},
		"old pods left":       {"after scaling to zero", "Deployment", "{}", "[]", "metadata: {generation: 1}\nspec: {replicas: 0}\nstatus: {observedGeneration: 1, replicas: 1}", progressing("Deployment w: 1 of 0 replicas there")},
		"not ready":           {"yet", "Deployment", "{}", "[]", strings.Replace(healthy, "readyReplicas: 2", "readyReplicas: 1", 1), progressing("Deployment w: 1 of 2 replicas ready")},
		"not available":       {"for long enough", "Deployment", "{}", "[]", strings.Replace(healthy, ", availableReplicas: 2", "", 1), progressing("Deployment w: 0 of 2 replicas available")},
		"CreateOnly":          {"counts as health", "Deployment", "{}", createOnly, healthy, verified},
		"CreateOnly unwell":   {"is not the content's failure", "Deployment", "{}", createOnly, "metadata: {generation: 2}\nspec: {replicas: 1}\nstatus: {observedGeneration: 2, " + exceeded + "}", progressing("Deployment w: ProgressDeadlineExceeded: ReplicaSet w-1 has timed out progressing.")},
		"DaemonSet":           {"all of it runs", "DaemonSet", "{}", "[]", daemons, verified},
		"DaemonSet updating":  {"some nodes are old", "DaemonSet", "{}", "[]", strings.Replace(daemons, "updatedNumberScheduled: 3", "updatedNumberScheduled: 1", 1), progressing("DaemonSet w: 1 of 3 replicas updated")},
		"DaemonSet OnDelete":  {"updated is not asked", "DaemonSet", "{updateStrategy: {type: OnDelete}}", "[]", strings.Replace(daemons, "updatedNumberScheduled: 3", "updatedNumberScheduled: 1", 1), verified},
		"DaemonSet no nodes":  {"runs", "DaemonSet", "{}", "[]", "metadata: {generation: 1}\nstatus: {observedGeneration: 1, desiredNumberScheduled: 0, numberReady: 0}", verified},
		"DaemonSet new":       {"has no status", "DaemonSet", "{}", "[]", "metadata: {generation: 1}", stale("DaemonSet w has not been seen by its controller")},
		"StatefulSet":         {"all of it runs", "StatefulSet", "{}", "[]", strings.Replace(stateful, "status: {", "status: {currentRevision: r, updateRevision: r, ", 1), verified},
		"StatefulSet halfway": {"revisions differ", "StatefulSet", "{}", "[]", strings.Replace(stateful, "status: {", "status: {currentRevision: r, updateRevision: s, ", 1), progressing("StatefulSet w: its revisions differ")},
		"StatefulSet part":    {"updated is not asked", "StatefulSet", "{updateStrategy: {rollingUpdate: {partition: 1}}}", "[]", strings.Replace(strings.Replace(stateful, "status: {", "status: {currentRevision: r, updateRevision: s, ", 1), "updatedReplicas: 2", "updatedReplicas: 1", 1), verified},
		"Job complete":        {"is done", "Job", "{}", "[]", `{metadata: {generation: 1}, status: {conditions: [{type: Complete, status: "True"}]}}`, verified},
		"Job running":         {"is not", "Job", "{}", "[]", "{metadata: {generation: 1}, status: {active: 1}}", progressing("Job w: not complete")},
		"Job failed":          {"in its own words", "Job", "{}", "[]", `{metadata: {generation: 1}, status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: enough}]}}`, failed("Job w: BackoffLimitExceeded: enough")},
		"CronJob":             {"exists", "CronJob", "{}", "[]", "metadata: {generation: 1}", verified},
		"CronJob old":         {"exists as it was", "CronJob", "{}", "[]", "metadata: {generation: 1, annotations: {addonflow.io/digest: old}}", stale("CronJob w has not got the new content")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work := report(t, workOf(t, c.kind, c.spec, c.configs), c.live)
			c.want.Revision, c.want.Digest = "v1:sha256:revision", work.Annotations[v1alpha1.DigestAnnotation]
			if diff := cmp.Diff(c.want, observed([]*workv1.ManifestWork{work})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

const healthyDeployment = "metadata: {generation: 1}\nspec: {replicas: 1}\nstatus: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}"

func TestConditionsOfTheWork(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*workv1.ManifestWork)
		want   Observation
	}{
		"never applied":  {"nothing is known", func(w *workv1.ManifestWork) { w.Status = workv1.ManifestWorkStatus{} }, Observation{Reason: "waiting for the agent to apply"}},
		"new generation": {"conditions from before count for nothing", func(w *workv1.ManifestWork) { w.Generation++ }, Observation{Reason: "waiting for the agent to apply"}},
		"not applied": {"is not a failure before the deadline", func(w *workv1.ManifestWork) {
			w.Status.Conditions[0].Status = metav1.ConditionFalse
			w.Status.Conditions[0].Message = "no\x1b[31m"
		}, Observation{Reason: "not applied: no[31m", NotApplied: "no[31m"}},
		"available stale": {"counts for nothing", func(w *workv1.ManifestWork) { w.Status.Conditions[1].ObservedGeneration-- }, Observation{Applied: true, Reason: "waiting for the agent to report"}},
		"not available": {"objects are missing", func(w *workv1.ManifestWork) {
			w.Status.Conditions[1].Status = metav1.ConditionFalse
			w.Status.Conditions[1].Message = "gone"
		}, Observation{Applied: true, Current: true, Reason: "not available: gone"}},
		"nothing fed back":  {"an old agent", func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests = nil }, Observation{Applied: true, Reason: "Deployment w has not been reported"}},
		"no values":         {"feedback failed", func(w *workv1.ManifestWork) { w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = nil }, Observation{Applied: true, Reason: "Deployment w has not been reported with its content"}},
		"part missing":      {"no work mixes contents", func(w *workv1.ManifestWork) { w.Annotations[PartsAnnotation] = "2" }, Observation{Reason: "1 of 2 works written"}},
		"part count absent": {"another writer removed it", func(w *workv1.ManifestWork) { delete(w.Annotations, PartsAnnotation) }, Observation{Reason: "1 of ? works written"}},
		"own words": {"of the manifest that fails", func(w *workv1.ManifestWork) {
			w.Status.Conditions[0].Status = metav1.ConditionFalse
			w.Status.ResourceStatus.Manifests[0].Conditions = []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionFalse, ObservedGeneration: generation, Message: "namespaces \"ns\" not found"}}
		}, Observation{Reason: `not applied: Deployment w: namespaces "ns" not found`, NotApplied: `Deployment w: namespaces "ns" not found`}},
		"wrong types": {"a liar's values count for nothing", func(w *workv1.ManifestWork) {
			yes, text := true, "1"
			for i := range w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
				v := &w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[i]
				switch v.Name {
				case valueDesired:
					v.Value = workv1.FieldValue{Type: workv1.String, String: &text}
				case valueReady:
					v.Value = workv1.FieldValue{Type: workv1.Boolean, Boolean: &yes}
				case valueTotal:
					v.Value = workv1.FieldValue{Type: workv1.Integer}
				}
			}
		}, Observation{Applied: true, Current: true, Reason: "Deployment w: replicas have not been reported"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			work := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
			c.change(work)
			c.want.Revision, c.want.Digest = "v1:sha256:revision", work.Annotations[v1alpha1.DigestAnnotation]
			if diff := cmp.Diff(c.want, observed([]*workv1.ManifestWork{work})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
		})
	}
}

func TestSetsOfWorks(t *testing.T) {
	part := func(index int, digest string) *workv1.ManifestWork {
		w := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
		w.Name = workName("hello", index)
		w.Annotations[PartsAnnotation] = "2"
		if digest != "" {
			w.Annotations[v1alpha1.DigestAnnotation] = digest
		}
		return w
	}
	deleting := part(2, "old")
	now := metav1.Unix(1, 0)
	deleting.DeletionTimestamp = &now
	other := part(0, "")
	other.Name, other.Labels = "addon-other-deploy-0", map[string]string{"open-cluster-management.io/addon-name": "other"}
	hook := part(0, "")
	hook.Name = "addon-hello-pre-delete"
	cases := map[string]struct {
		reason string
		works  []*workv1.ManifestWork
		want   func(Observation) bool
	}{
		"none":     {"no work", nil, func(o Observation) bool { return o == Observation{Reason: "no work yet"} }},
		"all":      {"parts of one content", []*workv1.ManifestWork{part(1, ""), part(0, "")}, func(o Observation) bool { return o.Verified && o.Digest != "" }},
		"one":      {"is not all", []*workv1.ManifestWork{part(0, "")}, func(o Observation) bool { return !o.Verified && !o.Applied && o.Digest != "" }},
		"mixed":    {"runs neither", []*workv1.ManifestWork{part(0, ""), part(1, "old")}, func(o Observation) bool { return !o.Verified && o.Digest == "" && o.Revision != "" }},
		"deleting": {"is gone already", []*workv1.ManifestWork{part(0, ""), part(1, ""), deleting}, func(o Observation) bool { return o.Verified }},
		"others":   {"are not ours", []*workv1.ManifestWork{part(0, ""), other, hook, part(1, "")}, func(o Observation) bool { return o.Verified }},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := observed(c.works); !c.want(got) {
				t.Errorf("%s: got %+v", c.reason, got)
			}
		})
	}
}

// A reverted Deployment reuses its former ReplicaSet and keeps the condition of the failed
// content, under its new generation, until the bad pod is gone.
func TestFailureOfEarlierContentIsIgnored(t *testing.T) {
	content := func(image string) Rendered {
		return renderedFor(t, contentOf(t, podTemplate("apps/v1", "Deployment", "{containers: [{name: c, image: "+image+"}]}"), ""), Cluster{Name: "cluster1"})
	}
	owner := Owner{Name: "hello", Namespace: "cluster1"}
	write := func(r Rendered, existing ...*workv1.ManifestWork) *workv1.ManifestWork {
		works, _, err := r.Works(owner, existing)
		if err != nil {
			t.Fatal(err)
		}
		return works[0]
	}
	stuck := func(generation, since string) string {
		return `{metadata: {generation: ` + generation + `}, spec: {replicas: 1}, status: {observedGeneration: ` + generation + `, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1,
			conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: stuck, lastUpdateTime: "` + since + `"}]}}`
	}
	bad := report(t, write(content("bad")), stuck("2", "2024-01-01T00:00:00Z"))
	if o := observed([]*workv1.ManifestWork{bad}); !o.Failed {
		t.Fatalf("the bad image is not seen: %+v", o)
	}
	reverted := write(content("good"), bad)
	if o := observed([]*workv1.ManifestWork{report(t, reverted, stuck("3", "2024-01-01T00:00:00Z"))}); o.Failed || o.Verified {
		t.Errorf("the former failure counts: %+v", o)
	}
	if o := observed([]*workv1.ManifestWork{report(t, reverted, stuck("3", "2024-01-01T00:20:00Z"))}); !o.Failed {
		t.Errorf("a new failure does not count: %+v", o)
	}
	if got := Compare(write(content("good"), reverted), reverted); got != Same {
		t.Errorf("written again: %v", got)
	}
	if again := write(content("third"), reverted); again.Annotations[DisregardAnnotation] != "" {
		t.Errorf("kept beyond its content: %v", again.Annotations)
	}
}

func TestWordsOfAManagedCluster(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"plain":      {"stays", "it failed", "it failed"},
		"lines":      {"become one", "a\r\n\tb", "a b"},
		"terminal":   {"cannot be driven", "a\x1b[2Jb\x00", "a[2Jb"},
		"direction":  {"cannot be overridden", "a\u202eb\u2066", "ab"},
		"long":       {"is cut", strings.Repeat("x", 1000), strings.Repeat("x", 199) + "…"},
		"long runes": {"is cut between runes", strings.Repeat("é", 1000), strings.Repeat("é", 199) + "…"},
		"invalid":    {"is dropped", "a\xffb", "ab"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := words(c.in); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

// FuzzObserve lets a managed cluster report anything. A report may keep the cluster from being
// verified, but it never hides that a digest or count is missing; text from it is bounded and
// printable.
func FuzzObserve(f *testing.F) {
	f.Add("ProgressDeadlineExceeded", "message", "digest", int64(1), int64(1))
	f.Add("\x1b]0;x\a", strings.Repeat("\u202e", 500), "", int64(-1), int64(1<<62))
	f.Add("ProgressDeadlineExceeded", "0", "#", int64(1), int64(1))
	f.Fuzz(func(t *testing.T, reason, message, digest string, desired, count int64) {
		digest = strings.ToValidUTF8(digest, "?") // as the API server stores it
		work := report(t, workOf(t, "Deployment", "{}", "[]"), healthyDeployment)
		values := work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
		texts := map[string]string{valueReason: reason, valueMessage: message, valueDigest: digest}
		for i := range values {
			if text, ok := texts[values[i].Name]; ok {
				values[i].Value.String = &text
			}
			switch values[i].Name {
			case valueDesired:
				values[i].Value.Integer = &desired
			case valueReady:
				values[i].Value.Integer = &count
			}
		}
		for name, text := range map[string]string{valueReason: reason, valueMessage: message} {
			values = append(values, workv1.FeedbackValue{Name: name, Value: workv1.FieldValue{Type: workv1.String, String: &text}})
		}
		work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = values
		o := observed([]*workv1.ManifestWork{work})
		own := digest == work.Annotations[v1alpha1.DigestAnnotation]
		if (o.Verified || o.Failed) && !own {
			t.Fatalf("digest %q: %+v", digest, o)
		}
		if o.Verified && (desired != 1 || count != 1) {
			t.Fatalf("desired %d, ready %d: %+v", desired, count, o)
		}
		if len([]rune(o.Reason)) > maxWords+100 || strings.ContainsFunc(o.Reason, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Fatalf("reason %q", o.Reason)
		}
	})
}

func TestWorksWithoutWorkloadsAreVerifiedByTheirConditions(t *testing.T) {
	works, _, err := renderedFor(t, contentOf(t, echo("x", ""), ""), Cluster{Name: "cluster1"}).Works(Owner{Name: "hello", Namespace: "cluster1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := observed([]*workv1.ManifestWork{report(t, works[0], "{}")}); !o.Verified {
		t.Errorf("got %+v", o)
	}
}

// raws lists the manifests of a work.
func raws(work *workv1.ManifestWork) []string {
	return slices.Collect(func(yield func(string) bool) {
		for _, m := range work.Spec.Workload.Manifests {
			if !yield(string(m.Raw)) {
				return
			}
		}
	})
}
