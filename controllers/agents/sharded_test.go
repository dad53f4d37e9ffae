package agents_test

import (
	"context"
	"errors"
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
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/agents"
	"github.com/addonflow/addonflow/registration"
)

// fakeHub is a hub with objects, indexed as the operator's caches are.
func fakeHub(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{rbacv1.AddToScheme, v1alpha1.AddToScheme, addonv1alpha1.Install, clusterv1.Install} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	byName := func(o client.Object) []string { return []string{o.GetName()} }
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&v1alpha1.AddOnRollout{}, "metadata.name", byName).
		WithIndex(&addonv1alpha1.ManagedClusterAddOn{}, "metadata.name", byName).
		WithIndex(&rbacv1.RoleBinding{}, "metadata.name", byName).Build()
}

// TestBindingIsDeletedOnlyIfTheAPIServerShowsNoAgent: the watches of bindings, agents and rollouts do not wait for each
// other, as after a new leader has started or a process has stood still; and with --watch-namespace an operator sees the
// bindings of all namespaces, but the rollouts of one.
func TestBindingIsDeletedOnlyIfTheAPIServerShowsNoAgent(t *testing.T) {
	role := registration.Role{Kind: "ClusterRole", Name: "reader"}
	key := agents.Key{Cluster: "c1", AddOn: "hello"}
	rollout := &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: key.AddOn}}
	released := rollout.DeepCopy()
	released.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: "true"}
	released.Spec.Removal = &v1alpha1.Removal{Commit: "ccc", Approved: true}
	agent := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: key.Cluster, Name: key.AddOn, UID: "1"}}
	cases := map[string]struct {
		watched, unwatched []client.Object
		stays              bool
	}{
		"TheWatchDoesNotShowTheAgentYet":     {watched: []client.Object{rollout}, unwatched: []client.Object{rollout, agent}, stays: true},
		"TheWatchStillShowsTheAgent":         {watched: []client.Object{rollout, agent}, unwatched: []client.Object{rollout}, stays: true},
		"TheAgentIsGone":                     {watched: []client.Object{rollout}, unwatched: []client.Object{rollout}},
		"TheRolloutIsGone":                   {watched: []client.Object{agent}, unwatched: []client.Object{agent}},
		"TheRolloutIsOfAnotherNamespace":     {watched: []client.Object{agent}, unwatched: []client.Object{rollout, agent}, stays: true},
		"ReleasedByTheOperatorOfTheirs":      {watched: []client.Object{agent}, unwatched: []client.Object{released}, stays: true},
		"TheWatchDoesNotShowTheReleaseEnded": {watched: []client.Object{released}, unwatched: nil, stays: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			binding := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: key.Cluster, Name: registration.BindingName(key.AddOn, role), UID: "1",
					Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, addonv1alpha1.AddonLabelKey: key.AddOn},
				},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: registration.DefaultSubject(key.AddOn, key.Cluster).Groups[0]}},
			}
			watched := fakeHub(t, append(tc.watched, binding)...)
			r := agents.NewBindings(agents.Options{
				Client: watched, Live: fakeHub(t, tc.unwatched...), Book: agents.NewBook(), Clock: clocktesting.NewFakePassiveClock(time.Now()),
			})
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: key.AddOn}}); err != nil {
				t.Fatal(err)
			}
			err := watched.Get(t.Context(), client.ObjectKeyFromObject(binding), &rbacv1.RoleBinding{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == tc.stays {
				t.Errorf("want it to stay: %v, got %v", tc.stays, err)
			}
		})
	}
}

// TestBindingsOfAnotherOperatorAreNotWritten: with --watch-namespace an operator sees the bindings of all namespaces, but
// the rollouts of one. Its view of a binding may be older than a write of the operator that the add-on belongs to.
func TestBindingsOfAnotherOperatorAreNotWritten(t *testing.T) {
	role := registration.Role{Kind: "ClusterRole", Namespace: "shared", Name: "reader"}
	group := func(cluster string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: registration.DefaultSubject("hello", cluster).Groups[0]}
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: role.Namespace, Name: registration.BindingName("hello", role), UID: "1",
			Labels: map[string]string{v1alpha1.ManagedByLabel: v1alpha1.ManagedByValue, addonv1alpha1.AddonLabelKey: "hello"},
		},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind, Name: role.Name},
		Subjects: []rbacv1.Subject{group("c1"), group("left")},
	}
	written := binding.DeepCopy()
	written.Subjects = []rbacv1.Subject{group("c1"), group("joined")}
	hub := fakeHub(t, written, &v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "theirs", Name: "hello"}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", UID: "1"}},
		&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "joined", Name: "hello", UID: "2"}})
	watched := fakeHub(t, binding)
	refuse := interceptor.NewClient(watched, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		t.Error("the binding of another operator's add-on is written")
		return nil
	}})
	r := agents.NewBindings(agents.Options{Client: refuse, Live: hub, Book: agents.NewBook(), Clock: clocktesting.NewFakePassiveClock(time.Now())})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "hello"}}); err != nil {
		t.Fatal(err)
	}
}

