package rollout

import (
	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/removal"
)

// remove plans removals with package removal, and marks the clusters that leave.
func (p *planner) remove() {
	p.removal = removal.New(p.removalInput())
	p.look(p.removal.Next)
	at := p.cursor()
	for _, d := range p.removal.Decisions {
		u := at.find(d.Cluster)
		u.departure = d.Reason
		switch d.Verdict {
		case removal.Keeps:
			continue
		case removal.Leaves, removal.LeavesAgain:
			p.actions = append(p.actions, Action{Cluster: d.Cluster, Kind: Remove, Reason: d.Reason})
		case removal.Stays:
		}
		u.leaving = true
	}
}

func (p *planner) removalInput() removal.Input {
	in := removal.Input{
		Now: p.now, Grace: p.in.RemovalGrace, Record: p.removed, Rebuilt: p.in.Rebuild,
		Removal: p.spec.Removal, Approval: p.in.ApprovedRemoval, Trust: removal.Settled,
		// If the whole add-on is removed, the ledger already has all names.
		Full: p.spec.Removal == nil && !within(p.in.Ledger, p.limit()*15/16),
	}
	if p.spec.Target != nil {
		in.Commit = v1alpha1.CommitOf(p.spec.Target.Commit)
	}
	switch {
	case p.in.Contested != "":
		in.Held = bounded(p.in.Contested)
	case p.suspended():
		in.Held = "suspended"
	case p.unknownGroup != nil:
		in.Held = heldFor(p.unknownGroup)
	}
	for _, pl := range p.install {
		switch why := pl.untrusted(); {
		case pl.Settlement == Missing || pl.Settlement == Undecided:
			in.Trust, in.Untrusted = removal.Silent, why
		case why != "" && in.Trust == removal.Settled:
			in.Trust, in.Untrusted = removal.Unsettled, why
		}
	}
	for i := range p.units {
		u := &p.units[i]
		if u.c.Installed == NotInstalled || u.c.Installed == "" {
			continue
		}
		in.Clusters = append(in.Clusters, removal.Cluster{
			Name: u.c.Name, Installed: u.c.Installed, Gone: u.c.Gone,
			Unselected:     p.selective() && !u.selected() && !p.kept(u),
			NeededBy:       u.c.NeededBy,
			Refused:        bounded(u.c.Unremoved),
			DeletionReason: bounded(u.c.Departure.Reason), OverdueAt: u.c.Departure.OverdueAt,
		})
	}
	return in
}

// cause is why the cluster failed or is parked. While the cluster leaves, its reason says why it leaves, and fault
// has the cause.
func (u *unit) cause() string {
	if u.fault != "" {
		return u.fault
	}
	return u.reason
}
