package addonrollout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// workOf is a work with the Deployment of hello that AddonFlow wrote for another add-on, or that
// another writer wrote.
func workOf(t *testing.T, addOn, cluster string, labels map[string]string) *workv1.ManifestWork {
	t.Helper()
	spec := contentAt("other").Templates[0].Spec
	manifests, _ := spec["agentSpec"].(map[string]any)["workload"].(map[string]any)["manifests"].([]any)
	raw, err := json.Marshal(manifests[0])
	if err != nil {
		t.Fatal(err)
	}
	labels[addOnNameLabel] = addOn
	return &workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: "addon-" + addOn + "-deploy-0", Labels: labels,
			Annotations: map[string]string{v1alpha1.SourceAnnotation: "other/fleet"},
		},
		Spec: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}}},
	}
}

// TestObjectOfAnotherSourcesAddOnFailsTheNewcomer: an object that another add-on of AddonFlow deploys
// on a cluster is not written a second time. The first cluster that would get it fails at its turn,
// with both owners named, and continues after the other add-on is removed.
func TestObjectOfAnotherSourcesAddOnFailsTheNewcomer(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.oneByOne()
	other := workOf(t, "twin", "c1", map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue})
	s.create(other)
	s.target("v1")
	s.turns(4)
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed ||
		!strings.Contains(ro.Status.Message, "1 failed (c1: ObjectConflict: Deployment agents/hello is deployed by add-on twin of source other/fleet") {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	if n := len(s.works()); n != 0 {
		t.Errorf("%d works, want that of the other add-on alone", n)
	}
	if after := s.turn().RequeueAfter; after == 0 || after > configRetry {
		t.Errorf("it is looked at again after %s: no watch of its own shows that the other one is gone", after)
	}
	if err := s.hub.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.settle()
}

// sharedAt is contentAt with a ConfigMap that another add-on has as well.
func sharedAt(tag, value string) render.Content {
	c := contentAt(tag)
	workload, _ := c.Templates[0].Spec["agentSpec"].(map[string]any)["workload"].(map[string]any)
	manifests, _ := workload["manifests"].([]any)
	workload["manifests"] = append(manifests, map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "shared", "namespace": "agents"}, "data": map[string]any{"a": value},
	})
	return c
}

// share lets another add-on have the ConfigMap on c1, with a value.
func (s *scene) share(addOn, value string) *workv1.ManifestWork {
	s.t.Helper()
	w := workOf(s.t, addOn, "c1", map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue})
	w.Spec.Workload.Manifests[0].Raw = sharedManifest(value)
	s.create(w)
	return w
}

func sharedManifest(value string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared","namespace":"agents"},"data":{"a":%q}}`, value)
}

// TestFirstAddOnMayChangeASharedObject: two add-ons may deploy equal objects. The first add-on may
// change the object, and the other one is woken. If both works are of the same age, the order of
// their names decides.
func TestFirstAddOnMayChangeASharedObject(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	var woken []string
	s.reconciler.wake = func(of client.ObjectKey) { woken = append(woken, of.String()) }
	s.targetOf(sharedAt("v1", "1"), "v1")
	s.settle()
	twin := s.share("twin", "1")
	s.turns(2)
	if len(woken) > 0 {
		t.Errorf("it describes the object alike: %v", woken)
	}
	s.targetOf(sharedAt("v2", "2"), "v2")
	s.settle()
	if !slices.Contains(woken, "other/twin") {
		t.Errorf("the rollout that must leave the object is woken, got %v", woken)
	}
	twin.Spec.Workload.Manifests[0].Raw = sharedManifest("2")
	s.update(twin)
	s.turn()
	woken = nil
	s.turns(2)
	if len(woken) > 0 {
		t.Errorf("they are alike again: %v", woken)
	}
}

// TestLaterAddOnCannotChangeASharedObject: its cluster fails at its turn, and continues when both
// describe the object alike again, whichever side changed it. The same holds for a cluster that
// already has the object.
func TestLaterAddOnCannotChangeASharedObject(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	first := s.share("able", "1")
	s.targetOf(sharedAt("v1", "1"), "v1")
	s.settle()
	s.targetOf(sharedAt("v2", "2"), "v2")
	s.turns(3)
	const conflict = "ObjectConflict: ConfigMap agents/shared is deployed by add-on able of source other/fleet"
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || !strings.Contains(ro.Status.Message, "1 failed (c1: "+conflict) {
		t.Errorf("got %s: %s", ro.Status.Phase, ro.Status.Message)
	}
	c := meta.FindStatusCondition(s.addOn("c1").Status.Conditions, "Configured")
	if c == nil || !strings.Contains(c.Message, "which had it first); leave it out, rename it, or declare it as that add-on does, or remove that add-on from the cluster") {
		t.Errorf("the condition does not say how to resolve it: %+v", c)
	}
	first.Spec.Workload.Manifests[0].Raw = sharedManifest("2")
	s.update(first)
	s.settle()

	first.Spec.Workload.Manifests[0].Raw = sharedManifest("3")
	s.update(first)
	s.turns(2)
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("nothing of it was moved: %s", ro.Status.Phase)
	}
	if got := s.troubled(); !strings.HasPrefix(got, "ObjectConflict: overruled on 1 cluster: c1: "+conflict) {
		t.Errorf("got %q", got)
	}
	if why, _ := s.plan().Why("c1"); !strings.HasPrefix(why.Reason, "runs the target; at present: "+conflict) {
		t.Errorf("got %q", why.Reason)
	}
	if after := s.turn().RequeueAfter; after == 0 || after > configRetry {
		t.Errorf("it is looked at again after %s", after)
	}
	s.delete(first)
	s.turns(2)
	if got := s.troubled(); got != "" {
		t.Errorf("it is gone: got %q", got)
	}
}

// TestTakeOverIsNoContention: works of OCM's addon-manager or of a user do not contend. While an
// add-on is taken over, both exist for a moment.
func TestTakeOverIsNoContention(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.create(workOf(t, "unrelated", "c1", map[string]string{}))
	s.target("v1")
	s.settle()
}

// TestClusterThatBreaksAfterItIsDoneSaysSo: the reason of a cluster that breaks after it was verified
// has its current problem.
func TestClusterThatBreaksAfterItIsDoneSaysSo(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	w := s.works()["c1"]
	w.Status.Conditions = []metav1.Condition{{
		Type: workv1.WorkApplied, Status: metav1.ConditionFalse, ObservedGeneration: w.Generation, Reason: "AppliedManifestWorkFailed", Message: "refused",
	}}
	if err := s.hub.Status().Update(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if why, _ := s.plan().Why("c1"); !strings.HasPrefix(why.Reason, "runs the target; at present: ") {
		t.Errorf("got %q", why.Reason)
	}
}
