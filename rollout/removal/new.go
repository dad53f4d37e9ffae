package removal

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

const (
	// budgetPercent is the share of the add-on's ManagedClusterAddOns that may leave per grace period, rounded down,
	// but at least one cluster: of 39 one, of 40 two.
	budgetPercent = 5
	// confirmAfter is how long a cluster must be missing from unsettled decisions before an
	// approval removes it. It is never longer than the grace period.
	confirmAfter = 30 * time.Second
)

// planner is one call of New.
type planner struct {
	in Input
	// second is now, rounded up; the record stores it.
	second time.Time
	// whole: the whole add-on is to be removed. An approval must name commit. approved: the annotation names it.
	whole, approved bool
	commit          string
	// lifts: the approval approves clusters in this plan.
	lifts bool

	clusters []Cluster
	record   Record
	waits    waits
	plan     Plan
}

// waits counts the clusters that do not leave now, by the reason of the wait.
type waits struct {
	held, unsettled, full, confirm, needed, budget, grace int
	// refused are the clusters whose deletion the hub refused.
	refused []v1alpha1.ClusterReason
	// by are the add-ons that the clusters of needed wait for.
	by map[string]bool
	// confirmed, budgeted and graced are when the first of confirm, budget and grace may leave.
	confirmed, budgeted, graced time.Time
}

// New plans removals. The plan does not depend on the order of the clusters. A second plan
// after the first was carried out reserves nothing.
func New(in Input) Plan {
	p := begin(in)
	p.renew()
	p.noteDepartures()
	p.decide()
	p.sum()
	return p.plan
}

func begin(in Input) *planner {
	p := &planner{
		in: in, second: clock.RoundUp(in.Now, time.Second), whole: in.Removal != nil, commit: in.Commit, clusters: in.Clusters,
	}
	byName := func(a, b Cluster) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(p.clusters, byName) {
		p.clusters = slices.SortedFunc(slices.Values(p.clusters), byName)
	}
	if p.whole {
		p.commit, p.in.Trust = in.Removal.Commit, Settled
	}
	p.approved = p.commit != "" && in.Approval == p.commit
	p.record = in.Record.retimed(func(t time.Time) time.Time {
		if t.After(p.second) {
			return p.second // noted before the operator's clock was set back
		}
		return t
	})
	return p
}

// renew resets the budget of a period that ended, an approval that was withdrawn, and the departures of an earlier
// removal.
func (p *planner) renew() {
	r := &p.record
	if r.Spent > 0 && !p.in.Now.Before(r.SpentAt.Add(p.in.Grace)) {
		r.Spent, r.SpentAt = 0, time.Time{}
	}
	if p.in.Rebuilt && p.approved && !p.whole {
		r.UsedApproval = p.in.Approval
	}
	if r.UsedApproval != p.in.Approval {
		r.UsedApproval = ""
	}
	commit := ""
	if p.whole {
		commit = p.commit
	}
	another := r.Commit != commit
	if another {
		r.Commit, r.Total = commit, 0
	}
	for name, d := range r.Leaving {
		switch {
		case another:
			p.end(Cluster{Name: name, Installed: Ours})
		case d.Approved && !p.approved:
			r.Leaving[name] = Departure{Since: d.Since}
		}
	}
	p.lifts = p.approved && p.in.Held == "" && (p.whole || r.UsedApproval != p.in.Approval)
}

// noteDepartures begins and ends departures.
func (p *planner) noteDepartures() {
	for _, c := range p.clusters {
		if !p.leaves(c) || p.unapproved() || p.silent() {
			p.end(c)
			continue
		}
		d, noted := p.record.Leaving[c.Name]
		if !noted {
			if p.in.Full || p.in.Trust == Unsettled && !p.lifts {
				continue
			}
			d.Since = p.second
		}
		if p.lifts {
			d.Approved = true
		}
		p.record.Leaving[c.Name] = d
	}
	for name := range p.record.Leaving {
		_, listed := slices.BinarySearchFunc(p.clusters, name, func(c Cluster, name string) int { return strings.Compare(c.Name, name) })
		if !listed {
			p.end(Cluster{Name: name, Installed: NotInstalled})
		}
	}
	if len(p.record.Leaving) == 0 {
		return
	}
	if p.record.Total == 0 {
		p.record.Total = p.installed()
	}
	if p.lifts && !p.whole {
		p.record.UsedApproval = p.in.Approval
	}
}

