package addonsource

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestReconciler_LeavesTheSourcesOfOtherNamespaces: a change of a ClusterManagementAddOn wakes the source that its mark
// names, also if that is the source of an operator that watches another namespace.
func TestReconciler_LeavesTheSourcesOfOtherNamespaces(t *testing.T) {
	var read []string
	hub := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			read = append(read, key.String())
			return context.Canceled
		},
	}).Build()
	r := New(Config{Client: hub, Live: hub, Namespace: "team"})
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "other", Name: "fleet"}})
	if err != nil || len(read) != 0 {
		t.Errorf("it read %q: %v", read, err)
	}
	_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "team", Name: "fleet"}})
	if err == nil || len(read) != 1 {
		t.Errorf("it read %q: %v", read, err)
	}
}
