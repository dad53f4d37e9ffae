package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/rollouttest"
)

// TestRemoval is who is let go of a fleet of 40, whose budget is 2 per 5 minutes.
func TestRemoval(t *testing.T) {
	names := rollouttest.Names(40)
	last := func(n int) []string { return names[40-n:] }
	shrunkBy := func(n int) change {
		return func(in *rollout.Input) { in.Placements = []rollout.Placement{placement("all", names[:40-n]...)} }
	}
	began := func(ago time.Duration) change {
		return func(in *rollout.Input) {
			since := metav1.NewTime(now().Add(-ago))
			in.Ledger.Removal = &v1alpha1.RemovalBudget{
				Since: since, Total: 40, Departed: []v1alpha1.Departed{{Since: since, Clusters: last(5)}},
			}
			if in.Spec.Removal != nil {
				in.Ledger.Removal.Commit, in.Ledger.Removal.Departed = in.Spec.Removal.Commit, nil
			}
		}
	}
	// flapped says that the last cluster came back in between, after the others had left.
	flapped := func(ago time.Duration) change {
		return func(in *rollout.Input) {
			d := &in.Ledger.Removal.Departed[0]
			d.Clusters = d.Clusters[:len(d.Clusters)-1]
			in.Ledger.Removal.Departed = append(in.Ledger.Removal.Departed, v1alpha1.Departed{
				Since: metav1.NewTime(now().Add(-ago)), Clusters: last(1),
			})
		}
	}
	approves := func(annotation string) change {
		return func(in *rollout.Input) {
			in.Spec.Target.Commit, in.ApprovedRemoval = "main@sha1:abc", annotation
		}
	}
	lifted := func(ago time.Duration) change {
		return func(in *rollout.Input) {
			in.Ledger.Removal.Lifted = &v1alpha1.LiftedRemoval{Commit: "abc", At: metav1.NewTime(now().Add(-ago))}
		}
	}
	window := func(ago time.Duration, gone ...string) change {
		return func(in *rollout.Input) {
			start := metav1.NewTime(now().Add(-ago))
			in.Ledger.Removal.WindowStart, in.Ledger.Removal.Removed = &start, gone
		}
	}
	leavesGit := func(approved, annotation string) change {
		return func(in *rollout.Input) {
			in.Spec.Removal = &v1alpha1.Removal{Commit: "abc", Approved: approved != ""}
			in.ApprovedRemoval = annotation
		}
	}
	unsettled := func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Unsettled }
	// leftAlone says that only the last n had departed.
	leftAlone := func(n int) change {
		return func(in *rollout.Input) { in.Ledger.Removal.Departed[0].Clusters = last(n) }
	}
	gone := func(name string) change {
		return on(name, func(c *rollout.Cluster) { c.Installed = rollout.NotInstalled })
	}
	for name, tc := range map[string]struct {
		reason  string
		change  []change
		removed []string
		recheck time.Duration // from now; 0: never
		guard   string        // a part of it
		phase   v1alpha1.Phase
	}{
		"within the budget":             {reason: "it waits out the grace period all the same: it may be a flap", change: []change{shrunkBy(2)}, recheck: 5 * time.Minute, guard: "2 clusters to leave: grace period until 12:05 UTC"},
		"beyond the budget":             {reason: "it waits out the grace period", change: []change{shrunkBy(3)}, recheck: 5 * time.Minute, guard: "grace period until 12:05 UTC"},
		"in the grace period":           {reason: "it waits on", change: []change{shrunkBy(3), began(time.Minute)}, recheck: 4 * time.Minute, guard: "grace period"},
		"after the grace period":        {reason: "at the budget's pace", change: []change{shrunkBy(5), began(5 * time.Minute)}, removed: last(5)[:2], recheck: 5 * time.Minute, guard: "3 clusters left to leave, 2 per 5m0s"},
		"one flapped":                   {reason: "who came back in between has a grace period of its own", change: []change{shrunkBy(1), began(time.Hour), flapped(time.Minute)}, recheck: 4 * time.Minute, guard: "grace period until 12:04 UTC"},
		"one of several flapped":        {reason: "the others go", change: []change{shrunkBy(2), began(time.Hour), flapped(time.Minute)}, removed: last(2)[:1], recheck: 4 * time.Minute, guard: "1 cluster to leave: grace period until 12:04 UTC"},
		"counted anew":                  {reason: "what is left of an earlier removal says nothing of how many there are now", change: []change{shrunkBy(5), began(time.Hour), func(in *rollout.Input) { in.Ledger.Removal.Total = 0 }}, removed: last(5)[:2], recheck: 5 * time.Minute, guard: "3 clusters left to leave, 2 per 5m0s"},
		"budget of the window gone":     {reason: "until the window is over", change: []change{shrunkBy(5), began(time.Hour), window(time.Minute, "gone-1", "gone-2")}, recheck: 4 * time.Minute, guard: "next at 12:04 UTC"},
		"next window":                   {reason: "the next budget", change: []change{shrunkBy(5), began(time.Hour), window(5*time.Minute, "gone-1", "gone-2")}, removed: last(5)[:2], recheck: 5 * time.Minute, guard: "3 clusters left"},
		"a crash after reserving":       {reason: "who was counted goes, for no further budget", change: []change{shrunkBy(5), began(time.Hour), window(time.Minute, last(2)...)}, removed: last(2), recheck: 4 * time.Minute, guard: "3 clusters left"},
		"returned and left again":       {reason: "who was let go and has the add-on again leaves anew, and the budget is used up all the same", change: []change{shrunkBy(1), began(time.Hour), window(time.Minute, names[0], names[1])}, recheck: 4 * time.Minute, guard: "1 cluster left to leave, 2 per 5m0s: next at 12:04 UTC"},
		"a second small shrink":         {reason: "the budget counts over the window", change: []change{shrunkBy(1), began(time.Hour), window(time.Minute, "gone-1", "gone-2")}, recheck: 4 * time.Minute, guard: "1 cluster left to leave, 2 per 5m0s"},
		"a second leaver in the window": {reason: "the budget has one left, and the window begins anew, so that no five minutes see more than two", change: []change{shrunkBy(1), began(time.Hour), window(4*time.Minute, "gone-1")}, removed: last(1), recheck: 5 * time.Minute},
		"an empty status":               {reason: "who left is not known any more, so that the grace period starts anew", change: []change{shrunkBy(1), func(in *rollout.Input) { in.Previous = rollout.Previous{} }}, recheck: 5 * time.Minute, guard: "grace period"},
		"approved":                      {reason: "everybody that left, at once", change: []change{shrunkBy(5), approves("abc")}, removed: last(5)},
		"another commit approved":       {reason: "that is another decision", change: []change{shrunkBy(5), approves("abd")}, recheck: 5 * time.Minute, guard: "grace period"},
		"approved, and not gone yet":    {reason: "it was let go, and is to go", change: []change{shrunkBy(1), began(time.Hour), lifted(time.Minute), approves("abc")}, removed: last(1)},
		"approved before it left":       {reason: "an approval is used once, or a flap a month later would take the fleet with it", change: []change{shrunkBy(1), began(time.Second), lifted(time.Minute), approves("abc")}, recheck: 5*time.Minute - time.Second, guard: "grace period"},
		"they came back":                {reason: "nobody goes and nothing is kept", change: []change{began(time.Minute)}},
		"they came back in a window":    {reason: "the window is remembered until it is over", change: []change{began(time.Minute), window(time.Minute, names[0])}, recheck: 4 * time.Minute},
		"the placement is gone":         {reason: "it removes nobody, however long", change: []change{func(in *rollout.Input) { in.Placements = nil }, began(time.Hour)}, guard: "Placement default/all does not exist: nobody is removed"},
		"the placement is unsettled": {reason: "neither does it for an instant, and the grace period goes on", change: []change{
			shrunkBy(1), func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Unsettled }, began(time.Hour),
		}, guard: "not settled"},
		"unsettled, and just approved": {reason: "an instant is no evidence: it goes if it stays away for half a minute", change: []change{
			shrunkBy(1), unsettled, approves("abc"),
		}, recheck: 30 * time.Second, guard: "1 cluster to leave: approved, and the decisions of Placement default/all are not settled: at 12:01 UTC"},
		"unsettled and approved": {reason: "the approval lifts it", change: []change{shrunkBy(1), unsettled, began(30 * time.Second), leftAlone(1), approves("abc")}, removed: last(1)},
		"unsettled, and the approval was used": {reason: "it is about who had departed by then", change: []change{
			shrunkBy(2), unsettled, began(time.Hour), leftAlone(1), lifted(time.Minute), approves("abc"),
		}, removed: last(1)},
		"unsettled, another commit approved": {reason: "that is another decision", change: []change{shrunkBy(1), unsettled, began(time.Hour), approves("abd")}, guard: "not settled"},
		"undecided and approved": {reason: "OCM has said nothing yet that could be approved", change: []change{
			shrunkBy(1), func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Undecided }, began(time.Hour), approves("abc"),
		}, guard: "OCM has not decided about Placement default/all: nobody is removed"},
		"missing and approved": {reason: "it removes nobody, however long", change: []change{func(in *rollout.Input) { in.Placements = nil }, began(time.Hour), approves("abc")}, guard: "does not exist"},
		"out of Git, while single clusters left": {reason: "that was another removal: the add-on's own grace period begins now", change: []change{
			began(time.Hour), leavesGit("prune", ""),
		}, recheck: 5 * time.Minute, guard: "40 clusters to leave: grace period until 12:05 UTC", phase: v1alpha1.PhaseRemoving},
		"kept by another selection, and the placement is gone": {reason: "nobody waits to be removed", change: append(forAll(names, func(name string) change {
			return on(name, func(c *rollout.Cluster) { c.SelectedBy = rollout.ByLabels })
		}), func(in *rollout.Input) { in.Placements = nil })},
		"Manual":                              {reason: "nobody is removed", change: []change{func(in *rollout.Input) { in.Spec.Install = &v1alpha1.Install{Type: "Manual"} }}},
		"suspended":                           {reason: "nobody is removed", change: []change{shrunkBy(1), func(in *rollout.Input) { in.Suspended = true }}, guard: "suspended"},
		"hand-made":                           {reason: "it is never removed", change: []change{shrunkBy(1), on(names[39], func(c *rollout.Cluster) { c.Installed = rollout.HandMade })}},
		"terminating":                         {reason: "its add-on goes with it", change: []change{shrunkBy(1), on(names[39], func(c *rollout.Cluster) { c.Gone = true })}},
		"out of Git":                          {reason: "held until it is approved", change: []change{leavesGit("", "")}, guard: "addonflow.io/approve-removal: abc", phase: v1alpha1.PhaseHeld},
		"out of Git, another commit approved": {reason: "the approval is for another removal", change: []change{leavesGit("", "abd")}, guard: "approve-removal: abc", phase: v1alpha1.PhaseHeld},
		"out of Git, prune":                   {reason: "approved at the budget's pace, after the grace period", change: []change{leavesGit("prune", "")}, recheck: 5 * time.Minute, guard: "grace period", phase: v1alpha1.PhaseRemoving},
		"out of Git, suspended":               {reason: "nobody is removed, and the phase says why", change: []change{leavesGit("prune", ""), began(time.Hour), func(in *rollout.Input) { in.Suspended = true }}, guard: "suspended", phase: v1alpha1.PhaseSuspended},
		"out of Git, prune, later":            {reason: "at the budget's pace", change: []change{leavesGit("prune", ""), began(time.Hour)}, removed: names[:2], recheck: 5 * time.Minute, guard: "38 clusters left", phase: v1alpha1.PhaseRemoving},
		"out of Git, approved":                {reason: "everybody at once", change: []change{leavesGit("", "abc")}, removed: names, phase: v1alpha1.PhaseRemoving},
		"out of Git, one left by hand":        {reason: "the others went, and it is named", change: append(forAll(names[1:], gone), leavesGit("", "abc"), on(names[0], func(c *rollout.Cluster) { c.Installed = rollout.HandMade })), phase: v1alpha1.PhaseRemoving},
		"out of Git, all gone":                {reason: "the ClusterManagementAddOn may go", change: append(forAll(names, gone), leavesGit("", "")), phase: v1alpha1.PhaseRemoved},
	} {
		t.Run(name, func(t *testing.T) {
			f := rollouttest.NewFleet("v1", names...)
			f.Policy.Spec.Install = installedBy("all")
			f.Policy.Placements = []rollout.Placement{placement("all", names...)}
			in := f.Input()
			for _, c := range tc.change {
				c(&in)
			}
			plan := planned(t, in)
			if diff := cmp.Diff(tc.removed, acted(plan, rollout.Remove)); diff != "" {
				t.Errorf("%s (-want +removed):\n%s%s", tc.reason, diff, plan.Guard)
			}
			var recheck time.Duration
			if !plan.RecheckAt.IsZero() {
				recheck = plan.RecheckAt.Sub(in.Now)
			}
			if recheck != tc.recheck {
				t.Errorf("%s: look again in %s, want %s", tc.reason, recheck, tc.recheck)
			}
			if !strings.Contains(plan.Guard, tc.guard) || (plan.Guard == "") != (tc.guard == "") {
				t.Errorf("%s: guard %q, want %q in it", tc.reason, plan.Guard, tc.guard)
			}
			if tc.phase != "" && plan.Phase != tc.phase {
				t.Errorf("%s: %s (%s), want %s", tc.reason, plan.Phase, plan.Message, tc.phase)
			}
			if r := plan.Ledger.Removal; r != nil && !slices.IsSorted(r.Removed) {
				t.Errorf("the ledger's names are out of order: %v", r.Removed)
			}
		})
	}
}

