package addonrollout

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/forge"
	"github.com/addonflow/addonflow/controllers/hubclient"
	testforge "github.com/addonflow/addonflow/test/forge"
)

// gone reports whether the rollout is deleted.
func (s *scene) gone() bool {
	s.t.Helper()
	err := s.hub.Get(s.t.Context(), s.key, &v1alpha1.AddOnRollout{})
	return apierrors.IsNotFound(err)
}

// leave removes the add-on from every cluster and deletes the rollout, as happens after its source is
// deleted.
func (s *scene) leave() {
	s.t.Helper()
	ro := s.rollout()
	ro.Spec.Removal = &v1alpha1.Removal{Commit: "c", Approved: true}
	s.update(ro)
	for name := range s.works() {
		s.delete(s.works()[name])
		s.delete(s.addOn(name))
	}
	s.delete(s.rollout())
}

// removed removes the add-on from every cluster, as after its files left Git.
func (s *scene) removed() {
	s.t.Helper()
	ro := s.rollout()
	ro.Spec.Removal = &v1alpha1.Removal{Commit: commitNamed("v9"), Approved: true}
	s.update(ro)
	for range 40 {
		s.turn()
		s.advance(time.Minute)
		for name, w := range s.works() { // as the hub's garbage collector
			if !slices.Contains(s.installed(), name) {
				s.delete(w)
			}
		}
	}
	if st := s.rollout().Status; st.Phase != v1alpha1.PhaseRemoved {
		s.t.Fatalf("%s: %s; still installed on %v", st.Phase, st.Message, s.installed())
	}
}

func TestDeletedRolloutWithoutTargetEnds(t *testing.T) {
	s := newScene(t, interceptor.Funcs{})
	ro := s.rollout()
	ro.Finalizers = []string{v1alpha1.Finalizer}
	s.update(ro)
	s.delete(ro)
	s.turn()
	if !s.gone() {
		t.Error("nothing holds a rollout that never had a target")
	}
}

func TestFinalizerAsksLive(t *testing.T) {
	blind := false
	s := newScene(t, interceptor.Funcs{}, "c1")
	watch := interceptor.NewClient(s.hub.(client.WithWatch), interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error { //nolint:errcheck // the fake has both
		if _, ok := list.(*addonv1alpha1.ManagedClusterAddOnList); ok && blind {
			return nil
		}
		return c.List(ctx, list, opts...)
	}})
	s.target("v1")
	s.settle()
	s.delete(s.rollout())
	blind = true
	s.reconciler.Client = watch
	s.turn()
	if s.gone() {
		t.Error("the rollout was deleted although a ManagedClusterAddOn exists that the watch does not show yet")
	}
}

func TestDeletedRolloutWaitsForItsStatuses(t *testing.T) {
	t.Run("DeadForge", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1")
		s.reporting()
		s.target("v1")
		s.settle()
		s.leave()
		if result := s.turn(); s.gone() || result.RequeueAfter <= 0 || result.RequeueAfter > forge.KeptFor {
			t.Fatalf("a verdict is still to be reported: gone %v, again after %s", s.gone(), result.RequeueAfter)
		}
		if len(s.works()) != 0 {
			t.Fatal("a rollout that ends plans nothing")
		}
		ro := s.rollout()
		s.clock.SetTime(ro.DeletionTimestamp.Time)
		s.advance(forge.KeptFor)
		s.turn()
		if !s.gone() {
			t.Error("a forge that is gone for good keeps nothing for ever")
		}
	})
	t.Run("Delivered", func(t *testing.T) {
		s := newScene(t, interceptor.Funcs{}, "c1")
		f := testforge.New("team/fleet")
		if _, err := f.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		s.reporting()
		s.readdress(f.Address("team/fleet"))
		s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "forge"}, Data: map[string][]byte{"token": []byte("x")}})
		s.target("v1")
		s.settle() // nothing was delivered: the desk is not at work
		s.leave()
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { defer close(stopped); _ = s.reconciler.Desk.Start(ctx) }()
		t.Cleanup(func() { cancel(); <-stopped })
		waiting, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		for !s.gone() && waiting.Err() == nil {
			s.turn()
		}
		if e, ok := f.Latest(commitNamed("v1"), "addonflow/fleet/hello"); !ok || e.State != "success" {
			t.Fatalf("the verdict never came: %v", f.Log())
		}
		if !s.gone() {
			t.Error("with the verdict accepted nothing is waited for")
		}
	})
}

// readdress changes the forge that the source reports to.
func (s *scene) readdress(address string) {
	s.t.Helper()
	source := &v1alpha1.AddOnSource{}
	if err := s.hub.Get(s.t.Context(), client.ObjectKey{Namespace: "team", Name: "fleet"}, source); err != nil {
		s.t.Fatal(err)
	}
	source.Spec.CommitStatus.Address = address
	s.update(source)
}

