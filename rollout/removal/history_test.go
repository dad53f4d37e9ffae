package removal_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

// hub is an API server, an operator on it that runs package removal, and the history of
// what really happened. Its verdicts come from that history alone.
type hub struct {
	t    interface{ Fatalf(string, ...any) }
	now  time.Time     // real time
	skew time.Duration // of the operator's clock

	clusters map[string]*removal.Cluster // as they are
	view     []removal.Cluster           // as the operator's cache has them
	// versions are the resource versions of the ManagedClusterAddOns, seen those of the
	// cache. A deletion is refused if they differ: it carries the version as precondition.
	versions, seen map[string]int
	in             removal.Input // everything but clock, clusters and record
	ledger         *v1alpha1.RemovalRecord

	// answer to the next deletion: refused, or accepted after a time.
	answer func(cluster string) (accepted bool, after time.Duration)

	removals []removed
	// away has, by cluster, when the operator first saw the current absence from the install set.
	away map[string]time.Time
	// exempt are the clusters that the current approval is about. acted is the approval that the operator acted upon, until it
	// sees that it was taken back.
	exempt map[string]bool
	acted  string
	about  string // the whole add-on's commit at the last look, "" for single clusters
}

// removed is a deletion that the API server carried out.
type removed struct {
	cluster  string
	at       time.Time
	approved bool
}

func newHub(t interface{ Fatalf(string, ...any) }, n int, period time.Duration) *hub {
	h := &hub{
		t: t, now: now(), clusters: map[string]*removal.Cluster{}, versions: map[string]int{}, away: map[string]time.Time{}, exempt: map[string]bool{},
		in:     removal.Input{Grace: period, Commit: "abc", Trust: removal.Settled},
		answer: func(string) (bool, time.Duration) { return true, 0 },
	}
	for _, name := range names(n) {
		h.clusters[name] = &removal.Cluster{Name: name, Installed: removal.Ours}
	}
	h.refresh()
	return h
}

// refresh brings the operator's cache up to date.
func (h *hub) refresh() {
	h.view, h.seen = nil, maps.Clone(h.versions)
	for _, name := range slices.Sorted(maps.Keys(h.clusters)) {
		h.view = append(h.view, *h.clusters[name])
	}
}

// becomes writes the ManagedClusterAddOn of a cluster.
func (h *hub) becomes(cluster string, i removal.Installation) {
	h.clusters[cluster].Installed = i
	h.versions[cluster]++
}

// look is one reconcile: plan, store the record, delete.
func (h *hub) look() removal.Plan {
	list := h.names()
	record, err := removal.Decode(h.ledger, list)
	if err != nil {
		h.t.Fatalf("decode: %v", err)
	}
	in := h.in
	in.Now, in.Record, in.Clusters = h.now.Add(h.skew), record, h.view
	plan := removal.New(in)
	stored, err := plan.Record.Encode(list, time.Second)
	if err != nil {
		h.t.Fatalf("encode: %v", err)
	}
	h.ledger = stored
	h.checkAgain(in, plan, list)
	h.witness()
	for _, d := range plan.Decisions {
		if d.Verdict != removal.Leaves && d.Verdict != removal.LeavesAgain {
			continue
		}
		h.allowed(d.Cluster)
		accepted, after := h.answer(d.Cluster)
		h.now = h.now.Add(after)
		if accepted && h.versions[d.Cluster] == h.seen[d.Cluster] {
			h.becomes(d.Cluster, removal.NotInstalled)
			h.removals = append(h.removals, removed{d.Cluster, h.now, h.exempt[d.Cluster]})
			h.withinBudget()
		}
	}
	return plan
}

// checkAgain: what was stored is read as what was planned, and planning again at once
// reserves nothing and removes the same clusters.
func (h *hub) checkAgain(in removal.Input, plan removal.Plan, list []string) {
	record, err := removal.Decode(h.ledger, list)
	if err != nil {
		h.t.Fatalf("decode what was encoded: %v", err)
	}
	in.Record, in.Rebuilt = record, false
	again := removal.New(in)
	if again.Reserved > 0 {
		h.t.Fatalf("planning again reserves %d", again.Reserved)
	}
	all := []removal.Verdict{removal.Leaves, removal.LeavesAgain}
	if diff := cmp.Diff(verdicts(plan, all...), verdicts(again, removal.LeavesAgain)); diff != "" {
		h.t.Fatalf("planning again removes others:\n%s", diff)
	}
	if diff := cmp.Diff(plan.Record, again.Record); diff != "" {
		h.t.Fatalf("planning again changes the record:\n%s", diff)
	}
}

// names of the ledger: the record's, and others.
func (h *hub) names() []string { return slices.Sorted(maps.Keys(h.clusters)) }

