package addonrollout

import (
	"maps"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// askForRelease annotates the rollout; with left, its add-on left Git and the removal was approved.
func (s *scene) askForRelease(left *v1alpha1.Removal) {
	s.t.Helper()
	ro := s.rollout()
	if ro.Annotations == nil {
		ro.Annotations = map[string]string{}
	}
	ro.Annotations[v1alpha1.ReleaseAnnotation] = "true"
	ro.Spec.Removal = left
	s.update(ro)
}

// approved is the removal of an add-on that left Git from a source that prunes.
func approved() *v1alpha1.Removal { return &v1alpha1.Removal{Commit: "c", Approved: true} }

func TestReleaseSuspendsUntilTheAddOnLeftGit(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.askForRelease(nil)
	before := s.versions()
	s.target("v2")
	s.turns(3)
	if !maps.Equal(before, s.versions()) {
		t.Error("a cluster was moved although the add-on is to be released")
	}
	if ro := s.rollout(); ro.Status.Phase != v1alpha1.PhaseSuspended || !slices.Contains(ro.Finalizers, v1alpha1.Finalizer) {
		t.Errorf("phase %s, finalizers %v", ro.Status.Phase, ro.Finalizers)
	}
}

func TestReleaseRemovesLabelsAndDeletesNothing(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	addOn := s.addOn("c1")
	addOn.Finalizers = []string{addonv1alpha1.AddonPreDeleteHookFinalizer, "example.com/theirs"}
	addOn.Annotations = map[string]string{v1alpha1.SelectedByAnnotation: "Manual"}
	s.update(addOn)
	labels := map[string]string{addOnNameLabel: "hello", v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", Labels: labels}}
	s.create(binding)
	before := s.versions()
	s.askForRelease(approved())
	s.turn()
	late := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "c2", Name: "hello", Labels: labels}}
	s.create(late) // the controller that binds roles was still writing
	s.turns(2)
	if ro := s.rollout(); !ro.Released() {
		t.Fatalf("the finalizer is still there: %v", ro.Finalizers)
	}
	for range 3 { // far beyond the grace period of a removal
		s.advance(time.Hour)
		s.turn()
	}
	if !maps.Equal(before, s.versions()) {
		t.Errorf("a release writes no work: before %v, after %v", before, s.versions())
	}
	for _, cluster := range []string{"c1", "c2"} {
		addOn := s.addOn(cluster)
		if addOn == nil || addOn.Labels[v1alpha1.ManagedByLabel] != "" {
			t.Errorf("%s: it stays, and no controller removes it: %v", cluster, addOn)
		}
	}
	if got := s.addOn("c1").Annotations; len(got) != 0 {
		t.Errorf("nothing uses the placement any more: %v", got)
	}
	if got := s.addOn("c1").Finalizers; !slices.Equal(got, []string{"example.com/theirs"}) {
		t.Errorf("no controller would take our finalizers off later: got %v", got)
	}
	for _, b := range []*rbacv1.RoleBinding{binding, late} {
		if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil || b.Labels[v1alpha1.ManagedByLabel] != "" {
			t.Errorf("the agent on %s keeps its role: %v, error %v", b.Namespace, b.Labels, err)
		}
	}
}

// Without the rollout the source would not know that there was a release.
func TestDeletedRolloutWaitsForItsSourceToReleaseIt(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	mark := func(source string) {
		t.Helper()
		owner := &addonv1alpha1.ClusterManagementAddOn{}
		if err := s.hub.Get(t.Context(), client.ObjectKey{Name: "hello"}, owner); err != nil {
			t.Fatal(err)
		}
		owner.Annotations = map[string]string{v1alpha1.SourceAnnotation: source}
		s.update(owner)
	}
	mark("team/fleet")
	ro := s.rollout()
	ro.Annotations = map[string]string{v1alpha1.SourceAnnotation: "team/fleet"}
	s.update(ro)
	s.askForRelease(approved())
	s.delete(s.rollout())
	s.turns(3)
	if s.gone() {
		t.Fatal("it went before its source released the add-on")
	}
	mark("")
	s.turn()
	if !s.gone() || s.addOn("c1") == nil {
		t.Error("it goes when its source has released it, and the add-on stays")
	}
}

// The hooks of a deletion that started before the release still run.
func TestReleaseWaitsForDeletions(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	addOn := s.addOn("c1")
	addOn.Finalizers = []string{"example.com/theirs"}
	s.update(addOn)
	s.delete(addOn)
	s.askForRelease(approved())
	s.turns(2)
	if s.rollout().Released() {
		t.Fatal("released while a deletion is under way")
	}
	plan := s.plan()
	if p, _ := plan.Why("c2"); p.State == rollout.Removing && s.addOn("c2").DeletionTimestamp != nil {
		t.Errorf("no other cluster is removed: %+v", p)
	}
	addOn = s.addOn("c1")
	addOn.Finalizers = nil
	s.update(addOn)
	s.turns(2)
	if !s.rollout().Released() {
		t.Error("with the deletion through, the rest is released")
	}
}
