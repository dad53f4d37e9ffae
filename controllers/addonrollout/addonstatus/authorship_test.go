package addonstatus

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// addOnWith is the add-on of c1 at a version with these conditions. taker has written Progressing
// after AddonFlow; "": no other writer has.
func addOnWith(version, taker string, progressing metav1.Condition) *addonv1alpha1.ManagedClusterAddOn {
	const ours = `{"f:status":{"f:configReferences":{},"f:conditions":{"k:{\"type\":\"Configured\"}":{"f:reason":{},"f:status":{}}%s}}}`
	const words = `"k:{\"type\":\"Progressing\"}":{"f:reason":{},"f:status":{}}`
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields)}
	}
	progressing.Type = "Progressing"
	a := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello", UID: "u", ResourceVersion: version}}
	a.Status.Conditions = []metav1.Condition{{Type: "Configured", Status: metav1.ConditionTrue, Reason: "ConfigurationsConfigured"}, progressing}
	if taker == "" {
		a.ManagedFields = []metav1.ManagedFieldsEntry{entry(v1alpha1.FieldManager, fmt.Sprintf(ours, ","+words))}
		return a
	}
	a.ManagedFields = []metav1.ManagedFieldsEntry{
		entry(v1alpha1.FieldManager, fmt.Sprintf(ours, `,"k:{\"type\":\"Progressing\"}":{".":{},"f:type":{}}`)), entry(taker, `{"f:status":{"f:conditions":{`+words+`}}}`),
	}
	return a
}

func TestForeignWritersAreDetectedByValue(t *testing.T) {
	upgrading := metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.Upgrading}
	done := metav1.Condition{Status: metav1.ConditionFalse, Reason: v1alpha1.UpgradeSucceed}
	theirs := metav1.Condition{Status: metav1.ConditionTrue, Reason: addonv1alpha1.ProgressingReasonProgressing}
	type step struct {
		reason string
		addOn  *addonv1alpha1.ManagedClusterAddOn
		wrote  bool
		taken  bool
	}
	cases := map[string][]step{
		"Restored": {
			{reason: "ours", addOn: addOnWith("1", "", done)},
			{reason: "another value is a takeover", addOn: addOnWith("2", "ocm", theirs), taken: true},
			{reason: "AddonFlow's value is its own again, whichever manager wrote it", addOn: addOnWith("3", "ocm", done)},
		},
		"Reverted": {
			{reason: "ours", addOn: addOnWith("1", "", upgrading)},
			{reason: "we went on", addOn: addOnWith("2", "", done), wrote: true},
			{reason: "going back to what we had said before is not a value of ours", addOn: addOnWith("3", "ocm", upgrading), taken: true},
		},
		"RestoredBeforeARestart": {{reason: "a new process takes our own words for ours", addOn: addOnWith("1", "ocm", done)}},
		"TakenBeforeARestart":    {{reason: "and no others", addOn: addOnWith("1", "ocm", theirs), taken: true}},
		"WordsThatDisagree":      {{reason: "nor words we would not say together", addOn: addOnWith("1", "ocm", metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.UpgradeSucceed}), taken: true}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			f := &Authorship{}
			for _, s := range steps {
				if s.wrote {
					f.Wrote(s.addOn)
				}
				for range 2 { // the second look reads no managed fields
					if got := f.Taken(s.addOn); (len(got) > 0) != s.taken {
						t.Errorf("%s: got %v", s.reason, got)
					}
				}
			}
		})
	}
	t.Run("Accepted", func(t *testing.T) {
		f, a := &Authorship{}, addOnWith("1", "ocm", theirs)
		f.Taken(a)
		f.Accept(a, "Progressing")
		if got := f.Taken(a); len(got) != 0 {
			t.Errorf("the user said that the other one was stopped: got %v", got)
		}
		if got := f.Taken(addOnWith("2", "ocm", done)); len(got) == 0 {
			t.Error("one that writes on was not stopped")
		}
	})
}
