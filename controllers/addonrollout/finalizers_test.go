package addonrollout

import (
	"context"
	"errors"
	"testing"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestFinalizerThatStayedIsTakenOffLater: if a finalizer could not be removed, the operator tries
// again even if the cluster needs no other write. The problem is reported until then.
func TestFinalizerThatStayedIsTakenOffLater(t *testing.T) {
	fails := false
	s := newScene(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*addonv1alpha1.ManagedClusterAddOn); ok && fails {
				return errors.New("as the test asks")
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, "c1")
	s.target("v1")
	s.settle()
	addOn := s.addOn("c1")
	addOn.Finalizers = []string{addonv1alpha1.AddonPreDeleteHookFinalizer} // of content before, which had a hook
	s.update(addOn)
	fails = true
	s.turns(2)
	if want := "ApplyFailed: cannot write 1 cluster: c1: cannot write the add-on's finalizers: as the test asks"; s.troubled() != want {
		t.Errorf("got %q, want %q", s.troubled(), want)
	}
	fails = false
	s.turn()
	if got := s.addOn("c1").Finalizers; len(got) > 0 {
		t.Errorf("it is held by %v", got)
	}
	if got := s.troubled(); got != "" {
		t.Errorf("and the trouble is over: %q", got)
	}
}
