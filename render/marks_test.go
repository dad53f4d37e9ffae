package render

import (
	"strings"
	"testing"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// olderOperator changes the work to what another version of AddonFlow would have written for
// the same content.
func olderOperator(w *workv1.ManifestWork) {
	w.Annotations[MarksAnnotation] = "0123456789"
	w.Annotations["addonflow.io/former"] = "x"
	paths := w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
	w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths = append([]workv1.JsonPath{}, paths[:len(paths)-1]...)
}

// An upgrade of the operator must not rewrite every fleet at once.
func TestMarksOfAnotherVersionAreNoDrift(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	edit := func(w *workv1.ManifestWork, from, to string) {
		m := &w.Spec.Workload.Manifests[0]
		if !strings.Contains(string(m.Raw), from) {
			t.Fatalf("%s has no %s", m.Raw, from)
		}
		m.Raw = []byte(strings.Replace(string(m.Raw), from, to, 1))
	}
	cases := map[string]struct {
		reason string
		change func(*workv1.ManifestWork)
		want   Difference
	}{
		"other rules":   {"come with the next content", func(*workv1.ManifestWork) {}, MarksOutdated},
		"marks unnamed": {"every version names its marks, so the name was removed", func(w *workv1.ManifestWork) { delete(w.Annotations, MarksAnnotation) }, Different},
		"other mark": {"on a workload", func(w *workv1.ManifestWork) {
			edit(w, `"addonflow.io/digest":`, `"addonflow.io/former":"x","addonflow.io/digest":`)
		}, MarksOutdated},
		"no rules": {"verification needs them", func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil }, MarksMissing},
		"digest unasked": {"without the echo nothing proves the content", func(w *workv1.ManifestWork) {
			r := &w.Spec.ManifestConfigs[0].FeedbackRules[0]
			r.JsonPaths = r.JsonPaths[1:]
		}, MarksMissing},
		"digest unmarked": {"there is nothing to echo", func(w *workv1.ManifestWork) {
			edit(w, `"addonflow.io/digest":`, `"addonflow.io/former":`)
			edit(w, w.Annotations[v1alpha1.DigestAnnotation], "x")
		}, MarksMissing},
		"object edited": {"is drift of the content", func(w *workv1.ManifestWork) { edit(w, `"replicas":1`, `"replicas":2`) }, Different},
		"object gone":   {"is drift of the content", func(w *workv1.ManifestWork) { w.Spec.Workload.Manifests = w.Spec.Workload.Manifests[1:] }, Different},
		"revision":      {"is another move", func(w *workv1.ManifestWork) { w.Annotations[v1alpha1.RevisionAnnotation] = "x" }, Different},
		"digest":        {"is other content", func(w *workv1.ManifestWork) { w.Annotations[v1alpha1.DigestAnnotation] = "x" }, Different},
		"not ours":      {"its owner would be unknown", func(w *workv1.ManifestWork) { delete(w.Labels, v1alpha1.ManagedByLabel) }, Different},
		"other effect": {"of manifestConfigs is content", func(w *workv1.ManifestWork) {
			w.Spec.ManifestConfigs[0].UpdateStrategy = &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}
		}, Different},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			first, _ := worksFor(t, content)
			existing := first[0].DeepCopy()
			olderOperator(existing)
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
}

func TestMarksDifferBetweenVersions(t *testing.T) {
	content := contentOf(t, helloTemplate, helloAgent)
	marks := func(cluster string) string {
		works, _, err := renderedFor(t, content, Cluster{Name: cluster}).Works(owner, nil)
		if err != nil {
			t.Fatal(err)
		}
		return works[0].Annotations[MarksAnnotation]
	}
	if marks("cluster1") != marks("cluster2") {
		t.Error("one version has the same marks on every cluster")
	}
	r, err := newRenderer(t, content).Render(Cluster{Name: "cluster1"})
	if err != nil {
		t.Fatal(err)
	}
	objects := append([]object{}, r.rendering.objects...)
	for i := range objects {
		if objects[i].workload != nil {
			other := *objects[i].workload
			other.ask.FeedbackRules = other.ask.FeedbackRules[:1]
			other.ask.FeedbackRules[0].JsonPaths = other.ask.FeedbackRules[0].JsonPaths[1:]
			objects[i].workload = &other
		}
	}
	if other, err := marksOf(objects); err != nil || other == marks("cluster1") {
		t.Errorf("another rule, other marks: %q, %v", other, err)
	}
}
