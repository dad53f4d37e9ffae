package addonrollout

import (
	"context"
	"testing"
	"time"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestFlappingAgent_CostsOneStatusWriteASecond: an agent that reports ten times a second, good and bad in turn, and wakes
// the rollout each time, costs as many writes as there are seconds, and the turns at once after a quiet time.
func TestFlappingAgent_CostsOneStatusWriteASecond(t *testing.T) {
	rollouts, addOns := 0, 0
	count := func(o client.Object) {
		switch o.(type) {
		case *v1alpha1.AddOnRollout:
			rollouts++
		case *addonv1alpha1.ManagedClusterAddOn:
			addOns++
		}
	}
	s := newScene(t, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			count(o)
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			count(o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	}, "c1", "c2")
	s.soaking(time.Hour, "None")
	s.target("v1")
	s.turns(3)
	s.advance(time.Minute)
	const seconds = 20
	reports := 0
	rollouts, addOns = 0, 0
	for range seconds * 10 {
		reports++
		work := s.works()["c1"]
		work.Status = runningStatus(work)
		if reports%3 == 0 {
			for i := range work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values {
				if v := &work.Status.ResourceStatus.Manifests[0].StatusFeedbacks.Values[i]; v.Name == "addonflow.ready" {
					v.Value.Integer = new(int64(0))
				}
			}
		}
		if err := s.hub.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		s.advance(time.Second / 10)
		if _, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: s.key}); err != nil {
			t.Fatal(err)
		}
	}
	most := seconds + turnsAtOnce
	if rollouts < seconds/2 || rollouts > most || addOns > most {
		t.Errorf("%d reports in %ds cost %d status writes of the rollout and %d of the add-on, want at most %d of each", reports, seconds, rollouts, addOns, most)
	}
	t.Logf("%d reports in %ds: %d status writes of the rollout, %d of the add-on", reports, seconds, rollouts, addOns)
}
