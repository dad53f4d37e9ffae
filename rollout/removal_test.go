package rollout_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
	"github.com/addonflow/addonflow/rollout/removal"
	"github.com/addonflow/addonflow/test/rollouttest"
)

// remembered puts a record of removals into the ledger, beside the records of clusters.
func remembered(r removal.Record) change {
	return func(in *rollout.Input) {
		records := recordsOf(in)
		held := len(records)
		for _, name := range r.Names() {
			if !slices.ContainsFunc(records[:held], func(r rollout.Record) bool { return r.Cluster == name }) {
				records = append(records, rollout.Record{Cluster: name})
			}
		}
		l := rollouttest.LedgerOf(records...)
		l.Records = slices.DeleteFunc(l.Records, func(g v1alpha1.RecordGroup) bool { return g.Revision == "" })
		names, err := rollout.Names(l)
		if err == nil {
			l.Removal, err = r.Encode(names, time.Second)
		}
		if err != nil {
			panic(err) // every name is in the ledger
		}
		in.Ledger = l
	}
}

// leavingSince is a removal that began with 40 clusters, some time ago.
func leavingSince(ago time.Duration, names ...string) removal.Record {
	r := removal.Record{Total: 40, Leaving: map[string]removal.Departure{}}
	for _, name := range names {
		r.Leaving[name] = removal.Departure{Since: now().Add(-ago)}
	}
	return r
}

