package removal_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

func TestEncode(t *testing.T) {
	list := names(9)
	since, later := ago(time.Hour), ago(time.Minute)
	r := removal.Record{Commit: "fed", Total: 40, UsedApproval: "abc", Spent: 3, SpentAt: later, Leaving: map[string]removal.Departure{
		"c09": {Since: later}, "c01": {Since: since}, "c03": {Since: since}, "c02": {Since: since}, "c05": {Since: since, Reserved: true},
		"c07": {Since: since, Approved: true}, "c08": {Since: since, Approved: true, Reserved: true},
	}}
	got, err := r.Encode(list, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	at, spentAt := metav1.NewTime(since), metav1.NewTime(later)
	want := &v1alpha1.RemovalRecord{Commit: "fed", Total: 40, UsedApproval: "abc", Spent: 3, SpentAt: &spentAt, Leaving: []v1alpha1.LeavingClusters{
		{Since: at, Clusters: "0-2"},
		{Since: at, Reserved: true, Clusters: "4"},
		{Since: at, Approved: true, Clusters: "6"},
		{Since: at, Approved: true, Reserved: true, Clusters: "7"},
		{Since: spentAt, Clusters: "8"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +encoded:\n%s", diff)
	}
	back, err := removal.Decode(got, list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("-want +decoded:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c01", "c02", "c03", "c05", "c07", "c08", "c09"}, r.Names()); diff != "" {
		t.Errorf("-want +names:\n%s", diff)
	}
	if coarse, err := r.Encode(list, 7*time.Minute); err != nil || coarse.SpentAt.Time.Before(later) || coarse.Leaving[0].Since.Time.Before(since) {
		t.Errorf("coarse times are earlier: %+v, %v", coarse, err)
	}
	if _, err := r.Encode(list[:8], time.Second); err == nil || !strings.Contains(err.Error(), `"c09"`) {
		t.Errorf("a name that the ledger does not hold: %v", err)
	}
	if nothing, err := (removal.Record{Commit: "fed", Total: 40}).Encode(nil, time.Second); nothing != nil || err != nil {
		t.Errorf("nothing to remember is stored as %+v, %v", nothing, err)
	}
}

func TestDecode_CorruptRecord(t *testing.T) {
	at := metav1.NewTime(now())
	for problem, stored := range map[string]v1alpha1.RemovalRecord{
		"position 9 of 9":             {Leaving: []v1alpha1.LeavingClusters{{Since: at, Clusters: "7-9"}}},
		`position "" is not a number`: {Leaving: []v1alpha1.LeavingClusters{{Since: at}}},
		`cluster "c02" leaves twice`:  {Leaving: []v1alpha1.LeavingClusters{{Since: at, Clusters: "0-1"}, {Since: at, Reserved: true, Clusters: "1"}}},
		"-1 spent of 40":              {Total: 40, Spent: -1, SpentAt: &at},
		"2 spent of -3":               {Total: -3, Spent: 2, SpentAt: &at},
		"2 spent of 40":               {Total: 40, Spent: 2},
		"0 spent of 40":               {Total: 40, SpentAt: &at},
	} {
		if _, err := removal.Decode(&stored, names(9)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%v, want %q", err, problem)
		}
	}
	if r, err := removal.Decode(nil, nil); err != nil || r.Spent != 0 || r.Names() != nil {
		t.Errorf("no record: %+v, %v", r, err)
	}
}

// TestShift: a clock that steps, and a record that is shifted with it, change no decision.
func TestShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := with(unselected(6), spent(rapid.IntRange(1, 2).Draw(t, "spent"), time.Duration(rapid.IntRange(1, 299).Draw(t, "ago"))*time.Second))
		for _, name := range names(40)[34:] {
			left(removal.Departure{Since: ago(time.Duration(rapid.IntRange(0, 600).Draw(t, "since")) * time.Second), Reserved: rapid.Bool().Draw(t, "reserved")}, name)(&in)
		}
		before := removal.New(in)
		d := time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "step")) * time.Second
		in.Now, in.Record = in.Now.Add(d), in.Record.Shift(d)
		after := removal.New(in)
		if diff := cmp.Diff(before.Record.Shift(d), after.Record); diff != "" {
			t.Errorf("the record after a step of %s:\n%s", d, diff)
		}
		if !after.Next.Equal(before.Next.Add(d)) {
			t.Errorf("next at %s, %s after a step of %s", before.Next, after.Next, d)
		}
	})
}

