package addonrollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestRollout_FailsWhenTheHubRefusesItsWorksForADeadline: the status names the refusal.
func TestRollout_FailsWhenTheHubRefusesItsWorksForADeadline(t *testing.T) {
	refuse := false
	s := newScene(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
		if _, ok := obj.(*workv1.ManifestWork); ok && refuse {
			return errors.New("admission webhook \"policy\" denied the request: image not allowed")
		}
		return c.Update(ctx, obj, opts...)
	}, Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
		if _, ok := obj.(*workv1.ManifestWork); ok && refuse {
			return errors.New("admission webhook \"policy\" denied the request: image not allowed")
		}
		return c.Patch(ctx, obj, p, opts...)
	}}, "c1", "c2", "c3")
	s.within(0, "10m")
	s.target("v1")
	s.settle()
	refuse = true
	s.target("v2")
	s.turns(3)
	for range 3 {
		s.advance(5 * time.Minute)
		s.turn()
	}
	ro := s.rollout()
	if ro.Status.Phase != v1alpha1.PhaseFailed || ro.Status.Outcome != "failure" || !strings.Contains(ro.Status.Message, "image not allowed") {
		t.Errorf("15 minutes after the admission, deadline 10m: %s, %s: %s", ro.Status.Phase, ro.Status.Outcome, ro.Status.Message)
	}
}

// TestRollout_WaitsForTheDecisionOfItsInstallPlacement: the install placement is new; the placement of
// the stage is not.
func TestRollout_WaitsForTheDecisionOfItsInstallPlacement(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.create(&clusterv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fleet"}})
	ro := s.rollout()
	ro.Spec.Install.Placements[0].Name = "fleet"
	ro.Spec.Stages = []v1alpha1.Stage{{Name: "everyone", Placement: v1alpha1.PlacementReference{Namespace: "team", Name: "all"}}}
	s.update(ro)
	s.target("v1")
	s.turns(3)
	ro = s.rollout()
	if ro.Status.Outcome == "success" {
		t.Error("green before OCM has decided about the placement")
	}
}
