package addonrollout

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// workOf is a work that AddonFlow wrote for another add-on, or somebody else wrote, with
// the Deployment of hello.
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

// TestRow42AcrossSources: an object that another add-on of ours deploys on a cluster is
// not written a second time. The first cluster that would get it fails at its turn, with
// both owners named, and goes on once the other one is gone.
func TestRow42AcrossSources(t *testing.T) {
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
	if n := len(s.works()); n != 1 {
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

// TestTakeOverIsNoContention: works that OCM's addon-manager or a user wrote are none of
// ours, and both are there for a moment while an add-on is taken over.
func TestTakeOverIsNoContention(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.create(workOf(t, "anybody", "c1", map[string]string{}))
	s.target("v1")
	s.settle()
}

// TestDoneSaysWhatItsWorksSay: a cluster that was verified once and is broken since does
// not merely run the target.
func TestDoneSaysWhatItsWorksSay(t *testing.T) {
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
