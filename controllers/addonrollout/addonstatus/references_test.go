package addonstatus

import (
	"testing"

	addonv1alpha1 "open-cluster-management.io/api/addon/v1alpha1"
)

// OCM's configuration controller maintains lastObservedGeneration. AddonFlow keeps it with its
// reference, ignores it and does not write it.
func TestLastObservedGenerationIsLeftToOCM(t *testing.T) {
	v1 := contentOf("t1")
	done := Move{Rendered: v1, State: Done, Available: healthy}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	written(t, addOn, Move{Rendered: v1}, done)
	addOn.Status.ConfigReferences[0].LastObservedGeneration = 7
	if n := written(t, addOn, done); n != 0 {
		t.Errorf("%d writes for a bookmark", n)
	}
	written(t, addOn, Move{Rendered: v1, State: Failed, Reason: "boom"})
	if got := addOn.Status.ConfigReferences[0].LastObservedGeneration; got != 7 {
		t.Errorf("it is %d after a write of ours", got)
	}
}

// OCM's addon-manager stops at a reference without desiredConfig.
func TestReferenceWithoutDesiredConfigIsWrittenAnew(t *testing.T) {
	v1 := contentOf("t1")
	done := Move{Rendered: v1, State: Done, Available: healthy}
	addOn := &addonv1alpha1.ManagedClusterAddOn{}
	written(t, addOn, Move{Rendered: v1}, done)
	want := addOn.Status.ConfigReferences[0].DesiredConfig.DeepCopy()
	addOn.Status.ConfigReferences[0].DesiredConfig, addOn.Status.ConfigReferences[0].LastAppliedConfig = nil, nil
	if n := written(t, addOn, done); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
	got := addOn.Status.ConfigReferences[0]
	if got.DesiredConfig == nil || *got.DesiredConfig != *want || got.LastAppliedConfig == nil || *got.LastAppliedConfig != *want {
		t.Errorf("got %+v, want %+v on both sides", got, want)
	}
}