func TestRemaining(t *testing.T) {
	changes := []change{
		leftGit(true), on("c40", becomes(removal.Deleting)), on("c39", func(c *removal.Cluster) { c.Gone = true }),
		on("c38", becomes(removal.NotInstalled)), on("c37", becomes(removal.HandMade)), on("c36", becomes(removal.HandMade)),
	}
	plan := removal.New(with(changes...))
	want := removal.Remaining{Ours: 35, Deleting: 1, Gone: 1, HandMade: []string{"c36", "c37"}}
	if diff := cmp.Diff(want, plan.Remaining); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := plan.Remaining.Text(); got != "35 still to be removed, 2 being deleted, hand-made ones stay until their owner removes them: c36, c37" {
		t.Error(got)
	}
	if diff := cmp.Diff(want.HandMade, verdicts(plan, removal.Keeps)); diff != "" || plan.Remaining.Empty() {
		t.Errorf("-want +kept:\n%s", diff)
	}
	for i := range 40 {
		changes = append(changes, on(names(40)[i], becomes(removal.HandMade)))
	}
	if got := removal.New(with(changes...)).Remaining.Text(); !strings.HasSuffix(got, ": c01, c02, c03, c04, c05, c06, c07, c08, c09, c10 and 29 more") {
		t.Error(got)
	}
	plan = removal.New(with(leftGit(true), func(in *removal.Input) { in.Clusters = nil }))
	if !plan.Remaining.Empty() || plan.Remaining.Text() != "" || plan.Guard != "" {
		t.Errorf("%+v", plan)
	}
}

func TestOverdue(t *testing.T) {
	waits := func(at time.Time) func(*removal.Cluster) {
		return func(c *removal.Cluster) {
			c.Installed, c.DeletionReason, c.OverdueAt = removal.Deleting, "hook cleanup failed", at
		}
	}
	plan := removal.New(with(on("c03", waits(now())), on("c02", waits(ago(time.Hour))), on("c01", waits(now().Add(time.Minute)))))
	want := []v1alpha1.ClusterReason{{Cluster: "c02", Reason: "hook cleanup failed"}, {Cluster: "c03", Reason: "hook cleanup failed"}}
	if diff := cmp.Diff(want, plan.Overdue); diff != "" || !plan.Next.Equal(now().Add(time.Minute)) {
		t.Errorf("next at %s; -want +overdue:\n%s", plan.Next, diff)
	}
	if got := plan.OverdueText(); got != "2 not removed yet (c02: hook cleanup failed; c03: hook cleanup failed)" {
		t.Error(got)
	}
	if got := removal.New(with()).OverdueText(); got != "" {
		t.Error(got)
	}
}

// TestReasons compares the reason of a cluster, and the time from which its add-on may be removed.
func TestReasons(t *testing.T) {
	long := removal.Departure{Since: ago(time.Hour)}
	for want, in := range map[string]removal.Input{
		"Stays it left the install set: grace period until 12:05 UTC":                  with(unselected(1)),
		"Stays it left the install set: budget of 2 per 5m0s spent: next at 12:04 UTC": with(unselected(1), left(long, "c40"), spent(2, time.Minute)),
		"Leaves removed: it left the install set":                                      with(unselected(1), left(long, "c40")),
		"Leaves removed: approved for commit abc":                                      with(unselected(1), approval("abc")),
		"Stays the add-on left Git: grace period until 12:05 UTC":                      with(leftGit(true)),
		"Stays approved; waits until 12:01 UTC because " + moving:                      with(unselected(1), approval("abc"), placements(removal.Unsettled, moving)),
		"Stays suspended: no cluster is removed":                                       with(unselected(1), suspended),
		"Stays LedgerFull: the ledger has no room; its grace period starts later":      with(unselected(1), func(in *removal.Input) { in.Full = true }),
		"Keeps hand-made: it stays while the add-on is removed":                        with(leftGit(true), on("c40", becomes(removal.HandMade))),
		"LeavesAgain removed: the add-on left Git":                                     with(leftGit(true), whole, left(removal.Departure{Since: ago(time.Hour), Reserved: true}, "c40")),
		"Leaves removed: approved for commit fed":                                      with(leftGit(true), approval("fed")),
		"Stays it left the install set: grace period until 2026-03-03 11:59 UTC":       with(unselected(1), func(in *removal.Input) { in.Grace = 24*time.Hour - time.Minute }),
	} {
		plan := removal.New(in)
		d := plan.Decisions[len(plan.Decisions)-1]
		if got := string(d.Verdict) + " " + d.Reason; d.Cluster != "c40" || got != want {
			t.Errorf("%s: %q, want %q", d.Cluster, got, want)
		}
	}
}

// FuzzDecode: a stored record is refused, or read and written as it was.
func FuzzDecode(f *testing.F) {
	f.Add(int32(40), int32(2), true, "0-3", true, "5")
	f.Add(int32(-1), int32(0), false, "8,8", false, "")
	f.Fuzz(func(t *testing.T, total, spent int32, dated bool, clusters string, reserved bool, more string) {
		at := metav1.NewTime(now())
		stored := v1alpha1.RemovalRecord{Commit: "fed", Total: total, Spent: spent, Leaving: []v1alpha1.LeavingClusters{
			{Since: at, Clusters: clusters, Reserved: reserved}, {Since: at, Clusters: more, Approved: true},
		}}
		if dated {
			stored.SpentAt = &at
		}
		read, err := removal.Decode(&stored, names(9))
		if err != nil {
			return
		}
		written, err := read.Encode(names(9), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := removal.Decode(written, names(9)); written != nil && (err != nil || !reflect.DeepEqual(read, again)) {
			t.Fatalf("%+v is written and %+v read, %v", read, again, err)
		}
	})
}
