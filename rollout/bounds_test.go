package rollout_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// healthy is a fleet that takes everything, with a policy that can be carried to its
// end: stages or a strategy over one settled placement.
func healthy(t *rapid.T) *rollouttest.Fleet {
	w := newWorld(t)
	w.settle(true)
	w.knowGroups()
	for i := range w.fleet.Policy.Spec.Stages {
		w.fleet.Policy.Spec.Stages[i].MaxConcurrency = new(number(rapid.IntRange(1, 3).Draw(t, "slots")))
		w.fleet.Policy.Spec.Stages[i].WhenEmpty = v1alpha1.WhenEmptyPass
		w.fleet.Policy.Spec.Stages[i].Gates = nil
	}
	for _, c := range w.fleet.Clusters {
		c.Takes, c.Alike, c.Otherwise.After = map[string]rollouttest.Behaviour{}, map[string]string{}, time.Minute
	}
	return w.fleet
}

func finish(t *rapid.T, f *rollouttest.Fleet, events ...event) string {
	log, err := rollouttest.Scenario{Fleet: f, Until: 100 * day, Events: events}.Run(0)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return log
}

// TestProperty_OneWriteEach: a healthy fleet converges with exactly one write per
// cluster and content.
func TestProperty_OneWriteEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := healthy(t)
		log := finish(t, f)
		for name, c := range f.Clusters {
			if n := c.Writes[f.Target()]; c.Running == f.Target() && n != 1 {
				t.Fatalf("%s was written %d times\n%s", name, n, log)
			}
		}
		if f.Phase != atEnd(f) {
			t.Fatalf("it ended %s\n%s", f.Phase, log)
		}
	})
}

// atEnd is the phase of a rollout that went well: a share leaves the others behind.
func atEnd(f *rollouttest.Fleet) v1alpha1.Phase {
	left := slices.ContainsFunc(slices.Collect(maps.Values(f.Clusters)), func(c *rollouttest.Cluster) bool {
		return c.Running != "" && c.Running != f.Target()
	})
	if st := f.Policy.Spec.Strategy; st != nil && st.RollingUpdateWithPlacement != nil && left {
		return v1alpha1.PhaseHeld
	}
	return v1alpha1.PhaseSucceeded
}

// TestProperty_RevertMovesWhatDiffers: a revert moves back the clusters that got the
// bad content and touches no other, in the time their agents take and no soak.
func TestProperty_RevertMovesWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := healthy(t)
		finish(t, f)
		if f.Phase != v1alpha1.PhaseSucceeded || f.Policy.Stable != f.Target() {
			return // no cluster verified it
		}
		good := f.Target()
		for _, c := range f.Clusters {
			c.Writes = map[string]int{}
			if rapid.Bool().Draw(t, "fails") {
				c.Takes["bad"] = rollouttest.Behaviour{Ending: rollouttest.Fails, After: time.Minute}
			}
		}
		f.SetTarget("bad")
		log := finish(t, f)
		hit := map[string]bool{}
		for name, c := range f.Clusters {
			hit[name] = c.Running == "bad"
		}
		f.SetTarget(good)
		log += finish(t, f)
		for name, c := range f.Clusters {
			want := 0
			if hit[name] {
				want = 1
			}
			if c.Writes[good] != want || c.Running == "bad" {
				t.Fatalf("%s had the bad content: %t, was written back %d times and runs %s\n%s", name, hit[name], c.Writes[good], c.Running, log)
			}
		}
	})
}

// TestProperty_HarmIsBounded: content that fails everywhere reaches no more clusters
// than the first stage has slots and failures to spend, however the names sort.
func TestProperty_HarmIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 12).Draw(t, "clusters")
		slots, budget := rapid.IntRange(1, 4).Draw(t, "slots"), rapid.IntRange(0, 3).Draw(t, "budget")
		f := staged("v1", n)
		f.Policy.Spec.Stages = []v1alpha1.Stage{{
			Name: "everyone", Placement: ref("all"), MaxConcurrency: new(number(slots)), MaxFailures: new(number(budget)), ProgressDeadline: "5m",
		}}
		for _, c := range f.Clusters {
			c.Takes["bad"] = rollouttest.Behaviour{
				Ending: rapid.SampledFrom([]rollouttest.Ending{rollouttest.Fails, rollouttest.Silent, rollouttest.Stuck}).Draw(t, "ending"),
				After:  time.Duration(rapid.IntRange(0, 9).Draw(t, "after")) * time.Minute,
			}
		}
		f.SetTarget("bad")
		log := finish(t, f)
		harmed := 0
		for _, c := range f.Clusters {
			harmed += c.Writes["bad"]
		}
		if harmed > slots+budget {
			t.Fatalf("%d clusters got it, with %d slots and %d failures allowed\n%s", harmed, slots, budget, log)
		}
		if f.Phase != v1alpha1.PhaseFailed {
			t.Fatalf("it ended %s\n%s", f.Phase, log)
		}
	})
}

