package main

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestHubFleet_HasForAPlacementWhatItsNamespaceMaySelect: of two cluster sets one is bound to the namespace.
func TestHubFleet_HasForAPlacementWhatItsNamespaceMaySelect(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	in := func(set string) map[string]string { return map[string]string{clusterv1beta2.ClusterSetLabel: set} }
	hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "mine", Labels: in("mine")}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: in("theirs")}},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "mine"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "mine"},
		},
		&clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-b", Name: "theirs"}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: "theirs"},
		},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "hello"}},
	).Build()
	fleet, err := hubFleet(t.Context(), hub)
	if err != nil {
		t.Fatal(err)
	}
	if !fleet.Installed["hello"]["theirs"] || len(fleet.Installed) != 1 {
		t.Errorf("installed: %v", fleet.Installed)
	}
	all := v1alpha1.PlacementReference{Namespace: "team-a", Name: "all"}
	policy := v1alpha1.AddOnRolloutSpec{Install: &v1alpha1.Install{Type: "Placements", Placements: []v1alpha1.InstallPlacement{{PlacementReference: all}}}}
	for _, sets := range [][]string{nil, {"mine", "theirs"}, {"mine", "global"}} {
		pl := clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: all.Namespace, Name: all.Name}, Spec: clusterv1beta1.PlacementSpec{ClusterSets: sets}}
		fleet.Declared = []clusterv1beta1.Placement{pl}
		selected, err := fleet.Fleet(policy)
		if err != nil || len(selected.Clusters) != 1 || selected.Clusters[0].Name != "mine" {
			t.Errorf("%v: %+v, %v; want mine alone", sets, selected.Clusters, err)
		}
	}
}