// TestBindingThatFailedIsTriedAgainSoon: an agent does not wait for its rights because one answer was lost. Only what an
// admin must change is left alone for minutes.
func TestBindingThatFailedIsTriedAgainSoon(t *testing.T) {
	cases := map[string]struct {
		answer error
		soon   bool
	}{
		"Timeout": {apierrors.NewTimeoutError("injected", 0), true},
		"Refused": {apierrors.NewForbidden(rbacv1.Resource("rolebindings"), "x", errors.New("no right to bind")), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			key := agents.Key{Cluster: "c1", AddOn: "hello"}
			hub := fakeHub(t,
				&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: key.AddOn}},
				&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: key.Cluster, Name: key.AddOn, UID: "1"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader", Labels: allowed}})
			refusing := interceptor.NewClient(hub, interceptor.Funcs{Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
				return tc.answer
			}})
			known := agents.NewBook()
			known.Declare(key, []addonv1alpha1.RegistrationSpec{kubeClient(current("reader"))})
			r := agents.NewBindings(agents.Options{Client: refusing, Live: hub, Book: known, Clock: clocktesting.NewFakePassiveClock(time.Now())})
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: key.AddOn}})
			if (err != nil) != tc.soon || !tc.soon && result.RequeueAfter < time.Minute {
				t.Errorf("again after %s, %v", result.RequeueAfter, err)
			}
			if got := known.Outcome(key).State; got != registration.Failed {
				t.Errorf("the outcome is %v", got)
			}
		})
	}
}

// TestBindingThatTheWatchDoesNotShowYetIsWrittenOnce: the watch cache may lag behind the operator's own writes for many
// turns. A binding that was deleted by hand meanwhile is created again.
func TestBindingThatTheWatchDoesNotShowYetIsWrittenOnce(t *testing.T) {
	for name, deleted := range map[string]bool{"Exists": false, "DeletedByHand": true} {
		t.Run(name, func(t *testing.T) {
			key := agents.Key{Cluster: "c1", AddOn: "hello"}
			hub := fakeHub(t,
				&v1alpha1.AddOnRollout{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: key.AddOn}},
				&addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: key.Cluster, Name: key.AddOn, UID: "1"}},
				&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader", Labels: allowed}})
			writes := 0
			behind := interceptor.NewClient(hub, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, ok := list.(*rbacv1.RoleBindingList); ok {
						return nil
					}
					return c.List(ctx, list, opts...)
				},
				Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
					writes++
					return c.Apply(ctx, o, opts...)
				},
			})
			known := agents.NewBook()
			known.Declare(key, []addonv1alpha1.RegistrationSpec{kubeClient(current("reader"))})
			clock := clocktesting.NewFakePassiveClock(time.Now())
			r := agents.NewBindings(agents.Options{Client: behind, Live: hub, Book: known, Clock: clock})
			turns := func() {
				t.Helper()
				for range 3 {
					if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: key.AddOn}}); err != nil {
						t.Fatal(err)
					}
					clock.SetTime(clock.Now().Add(time.Second))
				}
			}
			turns()
			want := 1
			if deleted {
				want = 2
				if err := hub.DeleteAllOf(t.Context(), &rbacv1.RoleBinding{}, client.InNamespace(key.Cluster)); err != nil {
					t.Fatal(err)
				}
			}
			turns()
			var bindings rbacv1.RoleBindingList
			if err := hub.List(t.Context(), &bindings); err != nil || len(bindings.Items) != 1 || writes != want {
				t.Errorf("%d bindings, %d writes, want 1 and %d; %v", len(bindings.Items), writes, want, err)
			}
		})
	}
}
