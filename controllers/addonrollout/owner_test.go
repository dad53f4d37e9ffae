package addonrollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// owners are the UIDs that a cluster's ManagedClusterAddOn refers to.
func (s *scene) owners(cluster string) []types.UID {
	s.t.Helper()
	var uids []types.UID
	for _, r := range s.addOn(cluster).OwnerReferences {
		uids = append(uids, r.UID)
	}
	return uids
}

// TestOwnerReferencesFollowARecreatedClusterManagementAddOn: after the ClusterManagementAddOn was
// deleted and applied again, the references are restored, only on AddonFlow's ManagedClusterAddOns.
func TestOwnerReferencesFollowARecreatedClusterManagementAddOn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	before := s.owners("c1")
	if len(before) != 1 {
		t.Fatalf("owners %v, want one", before)
	}
	handMade := s.addOn("c2")
	handMade.Labels, handMade.OwnerReferences = nil, nil
	s.update(handMade)
	ours := s.addOn("c1")
	ours.OwnerReferences = nil
	s.update(ours)

	s.turn()
	if got := s.owners("c1"); len(got) != 1 || got[0] != before[0] {
		t.Errorf("owners of ours %v, want %v", got, before)
	}
	if got := s.owners("c2"); len(got) != 0 {
		t.Errorf("owners of a hand-made one %v, want none", got)
	}

	// A ClusterManagementAddOn that is being deleted must not be an owner: the garbage collector
	// would delete the ManagedClusterAddOn as well.
	ours = s.addOn("c1")
	ours.OwnerReferences = nil
	s.update(ours)
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(cma), cma); err != nil {
		t.Fatal(err)
	}
	cma.Finalizers = []string{"addonflow.io/finalizer"}
	s.update(cma)
	s.delete(cma)
	s.turn()
	if got := s.owners("c1"); len(got) != 0 {
		t.Errorf("owners %v, want none while the owner is being deleted", got)
	}
}

// TestRollout_InstallsAgainAtItsPaceWhatAForegroundDeletionRemoved: in a foreground deletion the
// garbage collector deletes the ManagedClusterAddOns before the ClusterManagementAddOn.
func TestRollout_InstallsAgainAtItsPaceWhatAForegroundDeletionRemoved(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.oneByOne()
	s.target("v1")
	s.settle()
	for _, cluster := range s.installed() {
		s.delete(s.works()[cluster])
		s.delete(s.addOn(cluster))
	}
	for _, want := range []int{1, 2, 3} {
		s.turns(3)
		if got := len(s.works()); got != want {
			t.Fatalf("%d clusters have works, want %d", got, want)
		}
		s.report()
	}
	s.settle()
}
