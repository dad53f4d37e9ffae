package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestUninstall_RemovesFinalizersAndKeepsAgents: no agent is deleted with a ClusterManagementAddOn
// that is being deleted.
func TestUninstall_RemovesFinalizersAndKeepsAgents(t *testing.T) {
	rollout := hello(v1alpha1.PhaseSucceeded)
	rollout.Finalizers = []string{v1alpha1.Finalizer}
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet", Finalizers: []string{v1alpha1.Finalizer, "example.com/theirs"}}}
	cma := &addonv1alpha1.ClusterManagementAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", UID: "cma", Finalizers: []string{v1alpha1.Finalizer}}}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{
		Namespace: "c1", Name: "hello",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "addon.open-cluster-management.io/v1alpha1", Kind: "ClusterManagementAddOn", Name: "hello", UID: "cma"}},
	}}
	s := newStage(t, rollout, source, cma, addOn)
	if err := s.hub.Delete(t.Context(), cma); err != nil {
		t.Fatal(err)
	}
	if code := s.run(t.Context(), "uninstall"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	want := "ClusterManagementAddOn hello: finalizer removed\nAddOnRollout default/hello: finalizer removed\nAddOnSource default/fleet: finalizer removed\n"
	if diff := cmp.Diff(want, s.out.String()); diff != "" {
		t.Error(diff)
	}
	get := func(o client.Object) error { return s.hub.Get(t.Context(), client.ObjectKeyFromObject(o), o) }
	if err := get(cma); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterManagementAddOn that was deleted is still there: %v", err)
	}
	if err := get(addOn); err != nil || len(addOn.OwnerReferences) > 0 {
		t.Errorf("owners %v, error %v", addOn.OwnerReferences, err)
	}
	if err := get(source); err != nil || !cmp.Equal(source.Finalizers, []string{"example.com/theirs"}) {
		t.Errorf("finalizers %v, error %v", source.Finalizers, err)
	}
}

// TestUninstall_GoesOnWhereAKindOrAnObjectIsGone: the finalizers of the other objects are removed, and
// the missing kinds and objects are reported.
func TestUninstall_GoesOnWhereAKindOrAnObjectIsGone(t *testing.T) {
	source := func(name string) *v1alpha1.AddOnSource {
		return &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{v1alpha1.Finalizer}}}
	}
	resource := schema.GroupResource{Group: addonv1alpha1.GroupName, Resource: "clustermanagementaddons"}
	s := newStageWith(t, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			switch kind := list.GetObjectKind().GroupVersionKind().Kind; kind {
			case "ClusterManagementAddOnList": // the CRD was deleted a moment ago
				return apierrors.NewNotFound(resource, "")
			case "AddOnRolloutList":
				return &meta.NoKindMatchError{GroupKind: v1alpha1.GroupVersion.WithKind(v1alpha1.AddOnRolloutKind).GroupKind()}
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if o.GetName() == "gone" {
				if err := errors.Join(c.Patch(ctx, o, p, opts...), c.Delete(ctx, o)); err != nil {
					return err
				}
				return apierrors.NewNotFound(resource, o.GetName())
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, source("gone"), source("there"))
	if code := s.run(t.Context(), "uninstall"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	want := "ClusterManagementAddOns: the hub does not serve this kind, no finalizers to remove\n" +
		"AddOnRollouts: the hub does not serve this kind, no finalizers to remove\n" +
		"AddOnSource default/gone: is gone already\nAddOnSource default/there: finalizer removed\n"
	if diff := cmp.Diff(want, s.out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestUninstall_NoticesAnOperatorWithoutALease, which puts finalizers back.
func TestUninstall_NoticesAnOperatorWithoutALease(t *testing.T) {
	rollout := hello(v1alpha1.PhaseSucceeded)
	rollout.Finalizers = []string{v1alpha1.Finalizer}
	s := newStageWith(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := c.Patch(ctx, o, p, opts...); err != nil {
				return err
			}
			back := &v1alpha1.AddOnRollout{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(o), back); err != nil {
				return err
			}
			back.Finalizers = []string{v1alpha1.Finalizer}
			return c.Update(ctx, back)
		},
	}, rollout)
	if code := s.run(t.Context(), "uninstall"); code != exitFailed || !strings.Contains(s.err.String(), "it put the finalizer back on AddOnRollout default/hello; end the operator") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
}

// TestUninstall_RefusesWhileAnOperatorRuns leaves the finalizers to it.
func TestUninstall_RefusesWhileAnOperatorRuns(t *testing.T) {
	rollout := hello(v1alpha1.PhaseSucceeded)
	rollout.Finalizers = []string{v1alpha1.Finalizer}
	for name, c := range map[string]struct {
		renewed time.Duration
		code    int
	}{"Runs": {-5 * time.Second, exitFailed}, "Ended": {-time.Minute, 0}} {
		t.Run(name, func(t *testing.T) {
			renewed := metav1.NewMicroTime(at().Add(c.renewed))
			s := newStage(t, rollout.DeepCopy(), &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Namespace: "addonflow-system", Name: leaseName("")},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("pod-1"), LeaseDurationSeconds: new(int32(35)), RenewTime: &renewed},
			})
			if code := s.run(t.Context(), "uninstall"); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if refused := strings.Contains(s.err.String(), "pod-1 holds Lease"); refused != (c.code != 0) {
				t.Errorf("said %q", s.err.String())
			}
		})
	}
}

