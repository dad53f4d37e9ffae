package rollout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// world is a random history of one rollout: a fleet, its faults, and an operator that
// crashes and loses its writes. The invariants are checked after every plan.
type world struct {
	*rapid.T
	fleet   *rollouttest.Fleet
	inv     *rollouttest.Invariants
	names   []string
	commits int
	late    []rollout.Action // decided and reserved by an operator that then slept
	history []string
}

func newWorld(t *rapid.T) *world {
	names := rollouttest.Names(rapid.IntRange(2, 9).Draw(t, "clusters"))
	running := rapid.SampledFrom([]string{"", "a", "a"}).Draw(t, "running")
	w := &world{T: t, fleet: rollouttest.NewFleet(running, names...), inv: rollouttest.NewInvariants(), names: names}
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

// policy draws a new policy; one in five is All.
func (w *world) policy() {
	in := rollout.Input{Spec: v1alpha1.AddOnRolloutSpec{Target: w.fleet.Policy.Spec.Target}}
	drawPolicy(w.T, &in, w.names)
	if rapid.IntRange(0, 4).Draw(w.T, "all") == 0 {
		in.Spec.Stages = nil
		in.Spec.Strategy = &v1alpha1.RolloutStrategy{Type: v1alpha1.StrategyAll, All: &clusterv1alpha1.RolloutAll{
			RolloutConfig: clusterv1alpha1.RolloutConfig{ProgressDeadline: deadlines().Draw(w.T, "deadline")},
		}}
	}
	w.fleet.Policy.Spec, w.fleet.Policy.Placements = in.Spec, in.Placements
}

func (w *world) commit() {
	w.commits++
	digest := fmt.Sprintf("r%d", w.commits)
	for _, name := range w.names {
		c := w.fleet.Clusters[name]
		c.Takes[digest] = rollouttest.Behaviour{
			Ending: rapid.SampledFrom([]rollouttest.Ending{
				rollouttest.Healthy, rollouttest.Healthy, rollouttest.Healthy, rollouttest.Fails, rollouttest.Silent, rollouttest.Stuck,
			}).Draw(w.T, "ending"),
			After: time.Duration(rapid.IntRange(0, 8).Draw(w.T, "after")) * time.Minute,
		}
		if rapid.IntRange(0, 5).Draw(w.T, "flaps") == 0 {
			b := c.Takes[digest]
			b.IllFrom, b.IllUntil = 9*time.Minute, 11*time.Minute
			c.Takes[digest] = b
		}
		if w.commits > 1 && rapid.IntRange(0, 5).Draw(w.T, "alike") == 0 {
			c.Alike[digest] = fmt.Sprintf("r%d", w.commits-1)
		}
	}
	w.fleet.SetTarget(digest)
}

func (w *world) cluster() string { return rapid.SampledFrom(w.names).Draw(w.T, "cluster") }

// happen lets one thing happen that AddonFlow does not decide.
func (w *world) happen() {
	f := w.fleet
	what := rapid.SampledFrom([]string{
		"commit", "revert", "lose", "lose", "return", "return", "suspend", "resume", "policy", "unsettle", "settle",
		"join", "gone", "collect", "hand-made", "deselect", "deselect", "select", "select", "approve", "disapprove", "disable install",
	}).Draw(w.T, "event")
	w.history = append(w.history, what)
	switch what {
	case "commit":
		w.commit()
	case "revert":
		if f.Policy.Stable != "" {
			f.SetTarget(f.Policy.Stable)
		}
	case "lose":
		f.Lose(w.cluster())
	case "return":
		f.Return(w.cluster())
	case "suspend", "resume":
		f.Policy.Suspended = what == "suspend"
	case "policy":
		w.policy()
	case "unsettle", "settle":
		w.settle(what == "settle")
	case "join":
		name := fmt.Sprintf("joiner-%d", len(w.names))
		f.Join(name)
		w.names = append(w.names, name)
		g := &f.Policy.Placements[0].Groups[0]
		g.Clusters = append(slices.Clone(g.Clusters), name)
	case "gone":
		f.Clusters[w.cluster()].Gone = rapid.IntRange(0, 3).Draw(w.T, "for good") == 0
	case "hand-made":
		if c := f.Clusters[w.cluster()]; c.Installed == rollout.NotInstalled || c.Installed == "" {
			c.Installed, c.JoinedAt = rollout.HandMade, f.Now
		}
	default:
		w.happenToInstalls(what)
	}
}

// happenToInstalls is what happens to who has the add-on.
func (w *world) happenToInstalls(what string) {
	f := w.fleet
	switch what {
	case "deselect", "select":
		w.selects(what == "select", w.cluster())
	case "disable install":
		c := f.Clusters[w.cluster()]
		c.InstallDisabled = !c.InstallDisabled
	case "approve":
		_, f.Policy.ApprovedRemoval, _ = strings.Cut(f.Policy.Spec.Target.Commit, "sha1:")
	case "disapprove":
		f.Policy.ApprovedRemoval = ""
	default:
		f.Collect()
	}
}

// selects makes labels and placements select a cluster, or none of them.
func (w *world) selects(is bool, name string) {
	w.fleet.Clusters[name].Labels = nil
	if is {
		w.fleet.Clusters[name].Labels = onEdge()
	}
	pls := slices.Clone(w.fleet.Policy.Placements)
	for i := range pls {
		pls[i].Groups = slices.Clone(pls[i].Groups)
		for j := range pls[i].Groups {
			g := &pls[i].Groups[j]
			g.Clusters = slices.DeleteFunc(slices.Clone(g.Clusters), func(c string) bool { return c == name })
			if is && i == 0 && j == 0 {
				g.Clusters = append(g.Clusters, name)
			}
		}
	}
	w.fleet.Policy.Placements = pls
}

func (w *world) settle(all bool) {
	pls := slices.Clone(w.fleet.Policy.Placements)
	for i := range pls {
		pls[i].Existence, pls[i].Settlement = rollout.Exists, rollout.Settled
		if !all && rapid.Bool().Draw(w.T, "this one") {
			pls[i].Settlement = rollout.Unsettled
			if rapid.Bool().Draw(w.T, "missing") {
				pls[i].Existence = rollout.Missing
			}
		}
	}
	w.fleet.Policy.Placements = pls
}

// plan lets the operator plan once, well or badly.
func (w *world) plan() {
	f := w.fleet
	in := f.Input()
	how := rapid.SampledFrom([]string{"well", "well", "well", "lost write", "crash", "sleep", "wake", "status lost"}).Draw(w.T, "operator")
	w.history = append(w.history, "plan "+how)
	if how == "status lost" && rapid.IntRange(0, 3).Draw(w.T, "really") == 0 {
		f.Ledger, f.Policy.Previous = v1alpha1.Ledger{}, rollout.Previous{}
		how = "well"
	}
	if how == "wake" {
		f.CarryOut(w.late)
		w.late = nil
	}
	if how == "well" || how == "wake" || how == "status lost" {
		if _, err := f.Step(w.inv); err != nil {
			w.Fatalf("%v\nafter %v\n%s", err, w.history, rollouttest.Snapshot(in))
		}
		return
	}
	plan, refused := rollout.New(in)
	if err := w.inv.Check(in, plan, refused); err != nil {
		w.Fatalf("%v\nafter %v\n%s", err, w.history, rollouttest.Snapshot(in))
	}
	switch how {
	case "lost write": // somebody else wrote first: the plan is dropped
	case "crash": // the ledger is stored, and only some of the actions are carried out
		f.Store(plan)
		w.inv.Stored(in, plan)
		done := plan.Actions[:rapid.IntRange(0, len(plan.Actions)).Draw(w.T, "actions")]
		f.CarryOut(done)
	case "sleep": // another operator stored its ledger and acts much later
		f.Store(plan)
		w.inv.Stored(in, plan)
		w.late = slices.DeleteFunc(slices.Clone(plan.Actions), func(a rollout.Action) bool { return a.Kind != rollout.Move })
	}
}

// pass lets time go by: to the next change, or for a while.
func (w *world) pass() {
	f := w.fleet
	d := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 3 * time.Minute, 700 * time.Millisecond, time.Hour}).Draw(w.T, "pass")
	if d == 0 {
		if next := f.NextChange(); !next.IsZero() {
			f.Now = next
		}
		return
	}
	f.Now = f.Now.Add(d)
}