// TestProperty_ToleratedFailuresStallNoCluster: failures and timeouts within the budget
// keep no other cluster from the target.
func TestProperty_ToleratedFailuresStallNoCluster(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 10).Draw(t, "clusters")
		f := staged("v1", n)
		bad := rapid.IntRange(1, n-1).Draw(t, "bad")
		f.Policy.Spec.Stages = []v1alpha1.Stage{{
			Name: "everyone", Placement: ref("all"), MaxFailures: new(number(bad)), ProgressDeadline: "5m",
			MaxConcurrency: new(number(rapid.IntRange(1, 3).Draw(t, "slots"))), MinSuccessTime: soaks().Draw(t, "soak"),
		}}
		names := rapid.Permutation(rollouttest.Names(n)).Draw(t, "order")
		for _, name := range names[:bad] {
			f.Clusters[name].Takes["v2"] = rollouttest.Behaviour{
				Ending: rapid.SampledFrom([]rollouttest.Ending{rollouttest.Fails, rollouttest.Silent}).Draw(t, "ending"), After: time.Minute,
			}
		}
		f.SetTarget("v2")
		log := finish(t, f)
		for _, c := range f.Clusters {
			if c.Running != "v2" {
				t.Fatalf("%s runs %s\n%s", c.Name, c.Running, log)
			}
		}
		if f.Policy.Stable != "v2" {
			t.Fatalf("failures within the budget end Succeeded\n%s", log)
		}
	})
}

// TestProperty_SilentIsTimedOutAndRecovers: a cluster that never reports is timed
// out at its deadline, not before, counts as a failure, and recovers when it reports.
func TestProperty_SilentIsTimedOutAndRecovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		deadline := time.Duration(rapid.IntRange(2, 60).Draw(t, "deadline")) * time.Minute
		f := staged("v1", 3)
		f.Policy.Spec.Stages[0].ProgressDeadline = deadline.String()
		f.Clusters["cluster-01"].Takes["v2"] = rollouttest.Behaviour{Ending: rollouttest.Silent}
		f.SetTarget("v2")
		h := rollouttest.NewHistory()
		state := func(at time.Duration) rollout.Plan {
			f.Now = rollouttest.Epoch().Add(at)
			plan, err := f.Step(h)
			if err != nil {
				t.Fatal(err)
			}
			return plan
		}
		state(0)
		state(0) // its works are written by now
		if c, _ := state(deadline - time.Second).Why("cluster-01"); c.State != rollout.Updating {
			t.Fatalf("a second before its deadline it is %s", c.State)
		}
		late := state(deadline)
		if c, _ := late.Why("cluster-01"); c.State != rollout.TimedOut || late.Counts.Failed != 1 || late.Phase != v1alpha1.PhaseFailed {
			t.Fatalf("at its deadline it is %s, %s", c.State, late.Message)
		}
		f.Clusters["cluster-01"].Takes["v2"] = rollouttest.Behaviour{}
		back := state(deadline + time.Hour)
		if c, _ := back.Why("cluster-01"); c.State != rollout.Soaking || back.Counts.Failed != 0 {
			t.Fatalf("verified at last it is %s, %s", c.State, back.Message)
		}
	})
}

// drawMoment is a rollout of v2 over six clusters, each with a record in any state, or
// without one, and with any feedback.
func drawMoment(t *rapid.T) rollout.Input {
	in := rolling(6)
	minutes := func(label string) time.Duration {
		return time.Duration(rapid.IntRange(0, 90).Draw(t, label)) * time.Minute
	}
	for _, c := range in.Clusters {
		running := rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "running")
		on(c.Name, runs(running, drawHealth(t)), availableChanged(minutes("available changed")))(&in)
		if seldom(t, 5, "offline") {
			on(c.Name, offline)(&in)
		}
		if seldom(t, 5, "edited") {
			on(c.Name, edited)(&in)
		}
		state := rapid.SampledFrom([]rollout.State{
			"", rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Done, rollout.Failed, rollout.TimedOut, rollout.NotWritten, rollout.Lost, rollout.Parked,
		}).Draw(t, "state")
		if state != "" {
			recorded(state, rapid.SampledFrom([]string{"v0", "v1", "v2"}).Draw(t, "revision"), minutes("admitted"), minutes("since"), c.Name)(&in)
		}
	}
	if seldom(t, 4, "a revert") {
		revert(&in)
	}
	in.Now = in.Now.Add(rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond}).Draw(t, "now"))
	return in
}