// TestUninstall_LeavesAnInstallationToHelm: its release would stay.
func TestUninstall_LeavesAnInstallationToHelm(t *testing.T) {
	ours := map[string]string{"app.kubernetes.io/name": "addonflow", "app.kubernetes.io/part-of": "addonflow"}
	byHelm := map[string]string{"meta.helm.sh/release-name": "flow", "meta.helm.sh/release-namespace": "addons"}
	s := newStage(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "addonflow", Labels: ours, Annotations: byHelm}})
	for _, args := range [][]string{{"uninstall"}, {"uninstall", "--remove-add-ons", "--confirm", "https://hub"}} {
		s.err.Reset()
		if code := s.run(t.Context(), args...); code != exitFailed || !strings.Contains(s.err.String(), "run helm uninstall flow -n addons") {
			t.Errorf("%v: exit code %d: %s", args, code, s.err.String())
		}
	}
}

// TestUninstall_RemovesTheAddOnsBeforeHelmRemovesTheOperator: no operator could remove them afterwards.
func TestUninstall_RemovesTheAddOnsBeforeHelmRemovesTheOperator(t *testing.T) {
	ours := map[string]string{"app.kubernetes.io/name": "addonflow", "app.kubernetes.io/part-of": "addonflow"}
	byHelm := map[string]string{"meta.helm.sh/release-name": "flow", "meta.helm.sh/release-namespace": "addons"}
	renewed := metav1.NewMicroTime(at())
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet"}}
	s := newStage(t, source,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: "addonflow", Labels: ours, Annotations: byHelm}},
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: "addons", Name: leaseName("")},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("pod-1"), LeaseDurationSeconds: new(int32(35)), RenewTime: &renewed},
		})
	code := s.run(t.Context(), "uninstall", "--remove-add-ons", "--confirm", "http://localhost:8080")
	if code != exitFailed || !strings.Contains(s.err.String(), "run helm uninstall flow -n addons") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(source), source); !apierrors.IsNotFound(err) {
		t.Errorf("the source is still there: %v", err)
	}
}

// TestUninstall_DeletesWhatInstallApplied, and nothing that only looks like it.
func TestUninstall_DeletesWhatInstallApplied(t *testing.T) {
	ours := map[string]string{"app.kubernetes.io/name": "addonflow", "app.kubernetes.io/part-of": "addonflow"}
	s := newStage(t,
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "addonflow-system", Name: "addonflow", Labels: ours}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "addonflow-system", Name: "addonflow", Labels: ours}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "addonflow", Labels: ours}},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{"app.kubernetes.io/part-of": "addonflow"}}},
	)
	if code := s.run(t.Context(), "uninstall"); code != 0 {
		t.Fatalf("exit code %d: %s", code, s.err.String())
	}
	want := "Deployment addonflow-system/addonflow: deleted\nClusterRole addonflow: deleted\nServiceAccount addonflow-system/addonflow: deleted\n"
	if diff := cmp.Diff(want, s.out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestUninstall_RemovesNothingWithoutAnOperator, because only it runs hooks and empties the fleet.
func TestUninstall_RemovesNothingWithoutAnOperator(t *testing.T) {
	source := &v1alpha1.AddOnSource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fleet", Finalizers: []string{v1alpha1.Finalizer}}}
	s := newStage(t, source)
	if code := s.run(t.Context(), "uninstall", "--remove-add-ons", "--confirm", "https://hub"); code != exitFailed || !strings.Contains(s.err.String(), "no operator holds a Lease") {
		t.Errorf("exit code %d: %s", code, s.err.String())
	}
	if err := s.hub.Get(t.Context(), client.ObjectKeyFromObject(source), source); err != nil || source.DeletionTimestamp != nil {
		t.Errorf("the source is being deleted at %v, error %v", source.DeletionTimestamp, err)
	}
}

// TestUninstall_OfAHubWithoutAddOnsNeedsNoOperator: the first run may have been interrupted after it ended the operator.
func TestUninstall_OfAHubWithoutAddOnsNeedsNoOperator(t *testing.T) {
	s := newStage(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "addonflow", Labels: map[string]string{"app.kubernetes.io/name": "addonflow", "app.kubernetes.io/part-of": "addonflow"},
	}})
	for _, want := range []string{"ClusterRole addonflow: deleted\n", ""} {
		s.out.Reset()
		if code := s.run(t.Context(), "uninstall", "--remove-add-ons", "--confirm", "https://hub"); code != 0 || s.out.String() != want {
			t.Errorf("exit code %d: %q, %s; want %q", code, s.out.String(), s.err.String(), want)
		}
	}
}

// TestUninstall_ErrorOfTheHubIsNotWrongUsage: whatever request fails, a script can tell it from a wrong flag.
func TestUninstall_ErrorOfTheHubIsNotWrongUsage(t *testing.T) {
	for name, refused := range map[string]string{"Leases": "LeaseList", "Rollouts": "AddOnRolloutList"} {
		t.Run(name, func(t *testing.T) {
			s := newStageWith(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				_, leases := list.(*coordinationv1.LeaseList)
				if list.GetObjectKind().GroupVersionKind().Kind == refused || leases && refused == "LeaseList" {
					return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))
				}
				return c.List(ctx, list, opts...)
			}})
			if code := s.run(t.Context(), "uninstall"); code != exitUnreachable {
				t.Errorf("exit code %d, want %d: %s", code, exitUnreachable, s.err.String())
			}
		})
	}
}