// TestRemoval is the removal from a fleet of 40 clusters, whose budget is 2 per 5 minutes.
// Package removal tests grace period, budget and approvals; this is what the planner makes
// of its input for them, and of their result.
func TestRemoval(t *testing.T) {
	names := rollouttest.Names(40)
	last := func(n int) []string { return names[40-n:] }
	shrunkBy := func(n int) change {
		return func(in *rollout.Input) { in.Placements = []rollout.Placement{placement("all", names[:40-n]...)} }
	}
	began := func(ago time.Duration, names ...string) change { return remembered(leavingSince(ago, names...)) }
	wholeAddOn := func(ago time.Duration) change {
		r := leavingSince(ago, names...)
		r.Commit = "abc"
		return remembered(r)
	}
	spent := func(ago time.Duration, n int, leaving ...string) change {
		r := leavingSince(time.Hour, leaving...)
		r.Spent, r.SpentAt = n, now().Add(-ago)
		return remembered(r)
	}
	approves := func(annotation string) change {
		return func(in *rollout.Input) {
			in.Spec.Target.Commit, in.ApprovedRemoval = "main@sha1:abc", annotation
		}
	}
	leavesGit := func(approved, annotation string) change {
		return func(in *rollout.Input) {
			in.Spec.Removal = &v1alpha1.Removal{Commit: "abc", Approved: approved != ""}
			in.ApprovedRemoval = annotation
		}
	}
	unsettled := func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Unsettled }
	undecided := func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Undecided }
	noPlacement := func(in *rollout.Input) { in.Placements = nil }
	suspend := func(in *rollout.Input) { in.Suspended = true }
	contest := func(in *rollout.Input) { in.Contested = "ownership conflict: b owns it" }
	installed := func(i rollout.Installation) func(*rollout.Cluster) {
		return func(c *rollout.Cluster) { c.Installed = i }
	}
	gone := func(name string) change { return on(name, installed(rollout.NotInstalled)) }
	byLabels := func(name string) change {
		return on(name, func(c *rollout.Cluster) { c.SelectedBy = rollout.ByLabels })
	}
	for name, tc := range map[string]struct {
		reason  string
		change  []change
		removed []string
		recheck time.Duration // from now; 0: never
		guard   string        // a part of it; "": nothing is held
		phase   v1alpha1.Phase
	}{
		"within the budget": {
			reason: "it waits out the grace period: it may be a flap",
			change: []change{shrunkBy(2)}, recheck: 5 * time.Minute, guard: "2 clusters to remove: grace period until 12:05 UTC",
		},
		"in the grace period": {
			reason: "the grace period goes on",
			change: []change{shrunkBy(3), began(time.Minute, last(3)...)}, recheck: 4 * time.Minute, guard: "grace period until 12:04 UTC",
		},
		"after the grace period": {
			reason: "at the budget's pace",
			change: []change{shrunkBy(5), began(5*time.Minute, last(5)...)}, removed: last(5)[:2],
			recheck: 5 * time.Minute, guard: "3 clusters to remove, 2 per 5m0s",
		},
		"one cluster flapped": {
			reason: "its grace period starts anew; the other is removed",
			change: []change{shrunkBy(2), began(time.Hour, names[38])}, removed: []string{names[38]}, recheck: 5 * time.Minute,
			guard: "1 cluster to remove: grace period until 12:05 UTC",
		},
		"the budget is spent": {
			reason: "it is free again a grace period after the last deletion",
			change: []change{shrunkBy(5), spent(time.Minute, 2, last(5)...)}, recheck: 4 * time.Minute, guard: "next at 12:04 UTC",
		},
		"the budget is free again": {
			reason: "the next clusters are removed",
			change: []change{shrunkBy(5), spent(5*time.Minute, 2, last(5)...)}, removed: last(5)[:2], recheck: 5 * time.Minute, guard: "3 clusters to remove",
		},
		"an empty status": {
			reason: "it is not known since when they leave: the grace period starts now",
			change: []change{shrunkBy(1), func(in *rollout.Input) { in.Rebuild = true }}, recheck: 5 * time.Minute, guard: "grace period",
		},
		"approved": {
			reason: "every cluster that leaves is removed at once",
			change: []change{shrunkBy(5), approves("abc")}, removed: last(5),
		},
		"another commit is approved": {
			reason: "that is another decision",
			change: []change{shrunkBy(5), approves("abd")}, recheck: 5 * time.Minute, guard: "grace period",
		},
		"they came back": {
			reason: "no cluster is removed, and nothing is remembered",
			change: []change{began(time.Minute, last(5)...)},
		},
		"the placement does not exist": {
			reason: "it removes no cluster, however long, approved or not",
			change: []change{noPlacement, began(time.Hour, last(5)...), approves("abc")}, guard: "Placement default/all does not exist: no cluster is removed",
		},
		"OCM has not decided about the placement": {
			reason: "there is nothing that could be approved",
			change: []change{shrunkBy(1), undecided, began(time.Hour, last(1)...), approves("abc")},
			guard:  "OCM has not decided about Placement default/all: no cluster is removed",
		},
		"the placement is not settled": {
			reason: "it removes no cluster, and the grace period goes on",
			change: []change{shrunkBy(1), unsettled, began(time.Hour, last(1)...)}, guard: "not settled: no cluster is removed without approval",
		},
		"the placement is not settled, and just approved": {
			reason: "the cluster must stay unselected for half a minute",
			change: []change{shrunkBy(1), unsettled, approves("abc")}, recheck: 30 * time.Second,
			guard: "1 cluster to remove: approved, and the decisions of Placement default/all are not settled: next at 12:01 UTC",
		},
		"kept by another selection, and the placement does not exist": {
			reason: "no cluster waits to be removed",
			change: append(forAll(names, byLabels), noPlacement),
		},
		"Manual": {
			reason: "no cluster is removed",
			change: []change{func(in *rollout.Input) { in.Spec.Install = &v1alpha1.Install{Type: "Manual"} }},
		},
		"suspended": {
			reason: "no cluster is removed",
			change: []change{shrunkBy(1), began(time.Hour, last(1)...), suspend}, guard: "suspended: no cluster is removed",
		},
		"contested": {
			reason: "no cluster is removed, and the other owner is named",
			change: []change{shrunkBy(1), began(time.Hour, last(1)...), contest}, guard: "ownership conflict: b owns it",
		},
		"hand-made": {
			reason: "it is never removed",
			change: []change{shrunkBy(1), on(names[39], installed(rollout.HandMade))},
		},
		"terminating": {
			reason: "its add-on is deleted with its ManagedCluster",
			change: []change{shrunkBy(1), began(time.Hour, last(1)...), on(names[39], func(c *rollout.Cluster) { c.Gone = true })},
		},
		"out of Git": {
			reason: "held until it is approved",
			change: []change{leavesGit("", "")}, guard: "addonflow.io/approve-removal: abc", phase: v1alpha1.PhaseHeld,
		},
		"out of Git, another commit is approved": {
			reason: "the approval is for another removal",
			change: []change{leavesGit("", "abd")}, guard: "approve-removal: abc", phase: v1alpha1.PhaseHeld,
		},
		"out of Git, prune": {
			reason: "approved at the budget's pace, after the grace period",
			change: []change{leavesGit("prune", "")}, recheck: 5 * time.Minute, guard: "grace period", phase: v1alpha1.PhaseRemoving,
		},
		"out of Git, prune, after the grace period": {
			reason: "at the budget's pace",
			change: []change{leavesGit("prune", ""), wholeAddOn(time.Hour)}, removed: names[:2], recheck: 5 * time.Minute, guard: "38 clusters to remove", phase: v1alpha1.PhaseRemoving,
		},
		"out of Git while single clusters leave": {
			reason: "that was another removal: the grace period of the add-on starts now",
			change: []change{began(time.Hour, last(5)...), leavesGit("prune", "")}, recheck: 5 * time.Minute,
			guard: "40 clusters to remove: grace period until 12:05 UTC", phase: v1alpha1.PhaseRemoving,
		},
		"out of Git, suspended": {
			reason: "no cluster is removed, and the phase says why",
			change: []change{leavesGit("prune", ""), wholeAddOn(time.Hour), suspend}, guard: "suspended", phase: v1alpha1.PhaseSuspended,
		},
		"out of Git, approved": {
			reason: "every cluster at once",
			change: []change{leavesGit("", "abc")}, removed: names, phase: v1alpha1.PhaseRemoving,
		},
		"out of Git, the last one is hand-made": {
			reason: "it stays, and is named",
			change: append(forAll(names[1:], gone), leavesGit("", "abc"), on(names[0], installed(rollout.HandMade))), phase: v1alpha1.PhaseRemoving,
		},
		"out of Git, every cluster is without it": {
			reason: "the ClusterManagementAddOn is removed",
			change: append(forAll(names, gone), leavesGit("", "")), phase: v1alpha1.PhaseRemoved,
		},
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
		})
	}
}