// witness notes what the operator saw in this look.
func (h *hub) witness() {
	about := ""
	if h.in.Removal != nil {
		about = h.in.Removal.Commit
	}
	mayGo := h.in.Removal != nil && (h.in.Removal.Approved || h.approvable() == h.in.Approval)
	if about != h.about {
		h.about, h.away, h.exempt = about, map[string]time.Time{}, map[string]bool{}
	}
	approves := h.in.Approval != "" && h.in.Approval == h.approvable()
	if !approves {
		h.exempt = map[string]bool{}
	}
	if h.in.Approval != h.acted {
		h.acted = ""
	}
	silent := about == "" && h.in.Trust == removal.Silent
	var leaving []string
	approving := approves && h.in.Held == "" && (about != "" || h.acted == "")
	for _, c := range h.view {
		wanted := !c.Unselected && about == "" || about != "" && !mayGo
		if wanted || silent || c.Installed != removal.Ours || c.Gone {
			delete(h.away, c.Name)
			delete(h.exempt, c.Name)
			continue
		}
		leaving = append(leaving, c.Name)
		believed := about != "" || h.in.Trust == removal.Settled || approving
		if _, ok := h.away[c.Name]; !ok && believed {
			h.away[c.Name] = h.now
		}
	}
	if approving && len(leaving) > 0 {
		if about == "" {
			h.acted = h.in.Approval
		}
		for _, name := range leaving {
			h.exempt[name] = true
		}
	}
}

// approvable is the commit that an approval must name.
func (h *hub) approvable() string {
	if h.in.Removal != nil {
		return h.in.Removal.Commit
	}
	return h.in.Commit
}

// allowed reports whether the operator saw a reason to delete for long enough, and no reason against
// it.
func (h *hub) allowed(cluster string) {
	i := slices.IndexFunc(h.view, func(c removal.Cluster) bool { return c.Name == cluster })
	since, away := h.away[cluster]
	switch c := h.view[i]; {
	case c.Installed != removal.Ours || c.Gone:
		h.t.Fatalf("%s is removed and is %s, gone: %t", cluster, c.Installed, c.Gone)
	case !away:
		h.t.Fatalf("%s is removed although it keeps the add-on", cluster)
	case h.in.Held != "":
		h.t.Fatalf("%s is removed while the add-on is %s", cluster, h.in.Held)
	case h.in.Removal == nil && h.in.Trust != removal.Settled && (h.in.Trust != removal.Unsettled || !h.exempt[cluster]):
		h.t.Fatalf("%s is removed while placements are %q", cluster, h.in.Trust)
	case h.in.Removal == nil && h.in.Trust == removal.Unsettled && h.now.Sub(since) < min(30*time.Second, h.in.Grace):
		h.t.Fatalf("%s is removed after it was missing for %s from unsettled decisions", cluster, h.now.Sub(since))
	case !h.exempt[cluster] && h.now.Sub(since) < h.in.Grace:
		h.t.Fatalf("%s is removed after %s", cluster, h.now.Sub(since))
	}
}

// withinBudget: no grace period has more deletions than the budget; approved deletions do not count.
func (h *hub) withinBudget() {
	last := h.removals[len(h.removals)-1]
	n := 0
	for _, r := range h.removals {
		if !r.approved && last.at.Sub(r.at) < h.in.Grace {
			n++
		}
	}
	if budget := max(1, len(h.clusters)*5/100); !last.approved && n > budget {
		h.t.Fatalf("%d removals within %s, the budget is %d: %v", n, h.in.Grace, budget, h.removals)
	}
}

// TestRemoval_BudgetCountsFromDeletions: an API server that refuses deletions for a while
// delays the next removals by as long.
func TestRemoval_BudgetCountsFromDeletions(t *testing.T) {
	for _, refused := range []time.Duration{0, 900 * time.Millisecond, 2900 * time.Millisecond, 20 * time.Second} {
		t.Run(refused.String(), func(t *testing.T) {
			h := newHub(t, 10, 3*time.Second)
			for _, name := range []string{"c08", "c09", "c10"} {
				h.clusters[name].Unselected = true
			}
			// Only the first deletion is refused for a while: if all were, they would be as far apart as their plans.
			first := map[string]time.Time{}
			h.answer = func(cluster string) (bool, time.Duration) {
				if _, tried := first[cluster]; !tried {
					first[cluster] = h.now
				}
				return len(h.removals) > 0 || h.now.Sub(first[cluster]) >= refused, 0
			}
			end := h.now.Add(time.Minute + 4*refused)
			for h.now.Before(end) {
				h.refresh()
				h.look()
				h.now = h.now.Add(50 * time.Millisecond)
			}
			if len(h.removals) != 3 {
				t.Fatalf("removed %v", h.removals)
			}
			for i, r := range h.removals[1:] {
				if gap := r.at.Sub(h.removals[i].at); gap < h.in.Grace || gap > h.in.Grace+refused+2*time.Second {
					t.Errorf("removals %s apart at a grace period of %s", gap, h.in.Grace)
				}
			}
		})
	}
}

