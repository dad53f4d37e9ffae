package addonrollout

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// TestRollout_FailsWithTheRefusalOfTheHub: the refusal is named while it lasts, in a new
// process as well. It is a failure after ten minutes, and over when the hub accepts the object. An error
// of the hub is no refusal.
func TestRollout_FailsWithTheRefusalOfTheHub(t *testing.T) {
	work, addOn := schema.GroupResource{Group: workv1.GroupName, Resource: "manifestworks"}, schema.GroupResource{Group: addonv1alpha1.GroupName, Resource: "managedclusteraddons"}
	denied := errors.New("ValidatingAdmissionPolicy 'images' with binding 'images' denied request: image not allowed")
	for name, tc := range map[string]struct {
		err       error
		install   bool
		transient bool
		want      string
	}{
		"work": {
			err:  apierrors.NewForbidden(work, "addon-hello-deploy-0", denied),
			want: "cannot update work addon-hello-deploy-0: image not allowed (ValidatingAdmissionPolicy images)",
		},
		"ManagedClusterAddOn": {
			err: apierrors.NewForbidden(addOn, "hello", denied), install: true,
			want: "cannot install: image not allowed (ValidatingAdmissionPolicy images)",
		},
		"error of the hub":  {err: apierrors.NewInternalError(errors.New("failed calling webhook")), transient: true},
		"too many requests": {err: apierrors.NewTooManyRequests("slow down", 1), transient: true},
	} {
		t.Run(name, func(t *testing.T) {
			var refusal error
			refused := func(o client.Object) error {
				if _, install := o.(*addonv1alpha1.ManagedClusterAddOn); install == tc.install {
					return refusal
				}
				return nil
			}
			s := newScene(t, interceptor.Funcs{Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if _, ok := o.(*workv1.ManifestWork); ok && refused(o) != nil {
					return refusal
				}
				return c.Update(ctx, o, opts...)
			}, Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if _, ok := o.(*addonv1alpha1.ManagedClusterAddOn); ok && refused(o) != nil {
					return refusal
				}
				return c.Create(ctx, o, opts...)
			}}, "c1", "c2", "c3")
			s.reporting()
			s.within(0, "None")
			if !tc.install {
				s.target("v1")
				s.settle()
			}
			refusal = tc.err
			s.target("v2")
			s.turns(3)
			for range 9 {
				s.advance(time.Minute)
				s.turn()
			}
			pending := "0/3, 1 in flight"
			if !tc.transient {
				pending += ", 1 not applied (c1: " + tc.want + ")"
			}
			if got := s.rollout().Status; got.Phase != v1alpha1.PhaseProgressing || got.Stages[0].Message != pending {
				t.Errorf("nine minutes after the admission: %s: %q, want %q", got.Phase, got.Stages[0].Message, pending)
			}
			if got := s.reported(); got != "pending: everyone "+pending {
				t.Errorf("the commit says %q", got)
			}
			if state, why := s.why(); state != rollout.Admitted || !strings.HasSuffix(why, tc.want) {
				t.Errorf("c1 is %s: %s", state, why)
			}
			s.advance(time.Minute)
			s.turns(2)
			if tc.transient {
				s.advance(time.Hour)
				s.turns(2)
				if got := s.rollout().Status; got.Phase != v1alpha1.PhaseProgressing {
					t.Errorf("%s: %s", got.Phase, got.Message)
				}
				return
			}
			halted := func(when string) {
				t.Helper()
				if got, want := s.rollout().Status.Message, "halted in everyone: 1 failed (c1: "+tc.want+"), 2 untouched"; got != want {
					t.Errorf("%s the status says %q, want %q", when, got, want)
				}
				if got := s.reported(); !strings.HasPrefix(got, "failure: halted in everyone: 1 failed (c1: ") || !strings.Contains(got, "image not allowed") {
					t.Errorf("%s the commit says %q", when, got)
				}
				if state, why := s.why(); state != rollout.Failed || why != tc.want {
					t.Errorf("%s c1 is %s: %s", when, state, why)
				}
			}
			halted("after ten minutes")
			version := s.rollout().ResourceVersion
			s.restart()
			s.turns(3)
			halted("after a restart")
			if got := s.rollout().ResourceVersion; got != version {
				t.Error("the restart costs a write of the ledger")
			}
			refusal = nil
			s.settle()
			if got := s.reported(); got != "success: 3/3 updated" {
				t.Errorf("when the hub accepts the object, the commit says %q", got)
			}
		})
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
