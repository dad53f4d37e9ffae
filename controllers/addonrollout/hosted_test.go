package addonrollout

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/render"
	"github.com/addonflow/addonflow/rollout"
)

// with is content with changed manifests.
func with(t *testing.T, content render.Content, change func(manifests []any) []any) render.Content {
	t.Helper()
	spec, path := content.Templates[0].Spec, []string{"agentSpec", "workload", "manifests"}
	manifests, _, err := unstructured.NestedSlice(spec, path...)
	if err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(spec, change(manifests), path...); err != nil {
		t.Fatal(err)
	}
	return content
}

// hostedAt is contentAt with its Deployment on the hosting cluster.
func hostedAt(t *testing.T, tag string) render.Content {
	t.Helper()
	return with(t, contentAt(tag), func(manifests []any) []any {
		deployment, _ := manifests[0].(map[string]any)
		(&unstructured.Unstructured{Object: deployment}).SetAnnotations(map[string]string{
			addonv1alpha1.HostedManifestLocationAnnotationKey: addonv1alpha1.HostedManifestLocationHostingValue,
		})
		return manifests
	})
}

// hookAt is a pre-delete hook of a location in hosted mode.
func hookAt(location string) map[string]any {
	hook := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "clean", "image": "example.com/clean:v1"}},
		},
	}}
	hook.SetName(location)
	hook.SetNamespace("agents")
	hook.SetAnnotations(map[string]string{
		addonv1alpha1.AddonPreDeleteHookAnnotationKey: "", addonv1alpha1.HostedManifestLocationAnnotationKey: location,
	})
	return hook.Object
}

// annotatedScene is a scene in which c1's ManagedCluster names host as its hosting cluster.
func annotatedScene(t *testing.T) (s *scene, host *clusterv1.ManagedCluster) {
	t.Helper()
	s = newScene(t, interceptor.Funcs{}, "c1", "c2")
	host = availableCluster("host")
	host.Spec.HubAcceptsClient = true
	s.create(host)
	c1 := &clusterv1.ManagedCluster{}
	if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "c1"}, c1); err != nil {
		t.Fatal(err)
	}
	c1.Annotations = map[string]string{addonv1alpha1.HostingClusterNameAnnotationKey: "host"}
	s.update(c1)
	return s, host
}

// lose makes a cluster unavailable.
func (s *scene) lose(c *clusterv1.ManagedCluster) {
	s.t.Helper()
	c.Status.Conditions[0].Status = metav1.ConditionUnknown
	s.update(c)
}

// why is the planner's reason for c1.
func (s *scene) why() (rollout.State, string) {
	s.t.Helper()
	plan := s.plan()
	p, _ := plan.Why("c1")
	return p.State, p.Reason
}

