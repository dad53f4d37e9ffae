package addonrollout

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/render"
)

// TestTrimManagedCluster_KeepsOnlyWhatIsRead: a certificate bundle alone is larger than everything else.
func TestTrimManagedCluster_KeepsOnlyWhatIsRead(t *testing.T) {
	read := clusterv1.ManagedCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}},
		Spec:       clusterv1.ManagedClusterSpec{HubAcceptsClient: true, Taints: []clusterv1.Taint{{Key: "e"}}},
		Status: clusterv1.ManagedClusterStatus{
			Conditions:    []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable}},
			Version:       clusterv1.ManagedClusterVersion{Kubernetes: "v1.36.3"},
			ClusterClaims: []clusterv1.ManagedClusterClaim{{Name: "f", Value: "g"}},
		},
	}
	whole := read.DeepCopy()
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "registration"}}
	whole.Spec.ManagedClusterClientConfigs = []clusterv1.ClientConfig{{URL: "https://c1", CABundle: []byte("bundle")}}
	whole.Status.Capacity = clusterv1.ResourceList{clusterv1.ResourceCPU: resource.MustParse("16")}
	whole.Status.Allocatable = whole.Status.Capacity
	whole.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ManagedClusterConditionJoined}, {Type: clusterv1.ManagedClusterConditionAvailable}, {Type: clusterv1.ManagedClusterConditionHubAccepted},
	}
	whole.Status.ManagedNamespaces = []clusterv1.ClusterSetManagedNamespaceConfig{{ClusterSet: "default"}}
	if diff := cmp.Diff(&read, TrimManagedCluster(whole)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTrimWork_KeepsOnlyWhatIsRead: the times of conditions would keep clusters from sharing them, and a manifest that
// names its cluster cannot be shared at all.
func TestTrimWork_KeepsOnlyWhatIsRead(t *testing.T) {
	read := workv1.ManifestWork{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "addon-hello-deploy-0", Annotations: map[string]string{v1alpha1.DigestAnnotation: "d"}},
		Status: workv1.ManifestWorkStatus{
			Conditions: []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, ObservedGeneration: 2}},
			ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
				ResourceMeta: workv1.ManifestResourceMeta{Kind: "ConfigMap", Name: "m"},
				Conditions:   []metav1.Condition{{Type: workv1.ManifestApplied, Status: metav1.ConditionTrue, Message: "applied"}},
			}}},
		},
	}
	whole := read.DeepCopy()
	whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "work-agent"}}
	whole.Status.Conditions[0].LastTransitionTime = metav1.Unix(1, 0)
	whole.Status.ResourceStatus.Manifests[0].Conditions[0].LastTransitionTime = metav1.Unix(2, 0)
	whole.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{
		Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"},"data":{"cluster":"` + strings.Repeat("c", 1000) + `"}}`),
	}}}
	TrimWork(whole, render.NewAbridger())
	if size := len(whole.Spec.Workload.Manifests[0].Raw); size > 200 {
		t.Errorf("%d bytes are left of the manifest", size)
	}
	whole.Spec.Workload.Manifests = nil
	if diff := cmp.Diff(&read, whole); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
