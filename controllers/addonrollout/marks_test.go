package addonrollout

import (
	"bytes"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// remark changes every work, as another writer would.
func (s *scene) remark(change func(*workv1.ManifestWork)) {
	s.t.Helper()
	for _, w := range s.works() {
		change(w)
		s.update(w)
	}
}

// versions of the works, by cluster.
func (s *scene) versions() map[string]string {
	out := map[string]string{}
	for name, w := range s.works() {
		out[name] = w.ResourceVersion
	}
	return out
}

func TestOperatorUpgradeRewritesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.remark(func(w *workv1.ManifestWork) {
		w.Annotations[render.MarksAnnotation] = "former"
		paths := w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths
		w.Spec.ManifestConfigs[0].FeedbackRules[0].JsonPaths = paths[:len(paths)-1]
	})
	before := s.versions()
	s.restart()
	s.turns(3)
	for name, version := range s.versions() {
		if version != before[name] {
			t.Errorf("the work of %s was rewritten for marks alone", name)
		}
	}
	s.target("v2")
	s.settle()
	for name, w := range s.works() {
		if w.Annotations[render.MarksAnnotation] == "former" {
			t.Errorf("the marks of %s come with the next content", name)
		}
	}
}

func TestMarksThatVerificationNeedsAreWrittenInFlight(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	s.target("v2")
	s.turns(2)
	s.remark(func(w *workv1.ManifestWork) {
		delete(w.Annotations, render.MarksAnnotation)
		w.Spec.ManifestConfigs = nil
	})
	s.turn()
	if got := s.works()["c1"].Spec.ManifestConfigs; len(got) == 0 {
		t.Error("without feedback rules a cluster in flight would be verified for being available")
	}
}

// Every version of the operator writes the version of its marks, so that a work without it was
// changed by another writer. It is repaired at rest, with one write. If the digest is missing as
// well, the content is not known, and the work is written only after an admission.
func TestStrippedMarksAreRepaired(t *testing.T) {
	for name, key := range map[string]string{"marks": render.MarksAnnotation, "digest": v1alpha1.DigestAnnotation, "revision": v1alpha1.RevisionAnnotation} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			s.target("v1")
			s.settle()
			whole := s.works()["c1"]
			s.remark(func(w *workv1.ManifestWork) {
				delete(w.Annotations, key)
				w.Spec.ManifestConfigs = nil
			})
			s.turns(2)
			s.report()
			s.turns(2)
			repaired := s.works()["c1"]
			if repaired.Annotations[key] != whole.Annotations[key] || len(repaired.Spec.ManifestConfigs) != len(whole.Spec.ManifestConfigs) {
				t.Errorf("%s is %q, with %d rules", key, repaired.Annotations[key], len(repaired.Spec.ManifestConfigs))
			}
			s.turns(3)
			if got := s.works()["c1"]; got.ResourceVersion != repaired.ResourceVersion {
				t.Error("it was written again")
			}
			if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded || ro.Status.Counts.Updated != 1 {
				t.Errorf("the rollout is %s: %s", ro.Status.Phase, ro.Status.Message)
			}
		})
	}
}

// asOCMLeftIt restores the state at a take-over: works of OCM's addon-manager without AddonFlow's
// marks, and a rollout without a status.
func (s *scene) asOCMLeftIt() {
	s.t.Helper()
	s.remark(func(w *workv1.ManifestWork) {
		mark := []byte(`"annotations":{"addonflow.io/digest":"` + w.Annotations[v1alpha1.DigestAnnotation] + `"},`)
		raw := w.Spec.Workload.Manifests[0].Raw
		w.Spec.Workload.Manifests[0].Raw = bytes.Replace(raw, mark, nil, 1)
		if len(raw) == len(w.Spec.Workload.Manifests[0].Raw) {
			s.t.Fatalf("%s has no %s", raw, mark)
		}
		for key := range w.Annotations {
			if key != workv1.ManifestConfigSpecHashAnnotationKey {
				delete(w.Annotations, key)
			}
		}
		delete(w.Labels, v1alpha1.ManagedByLabel)
		w.Spec.ManifestConfigs = nil
		w.Status = runningStatus(w)
	})
	ro := s.rollout()
	ro.Status = v1alpha1.AddOnRolloutStatus{} // as in a take-over
	if err := s.hub.Status().Update(s.t.Context(), ro); err != nil {
		s.t.Fatal(err)
	}
}

// ocmReports makes the agent report what OCM's feedback rules ask of a Deployment.
func (s *scene) ocmReports(cluster string, replicas, ready int64) {
	s.t.Helper()
	w := s.works()[cluster]
	w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
		ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "agents", Name: "hello"},
		FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.WellKnownStatusType}},
	}}
	s.update(w)
	w.Status = runningStatus(w)
	w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = []workv1.FeedbackValue{
		{Name: "Replicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &replicas}},
		{Name: "ReadyReplicas", Value: workv1.FieldValue{Type: workv1.Integer, Integer: &ready}},
	}
	if err := s.hub.Status().Update(s.t.Context(), w); err != nil {
		s.t.Fatal(err)
	}
}

// neverSucceeded removes succeeded-at from every revision.
func (s *scene) neverSucceeded() {
	s.t.Helper()
	var all v1alpha1.AddOnRevisionList
	if err := s.hub.List(s.t.Context(), &all); err != nil {
		s.t.Fatal(err)
	}
	for i := range all.Items {
		delete(all.Items[i].Annotations, v1alpha1.SucceededAtAnnotation)
		s.update(&all.Items[i])
	}
}