// leaves reports whether a ManagedClusterAddOn of AddonFlow is to be removed from the cluster.
func (p *planner) leaves(c Cluster) bool {
	return c.Installed == Ours && !c.Gone && (p.whole || c.Unselected)
}

// unapproved reports whether the removal of the whole add-on waits for approval.
func (p *planner) unapproved() bool { return p.whole && !p.in.Removal.Approved && !p.approved }

// silent reports whether an install placement says nothing about any cluster.
func (p *planner) silent() bool { return p.in.Trust != Settled && p.in.Trust != Unsettled }

// end forgets the departure of a cluster. If a ManagedClusterAddOn was deleted, or may be deleted soon, the cluster
// spends a share of the budget.
func (p *planner) end(c Cluster) {
	d, noted := p.record.Leaving[c.Name]
	if !noted {
		return
	}
	delete(p.record.Leaving, c.Name)
	if d.Reserved || c.Installed != Ours && !c.Gone {
		p.record.Spent++
		p.record.SpentAt = p.second
	}
}

// installed counts the add-on's ManagedClusterAddOns.
func (p *planner) installed() int {
	n := 0
	for _, c := range p.clusters {
		if c.has() {
			n++
		}
	}
	return n
}

// has reports whether the cluster has a ManagedClusterAddOn.
func (c Cluster) has() bool { return c.Installed != NotInstalled && c.Installed != "" }

// decide decides for every leaving cluster whether its add-on is removed now.
func (p *planner) decide() {
	type departing struct {
		name  string
		since time.Time
	}
	var ripe []departing
	for _, c := range p.clusters {
		if p.whole && c.Installed == HandMade && !c.Gone {
			p.say(c.Name, Keeps, "hand-made: it stays while the add-on is removed")
		}
		if !p.leaves(c) {
			continue
		}
		d, noted := p.release(c)
		grace, confirmed := d.Since.Add(p.in.Grace), d.Since.Add(min(confirmAfter, p.in.Grace))
		switch {
		case p.silent():
			p.waits.unsettled++
		case p.in.Trust == Unsettled && !d.Approved:
			p.waits.unsettled++
		case p.in.Held != "" || p.unapproved():
			p.waits.held++
			p.say(c.Name, Stays, p.heldText())
		case !noted:
			p.waits.full++
			p.say(c.Name, Stays, fullText)
		case d.Approved && p.in.Trust == Unsettled && p.in.Now.Before(confirmed):
			p.waits.confirm++
			p.waits.confirmed = clock.First(p.waits.confirmed, confirmed)
			p.say(c.Name, Stays, p.confirmText(confirmed))
		case d.Reserved:
			p.say(c.Name, LeavesAgain, p.leavesText(d)+refusedText(c))
		case len(c.NeededBy) > 0:
			p.need(c)
		case d.Approved:
			p.reserve(c.Name)
		case p.in.Now.Before(grace):
			p.waits.grace++
			p.waits.graced = clock.First(p.waits.graced, grace)
			p.say(c.Name, Stays, p.graceText(grace)+refusedText(c))
		default:
			ripe = append(ripe, departing{c.Name, d.Since})
		}
	}
	slices.SortStableFunc(ripe, func(a, b departing) int { return a.since.Compare(b.since) })
	free := min(max(0, p.budget()-p.record.Spent-p.reserved()), len(ripe))
	for _, u := range ripe[:free] {
		p.reserve(u.name)
	}
	if waiting := ripe[free:]; len(waiting) > 0 {
		p.waits.budget, p.waits.budgeted = len(waiting), p.periodEnds()
		why := p.budgetText()
		for _, u := range waiting {
			p.say(u.name, Stays, why)
		}
	}
	slices.SortFunc(p.plan.Decisions, func(a, b Decision) int { return strings.Compare(a.Cluster, b.Cluster) })
}

// release takes the share of the budget from a cluster whose deletion the hub refused. Its departure begins again,
// after the departures of the clusters that can leave. An approved cluster needs no share.
func (p *planner) release(c Cluster) (d Departure, noted bool) {
	d, noted = p.record.Leaving[c.Name]
	if c.Refused == "" || !noted {
		return d, noted
	}
	p.waits.refused = append(p.waits.refused, v1alpha1.ClusterReason{Cluster: c.Name, Reason: c.Refused})
	if d.Reserved && !d.Approved {
		d = Departure{Since: p.second}
		p.record.Leaving[c.Name] = d
	}
	return d, noted
}

