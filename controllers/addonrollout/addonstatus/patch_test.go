package addonstatus

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inStatus is an add-on at a version with a status.
func inStatus(s addonv1alpha1.ManagedClusterAddOnStatus) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", ResourceVersion: "7"}, Status: s,
	}
}

func TestStatusPatch(t *testing.T) {
	v1, v2 := contentOf("t1"), contentOf("t2")
	fresh := inStatus(addonv1alpha1.ManagedClusterAddOnStatus{})
	statusAfter := func(from *addonv1alpha1.ManagedClusterAddOn, moves ...Move) *addonv1alpha1.ManagedClusterAddOn {
		out := from.DeepCopy()
		written(t, out, moves...)
		return out
	}
	installed := statusAfter(fresh, Move{Rendered: v1}, Move{Rendered: v1, State: Done, Available: healthy})
	registered := installed.DeepCopy()
	registered.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: "x"}}
	registered.Status.HealthCheck.Mode = addonv1alpha1.HealthCheckModeLease
	cases := map[string]struct {
		reason        string
		before, after *addonv1alpha1.ManagedClusterAddOn
	}{
		"Install": {reason: "everything is new", before: fresh, after: installed},
		"Upgrade": {reason: "some is", before: installed, after: statusAfter(installed, Move{Rendered: v2})},
		"Removed": {reason: "what goes is null, and objects differ inside", before: registered, after: installed},
		"Emptied": {reason: "everything goes", before: registered, after: fresh},
		"Nothing": {reason: "nothing differs", before: installed, after: installed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ours, err := Patch(tc.before, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := client.MergeFromWithOptions(tc.before, client.MergeFromWithOptimisticLock{}).Data(tc.after)
			if err != nil {
				t.Fatal(err)
			}
			var results [2]addonv1alpha1.ManagedClusterAddOn
			for i, body := range [][]byte{ours, theirs} {
				was, err := json.Marshal(tc.before)
				if err != nil {
					t.Fatal(err)
				}
				is, err := jsonpatch.MergePatch(was, body)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(is, &results[i]); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(results[1], results[0]); diff != "" {
				t.Errorf("%s: the cheap patch does what the dear one does (-dear +cheap):\n%s", tc.reason, diff)
			}
		})
	}
}