// TestGuardHint: how to let go of those who wait is said where it can be done, and there
// only.
func TestGuardHint(t *testing.T) {
	shrunk := func(in *rollout.Input) {
		in.Placements = []rollout.Placement{placement("all", rollouttest.Names(39)...)}
	}
	commits := func(in *rollout.Input) { in.Spec.Target.Commit = "main@sha1:abc" }
	leavesGit := func(approved bool) change {
		return func(in *rollout.Input) { in.Spec.Removal = &v1alpha1.Removal{Commit: "abd", Approved: approved} }
	}
	left := metav1.NewTime(now().Add(-time.Minute))
	for name, tc := range map[string]struct {
		change []change
		want   string
	}{
		"grace period":             {[]change{shrunk, commits}, "addonflow.io/approve-removal: abc lets them go now"},
		"nobody waits":             {[]change{commits}, ""},
		"no commit to name":        {[]change{shrunk}, ""},
		"suspended":                {[]change{shrunk, commits, func(in *rollout.Input) { in.Suspended = true }}, ""},
		"a placement is missing":   {[]change{commits, func(in *rollout.Input) { in.Placements = nil }}, ""},
		"a placement is in motion": {[]change{shrunk, commits, func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Unsettled }}, "addonflow.io/approve-removal: abc lets them go now"},
		"approved, being confirmed": {[]change{shrunk, commits, func(in *rollout.Input) {
			in.Placements[0].Settlement, in.ApprovedRemoval = rollout.Unsettled, "abc"
		}}, ""},
		"the approval was used": {[]change{shrunk, commits, func(in *rollout.Input) {
			at := metav1.NewTime(now().Add(-time.Hour))
			in.ApprovedRemoval, in.Ledger.Removal = "abc", &v1alpha1.RemovalBudget{
				Since: left, Total: 40, Lifted: &v1alpha1.LiftedRemoval{Commit: "abc", At: at},
				Departed: []v1alpha1.Departed{{Since: left, Clusters: []string{"cluster-40"}}},
			}
		}}, "the approval of abc was used: set it again to let them go now"},
		"out of Git, waits for approval": {[]change{commits, leavesGit(false)}, ""},
		"out of Git, in its grace":       {[]change{commits, leavesGit(true)}, "addonflow.io/approve-removal: abd lets them go now"},
	} {
		t.Run(name, func(t *testing.T) {
			f := rollouttest.NewFleet("v1", rollouttest.Names(40)...)
			f.Policy.Spec.Install = installedBy("all")
			f.Policy.Placements = []rollout.Placement{placement("all", rollouttest.Names(40)...)}
			in := f.Input()
			for _, c := range tc.change {
				c(&in)
			}
			plan := planned(t, in)
			if plan.GuardHint != tc.want {
				t.Errorf("hint %q, want %q; the guard is %q", plan.GuardHint, tc.want, plan.Guard)
			}
		})
	}
}

func forAll(names []string, do func(string) change) []change {
	changes := make([]change, len(names))
	for i, name := range names {
		changes[i] = do(name)
	}
	return changes
}
