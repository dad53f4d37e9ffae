package removal_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

const (
	grace    = 5 * time.Minute
	notThere = "Placement default/all does not exist"
	moving   = "the decisions of Placement default/all are not settled"
)

func now() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

func ago(d time.Duration) time.Time { return now().Add(-d) }

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("c%02d", i+1)
	}
	return all
}

// fleet is 40 clusters with the add-on, whose budget is 2 per grace period.
func fleet() removal.Input {
	in := removal.Input{Now: now(), Grace: grace, Commit: "abc", Trust: removal.Settled}
	for _, name := range names(40) {
		in.Clusters = append(in.Clusters, removal.Cluster{Name: name, Installed: removal.Ours})
	}
	return in
}

type change func(*removal.Input)

// unselected makes the last n clusters leave the install set.
func unselected(n int) change {
	return func(in *removal.Input) {
		for i := range n {
			in.Clusters[len(in.Clusters)-1-i].Unselected = true
		}
	}
}

func on(name string, do func(*removal.Cluster)) change {
	return func(in *removal.Input) {
		for i := range in.Clusters {
			if in.Clusters[i].Name == name {
				do(&in.Clusters[i])
			}
		}
	}
}

// left notes the departure of clusters in a removal of 40.
func left(d removal.Departure, clusters ...string) change {
	return func(in *removal.Input) {
		if in.Record.Leaving == nil {
			in.Record.Leaving = map[string]removal.Departure{}
		}
		in.Record.Total = 40
		for _, name := range clusters {
			in.Record.Leaving[name] = d
		}
	}
}

func spent(n int, since time.Duration) change {
	return func(in *removal.Input) { in.Record.Total, in.Record.Spent, in.Record.SpentAt = 40, n, ago(since) }
}

func placements(trust removal.Trust, why string) change {
	return func(in *removal.Input) { in.Trust, in.Untrusted = trust, why }
}

func approval(commit string) change { return func(in *removal.Input) { in.Approval = commit } }

func used(commit string) change { return func(in *removal.Input) { in.Record.UsedApproval = commit } }

func suspended(in *removal.Input) { in.Held = "suspended" }

// leftGit removes the whole add-on; the commit is that of the tree without it.
func leftGit(approved bool) change {
	return func(in *removal.Input) { in.Removal = &v1alpha1.Removal{Commit: "fed", Approved: approved} }
}

func whole(in *removal.Input) { in.Record.Commit = "fed" }

func becomes(i removal.Installation) func(*removal.Cluster) {
	return func(c *removal.Cluster) { c.Installed = i }
}

func neededBy(addOns ...string) func(*removal.Cluster) {
	return func(c *removal.Cluster) { c.NeededBy = addOns }
}

func with(changes ...change) removal.Input {
	in := fleet()
	for _, c := range changes {
		c(&in)
	}
	return in
}

func verdicts(plan removal.Plan, of ...removal.Verdict) []string {
	var found []string
	for _, d := range plan.Decisions {
		if slices.Contains(of, d.Verdict) {
			found = append(found, d.Cluster)
		}
	}
	return found
}

