package rollout_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// world is a random history of one rollout: a fleet, its faults, and an operator that
// crashes, loses its writes and sees what is no longer so. Every plan is judged by the
// history before it.
type world struct {
	*rapid.T
	fleet   *rollouttest.Fleet
	past    *rollouttest.History
	names   []string
	commits int
	late    []rollout.Action   // decided and reserved by an operator that then slept
	before  *rollouttest.Sight // what a cache that lags shows
	history []string
}

func newWorld(t *rapid.T) *world {
	names := rollouttest.Names(rapid.IntRange(2, 9).Draw(t, "clusters"))
	running := rapid.SampledFrom([]string{"", "a", "a"}).Draw(t, "running")
	w := &world{T: t, fleet: rollouttest.NewFleet(running, names...), past: rollouttest.NewHistory(), names: names}
	w.policy()
	if running != "" { // what runs is also what is installed
		w.fleet.Policy.Placements[0].Groups[0].Clusters = append(
			w.fleet.Policy.Placements[0].Groups[0].Clusters, unselected(w.fleet.Policy.Placements[:2], names)...)
	}
	for _, name := range names {
		c := w.fleet.Clusters[name]
		if rapid.IntRange(0, 7).Draw(t, "hand-made") == 0 {
			c.Installed = rollout.HandMade
		}
		c.Otherwise.After = time.Duration(rapid.IntRange(0, 4).Draw(t, "takes minutes")) * time.Minute
	}
	w.commit()
	return w
}

// policy draws a new policy.
func (w *world) policy() {
	in := rollout.Input{Spec: v1alpha1.AddOnRolloutSpec{Target: w.fleet.Policy.Spec.Target, Removal: w.fleet.Policy.Spec.Removal}}
	drawPolicy(w.T, &in, w.names)
	w.fleet.Policy.Spec, w.fleet.Policy.Placements = in.Spec, in.Placements
}

func (w *world) commit() {
	w.commits++
	digest := fmt.Sprintf("r%d", w.commits)
	for _, name := range w.names {
		c := w.fleet.Clusters[name]
		c.Takes[digest] = w.behaviour()
		if w.commits > 1 && rapid.IntRange(0, 5).Draw(w.T, "alike") == 0 {
			c.Alike[digest] = fmt.Sprintf("r%d", w.commits-1)
		}
	}
	w.fleet.SetTarget(digest)
}

// behaviour is how a cluster takes a commit; one in six loses its health for a while.
func (w *world) behaviour() rollouttest.Behaviour {
	b := rollouttest.Behaviour{
		Ending: rapid.SampledFrom([]rollouttest.Ending{
			rollouttest.Healthy, rollouttest.Healthy, rollouttest.Healthy, rollouttest.Fails, rollouttest.Silent, rollouttest.Stuck, rollouttest.Refused,
		}).Draw(w.T, "ending"),
		After: time.Duration(rapid.IntRange(0, 8).Draw(w.T, "after")) * time.Minute,
	}
	if rapid.IntRange(0, 5).Draw(w.T, "flaps") == 0 {
		b.IllFrom, b.IllUntil = 9*time.Minute, 11*time.Minute
	}
	return b
}

func (w *world) cluster() *rollouttest.Cluster {
	return w.fleet.Clusters[rapid.SampledFrom(w.names).Draw(w.T, "cluster")]
}

// plan lets the operator plan once, well or badly.
func (w *world) plan() {
	f := w.fleet
	how := rapid.SampledFrom([]string{
		"well", "well", "well", "lost write", "crash", "sleep", "wake", "status lost", "stale",
	}).Draw(w.T, "operator")
	w.history = append(w.history, "plan "+how)
	switch {
	case how == "status lost" && rapid.IntRange(0, 3).Draw(w.T, "really") == 0:
		f.LoseStatus()
	case how == "wake":
		f.CarryOut(w.late)
		w.late = nil
	}
	if how == "well" || how == "wake" || how == "status lost" {
		if plan, err := f.Step(w.past); err != nil {
			w.Fatalf("%v\nafter %v\nplanned: %s: %s %+v\n%s", err, w.history, plan.Phase, plan.Message, plan.Clusters, rollouttest.Snapshot(f.Input()))
		}
		return
	}
	w.planBadly(how)
}

