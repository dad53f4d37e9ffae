package rollout_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// TestProgressions counts clusters by placement. A cluster that two placements select counts
// for the later one. Failures are counted by kind. Clusters outside of the install set do
// not count.
func TestProgressions(t *testing.T) {
	names := rollouttest.Names(6)
	f := rollouttest.NewFleet("v1", names...)
	f.Policy.Spec.Install = installedBy("first", "second", "nowhere")
	f.Policy.Placements = []rollout.Placement{placement("first", names[:4]...), placement("second", names[3:]...), placement("nowhere")}
	take(rollouttest.Behaviour{Ending: rollouttest.Fails}, "v2", names[0])(f)
	f.Clusters[names[1]].InstallDisabled = true
	f.Clusters[names[1]].Installed = rollout.NotInstalled
	f.Clusters[names[5]].Gone = true
	take(rollouttest.Behaviour{Ending: rollouttest.Stuck}, "v2", names[4])(f)
	f.SetTarget("v2")
	var got rollout.Plan
	for range 3 {
		var err error
		if got, err = rollout.New(f.Input()); err != nil {
			t.Fatal(err)
		}
		f.Store(got)
		f.CarryOut(got.Actions)
		f.Now = f.Now.Add(2 * time.Minute)
	}
	want := []rollout.Progression{
		{Placement: ref("first"), Selected: 4, Configured: 2, Failed: 1, Done: 1},
		{Placement: ref("second"), Selected: 3, Configured: 2, Done: 1, InFlight: 1},
		{Placement: ref("nowhere")},
	}
	if diff := cmp.Diff(want, got.Progressions); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if done := (rollout.Progression{Configured: 2, Done: 2}); !done.Completed() || got.Progressions[2].Completed() || got.Progressions[1].Completed() {
		t.Error("a placement is completed if it has clusters and all of them are done")
	}
}