// need makes a cluster wait for the add-ons that depend on this one.
func (p *planner) need(c Cluster) {
	if p.waits.by == nil {
		p.waits.by = map[string]bool{}
	}
	p.waits.needed++
	for _, addOn := range c.NeededBy {
		p.waits.by[addOn] = true
	}
	p.say(c.Name, Stays, p.cause()+": waits until "+addOns(c.NeededBy)+" removed here")
}

// reserve decides the removal of a cluster.
func (p *planner) reserve(cluster string) {
	d := p.record.Leaving[cluster]
	d.Reserved = true
	p.record.Leaving[cluster] = d
	p.say(cluster, Leaves, p.leavesText(d))
}

func (p *planner) say(cluster string, verdict Verdict, reason string) {
	p.plan.Decisions = append(p.plan.Decisions, Decision{Cluster: cluster, Verdict: verdict, Reason: reason})
}

func (p *planner) budget() int { return max(1, p.record.Total*budgetPercent/100) }

// reserved counts the clusters whose removal is decided and not observed yet.
func (p *planner) reserved() int {
	n := 0
	for name, d := range p.record.Leaving {
		if d.Reserved && !slices.ContainsFunc(p.waits.refused, func(r v1alpha1.ClusterReason) bool { return r.Cluster == name && d.Approved }) {
			n++
		}
	}
	return n
}

// periodEnds is the earliest time at which the budget is free again. While a removal is
// not carried out, the period has not begun.
func (p *planner) periodEnds() time.Time {
	if p.reserved() > 0 {
		return p.second.Add(p.in.Grace)
	}
	return p.record.SpentAt.Add(p.in.Grace)
}

// sum fills the rest of the plan: the record, counts, texts, and when to look again.
func (p *planner) sum() {
	if p.record.Spent > 0 {
		p.look(p.record.SpentAt.Add(p.in.Grace))
	}
	p.look(p.waits.confirmed)
	p.look(p.waits.budgeted)
	p.look(p.waits.graced)
	for _, c := range p.clusters {
		p.look(c.OverdueAt)
		if c.Installed == Deleting && !c.OverdueAt.IsZero() && !p.in.Now.Before(c.OverdueAt) {
			p.plan.Overdue = append(p.plan.Overdue, v1alpha1.ClusterReason{Cluster: c.Name, Reason: c.DeletionReason})
		}
	}
	for name, d := range p.record.Leaving {
		if before := p.in.Record.Leaving[name]; d.Approved && !before.Approved || d.Reserved && !before.Reserved {
			p.plan.Reserved++
		}
	}
	if p.whole {
		p.plan.Remaining = remaining(p.clusters)
	}
	p.plan.Guard, p.plan.Hint = p.guard(), p.hint()
	if len(p.record.Leaving) == 0 && p.record.Spent == 0 {
		p.record.Commit, p.record.Total = "", 0
	}
	p.plan.Record = p.record
}

// look notes that the plan changes at t, if t is still to come.
func (p *planner) look(t time.Time) {
	if t.After(p.in.Now) {
		p.plan.Next = clock.First(p.plan.Next, t)
	}
}

// Remaining counts the ManagedClusterAddOns that the removal of the whole add-on waits for.
type Remaining struct {
	// Ours counts the ManagedClusterAddOns that are still to be deleted, Deleting those that are
	// being deleted, and Gone those of clusters that leave the hub.
	Ours, Deleting, Gone int
	// HandMade are the clusters whose hand-made ManagedClusterAddOns stay, sorted.
	HandMade []string
}

// Empty reports whether no ManagedClusterAddOn is left.
func (r Remaining) Empty() bool { return cmp.Or(r.Ours, r.Deleting, r.Gone, len(r.HandMade)) == 0 }

func remaining(clusters []Cluster) Remaining {
	var r Remaining
	for _, c := range clusters {
		switch {
		case !c.has():
		case c.Gone:
			r.Gone++
		case c.Installed == HandMade:
			r.HandMade = append(r.HandMade, c.Name)
		case c.Installed == Ours:
			r.Ours++
		default:
			r.Deleting++
		}
	}
	return r
}
