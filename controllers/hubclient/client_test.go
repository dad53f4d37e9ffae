package hubclient

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/test/hub"
	"github.com/addonflow/addonflow/test/hub/hubtest"
)

// TestUpdate_OfAWorkTakesOverTheMetadata: controller-runtime does everything else about an
// update.
func TestUpdate_OfAWorkTakesOverTheMetadata(t *testing.T) {
	h := hubtest.Start(t, hub.Options{Namespaces: []string{"cluster1"}})
	httpClient, err := rest.HTTPClientFor(h.Config())
	must(t, "reach the hub", err)
	options := client.Options{Scheme: runtime.NewScheme(), HTTPClient: httpClient}
	must(t, "assemble the scheme", addonv1alpha1.Install(options.Scheme), workv1.Install(options.Scheme))
	stock, err := client.New(h.Config(), options)
	must(t, "reach the hub", err)
	c, err := NewClient(h.Config(), options)
	must(t, "reach the hub", err)
	c = client.WithFieldOwner(c, "tester")
	work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "updated"}}
	must(t, "create", c.Create(t.Context(), work))
	work.Status.Conditions = []metav1.Condition{{Type: workv1.WorkApplied, Status: metav1.ConditionTrue, Reason: "Applied", LastTransitionTime: metav1.Now().Rfc3339Copy()}}
	must(t, "update the status of", c.Status().Update(t.Context(), work))

	stale := work.DeepCopy()
	work.Labels = map[string]string{"a": "b"}
	work.Spec.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`)}}}
	must(t, "update", c.Update(t.Context(), work))
	stored := &workv1.ManifestWork{}
	must(t, "read", stock.Get(t.Context(), client.ObjectKeyFromObject(work), stored))
	if diff := cmp.Diff(stored.ObjectMeta, work.ObjectMeta); diff != "" || work.Generation != 2 || work.ResourceVersion == stale.ResourceVersion {
		t.Errorf("the metadata is not the hub's (-hub +ours):\n%s", diff)
	}
	if diff := cmp.Diff(work.Spec.Workload, stored.Spec.Workload); diff != "" || len(stored.Status.Conditions) != 1 {
		t.Errorf("not stored as sent, or its status is lost:\n%s", diff)
	}
	if !slices.ContainsFunc(work.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "tester" && e.Subresource == "" }) {
		t.Errorf("not written as the field owner: %v", work.ManagedFields)
	}

	before := stale.DeepCopy()
	if err := c.Update(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}
	if diff := cmp.Diff(before.ObjectMeta, stale.ObjectMeta); diff != "" {
		t.Errorf("an update that failed changed the object:\n%s", diff)
	}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{FeedbackRules: []workv1.FeedbackRule{{Type: "Nonsense"}}}}
	if err := c.Update(t.Context(), work); !apierrors.IsInvalid(err) {
		t.Errorf("an update that the hub refuses: %v, want its refusal", err)
	}
	must(t, "delete", c.Delete(t.Context(), stored))
	if err := c.Update(t.Context(), stored); !apierrors.IsNotFound(err) {
		t.Errorf("an update of what is gone: %v, want not found", err)
	}
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "updated"}}
	must(t, "create", c.Create(t.Context(), addOn))
	addOn.Labels = map[string]string{"a": "b"}
	must(t, "update", c.Update(t.Context(), addOn), c.Delete(t.Context(), addOn))
}

func must(t *testing.T, what string, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatalf("cannot %s: %v", what, err)
	}
}