// hostedSays is the status of a condition of c1's add-on, "" without it.
func (s *scene) hostedSays(kind string) metav1.ConditionStatus {
	s.t.Helper()
	if c := meta.FindStatusCondition(s.addOn("c1").Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

// TestAddOnThatHostsNothingIsIndependentOfTheHostingCluster: the annotation of a ManagedCluster is
// copied to all its add-ons, also to add-ons without hosted objects.
func TestAddOnThatHostsNothingIsIndependentOfTheHostingCluster(t *testing.T) {
	s, host := annotatedScene(t)
	s.target("v1")
	s.settle()
	s.lose(host)
	s.target("v2")
	s.settle()
	if got := s.rollout().Status.Message; got != "2/2 updated" {
		t.Errorf("while the hosting cluster is off line: %s", got)
	}
	s.delete(host)
	s.target("v3")
	s.settle()
	if got := s.rollout().Status.Message; got != "2/2 updated" {
		t.Errorf("once the hosting cluster is gone: %s", got)
	}
	if got := s.addOn("c1").Finalizers; len(got) != 0 {
		t.Errorf("nothing is to be cleaned up there: %v", got)
	}
	if got := s.hostedSays(addonv1alpha1.ManagedClusterAddOnHostingManifestApplied); got != "" {
		t.Errorf("nothing was to be applied there: %s", got)
	}
	if got := s.hostedSays(addonv1alpha1.ManagedClusterAddOnHostingClusterValidity); got != metav1.ConditionFalse {
		t.Errorf("the annotation names no cluster, as OCM says: %q", got)
	}
}

// TestAddOnThatHostsWaitsForTheHostingCluster: an add-on with hosted objects waits for the hosting
// cluster, names it, and cannot be written after it was deleted. This holds for content that begins
// to be hosted, and for content that is not hosted any more while its hosting work exists.
func TestAddOnThatHostsWaitsForTheHostingCluster(t *testing.T) {
	for name, tc := range map[string]struct{ before, after render.Content }{
		"Stays":  {hostedAt(t, "v1"), hostedAt(t, "v2")},
		"Comes":  {contentAt("v1"), hostedAt(t, "v2")},
		"Leaves": {hostedAt(t, "v1"), contentAt("v2")},
	} {
		t.Run(name, func(t *testing.T) {
			s, host := annotatedScene(t)
			s.targetOf(tc.before, "v1")
			s.settle()
			s.lose(host)
			s.targetOf(tc.after, "v2")
			s.settle()
			if state, reason := s.why(); state != rollout.Parked || reason != "hosting cluster host is not available" {
				t.Errorf("off line: %s: %s", state, reason)
			}
			s.delete(host)
			s.turns(3)
			const gone = "hosting cluster host is not a managed cluster of the hub"
			if state, reason := s.why(); state != rollout.Failed || reason != gone {
				t.Errorf("gone: %s: %s", state, reason)
			}
			if got := s.rollout().Status.Message; got != "1/2 updated, 1 failed (c1: "+gone+"), halted in all" {
				t.Errorf("the rollout says %s", got)
			}
			if got := s.hostedSays(addonv1alpha1.ManagedClusterAddOnHostingClusterValidity); got != metav1.ConditionFalse {
				t.Errorf("validity is %q", got)
			}
		})
	}
}

// TestHostingFinalizerComesAndGoesWithWhatIsHosted: so does the condition about hosted works.
func TestHostingFinalizerComesAndGoesWithWhatIsHosted(t *testing.T) {
	s, _ := annotatedScene(t)
	for _, tc := range []struct {
		content render.Content
		tag     string
		hosts   bool
	}{{contentAt("v1"), "v1", false}, {hostedAt(t, "v2"), "v2", true}, {contentAt("v3"), "v3", false}} {
		s.targetOf(tc.content, tc.tag)
		s.settle()
		if got := slices.Contains(s.addOn("c1").Finalizers, addonv1alpha1.AddonHostingManifestFinalizer); got != tc.hosts {
			t.Errorf("%s: the finalizer is there: %v", tc.tag, got)
		}
		if got := s.hostedSays(addonv1alpha1.ManagedClusterAddOnHostingManifestApplied) != ""; got != tc.hosts {
			t.Errorf("%s: the condition is there: %v", tc.tag, got)
		}
	}
}

// TestHooksOfHostedModeWithNothingHosted: an add-on with the annotation but without hosted objects has
// no hosting finalizer. Its hooks are still those of hosted mode.
func TestHooksOfHostedModeWithNothingHosted(t *testing.T) {
	s, _ := annotatedScene(t)
	s.targetOf(with(t, contentAt("v1"), func(manifests []any) []any {
		return append(manifests, hookAt(addonv1alpha1.HostedManifestLocationManagedValue), hookAt(addonv1alpha1.HostedManifestLocationNoneValue))
	}), "v1")
	s.settle()
	s.delete(s.addOn("c1"))
	s.turns(2)
	var work workv1.ManifestWork
	if err := s.hub.Get(t.Context(), client.ObjectKey{Namespace: "c1", Name: render.PreDeleteWorkName("hello")}, &work); err != nil {
		t.Fatal(err)
	}
	if got := len(work.Spec.Workload.Manifests); got != 1 {
		t.Errorf("%d hooks run, one is for the managed cluster", got)
	}
}
