package hubclient

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
)

// decoded returns a new object from a text, as a watch does. %s in the text is the name of the cluster.
func decoded[T any](tb testing.TB, text, cluster string) *T {
	tb.Helper()
	out := new(T)
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "%s", cluster)), out); err != nil {
		tb.Fatal(err)
	}
	return out
}

const (
	work = `{
	  "metadata": {"name": "addon-hello-deploy-0", "namespace": "%s", "uid": "%s-uid", "resourceVersion": "12", "generation": 2,
	    "labels": {"addonflow.io/managed-by": "addonflow", "open-cluster-management.io/addon-name": "hello"},
	    "annotations": {"addonflow.io/revision": "v1:sha256:0123456789abcdef", "addonflow.io/digest": "of-%s"},
	    "finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]},
	  "spec": {"workload": {"manifests": [
	      {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "hello", "namespace": "agents"}},
	      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s", "namespace": "agents"}}]},
	    "manifestConfigs": [{"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": "agents", "name": "hello"},
	      "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "replicas", "path": ".spec.replicas"}]}]}]},
	  "status": {"conditions": [
	      {"type": "Applied", "status": "True", "reason": "AppliedManifestWorkComplete", "message": "Apply manifest work complete", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 2},
	      {"type": "Available", "status": "True", "reason": "ResourcesAvailable", "message": "All resources are available", "lastTransitionTime": "2026-01-01T00:00:01Z", "observedGeneration": 2}],
	    "resourceStatus": {"manifests": [{"resourceMeta": {"ordinal": 0, "kind": "ServiceAccount", "version": "v1", "resource": "serviceaccounts", "name": "hello", "namespace": "agents"},
	      "statusFeedback": {"values": [{"name": "replicas", "fieldValue": {"type": "Integer", "integer": 1}}, {"name": "digest", "fieldValue": {"type": "String", "string": "of-%s"}}]},
	      "conditions": [{"type": "Applied", "status": "True", "reason": "AppliedManifestComplete", "message": "Apply manifest complete", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]}}}`
	addOn = `{
	  "metadata": {"name": "hello", "namespace": "%s", "uid": "%s-uid", "resourceVersion": "13",
	    "ownerReferences": [{"apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ClusterManagementAddOn", "name": "hello", "uid": "one"}],
	    "managedFields": [{"manager": "addonflow", "operation": "Update", "apiVersion": "addon.open-cluster-management.io/v1alpha1", "time": "2026-01-01T00:00:00Z",
	      "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:conditions": {"k:{\"type\":\"Progressing\"}": {".": {}, "f:status": {}}}}}}]},
	  "status": {"namespace": "agents", "configReferences": [{"group": "addon.open-cluster-management.io", "resource": "addontemplates", "name": "hello",
	      "lastObservedGeneration": 1, "desiredConfig": {"name": "hello", "specHash": "abc"}, "lastAppliedConfig": {"name": "hello", "specHash": "abc"}}],
	    "conditions": [{"type": "Progressing", "status": "False", "reason": "UpgradeSucceed", "message": "upgrade completed with no errors.", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
	cluster = `{
	  "metadata": {"name": "%s", "uid": "%s-uid", "resourceVersion": "14", "labels": {"cluster.open-cluster-management.io/clusterset": "default", "name": "%s"}},
	  "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
	  "status": {"version": {"kubernetes": "v1.36.3"}, "clusterClaims": [{"name": "id.k8s.io", "value": "%s"}, {"name": "platform", "value": "none"}],
	    "allocatable": {"cpu": "16", "memory": "64Gi"},
	    "conditions": [{"type": "ManagedClusterConditionAvailable", "status": "True", "reason": "ManagedClusterAvailable", "message": "Managed cluster is available", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}`
)

// TestShare_ChangesNoValue: what a reader of the cache sees is what the API server sent.
func TestShare_ChangesNoValue(t *testing.T) {
	s := NewSharer()
	for i := range 3 {
		name := fmt.Sprint("cluster", i)
		unchanged(t, s, func() *workv1.ManifestWork { return decoded[workv1.ManifestWork](t, work, name) })
		unchanged(t, s, func() *addonv1alpha1.ManagedClusterAddOn {
			return decoded[addonv1alpha1.ManagedClusterAddOn](t, addOn, name)
		})
		unchanged(t, s, func() *clusterv1.ManagedCluster { return decoded[clusterv1.ManagedCluster](t, cluster, name) })
		// Kinds with numbers, unions and fields that are not exported.
		for _, memory := range []string{"1Gi", "2Gi"} {
			unchanged(t, s, func() *appsv1.Deployment {
				one := intstr.FromString("25%")
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": memory}}}
				d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &one}
				d.Spec.Template.Spec.Containers = []corev1.Container{{
					Name:      "hello",
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}},
				}}
				return d
			})
		}
	}
}

func unchanged[T any](t *testing.T, s *Sharer, decode func() *T) {
	t.Helper()
	got, err := s.Share(decode())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(), got); diff != "" {
		t.Errorf("sharing changed the object (-before +after):\n%s", diff)
	}
}

// TestShare_EqualPartsAreOne: texts, maps, slices and what pointers point at.
func TestShare_EqualPartsAreOne(t *testing.T) {
	s := NewSharer()
	a, b := decoded[workv1.ManifestWork](t, work, "a"), decoded[workv1.ManifestWork](t, work, "b")
	for _, w := range []*workv1.ManifestWork{a, b} {
		if _, err := s.Share(w); err != nil {
			t.Fatal(err)
		}
	}
	manifestsA, manifestsB := a.Spec.Workload.Manifests, b.Spec.Workload.Manifests
	valuesA, valuesB := a.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values, b.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values
	for what, shared := range map[string]bool{
		"a manifest":             &manifestsA[0].Raw[0] == &manifestsB[0].Raw[0],
		"the feedback rules":     &a.Spec.ManifestConfigs[0] == &b.Spec.ManifestConfigs[0],
		"conditions":             &a.Status.Conditions[0] == &b.Status.Conditions[0],
		"the finalizers":         &a.Finalizers[0] == &b.Finalizers[0],
		"a number":               valuesA[0].Value.Integer == valuesB[0].Value.Integer,
		"an annotation's text":   sameText(a.Annotations["addonflow.io/revision"], b.Annotations["addonflow.io/revision"]),
		"a text of another part": sameText(a.Status.ResourceStatus.Manifests[0].ResourceMeta.Namespace, a.Spec.ManifestConfigs[0].ResourceIdentifier.Namespace),
	} {
		if !shared {
			t.Errorf("%s: two copies", what)
		}
	}
	if cap(valuesA) != len(valuesA) {
		t.Errorf("a slice keeps room for %d values that never come", cap(valuesA)-len(valuesA))
	}
	if &manifestsA[1].Raw[0] == &manifestsB[1].Raw[0] || valuesA[1].Value.String == valuesB[1].Value.String {
		t.Error("two clusters share what differs")
	}
}

// sameText reports whether two texts are in the same memory.
func sameText(a, b string) bool {
	return unsafe.StringData(a) == unsafe.StringData(b) //nolint:gosec // compared, not read
}

// TestShare_KeepsABoundedPast: objects that are gone are not kept for ever, and what is still seen is.
func TestShare_KeepsABoundedPast(t *testing.T) {
	s := NewSharer()
	first := decoded[workv1.ManifestWork](t, work, "first")
	if _, err := s.Share(first); err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		next := decoded[workv1.ManifestWork](t, work, fmt.Sprint("cluster", i))
		if _, err := s.Share(next); err != nil {
			t.Fatal(err)
		}
		if &next.Spec.ManifestConfigs[0] != &first.Spec.ManifestConfigs[0] {
			t.Fatalf("after %d objects, a part that all have is copied", i)
		}
	}
	if most := 2 * (generation/perValue + 2); len(s.young)+len(s.older) > most {
		t.Errorf("%d values are kept, want at most %d", len(s.young)+len(s.older), most)
	}
}

// BenchmarkShare reports what one cluster's objects take in memory.
func BenchmarkShare(b *testing.B) {
	for name, share := range map[string]func(any) (any, error){"whole": func(in any) (any, error) { return in, nil }, "shared": NewSharer().Share} {
		b.Run(name, func(b *testing.B) {
			before := live()
			kept := make([]any, 0, 3*b.N)
			b.ResetTimer()
			for i := range b.N {
				c := fmt.Sprint("cluster", i)
				for _, object := range []any{
					decoded[workv1.ManifestWork](b, work, c), decoded[addonv1alpha1.ManagedClusterAddOn](b, addOn, c), decoded[clusterv1.ManagedCluster](b, cluster, c),
				} {
					out, err := share(object)
					if err != nil {
						b.Fatal(err)
					}
					kept = append(kept, out)
				}
			}
			b.StopTimer()
			b.ReportMetric(float64(live()-before)/float64(b.N), "B/cluster")
			runtime.KeepAlive(kept)
		})
	}
}

// live is what is kept on the heap.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is that large
}
