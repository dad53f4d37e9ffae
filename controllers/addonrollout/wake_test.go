package addonrollout

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestRevisionWithoutItsLabelWakesNoRollout: a request without a name would fail and be repeated for ever.
func TestRevisionWithoutItsLabelWakesNoRollout(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "team", Name: "copied"}
	for name, object := range map[string]client.Object{
		"revision": &v1alpha1.AddOnRevision{ObjectMeta: named},
		"metadata": &metav1.PartialObjectMetadata{ObjectMeta: named},
		"order":    &v1alpha1.AddOnOrder{ObjectMeta: named},
		"approval": &v1alpha1.AddOnApproval{ObjectMeta: named},
	} {
		if got := (&Reconciler{}).ofNamed(t.Context(), object); len(got) != 0 {
			t.Errorf("%s: woke %v", name, got)
		}
	}
	named.Labels = map[string]string{v1alpha1.AddOnLabel: "hello"}
	if got := (&Reconciler{}).ofNamed(t.Context(), &v1alpha1.AddOnRevision{ObjectMeta: named}); len(got) != 1 || got[0].String() != "team/hello" {
		t.Errorf("a revision with its label: woke %v", got)
	}
}
