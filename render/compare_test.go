package render

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestCompareWithWhatWeWrote(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	edit := func(w *workv1.ManifestWork, from, to string) {
		m := &w.Spec.Workload.Manifests[0]
		m.Raw = []byte(strings.Replace(string(m.Raw), from, to, 1))
	}
	cases := map[string]struct {
		reason string
		change func(*workv1.ManifestWork)
		want   Difference
	}{
		"nothing":       {"is nothing", func(*workv1.ManifestWork) {}, Same},
		"status":        {"is the agent's", func(w *workv1.ManifestWork) { w.Generation, w.Status.Conditions = 9, []metav1.Condition{{Type: "x"}} }, Same},
		"foreign marks": {"are not ours", func(w *workv1.ManifestWork) { w.Labels["x"], w.Annotations["x"] = "y", "y" }, Same},
		"owner version": {"is no other owner", func(w *workv1.ManifestWork) {
			w.OwnerReferences[0].APIVersion = "addon.open-cluster-management.io/v1beta1"
		}, Same},
		"hub's default":  {"is filled in", func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs[0].FeedbackScrapeType = workv1.FeedbackPollType }, Same},
		"spacing":        {"is not content", func(w *workv1.ManifestWork) { edit(w, "{", "{ ") }, Same},
		"null timestamp": {"is none", func(w *workv1.ManifestWork) { edit(w, `"metadata":{`, `"metadata":{"creationTimestamp":null,`) }, Same},
		"label gone":     {"is drift", func(w *workv1.ManifestWork) { delete(w.Labels, v1alpha1.ManagedByLabel) }, Different},
		"revision":       {"is another", func(w *workv1.ManifestWork) { w.Annotations[v1alpha1.RevisionAnnotation] = "x" }, Different},
		"hash":           {"of a configuration says what it was written from", func(w *workv1.ManifestWork) { w.Annotations[specHashKey] = "x" }, Same},
		"owner gone":     {"is drift", func(w *workv1.ManifestWork) { w.OwnerReferences = nil }, Different},
		"object edited":  {"is drift", func(w *workv1.ManifestWork) { edit(w, `"replicas":1`, `"replicas":2`) }, Different},
		"object gone":    {"is drift", func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:] }, Different},
		"empty struct":   {"is drift in what we wrote", func(w *workv1.ManifestWork) { edit(w, `"replicas":1`, `"replicas":1,"strategy":{}`) }, Different},
		"rules gone":     {"are drift", func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil }, Different},
		"delete option":  {"is drift", func(w *workv1.ManifestWork) { w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"} }, Different},
		"default option": {"is the same as none", func(w *workv1.ManifestWork) {
			w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Foreground"}
		}, Same},
		"executor":          {"is drift", func(w *workv1.ManifestWork) { w.Spec.Executor = &workv1.ManifestWorkExecutor{} }, Different},
		"object unreadable": {"is drift", func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests[0].Raw = []byte("{") }, Different},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			first, _ := worksFor(t, content)
			existing := first[0].DeepCopy()
			c.change(existing)
			desired, _ := worksFor(t, content, existing)
			if got := Compare(desired[0], existing); got != c.want {
				t.Errorf("%s: got %v, want %v", c.reason, got, c.want)
			}
			NewAbridger().Abridge(existing)
			if got := Compare(desired[0], existing); got != c.want {
				t.Errorf("abridged, %s: got %v, want %v", c.reason, got, c.want)
			}
		})
	}
	desired, _ := worksFor(t, content)
	if Compare(desired[0], nil) != Different {
		t.Error("a missing work is not written")
	}
}

// asOCMWrites is the work as OCM 1.3 writes it: Deployments through their Go type, no marks,
// feedback rules for the well-known status.
func asOCMWrites(t *testing.T, desired *workv1.ManifestWork) *workv1.ManifestWork {
	t.Helper()
	out := desired.DeepCopy()
	out.Labels = map[string]string{addonNameLabel: "hello"}
	out.Annotations = map[string]string{specHashKey: desired.Annotations[specHashKey]}
	out.OwnerReferences[0].APIVersion = "addon.open-cluster-management.io/v1beta1"
	out.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: desired.Spec.ManifestConfigs[0].ResourceIdentifier,
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
		FeedbackScrapeType: workv1.FeedbackPollType,
	}}
	m := &out.Spec.Workload.Manifests[0]
	text := string(m.Raw)
	for from, to := range map[string]string{
		`,"annotations":{"addonflow.io/digest":"` + desired.Annotations[v1alpha1.DigestAnnotation] + `"}`: ``,
		`"annotations":{"addonflow.io/digest":"` + desired.Annotations[v1alpha1.DigestAnnotation] + `"},`: ``,
		`"replicas":1,`:            `"replicas":1,"strategy":{},`,
		`"name":"agent"`:           `"name":"agent","resources":{}`,
		`"template":{"metadata":{`: `"template":{"metadata":{"creationTimestamp":null,`,
	} {
		text = strings.Replace(text, from, to, 1)
	}
	text = strings.TrimSuffix(text, "}") + `,"status":{}}`
	m.Raw = []byte(text)
	return out
}

func TestTakingOverEqualContentWritesNothing(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	desired, _ := worksFor(t, content)
	cases := map[string]struct {
		reason string
		change func(*workv1.ManifestWork)
		want   Difference
	}{
		"equal": {"but for our marks", func(*workv1.ManifestWork) {}, MarksMissing},
		"other object": {"is other content", func(w *workv1.ManifestWork) {
			w.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(string(w.Spec.Workload.Manifests[0].Raw), "--v=4", "--v=5", 1))
		}, Different},
		"other hash": {"is another configuration", func(w *workv1.ManifestWork) { w.Annotations[specHashKey] = "{}" }, Different},
		"other effect": {"of manifestConfigs", func(w *workv1.ManifestWork) {
			w.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}
		}, Different},
		"default said": {"is the same effect", func(w *workv1.ManifestWork) {
			w.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}
		}, MarksMissing},
		"other owner":   {"must be corrected", func(w *workv1.ManifestWork) { w.OwnerReferences[0].UID = "x" }, Different},
		"delete option": {"must be corrected", func(w *workv1.ManifestWork) { w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: "Orphan"} }, Different},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			existing := asOCMWrites(t, desired[0])
			c.change(existing)
			again, _ := worksFor(t, content, existing)
			if got := Compare(again[0], existing); got != c.want {
				t.Errorf("%s: got %v, want %v\n%s\n%s", c.reason, got, c.want, raws(again[0])[0], raws(existing)[0])
			}
		})
	}
}

func TestQuantitiesAreComparedByValueOnlyWhereOCMWroteThem(t *testing.T) {
	const cpu = `"requests":{"cpu":"0.5"}`
	content := contentOf(t, podTemplate("apps/v1", "Deployment", "{containers: [{name: c, resources: {requests: {cpu: '0.5'}}}]}"), "")
	desired, _ := worksFor(t, content)
	other := desired[0].DeepCopy()
	other.Spec.Workload.Manifests[0].Raw = []byte(strings.Replace(raws(desired[0])[0], cpu, `"requests":{"cpu":"500m"}`, 1))
	if got := Compare(desired[0], other); got != Different {
		t.Errorf("what we wrote: %v", got)
	}
	delete(other.Annotations, v1alpha1.DigestAnnotation)
	if got := Compare(desired[0], other); got != MarksMissing {
		t.Errorf("what OCM wrote: %v", got)
	}
}
