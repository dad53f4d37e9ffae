package addonrollout

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

func TestOverlay(t *testing.T) {
	at := func(version string) *workv1.ManifestWork {
		return &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "w", UID: "u", ResourceVersion: version}}
	}
	start := time.Unix(0, 0)
	clock := clocktesting.NewFakePassiveClock(start)
	o := newOverlay[*workv1.ManifestWork](clock)
	unseen := func() (fresh, doubtful int) {
		f, d := o.unseen(map[client.ObjectKey]bool{}, func(*workv1.ManifestWork) bool { return true })
		return len(f), len(d)
	}

	if got := o.newest(at("5")); got.ResourceVersion != "5" {
		t.Errorf("without a write the watched object counts, got version %s", got.ResourceVersion)
	}
	o.create(at("7"))
	if fresh, doubtful := unseen(); fresh != 1 || doubtful != 0 {
		t.Errorf("an object the watch does not know yet is there all the same, got %d and %d", fresh, doubtful)
	}
	o.put(at("8"))
	if fresh, _ := unseen(); fresh != 1 {
		t.Errorf("and so it is when it was changed since, got %d", fresh)
	}
	clock.SetTime(start.Add(time.Minute))
	if fresh, doubtful := unseen(); fresh != 0 || doubtful != 1 {
		t.Errorf("one the watch should have shown by now is in doubt, got %d and %d", fresh, doubtful)
	}
	if got := o.newest(at("6")); got.ResourceVersion != "8" {
		t.Errorf("a watch that lags shows what was written, got version %s", got.ResourceVersion)
	}
	if fresh, doubtful := unseen(); fresh+doubtful != 0 {
		t.Errorf("what the watch has shown and shows no more is gone, got %d and %d", fresh, doubtful)
	}
	o.put(at("9"))
	if got := o.newest(at("10")); got.ResourceVersion != "10" {
		t.Errorf("a watch that is ahead wins; versions are numbers, not text: got %s", got.ResourceVersion)
	}
	recreated := at("12")
	o.put(at("20"))
	recreated.UID = "other"
	if got := o.newest(recreated); got.ResourceVersion != "12" {
		t.Errorf("another object of the same name is not the one written, got version %s", got.ResourceVersion)
	}
}

// If another writer deletes a new ManagedClusterAddOn at once, the watch never shows it. The operator
// must notice by itself that it does not exist.
func TestCreatedAndDeletedAtOnceIsInstalledAgain(t *testing.T) {
	blind := false
	s := newScene(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		_, addOns := list.(*addonv1alpha1.ManagedClusterAddOnList)
		asked := &client.ListOptions{}
		asked.ApplyOptions(opts)
		if addOns && blind && asked.Namespace == "" {
			return nil // the watch shows none
		}
		return c.List(ctx, list, opts...)
	}}, "c1")
	blind = true
	s.target("v1")
	result := s.turn()
	s.delete(s.addOn("c1"))
	if result.RequeueAfter <= 0 || result.RequeueAfter > unseenFor {
		t.Fatalf("nothing else wakes the rollout up for it: requeue after %s", result.RequeueAfter)
	}
	s.advance(unseenFor)
	s.turns(1)
	s.addOn("c1") // fails if it is not there
}

// Writes are remembered no longer than their rollout exists.
func TestWritesOfADeletedRolloutAreForgotten(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	s.reconciler.addOns.put(s.addOn("c1"))
	s.reconciler.works.put(s.works()["c1"])
	ro := s.rollout()
	ro.Finalizers = nil
	s.update(ro)
	s.delete(ro)
	s.turn()
	if a, w := len(s.reconciler.addOns.written), len(s.reconciler.works.written); a+w > 0 {
		t.Errorf("%d add-ons and %d works are remembered for no rollout", a, w)
	}
}

// TestWrittenWork_IsRememberedWithTheDigestThatWasReported: the cache abridges the digest of its own content, and the agent
// has not seen the new content yet.
func TestWrittenWork_IsRememberedWithTheDigestThatWasReported(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	before := s.works()["c1"].Annotations[v1alpha1.DigestAnnotation]
	s.target("v2")
	s.turn()
	written := s.reconciler.works.written[client.ObjectKey{Namespace: "c1", Name: "addon-hello-deploy-0"}].object
	if written == nil || written.Annotations[v1alpha1.DigestAnnotation] == before {
		t.Fatalf("the new work is not remembered: %+v", written)
	}
	found := false
	for _, m := range written.Status.ResourceStatus.Manifests {
		for _, v := range m.StatusFeedbacks.Values {
			found = found || v.Value.String != nil && *v.Value.String == before
		}
	}
	if !found {
		t.Errorf("the status has not the digest before, %s: %+v", before, written.Status.ResourceStatus.Manifests)
	}
}