// TestRemoval_SlotsAndRemovalsShareTheLedger: the ledger keeps records of clusters in flight
// and of clusters that leave, with one list of names.
func TestRemoval_SlotsAndRemovalsShareTheLedger(t *testing.T) {
	in := rolling(6)
	admitted("v2", time.Minute, c1, c6)(&in)
	remembered(leavingSince(time.Minute, c5, c6))(&in)
	in.Placements[1] = placement("all", c1, c2, c3, c4)
	plan := planned(t, in)
	in.Ledger = plan.Ledger
	var names []string
	for _, r := range recordsOf(&in) {
		names = append(names, r.Cluster)
	}
	if diff := cmp.Diff([]string{c1, c6}, names); diff != "" {
		t.Errorf("(-want +records):\n%s", diff)
	}
	all, err := rollout.Names(plan.Ledger)
	if err != nil {
		t.Fatal(err)
	}
	got, err := removal.Decode(plan.Ledger.Removal, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{c5, c6}, got.Names()); diff != "" || !got.Leaving[c5].Since.Equal(now().Add(-time.Minute)) {
		t.Errorf("(-want +leaving):\n%s%+v", diff, got)
	}
}

// TestGuardHint: the hint says how to remove waiting clusters at once, where that is
// possible.
func TestGuardHint(t *testing.T) {
	shrunk := func(in *rollout.Input) {
		in.Placements = []rollout.Placement{placement("all", rollouttest.Names(39)...)}
	}
	commits := func(in *rollout.Input) { in.Spec.Target.Commit = "main@sha1:abc" }
	unsettled := func(in *rollout.Input) { in.Placements[0].Settlement = rollout.Unsettled }
	approves := func(in *rollout.Input) { in.ApprovedRemoval = "abc" }
	leavesGit := func(approved bool) change {
		return func(in *rollout.Input) { in.Spec.Removal = &v1alpha1.Removal{Commit: "abd", Approved: approved} }
	}
	used := leavingSince(time.Minute, "cluster-40")
	used.UsedApproval = "abc"
	for name, tc := range map[string]struct {
		change []change
		want   string
	}{
		"grace period":                 {[]change{shrunk, commits}, "addonflow.io/approve-removal: abc removes them now"},
		"no cluster waits":             {[]change{commits}, ""},
		"no commit to name":            {[]change{shrunk, func(in *rollout.Input) { in.Spec.Target.Commit = "" }}, ""},
		"suspended":                    {[]change{shrunk, commits, func(in *rollout.Input) { in.Suspended = true }}, ""},
		"a placement does not exist":   {[]change{commits, func(in *rollout.Input) { in.Placements = nil }}, ""},
		"a placement is not settled":   {[]change{shrunk, commits, unsettled}, "addonflow.io/approve-removal: abc removes them now"},
		"approved, and not confirmed":  {[]change{shrunk, commits, unsettled, approves}, ""},
		"the approval was used":        {[]change{shrunk, commits, approves, remembered(used)}, "the approval of abc was used: set it again to remove them now"},
		"out of Git, not approved":     {[]change{commits, leavesGit(false)}, ""},
		"out of Git, its grace period": {[]change{commits, leavesGit(true)}, "addonflow.io/approve-removal: abd removes them now"},
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