// run is a history of n events, plans and times in between.
func (w *world) run(n int) {
	for range n {
		if rapid.IntRange(0, 2).Draw(w.T, "quiet") == 0 {
			w.happen()
		}
		w.plan()
		w.pass()
	}
}

// calm ends every fault and holds, and brings a last commit that everybody takes.
func (w *world) calm() {
	f := w.fleet
	f.CarryOut(w.late)
	w.late = nil
	f.Policy.Suspended, f.Policy.ApprovedRemoval = false, ""
	w.settle(true)
	for i := range f.Policy.Spec.Stages {
		if c := f.Policy.Spec.Stages[i].MaxConcurrency; c != nil && c.String() == "0" {
			f.Policy.Spec.Stages[i].MaxConcurrency = new(number(1))
		}
	}
	for _, c := range f.Clusters {
		c.Gone = false
		f.Return(c.Name)
		c.Takes = map[string]rollouttest.Behaviour{}
	}
	f.SetTarget("last")
}

// rest plans until nothing is left to do and returns the last plan.
func (w *world) rest() rollout.Plan {
	f := w.fleet
	for range 2000 {
		plan, err := f.Step(w.inv)
		if err != nil {
			w.Fatalf("%v\nafter %v and calm", err, w.history)
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

// TestProperty_S1_S3_S4_S5_S6_S10_S11_S15_L3 lets random histories happen; every plan
// is checked by rollouttest.Invariants, which says which property is broken.
func TestProperty_S1_S3_S4_S5_S6_S10_S11_S15_L3(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		newWorld(t).run(rapid.IntRange(5, 40).Draw(t, "length"))
	})
}

// TestProperty_L1_L5_ConvergesAfterFaults: whatever happened, a commit that everybody
// takes reaches everybody once the faults end, and then nothing is left in the ledger.
func TestProperty_L1_L5_ConvergesAfterFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.run(rapid.IntRange(0, 25).Draw(t, "length"))
		w.calm()
		plan := w.rest()
		for _, c := range plan.Clusters {
			switch c.State {
			case rollout.Succeeded, rollout.Unchanged, rollout.Unstaged, rollout.Ignored:
			default:
				t.Fatalf("%s is %s: %s\nafter %v", c.Name, c.State, c.Reason, w.history)
			}
		}
		if plan.Phase != v1alpha1.PhaseSucceeded {
			t.Fatalf("%s: %s\nafter %v", plan.Phase, plan.Message, w.history)
		}
		if l := w.fleet.Ledger; len(l.Waves)+len(l.Parked) > 0 || l.Removal != nil {
			t.Fatalf("the ledger is not empty at rest: %+v", l)
		}
	})
}
