package addonrollout

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/controllers/addonrollout/plan"
	"github.com/addonflow/addonflow/rollout"
)

// unlabel removes OCM's label from the work of a cluster. The watch does not show the work any more.
func (s *scene) unlabel(cluster string) *workv1.ManifestWork {
	s.t.Helper()
	work := s.works()[cluster]
	delete(work.Labels, addOnNameLabel)
	s.update(work)
	return work
}

func TestWorkWithoutOCMsLabelIsRepaired(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.target("v1")
	s.settle()
	of13 := s.works()["c1"]
	of13.OwnerReferences[0].APIVersion = "addon.open-cluster-management.io/v1beta1" // as OCM 1.3 names the owner
	s.update(of13)
	was := s.unlabel("c1")
	s.turns(6)
	repaired := s.works()["c1"]
	if repaired.UID != was.UID || repaired.Labels[addOnNameLabel] != "hello" {
		t.Errorf("the work is %s with labels %v", repaired.UID, repaired.Labels)
	}
	if got := s.troubled(); got != "" {
		t.Errorf("all is well, not %q", got)
	}
	if got := s.rollout().Status; got.Phase != v1alpha1.PhaseSucceeded {
		t.Errorf("the rollout is %s: %s", got.Phase, got.Message)
	}
	s.turns(10) // longer than unseenFor
	if got := s.works()["c1"]; got.ResourceVersion != repaired.ResourceVersion {
		t.Error("it was written again")
	}
}

// A cluster in flight whose work lost the label is verified and does not time out.
func TestWorkThatLosesOCMsLabelInFlightIsVerified(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1")
	s.target("v1")
	s.settle()
	v2 := s.target("v2")
	s.turns(2)
	s.unlabel("c1")
	s.turns(4)
	s.report()
	s.settle()
	work := s.works()["c1"]
	if work.Annotations[v1alpha1.RevisionAnnotation] != v2 || work.Labels[addOnNameLabel] != "hello" {
		t.Errorf("the work is at %s with labels %v", work.Annotations[v1alpha1.RevisionAnnotation], work.Labels)
	}
}

// A work that lost the label while no operator ran is found when the operator tries to create it. It
// is moved in the cluster's turn and not before.
func TestWorkThatLostOCMsLabelWaitsForItsTurn(t *testing.T) {
	s := newScene(t, interceptor.Funcs{}, "c1", "c2")
	s.canary("c1")
	v1 := s.target("v1")
	s.settle()
	s.unlabel("c2")
	s.restart()
	v2 := s.target("v2")
	s.turns(6)
	works := s.works()
	if got := works["c1"].Annotations[v1alpha1.RevisionAnnotation]; got != v2 {
		t.Errorf("the canary is at %s", got)
	}
	if got := works["c2"]; got.Annotations[v1alpha1.RevisionAnnotation] != v1 || got.Labels[addOnNameLabel] != "hello" {
		t.Errorf("c2 is at %s with labels %v", got.Annotations[v1alpha1.RevisionAnnotation], got.Labels)
	}
	s.settle()
}

// createdBy are managed fields as an API server has them.
func createdBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "addon.open-cluster-management.io/v1alpha1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

const (
	specFields      = `{"f:spec":{".":{},"f:installNamespace":{}}}`
	finalizerFields = `{"f:metadata":{"f:finalizers":{".":{},"v:\"example.com/x\"":{}}}}`
)

// The label and owner of a ManagedClusterAddOn that AddonFlow created are restored; a hand-made one
// stays as it is.
func TestStrippedInstallationIsRepaired(t *testing.T) {
	creator := map[string]string{"c1": v1alpha1.FieldManager, "c2": "kubectl"}
	writes := 0
	s := newScene(t, interceptor.Funcs{
		List: func(ctx context.Context, hub client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			err := hub.List(ctx, list, opts...)
			if addOns, is := list.(*addonv1alpha1.ManagedClusterAddOnList); is {
				for i := range addOns.Items { // the hub in memory keeps none
					addOns.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{createdBy(creator[addOns.Items[i].Namespace], specFields)}
				}
			}
			return err
		},
		Patch: func(ctx context.Context, hub client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			writes++
			return hub.Patch(ctx, o, p, opts...)
		},
	}, "c1", "c2")
	s.target("v1")
	s.settle()
	for cluster := range creator {
		addOn := s.addOn(cluster)
		addOn.Labels, addOn.OwnerReferences = nil, nil
		s.update(addOn)
	}
	writes = 0
	s.turns(4)
	if got := s.addOn("c1"); got.Labels[v1alpha1.ManagedByLabel] != v1alpha1.ManagedByValue || !hasOwner(got, "/hello") {
		t.Errorf("it has labels %v and owners %v", got.Labels, got.OwnerReferences)
	}
	if got := s.addOn("c2"); len(got.Labels) > 0 || len(got.OwnerReferences) > 0 {
		t.Errorf("what was made by hand has labels %v and owners %v", got.Labels, got.OwnerReferences)
	}
	if writes != 1 {
		t.Errorf("%d writes of metadata, want 1", writes)
	}
}

func TestInstallationByManagedFields(t *testing.T) {
	ours := createdBy(v1alpha1.FieldManager, specFields)
	status := ours
	status.Subresource = "status"
	applied := createdBy(v1alpha1.FieldManager, `{"f:metadata":{"f:annotations":{"f:a":{}}}}`)
	applied.Operation = metav1.ManagedFieldsOperationApply
	for name, c := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    rollout.Installation
	}{
		"created by AddonFlow":             {[]metav1.ManagedFieldsEntry{createdBy("kubectl", finalizerFields), ours}, rollout.Ours},
		"applied by AddonFlow":             {[]metav1.ManagedFieldsEntry{applied}, rollout.Ours},
		"by hand, with finalizers of ours": {[]metav1.ManagedFieldsEntry{createdBy("kubectl", specFields), createdBy(v1alpha1.FieldManager, finalizerFields)}, rollout.HandMade},
		"by hand, with a status of ours":   {[]metav1.ManagedFieldsEntry{createdBy("kubectl", specFields), status}, rollout.HandMade},
		"released":                         {v1alpha1.Disowned([]metav1.ManagedFieldsEntry{ours, status}), rollout.HandMade},
		"unknown":                          {nil, rollout.HandMade},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "c1", ManagedFields: c.entries}}
			if got := plan.Installation(addOn); got != c.want {
				t.Errorf("it is %s, want %s", got, c.want)
			}
		})
	}
	if got := v1alpha1.Disowned([]metav1.ManagedFieldsEntry{ours}); len(got) != 1 || got[0].Manager != "" {
		t.Errorf("an API server takes one empty entry for none, not %+v", got)
	}
}