// planBadly plans where something is wrong with what is seen, stored or carried out.
func (w *world) planBadly(how string) {
	f, sight := w.fleet, w.fleet.Look()
	if how == "stale" && w.before != nil {
		sight = *w.before
	}
	w.before = new(f.Look())
	in := f.InputFrom(sight)
	plan, refused := rollout.New(in)
	if err := w.past.Check(rollouttest.StepOf(in, plan, refused)); err != nil {
		w.Fatalf("%v\nafter %v\n%s\nactions %+v", err, w.history, rollouttest.Snapshot(in), plan.Actions)
	}
	if how == "lost write" {
		return // another writer was first: the plan is dropped
	}
	f.Store(plan)
	w.past.Keep(rollouttest.StepOf(in, plan, refused))
	switch how {
	case "crash": // only some of the actions are carried out
		f.CarryOut(plan.Actions[:rapid.IntRange(0, len(plan.Actions)).Draw(w.T, "actions")])
	case "sleep": // it acts much later
		w.late = slices.DeleteFunc(slices.Clone(plan.Actions), func(a rollout.Action) bool { return a.Kind != rollout.Move })
	case "stale":
		f.CarryOutFrom(sight, plan.Actions)
	}
}

// pass lets time go by: to the next change, or for a while.
func (w *world) pass() {
	f := w.fleet
	d := rapid.SampledFrom([]time.Duration{
		0, 0, time.Second, time.Minute, 3 * time.Minute, 700 * time.Millisecond, time.Hour, 40 * day,
	}).Draw(w.T, "pass")
	if d != 0 {
		f.Now = f.Now.Add(d)
	} else if next := f.NextChange(); !next.IsZero() {
		f.Now = next
	}
}

// run is a history of n events, plans and times in between.
func (w *world) run(n int) {
	events := w.events()
	names := slices.Sorted(maps.Keys(events))
	for range n {
		if rapid.IntRange(0, 1).Draw(w.T, "quiet") == 0 {
			what := rapid.SampledFrom(names).Draw(w.T, "event")
			w.history = append(w.history, what)
			events[what]()
		}
		w.plan()
		w.pass()
	}
}

// cease ends every fault and every hold, and leaves what was committed as it is.
func (w *world) cease() {
	f := w.fleet
	f.CarryOut(w.late)
	w.late = nil
	f.Policy.Suspended, f.Policy.ApprovedRemoval, f.Policy.TargetMissing, f.Policy.Contested = false, "", "", ""
	f.Policy.Spec.Suspend, f.Policy.Spec.Removal = false, nil
	w.settle(true)
	w.knowGroups()
	for i := range f.Policy.Spec.Stages {
		f.Policy.Spec.Stages[i].WhenEmpty = v1alpha1.WhenEmptyPass
		if c := f.Policy.Spec.Stages[i].MaxConcurrency; c != nil && c.String() == "0" {
			f.Policy.Spec.Stages[i].MaxConcurrency = new(number(1))
		}
	}
	for _, c := range f.Clusters {
		c.Gone, c.Held, c.Blocked, c.Refused, c.Awaits, c.Waits, c.Away, c.Departs = false, false, "", "", "", "", "", rollout.Departure{}
		f.Return(c.Name)
	}
}

// calm ends every fault, and adds a last commit that works on every cluster.
func (w *world) calm() {
	w.cease()
	for _, c := range w.fleet.Clusters {
		c.Takes = map[string]rollouttest.Behaviour{}
	}
	w.fleet.SetTarget("last")
	w.passGates()
	w.fleet.Policy.Aborted = ""
}

// rest plans until nothing is left to do and returns the last plan.
func (w *world) rest() rollout.Plan {
	f := w.fleet
	for range 2000 {
		plan, err := f.Step(w.past)
		if err != nil {
			w.Fatalf("%v\nafter %v and calm\n%s", err, w.history, rollouttest.Snapshot(f.Input()))
		}
		next := f.NextChange()
		if !plan.RecheckAt.IsZero() && (next.IsZero() || plan.RecheckAt.Before(next)) {
			next = plan.RecheckAt
		}
		deleting := slices.ContainsFunc(plan.Clusters, func(c rollout.ClusterPlan) bool {
			return f.Clusters[c.Name].Installed == rollout.Deleting
		})
		if next.IsZero() && !plan.LedgerChanged && len(plan.Actions) == 0 && !deleting {
			return plan
		}
		if !next.IsZero() {
			f.Now = next
		}
		f.Collect()
	}
	w.Fatalf("not at rest after %v: %s", w.history, rollouttest.Snapshot(f.Input()))
	return rollout.Plan{}
}