// TestDeletedRolloutLeavesNoCommitPending: a rollout that is deleted while it moves clusters leaves
// no commit pending for ever.
func TestDeletedRolloutLeavesNoCommitPending(t *testing.T) {
	for name, c := range map[string]struct {
		next string
		want string
	}{
		"Deleted":   {"", "error: ended: the rollout was deleted"},
		"Overtaken": {"v2", "error: superseded by " + commitNamed("v2")[:10]},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, interceptor.Funcs{}, "c1")
			s.reporting()
			s.target("v1")
			s.turns(2)
			if got := s.reported(); !strings.HasPrefix(got, "pending: ") {
				t.Fatalf("reported %q", got)
			}
			if c.next != "" {
				s.target(c.next)
			}
			s.leave()
			s.turn()
			if s.gone() || s.reported() != c.want {
				t.Errorf("gone %v, reported %q, want %q", s.gone(), s.reported(), c.want)
			}
		})
	}
}

// TestStatusThatAnotherWriterChangedWakesItsRollout: the status was emptied or restored from a
// backup. At rest nothing else wakes the rollout, and the operator's own writes must not.
func TestStatusThatAnotherWriterChangedWakesItsRollout(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	changed := func(change func()) bool {
		before := s.rollout()
		change()
		return s.reconciler.statusOfOthers().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: s.rollout()})
	}
	replace := func(status v1alpha1.AddOnRolloutStatus) func() {
		return func() {
			ro := s.rollout()
			ro.Status = status
			if err := s.hub.Status().Update(t.Context(), ro); err != nil {
				t.Fatal(err)
			}
		}
	}
	if changed(s.settle) {
		t.Error("woken by its own write")
	}
	if changed(s.oneByOne) {
		t.Error("woken by a write of something else")
	}
	backup := s.rollout().Status
	backup.Message = "0/1 updated"
	if !changed(replace(backup)) {
		t.Error("not woken by a status from a backup")
	}
	if changed(func() { s.turn() }) {
		t.Error("woken by the write that puts it right")
	}
	if !changed(replace(v1alpha1.AddOnRolloutStatus{})) {
		t.Error("not woken by an empty status")
	}
}

// TestRolloutThatLostItsFinalizerGetsItBack: at rest nothing else wakes the rollout.
func TestRolloutThatLostItsFinalizerGetsItBack(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	before := s.rollout()
	edited := before.DeepCopy()
	edited.Finalizers = nil
	s.update(edited)
	if taken := hubclient.FinalizerTaken(); !taken.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: s.rollout()}) {
		t.Error("not woken")
	}
	s.turn()
	if got := s.rollout().Finalizers; !slices.Equal(got, []string{v1alpha1.Finalizer}) {
		t.Errorf("finalizers are %q", got)
	}
	if hubclient.FinalizerTaken().Update(event.UpdateEvent{ObjectOld: edited, ObjectNew: s.rollout()}) {
		t.Error("woken by its own write")
	}
}

// TestDeletedRolloutSaysWhyItStays: a rollout that a user deletes continues while a cluster has the
// add-on, and says so.
func TestDeletedRolloutSaysWhyItStays(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.delete(s.rollout())
	s.turns(2)
	const kept = "2/2 updated; the AddOnRollout is being deleted: it stays and works as before while a cluster has the add-on (now 2 clusters); " +
		"to keep the add-on, do nothing; to remove it, remove it from Git"
	if got := s.says("Reconciling"); got != "True DeletionGuard: "+kept {
		t.Errorf("got %q", got)
	}
	if got := s.says("Ready"); got != "Unknown DeletionGuard: "+kept {
		t.Errorf("got %q", got)
	}
	if got := s.rollout().Status.Phase; got != v1alpha1.PhaseSucceeded {
		t.Errorf("what it rolled out is none the worse for it: %s", got)
	}
}

// TestDeletedDefinitionIsNamedOnItsRollouts: a deleted CustomResourceDefinition deletes every
// rollout. This does not remove any add-on.
func TestDeletedDefinitionIsNamedOnItsRollouts(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: "addonrollouts.addonflow.io", Finalizers: []string{apiextensionsv1.CustomResourceCleanupFinalizer},
	}}
	s.create(definition)
	s.delete(definition)
	s.delete(s.rollout())
	s.turns(2)
	const want = "True DeletionGuard: 1/1 updated; CustomResourceDefinition/addonrollouts.addonflow.io is being deleted: the add-on stays on 1 cluster; " +
		"add-ons keep running; delete the operator and run addonflow uninstall"
	if got := s.says("Reconciling"); got != want {
		t.Errorf("got %q", got)
	}
}

// While clusters leave, and their removal waits, the conditions still say that the rollout ended.
func TestRemovalThatWaitsHidesNoAbort(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2", "c3")
	s.commit("v1")
	s.settle()
	v2 := s.commit("v2")
	s.turn()
	s.order(v1alpha1.OrderAbort, v2, nil)
	s.decides("c1", "c2")
	s.turns(3)
	if got := s.says("Stalled"); !strings.HasPrefix(got, "True RolloutFailed: aborted by ") || !strings.Contains(got, "; 1 cluster to remove: grace period until ") {
		t.Errorf("Stalled is %q, and Reconciling %q", got, s.says("Reconciling"))
	}
}