func drawHealth(t *rapid.T) rollout.HealthState {
	return rapid.SampledFrom([]rollout.HealthState{
		rollout.HealthVerified, rollout.HealthFailed, rollout.HealthProgressing, rollout.HealthUnknown,
	}).Draw(t, "health")
}

// TestProperty_NewContentResetsClocks: whatever was verified or late, the clocks of a
// cluster start again when it is admitted to other content. If the target changes nothing
// for the cluster, its clocks go on.
func TestProperty_NewContentResetsClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawMoment(t)
		plan, err := rollout.New(in)
		if err != nil {
			t.Fatal(err)
		}
		before := map[string]string{}
		for _, r := range recordsOf(&in) {
			before[r.Cluster] = r.Revision
		}
		unchanged := map[string]bool{}
		for _, c := range in.Clusters {
			unchanged[c.Name] = c.UpToDate
		}
		in.Ledger = plan.Ledger
		for _, r := range recordsOf(&in) {
			if before[r.Cluster] == r.Revision || unchanged[r.Cluster] {
				continue
			}
			if r.Admitted.Before(in.Now) || r.Since.Before(in.Now) {
				t.Fatalf("%s was moved on with old clocks: %+v", r.Cluster, r)
			}
		}
	})
}

// TestProperty_FeedbackOfOtherContentCountsForNothing: the feedback of other content never changes what
// becomes of a cluster in flight.
func TestProperty_FeedbackOfOtherContentCountsForNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := drawMoment(t)
		other := in
		other.Clusters = slices.Clone(in.Clusters)
		for _, r := range recordsOf(&in) {
			if !r.InFlight() {
				continue // it waits for an admission: clusters that fail with what they run go first
			}
			for i := range other.Clusters {
				c := &other.Clusters[i]
				if c.Name == r.Cluster && c.Running != r.Revision && !c.UpToDate {
					c.Health = rollout.Health{State: drawHealth(t)}
				}
			}
		}
		one, err := rollout.New(in)
		if err != nil {
			t.Fatal(err)
		}
		two, err := rollout.New(other)
		if err != nil {
			t.Fatal(err)
		}
		if rollouttest.Snapshot(one.Ledger) != rollouttest.Snapshot(two.Ledger) {
			t.Fatalf("a late report changed the ledger:\n%+v\n%+v", one.Ledger, two.Ledger)
		}
	})
}

// TestProperty_RemovalsStayWithinGraceAndBudget: while a placement shrinks, grows, flaps and
// disappears, no grace period has more removals than the budget. In the end exactly the selected
// clusters have the add-on.
func TestProperty_RemovalsStayWithinGraceAndBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(10, 60).Draw(t, "clusters")
		f := staged("v1", n)
		f.Policy.Spec.Stages = nil
		names := rollouttest.Names(n)
		for _, name := range names {
			if rapid.IntRange(0, 9).Draw(t, "hand-made") == 0 {
				f.Clusters[name].Installed = rollout.HandMade
			}
		}
		handMade := map[string]bool{}
		for name, c := range f.Clusters {
			handMade[name] = c.Installed == rollout.HandMade
		}
		var events []event
		for i := range rapid.IntRange(1, 8).Draw(t, "events") {
			when := time.Duration(i*rapid.IntRange(1, 6).Draw(t, "minutes")) * time.Minute
			if len(events) > 0 {
				when = max(when, events[len(events)-1].At)
			}
			pl := placement("all", names[:rapid.IntRange(0, n).Draw(t, "left")]...)
			switch rapid.IntRange(0, 4).Draw(t, "trust") {
			case 0:
				pl.Settlement = rollout.Missing
			case 1:
				pl.Settlement = rollout.Unsettled
			}
			events = append(events, at(when, "placement", func(f *rollouttest.Fleet) { f.Policy.Placements = []rollout.Placement{pl} }))
		}
		left := rapid.IntRange(0, n).Draw(t, "left in the end")
		events = append(events, at(2*time.Hour, "placement", func(f *rollouttest.Fleet) {
			f.Policy.Placements = []rollout.Placement{placement("all", names[:left]...)}
		}))
		log := finish(t, f, events...)
		for i, name := range names {
			c := f.Clusters[name]
			has := c.Installed == rollout.Ours || c.Installed == rollout.HandMade
			if has != (i < left || handMade[name]) || handMade[name] && c.Removals > 0 {
				t.Fatalf("%s (%d of %d left, hand-made %t) is %s\n%s", name, i, left, handMade[name], c.Installed, log)
			}
		}
	})
}