// TestRemovals draws what may happen to a fleet while clusters leave, and then lets it end.
func TestRemovals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period := rapid.SampledFrom([]time.Duration{5 * time.Minute, 10 * time.Second, 3 * time.Second}).Draw(t, "grace")
		h := newHub(t, rapid.SampledFrom([]int{1, 3, 19, 40, 60}).Draw(t, "clusters"), period)
		some := func(what string) []string {
			all := h.names()
			from := rapid.IntRange(0, len(all)-1).Draw(t, what)
			return all[from : 1+rapid.IntRange(from, min(len(all)-1, from+7)).Draw(t, "to")]
		}
		pass := func(what string, most time.Duration) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, what))
		}
		h.answer = func(string) (bool, time.Duration) {
			accepted := rapid.IntRange(0, 2).Draw(t, "accepts") > 0
			return accepted, rapid.SampledFrom([]time.Duration{0, 0, 700 * time.Millisecond, 4 * time.Second}).Draw(t, "after")
		}
		step := func() {
			if rapid.Bool().Draw(t, "cache is current") {
				h.refresh()
			}
			h.look()
		}
		selects := func(unselected bool) func(*rapid.T) {
			return func(*rapid.T) {
				for _, name := range some("selection") {
					h.clusters[name].Unselected = unselected
				}
			}
		}
		becomes := func(i removal.Installation) func(*rapid.T) {
			return func(*rapid.T) { h.becomes(some("becomes")[0], i) }
		}
		t.Repeat(map[string]func(*rapid.T){
			"look":        func(*rapid.T) { step() },
			"look, later": func(*rapid.T) { h.now = h.now.Add(pass("later", period)); step() },
			"look at the budget's end": func(*rapid.T) {
				h.now = h.now.Add(period - pass("early", 2*time.Second))
				step()
			},
			"leave":      selects(true),
			"leave, too": selects(true),
			"return":     selects(false),
			"installed": func(*rapid.T) { // by the operator, which sees that there is none
				name := some("installed")[0]
				seen := slices.IndexFunc(h.view, func(c removal.Cluster) bool { return c.Name == name && c.Installed == removal.NotInstalled })
				if seen >= 0 && h.clusters[name].Installed == removal.NotInstalled {
					h.becomes(name, removal.Ours)
				}
			},
			"made by hand":    becomes(removal.HandMade),
			"deleted by hand": becomes(removal.Deleting),
			"terminates": func(*rapid.T) {
				c := h.clusters[some("terminates")[0]]
				c.Gone = !c.Gone
			},
			"placements": func(t *rapid.T) {
				h.in.Trust = rapid.SampledFrom([]removal.Trust{removal.Settled, removal.Settled, removal.Unsettled, removal.Silent}).Draw(t, "trust")
				h.in.Untrusted = "placements are " + string(h.in.Trust)
			},
			"holds": func(t *rapid.T) { h.in.Held = rapid.SampledFrom([]string{"", "", "suspended"}).Draw(t, "held") },
			"approves": func(t *rapid.T) {
				h.in.Approval = rapid.SampledFrom([]string{"", "", "abc", "fed"}).Draw(t, "approval")
			},
			"Git": func(t *rapid.T) {
				h.in.Removal = rapid.SampledFrom([]*v1alpha1.Removal{nil, nil, {Commit: "fed"}, {Commit: "fed", Approved: true}}).Draw(t, "removal")
			},
			"the clock steps": func(t *rapid.T) {
				d := rapid.SampledFrom([]time.Duration{-2 * time.Hour, -1500 * time.Millisecond, 2 * time.Hour}).Draw(t, "step")
				h.skew += d
				record, err := removal.Decode(h.ledger, h.names())
				if err != nil {
					t.Fatal(err)
				}
				if d > 0 || rapid.Bool().Draw(t, "noticed") { // across a restart a step back is not noticed
					h.ledger, err = record.Shift(d).Encode(h.names(), time.Second)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		})
		h.ends(t)
	})
}

// ends: when nothing is in the way any more, every cluster that is to leave is removed, at
// the budget's pace, and nothing is remembered.
func (h *hub) ends(t *rapid.T) {
	h.in.Held, h.in.Trust, h.in.Approval = "", removal.Settled, ""
	if h.in.Removal != nil {
		h.in.Removal = &v1alpha1.Removal{Commit: "fed", Approved: true}
	}
	h.answer = func(string) (bool, time.Duration) { return true, 0 }
	for end := h.now.Add(time.Duration(len(h.clusters)+4) * (h.in.Grace + 3*time.Second)); h.now.Before(end); {
		h.refresh()
		plan := h.look()
		h.refresh()
		if plan = h.look(); plan.Next.IsZero() {
			break
		}
		h.now = plan.Next.Add(-h.skew)
	}
	h.refresh()
	plan := h.look()
	for _, c := range h.view {
		if c.Installed == removal.Ours && !c.Gone && (c.Unselected || h.in.Removal != nil) {
			t.Errorf("%s still has the add-on: %s", c.Name, plan.Guard)
		}
	}
	if plan.Guard != "" || h.ledger != nil {
		t.Errorf("the guard says %q, the ledger remembers %s", plan.Guard, fmt.Sprint(h.ledger))
	}
}
