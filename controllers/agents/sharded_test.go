package agents_test

import (
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clocktesting "k8s.io/utils/clock/testing"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/registration"
)

// With --watch-namespace an operator sees the rollouts of one namespace and the bindings of
// all. It must not delete those of another operator's add-on, and deletes those of an add-on
// without a rollout.
func TestBindingsOfAnotherOperatorStay(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, v1alpha1.AddToScheme, addonv1alpha1.Install, clusterv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	role := registration.Role{Kind: "ClusterRole", Name: "reader"}
	cases := map[string]struct {
		rollouts []client.Object // shown by an uncached read only
		stays    bool
	}{
		"RolloutOfAnotherNamespace": {rollouts: []client.Object{&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "hello"}}}, stays: true},
		"NoRollout":                 {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "c1", Name: registration.BindingName("hello", role), UID: "1",
					Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, addonv1alpha1.AddonLabelKey: "hello"},
				},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name},
			}
			byName := func(o client.Object) []string { return []string{o.GetName()} }
			hub := func(objects ...client.Object) client.Client {
				return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
					WithIndex(&v1alpha1.AddOnRollout{}, "metadata.name", byName).
					WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, "metadata.name", byName).Build()
			}
			watched := hub(binding)
			r := agents.NewBindings(agents.Options{
				Client: watched, Live: hub(tc.rollouts...), Book: agents.NewBook(), Clock: clocktesting.NewFakePassiveClock(time.Now()),
			})
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}}); err != nil {
				t.Fatal(err)
			}
			err := watched.Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.stays {
				t.Errorf("want it to stay: %v, got %v", tc.stays, err)
			}
		})
	}
}
