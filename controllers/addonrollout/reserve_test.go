package addonrollout

import (
	"context"
	"testing"

	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// recorded reports whether the stored ledger has a record of the cluster.
func (s *scene) recorded(cluster string) bool {
	records, err := rollout.Records(s.rollout().Status.Ledger)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range records {
		if r.Cluster == cluster {
			return true
		}
	}
	return false
}

// TestSlotIsReservedBeforeItsWorkIsWritten: when a work is written, the stored ledger already has a
// record of its cluster. A crash in between costs a slot and never exceeds the limit.
func TestSlotIsReservedBeforeItsWorkIsWritten(t *testing.T) {
	var s *scene
	written := 0
	reserved := func(o client.Object) {
		if _, ok := o.(*workv1.ManifestWork); !ok {
			return
		}
		written++
		if !s.recorded(o.GetNamespace()) {
			t.Errorf("the work of %s is written, and not reserved", o.GetNamespace())
		}
	}
	s = newScene(t, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			reserved(o)
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			reserved(o)
			return c.Update(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			reserved(o)
			return c.Patch(ctx, o, p, opts...)
		},
	}, "c1", "c2", "c3")
	s.oneByOne()
	s.target("v1")
	s.settle()
	s.target("v2")
	s.settle()
	if written != 6 {
		t.Errorf("%d works written for two contents of three clusters", written)
	}
}

// overtaking lets another operator write a rollout first, once.
func overtaking(overtaken *bool) interceptor.Funcs {
	return interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, kind string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if _, ok := o.(*v1alpha1.AddOnRollout); ok && !*overtaken {
			*overtaken = true
			twins := &v1alpha1.AddOnRollout{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), twins); err != nil {
				return err
			}
			twins.Annotations = map[string]string{"example.com/by": "a twin"}
			if err := c.Update(ctx, twins); err != nil {
				return err
			}
		}
		return c.SubResource(kind).Update(ctx, o, opts...)
	}}
}

// TestStalePlanIsVoid: an operator that another one overtook after it read the ledger writes no work
// and plans again.
func TestStalePlanIsVoid(t *testing.T) {
	overtaken := false
	s := newScene(t, overtaking(&overtaken), "c1", "c2")
	s.oneByOne()
	s.target("v1")
	s.turn()
	if !overtaken || len(s.works()) > 0 || len(s.rollout().Status.Ledger.Records) > 0 {
		t.Errorf("overtaken %t, works %v, ledger %+v", overtaken, s.works(), s.rollout().Status.Ledger)
	}
	s.settle()
}