// TestRemoval has every state and edge of the package's tables.
func TestRemoval(t *testing.T) {
	long := removal.Departure{Since: ago(time.Hour)}
	reserved := removal.Departure{Since: ago(time.Hour), Reserved: true}
	last := func(n int) []string { return names(40)[40-n:] }
	for name, tc := range map[string]struct {
		reason string
		in     removal.Input
		// removed for the first time, again is those decided earlier, stays those that wait.
		removed, again, stays []string
		reserved              int
		guard, hint           string
		next                  time.Duration // from now; 0: never
		record                func(*removal.Record)
	}{
		"every cluster is selected": {in: with(), record: func(*removal.Record) {}},
		"a cluster leaves the install set": {
			reason: "it waits out a grace period, however few leave: it may be a flap", in: with(unselected(1)), stays: last(1),
			guard: "1 cluster to remove: grace period until 12:05 UTC", hint: "addonflow.io/approve-removal: abc removes them now", next: grace,
			record: func(r *removal.Record) {
				r.Total, r.Leaving = 40, map[string]removal.Departure{"c40": {Since: now()}}
			},
		},
		"a fraction of a second is rounded up": {
			reason: "no grace period is shortened", in: with(unselected(1), func(in *removal.Input) { in.Now = in.Now.Add(time.Millisecond) }), stays: last(1),
			guard: "grace period until 12:06 UTC", hint: "removes them now", next: grace + 999*time.Millisecond,
			record: func(r *removal.Record) {
				r.Total, r.Leaving = 40, map[string]removal.Departure{"c40": {Since: now().Add(time.Second)}}
			},
		},
		"in the grace period": {
			in: with(unselected(1), left(removal.Departure{Since: ago(time.Minute)}, "c40")), stays: last(1),
			guard: "12:04 UTC", hint: "removes them now", next: 4 * time.Minute,
		},
		"after the grace period": {
			reason: "at the budget's pace, and the next when these are gone for a grace period", in: with(unselected(5), left(long, last(5)...)),
			removed: []string{"c36", "c37"}, stays: last(3), reserved: 2, guard: "3 clusters to remove, 2 per 5m0s: next at 12:05 UTC", hint: "removes them now", next: grace,
			record: func(r *removal.Record) {
				r.Leaving["c36"], r.Leaving["c37"] = reserved, reserved
			},
		},
		"another add-on depends on it": {
			reason:  "it leaves after that one, and spends no budget meanwhile; not even an approval changes the order",
			in:      with(unselected(3), left(long, last(3)...), approval("abc"), on("c39", neededBy("agent")), on("c40", neededBy("agent", "mesh"))),
			removed: []string{"c38"}, stays: last(2), reserved: 3,
			guard: "2 clusters to remove: wait until agent, mesh, which depend on it, are removed there",
		},
		"it is decided, and another add-on depends on it": {
			reason: "the deletion may have been carried out already", in: with(unselected(1), left(reserved, "c40"), on("c40", neededBy("agent"))), again: last(1),
		},
		"the longest wait goes first": {
			in: with(unselected(3), left(long, "c38"), left(removal.Departure{Since: ago(2 * time.Hour)}, "c39", "c40")), removed: last(2), stays: []string{"c38"}, reserved: 2,
			guard: "1 cluster to remove, 2 per 5m0s", hint: "removes them now", next: grace,
		},
		"one cluster may always leave": {
			reason: "5 % of 10 is none", in: with(func(in *removal.Input) { in.Clusters = in.Clusters[:10] }, unselected(2), left(long, "c09", "c10"), func(in *removal.Input) { in.Record.Total = 10 }),
			removed: []string{"c09"}, stays: []string{"c10"}, reserved: 1, guard: "1 per 5m0s", hint: "removes them now", next: grace,
		},
		"two of one, the rest in grace": {
			in:      with(unselected(2), left(long, "c39"), left(removal.Departure{Since: ago(time.Minute)}, "c40")),
			removed: []string{"c39"}, stays: []string{"c40"}, reserved: 1, guard: "1 cluster to remove: grace period until 12:04 UTC", hint: "removes them now", next: 4 * time.Minute,
		},
		"the deletion was not seen yet": {
			reason: "it is deleted again, for the same share", in: with(unselected(4), left(long, last(4)...), left(reserved, last(2)...)),
			again: last(2), stays: []string{"c37", "c38"}, guard: "next at 12:05 UTC", hint: "removes them now", next: grace, record: func(*removal.Record) {},
		},
		"the deletion is seen": {
			reason: "the budget's period begins now, whenever the deletion was decided", in: with(unselected(4), left(long, last(4)...), left(reserved, last(2)...), on("c39", becomes(removal.Deleting)), on("c40", becomes(removal.NotInstalled))),
			stays: []string{"c37", "c38"}, guard: "next at 12:05 UTC", hint: "removes them now", next: grace,
			record: func(r *removal.Record) {
				delete(r.Leaving, "c39")
				delete(r.Leaving, "c40")
				r.Spent, r.SpentAt = 2, now()
			},
		},
		"the cluster is not listed any more": {
			in: with(left(reserved, "gone")), next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 1, now() },
		},
		"deleted by another hand": {
			reason: "it counts: more would be gone at once otherwise", in: with(unselected(1), left(long, "c40"), on("c40", becomes(removal.Deleting))), next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 1, now() },
		},
		"one share is left": {
			in:      with(unselected(2), left(long, last(2)...), spent(1, 4*time.Minute)),
			removed: []string{"c39"}, stays: []string{"c40"}, reserved: 1, guard: "next at 12:05 UTC", hint: "removes them now", next: time.Minute,
		},
		"the budget is spent": {
			in: with(unselected(1), left(long, "c40"), spent(2, 4*time.Minute)), stays: last(1), guard: "1 cluster to remove, 2 per 5m0s: next at 12:01 UTC", hint: "removes them now", next: time.Minute,
		},
		"the budget is spent for a second more": {
			in: with(unselected(1), left(long, "c40"), spent(2, grace-time.Second)), stays: last(1), guard: "next at 12:01 UTC", hint: "removes them now", next: time.Second,
		},
		"a deletion is seen in the period of another": {
			reason: "the period begins anew: no five minutes see more than the budget", in: with(left(reserved, "gone"), spent(1, time.Minute)), next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 2, now() },
		},
		"the budget is rounded down": {
			in: with(unselected(2), left(long, "c39", "c40"), func(in *removal.Input) { in.Record.Total = 39 }), removed: []string{"c39"}, stays: last(1), reserved: 1, guard: "1 per 5m0s", hint: "removes them now", next: grace,
		},
		"the budget is free again": {
			in: with(unselected(3), left(long, last(3)...), spent(2, grace)), removed: []string{"c38", "c39"}, stays: last(1), reserved: 2, guard: "next at 12:05 UTC", hint: "removes them now", next: grace,
			record: func(r *removal.Record) {
				r.Spent, r.SpentAt = 0, time.Time{}
				r.Leaving["c38"], r.Leaving["c39"] = reserved, reserved
			},
		},
		"the last is gone": {
			reason: "nothing is remembered after the period", in: with(spent(2, grace)), record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"the last is gone, in the period": {in: with(spent(2, time.Minute)), next: 4 * time.Minute, record: func(*removal.Record) {}},
		"counted anew": {
			reason: "the last removal's total says nothing about this one", in: with(unselected(1), func(in *removal.Input) { in.Clusters = in.Clusters[:39] }, unselected(1)), stays: []string{"c39"}, guard: "grace period", hint: "removes them now", next: grace,
			record: func(r *removal.Record) {
				r.Total, r.Leaving = 39, map[string]removal.Departure{"c39": {Since: now()}}
			},
		},
		"selected again": {
			reason: "it keeps the add-on, and nothing is remembered", in: with(left(long, "c40")), record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"selected again, its deletion decided": {
			reason: "the deletion may be on its way, so that the share is spent", in: with(left(reserved, "c40")), next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 1, now() },
		},
		"returned and left again": {
			reason: "it leaves anew, and its share is spent all the same", in: with(unselected(1), spent(1, time.Minute)), stays: last(1), guard: "grace period until 12:05 UTC", hint: "removes them now", next: 4 * time.Minute,
			record: func(r *removal.Record) { r.Leaving = map[string]removal.Departure{"c40": {Since: now()}} },
		},
		"hand-made": {in: with(unselected(1), on("c40", becomes(removal.HandMade)))},
		"made by hand after its deletion was decided": {
			in: with(unselected(1), left(reserved, "c40"), on("c40", becomes(removal.HandMade))), next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 1, now() },
		},
		"its ManagedCluster is terminating": {
			in: with(unselected(1), left(long, "c40"), on("c40", func(c *removal.Cluster) { c.Gone = true })), record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"being deleted already": {in: with(unselected(1), on("c40", becomes(removal.Deleting)))},

		"a placement is missing": {
			reason: "it removes no cluster, however long, and grace periods start anew", in: with(unselected(40), left(long, last(5)...), placements(removal.Silent, notThere)),
			guard: notThere + ": no cluster is removed", record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"a placement is missing, and the removal is approved": {
			reason: "there is nothing to approve", in: with(unselected(1), left(long, "c40"), placements(removal.Silent, notThere), approval("abc")), guard: notThere + ": no cluster is removed",
		},
		"a placement is missing, a deletion was decided": {
			in: with(unselected(1), left(reserved, "c40"), placements(removal.Silent, notThere)), guard: notThere, next: grace,
			record: func(r *removal.Record) { r.Leaving, r.Spent, r.SpentAt = nil, 1, now() },
		},
		"a placement is missing, and no cluster would leave": {in: with(placements(removal.Silent, notThere))},
		"nothing is known of the placements": {
			reason: "the zero value is silent", in: with(unselected(1), left(long, "c40"), placements("", "not read")), guard: "not read: no cluster is removed",
		},
		"decisions are unsettled": {
			reason: "no cluster is removed, and grace periods go on", in: with(unselected(1), left(long, "c40"), placements(removal.Unsettled, moving)),
			guard: moving + ": no cluster is removed without approval", hint: "removes them now", record: func(*removal.Record) {},
		},
		"decisions are unsettled, and a cluster is missing from them": {
			reason: "its departure is not noted on their word", in: with(unselected(1), placements(removal.Unsettled, moving)), guard: moving, hint: "removes them now", record: func(*removal.Record) {},
		},
		"decisions are unsettled after a deletion was decided": {
			reason: "the deletion waits", in: with(unselected(1), left(reserved, "c40"), placements(removal.Unsettled, moving)), guard: moving, hint: "removes them now", record: func(*removal.Record) {},
		},

		"approved": {
			reason: "every cluster that has left, at once", in: with(unselected(5), approval("abc")), removed: last(5), reserved: 5,
			record: func(r *removal.Record) {
				r.Total, r.UsedApproval, r.Leaving = 40, "abc", map[string]removal.Departure{}
				for _, name := range last(5) {
					r.Leaving[name] = removal.Departure{Since: now(), Approved: true, Reserved: true}
				}
			},
		},
		"approved, above a spent budget": {in: with(unselected(3), left(long, last(3)...), spent(2, time.Minute), approval("abc")), removed: last(3), reserved: 3, next: 4 * time.Minute},
		"approved, and no cluster leaves": {
			reason: "the approval waits for the shrink that it is about", in: with(approval("abc")), record: func(*removal.Record) {},
		},
		"another commit is approved": {reason: "that is another decision", in: with(unselected(1), approval("abd")), stays: last(1), guard: "grace period", hint: "removes them now", next: grace},
		"no commit": {
			reason: "an empty annotation approves nothing", in: with(unselected(1), func(in *removal.Input) { in.Commit = "" }), stays: last(1), guard: "grace period", next: grace,
		},
		"approved, and not deleted yet": {
			in: with(unselected(1), left(removal.Departure{Since: ago(time.Hour), Approved: true, Reserved: true}, "c40"), approval("abc"), used("abc")), again: last(1), record: func(*removal.Record) {},
		},
		"a cluster leaves after the approval was used": {
			reason: "an approval is used once: a flap a month later would take the fleet with it", in: with(unselected(1), approval("abc"), used("abc")), stays: last(1),
			guard: "grace period", hint: "the approval of abc was used: set it again to remove them now", next: grace,
		},
		"the approval is withdrawn": {
			reason: "what is not deleted yet goes on waiting", in: with(unselected(1), left(removal.Departure{Since: ago(time.Minute), Approved: true, Reserved: true}, "c40"), used("abc")), stays: last(1),
			guard: "grace period until 12:04 UTC", hint: "addonflow.io/approve-removal: abc", next: 4 * time.Minute,
			record: func(r *removal.Record) {
				r.UsedApproval, r.Leaving["c40"] = "", removal.Departure{Since: ago(time.Minute)}
			},
		},
		"the approval names an older commit": {
			in: with(unselected(1), left(removal.Departure{Since: ago(time.Minute), Approved: true}, "c40"), used("old"), approval("old")), stays: last(1), guard: "12:04 UTC", hint: "was used", next: 4 * time.Minute,
			record: func(r *removal.Record) { r.Leaving["c40"] = removal.Departure{Since: ago(time.Minute)} },
		},
		"the status was lost while an approval was set": {
			reason: "it may have been used: it must not remove others", in: with(unselected(1), approval("abc"), func(in *removal.Input) { in.Rebuilt = true }), stays: last(1),
			guard: "grace period", hint: "was used", next: grace,
		},
		"unsettled, and just approved": {
			reason: "it goes if it stays away for half a minute", in: with(unselected(1), placements(removal.Unsettled, moving), approval("abc")), stays: last(1), reserved: 1,
			guard: "1 cluster to remove: approved, and " + moving + ": next at 12:01 UTC", next: 30 * time.Second,
			record: func(r *removal.Record) {
				r.Total, r.UsedApproval, r.Leaving = 40, "abc", map[string]removal.Departure{"c40": {Since: now(), Approved: true}}
			},
		},
		"unsettled, just approved, and the grace period is short": {
			in: with(unselected(1), placements(removal.Unsettled, moving), approval("abc"), func(in *removal.Input) { in.Grace = time.Second }), stays: last(1), reserved: 1, guard: "approved", next: time.Second,
		},
		"unsettled, approved and confirmed": {
			in: with(unselected(1), placements(removal.Unsettled, moving), approval("abc"), used("abc"), left(removal.Departure{Since: ago(30 * time.Second), Approved: true}, "c40")), removed: last(1), reserved: 1,
		},
		"unsettled, confirmed, and not deleted yet": {
			in: with(unselected(1), placements(removal.Unsettled, moving), approval("abc"), used("abc"), left(removal.Departure{Since: ago(time.Minute), Approved: true, Reserved: true}, "c40")), again: last(1),
		},
		"unsettled, and the approval was used": {
			reason: "it is about the clusters that had left by then", in: with(unselected(2), placements(removal.Unsettled, moving), approval("abc"), used("abc"), left(removal.Departure{Since: ago(time.Minute), Approved: true}, "c40")),
			removed: last(1), reserved: 1, guard: moving + ": no cluster is removed without approval", hint: "was used: set it again",
		},
		"approved while unsettled, and settled now": {
			in: with(unselected(1), approval("abc"), used("abc"), left(removal.Departure{Since: ago(time.Second), Approved: true}, "c40")), removed: last(1), reserved: 1,
		},

		"suspended": {
			reason: "no cluster is removed, and grace periods run", in: with(unselected(1), suspended), stays: last(1), guard: "suspended: no cluster is removed",
			record: func(r *removal.Record) {
				r.Total, r.Leaving = 40, map[string]removal.Departure{"c40": {Since: now()}}
			},
		},
		"suspended after a deletion was decided": {in: with(unselected(1), left(reserved, "c40"), suspended), stays: last(1), guard: "suspended", record: func(*removal.Record) {}},
		"suspended and approved":                 {reason: "the approval is not used", in: with(unselected(1), left(long, "c40"), suspended, approval("abc")), stays: last(1), guard: "suspended", record: func(*removal.Record) {}},
		"suspended, and no cluster leaves":       {in: with(suspended)},

		"the ledger is full": {
			reason: "no departure is noted that cannot be stored", in: with(unselected(2), left(long, "c40"), func(in *removal.Input) { in.Full = true }), removed: last(1), stays: []string{"c39"}, reserved: 1,
			guard: "1 cluster to remove: LedgerFull: the ledger has no room",
		},

		"out of Git": {
			reason: "every cluster waits for approval", in: with(leftGit(false)), stays: names(40), record: func(r *removal.Record) { *r = removal.Record{} },
			guard: "removal waits for approval: to keep the add-on, restore its files in Git or run addonflow release; to remove it, set prune: true on the source, or annotate the rollout with addonflow.io/approve-removal: fed",
		},
		"CRD is being deleted": {
			reason: "nothing is to be approved", in: with(leftGit(false), func(in *removal.Input) { in.Removal.Deleting = "CustomResourceDefinition/a" }), stays: names(40), record: func(r *removal.Record) { *r = removal.Record{} },
			guard: "CustomResourceDefinition/a is being deleted, which removes no add-on; add-ons keep running; delete the operator and run addonflow uninstall",
		},
		"out of Git, the former commit is approved": {in: with(leftGit(false), approval("abc")), stays: names(40), guard: "addonflow.io/approve-removal: fed"},
		"out of Git, no longer approved": {
			reason: "the grace period begins with the approval", in: with(leftGit(false), left(long, names(40)...), whole), stays: names(40), guard: "waits for approval", record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"out of Git, prune": {in: with(leftGit(true)), stays: names(40), guard: "40 clusters to remove: grace period until 12:05 UTC", hint: "addonflow.io/approve-removal: fed removes them now", next: grace},
		"out of Git, prune, after the grace period": {
			in: with(leftGit(true), left(long, names(40)...), whole), removed: names(2), stays: names(40)[2:], reserved: 2, guard: "38 clusters to remove, 2 per 5m0s", hint: "approve-removal: fed", next: grace,
		},
		"out of Git, approved by commit": {in: with(leftGit(false), approval("fed")), removed: names(40), reserved: 40},
		"out of Git, approved, a cluster appears later": {
			reason: "the approval is about the whole add-on", in: with(leftGit(false), approval("fed"), whole, left(removal.Departure{Since: ago(time.Minute), Approved: true, Reserved: true}, names(39)...)), removed: last(1), again: names(39), reserved: 1,
		},
		"out of Git, suspended": {in: with(leftGit(true), left(long, names(40)...), whole, suspended), stays: names(40), guard: "suspended: no cluster is removed"},
		"out of Git, placements are gone as well": {
			reason: "they are not asked", in: with(leftGit(true), left(long, names(40)...), whole, placements(removal.Silent, notThere)), removed: names(2), stays: names(40)[2:], reserved: 2, guard: "38 clusters", hint: "fed", next: grace,
		},
		"out of Git, while single clusters were leaving": {
			reason: "that was another removal: every grace period starts anew", in: with(leftGit(true), left(long, last(5)...), left(reserved, "c36")), stays: names(40), guard: "40 clusters to remove: grace period until 12:05 UTC", hint: "fed", next: grace,
		},
		"back in Git": {
			reason: "the clusters keep the add-on", in: with(left(long, names(40)...), left(reserved, "c01"), whole), next: grace,
			record: func(r *removal.Record) { *r = removal.Record{Spent: 1, SpentAt: now()} },
		},
		"back in Git, and decisions are unsettled": {
			reason: "departures of the former removal say nothing", in: with(unselected(1), left(long, names(40)...), whole, placements(removal.Unsettled, moving)), guard: moving, hint: "abc",
			record: func(r *removal.Record) { *r = removal.Record{} },
		},
		"back in Git, and not selected there": {
			in: with(unselected(1), left(long, names(40)...), whole), stays: last(1), guard: "grace period until 12:05 UTC", hint: "abc", next: grace,
		},
		"a time in the future": {
			reason: "it was noted before the clock was set back, and counts as now", in: with(unselected(1), left(removal.Departure{Since: now().Add(time.Hour)}, "c40"), spent(2, -time.Hour)), stays: last(1), guard: "12:05 UTC", hint: "removes them now", next: grace,
			record: func(r *removal.Record) {
				r.Leaving["c40"], r.SpentAt = removal.Departure{Since: now()}, now()
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tc.in)
			plan := removal.New(tc.in)
			if after := fmt.Sprint(tc.in); after != before {
				t.Errorf("the input changed from %s to %s", before, after)
			}
			for what, pair := range map[string][2][]string{
				"removed": {tc.removed, verdicts(plan, removal.Leaves)}, "removed again": {tc.again, verdicts(plan, removal.LeavesAgain)}, "stay": {tc.stays, verdicts(plan, removal.Stays)},
			} {
				if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
					t.Errorf("%s: %s (-want +got):\n%s", tc.reason, what, diff)
				}
			}
			if plan.Reserved != tc.reserved {
				t.Errorf("%s: %d reserved, want %d", tc.reason, plan.Reserved, tc.reserved)
			}
			for _, text := range [][3]string{{"guard", plan.Guard, tc.guard}, {"hint", plan.Hint, tc.hint}} {
				if !strings.Contains(text[1], text[2]) || (text[1] == "") != (text[2] == "") {
					t.Errorf("%s: %s %q, want %q in it", tc.reason, text[0], text[1], text[2])
				}
			}
			var next time.Duration
			if !plan.Next.IsZero() {
				next = plan.Next.Sub(tc.in.Now)
			}
			if next != tc.next {
				t.Errorf("%s: look again in %s, want %s", tc.reason, next, tc.next)
			}
			if tc.record != nil {
				want := tc.in.Record.Shift(0)
				tc.record(&want)
				if len(want.Leaving) == 0 {
					want.Leaving = map[string]removal.Departure{}
				}
				if diff := cmp.Diff(want, plan.Record); diff != "" {
					t.Errorf("%s: record (-want +got):\n%s", tc.reason, diff)
				}
			}
			slices.Reverse(tc.in.Clusters)
			if diff := cmp.Diff(plan, removal.New(tc.in)); diff != "" {
				t.Errorf("clusters in another order give another plan:\n%s", diff)
			}
		})
	}
}

