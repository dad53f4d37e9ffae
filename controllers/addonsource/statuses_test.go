package addonsource

import (
	"testing"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// TestFleet_RolloutMadeAnewCountsFromOne: generations distinguish versions of one object, but
// not those of a new object with its name.
func TestFleet_RolloutMadeAnewCountsFromOne(t *testing.T) {
	ro := &v1alpha1.AddOnRollout{}
	ro.UID, ro.Generation = "new", 1
	ro.Spec.Target = &v1alpha1.Target{Digest: "v1"}
	ro.Status.ObservedGeneration, ro.Status.Outcome = 1, "success"
	for _, c := range []struct {
		reason  string
		written writtenRollout
		want    int
	}{
		{"nothing was written", writtenRollout{}, 1},
		{"this one was written", writtenRollout{uid: "new", generation: 1}, 1},
		{"the cache lags behind", writtenRollout{uid: "new", generation: 2}, 0},
		{"the one before was written", writtenRollout{uid: "old", generation: 7}, 1},
	} {
		var f fleet
		f.add(ro, v1alpha1.SourcedAddOn{Name: "hello", Digest: "v1"}, c.written)
		if f.upToDate != c.want {
			t.Errorf("%s: %d up to date, %v moving", c.reason, f.upToDate, f.moving)
		}
	}
}