// Equal content that does not run does not count as updated: its clusters are admitted and judged.
func TestTakenOverContentThatDoesNotRunProvesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	s.asOCMLeftIt()
	s.neverSucceeded()
	s.ocmReports("c1", 2, 1)
	s.restart()
	s.turns(3)
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseProgressing || got.Stable != nil || got.Counts.InFlight != 1 {
		t.Errorf("one of two pods is ready, and it is %s, %s", got.Phase, got.Message)
	}
	if w := s.works()["c1"]; w.Annotations[render.MarksAnnotation] == "" {
		t.Error("no rule asks whether the new content runs")
	}
}

// Equal content writes no work; the works get the marks with the next content.
func TestTakenOverContentIsUpToDateAndMovedWithTheNext(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	digest := s.target("v1")
	s.settle()
	s.asOCMLeftIt()
	before := s.versions()
	s.restart()
	s.turns(3)
	for name, version := range s.versions() {
		if version != before[name] {
			t.Errorf("the work of %s was written, with equal content", name)
		}
	}
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || got.Counts.Updated != 2 || got.Stable == nil || got.Stable.Digest != digest {
		t.Errorf("nothing is to be moved: %s, %s", got.Phase, got.Message)
	}
	s.target("v2")
	s.settle()
	for name, w := range s.works() {
		if w.Annotations[render.MarksAnnotation] == "" {
			t.Errorf("%s is moved with our marks", name)
		}
	}
}

// For a Deployment without replicas, OCM's feedback rules return nothing: Kubernetes omits counts of
// 0 from a Deployment's status.
func TestTakenOverDeploymentWithoutReplicasWritesNoWork(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	content := contentAt("v1")
	manifests, _, err := unstructured.NestedSlice(content.Templates[0].Spec, "agentSpec", "workload", "manifests")
	if err != nil {
		t.Fatal(err)
	}
	manifest, ok := manifests[0].(map[string]any)
	if !ok {
		t.Fatalf("not an object: %v", manifests[0])
	}
	for _, err := range []error{
		unstructured.SetNestedField(manifest, int64(0), "spec", "replicas"),
		unstructured.SetNestedSlice(content.Templates[0].Spec, manifests, "agentSpec", "workload", "manifests"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	digest := s.targetOf(content, "v1")
	s.settle()
	s.asOCMLeftIt()
	s.neverSucceeded()
	s.ocmReports("c1", 0, 0)
	w := s.works()["c1"]
	w.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values = nil
	if err := s.hub.Status().Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	before := s.versions()
	s.restart()
	s.turns(3)
	if after := s.versions(); after["c1"] != before["c1"] {
		t.Error("the work was written, with equal content")
	}
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded || got.Stable == nil || got.Stable.Digest != digest {
		t.Errorf("nothing is to be moved: %s, %s", got.Phase, got.Message)
	}
}

// If a cluster is taken over with equal content, its add-on's status is kept with one write, and no
// work is written.
func TestTakenOverClusterHasAStatus(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	s.asOCMLeftIt()
	ready := func(n int64) { s.ocmReports("c1", 1, n) }
	ready(1)
	left := s.addOn("c1")
	left.Status = addonv1alpha1.ManagedClusterAddOnStatus{ConfigReferences: []addonv1alpha1.ConfigReference{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName, Resource: "addontemplates"},
		ConfigReferent:      addonv1alpha1.ConfigReferent{Name: "hello"},
		DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}},
		LastAppliedConfig:   &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Name: "hello"}, SpecHash: "hash-v1"},
	}}}
	if err := s.hub.Status().Update(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	version := s.versions()["c1"]
	s.restart()
	s.turns(3)
	said := func(kind string) string {
		c := apimeta.FindStatusCondition(s.addOn("c1").Status.Conditions, kind)
		if c == nil {
			return ""
		}
		return string(c.Status) + " " + c.Reason
	}
	for kind, want := range map[string]string{
		"Configured": "True ConfigurationsConfigured", "Progressing": "False InstallSucceed",
		"Available": "True ProbeAvailable", "ManifestApplied": "True AddonManifestApplied",
	} {
		if got := said(kind); got != want {
			t.Errorf("%s is %q, want %q", kind, got, want)
		}
	}
	status := s.addOn("c1").Status
	if r := status.ConfigReferences; len(r) != 1 || r[0].LastAppliedConfig == nil || r[0].LastAppliedConfig.SpecHash != "" {
		t.Errorf("the template's hash stays hidden, on both sides: %+v", r)
	}
	if status.HealthCheck.Mode != addonv1alpha1.HealthCheckModeCustomized {
		t.Errorf("the mode of the health check is %q", status.HealthCheck.Mode)
	}
	rest := s.addOn("c1").ResourceVersion
	s.turns(3)
	s.restart()
	s.turns(3)
	if s.addOn("c1").ResourceVersion != rest {
		t.Error("it was written at rest")
	}
	if got := s.versions()["c1"]; got != version {
		t.Errorf("the work was written: version %s, then %s", version, got)
	}
	ready(0)
	s.turns(2)
	if got := said("Available"); got != "False ProbeUnavailable" {
		t.Errorf("whose pods are gone is not available: %q", got)
	}
}