// A cluster whose deletion the hub refused gives its share to the next one, unless an approval removes it.
func TestRefusedDeletionHoldsNoShareOfTheBudget(t *testing.T) {
	refused := func(c *removal.Cluster) { c.Refused = "frozen" }
	reserved := removal.Departure{Since: ago(2 * grace), Reserved: true}
	waiting := removal.Departure{Since: ago(2 * grace)}
	plan := removal.New(with(unselected(3), left(reserved, "c38", "c39"), left(waiting, "c40"), on("c38", refused)))
	if got := verdicts(plan, removal.Leaves, removal.LeavesAgain); !slices.Equal(got, []string{"c39", "c40"}) {
		t.Errorf("%v leave", got)
	}
	if d := plan.Record.Leaving["c38"]; d.Reserved || !d.Since.Equal(now()) || plan.Record.Spent != 0 {
		t.Errorf("c38: %+v, %d spent", d, plan.Record.Spent)
	}
	if !strings.HasPrefix(plan.Guard, "1 cluster to remove: the hub refuses: c38: frozen") {
		t.Error(plan.Guard)
	}
	approved := removal.Departure{Since: ago(2 * grace), Approved: true, Reserved: true}
	plan = removal.New(with(unselected(1), left(approved, "c40"), approval("abc"), used("abc"), on("c40", refused)))
	if got := verdicts(plan, removal.LeavesAgain); !slices.Equal(got, []string{"c40"}) || !strings.HasSuffix(plan.Decisions[0].Reason, "; the hub refuses: frozen") {
		t.Errorf("%v leave again: %v", got, plan.Decisions)
	}
}
