package rollout

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// removalPercent of an add-on's ManagedClusterAddOns may leave per grace period, but
// always one. Rounded down: of 39, one; of 40, two.
const removalPercent = 5

// remove lets clusters of ours leave that nothing selects any more, or all of them
// when the add-on is to go.
//
//	within the budget of the window      at once
//	beyond it                            after the grace period, a budget per window
//	the commit's removal is approved     all, at once
//	a placement is missing or unsettled  nobody
//
// Who was let go is noted in the ledger with the window it counts in, so that neither
// a crash nor a shrink right after the first opens the budget anew.
func (p *planner) remove() {
	leavers := p.leavers()
	why := p.removalHeld(len(leavers))
	lifted := p.removalLifted()
	switch {
	case why != "":
		p.guard = why
		p.keepWindow()
		p.stay(leavers, why)
	case len(leavers) == 0:
		p.keepWindow()
	case lifted:
		p.removal = nil
		p.leave(leavers, "the removal of the add-on is approved for its commit")
	default:
		p.removeWithinBudget(leavers)
	}
}

// leavers are the clusters of ours that are leaving, by name.
func (p *planner) leavers() []*unit {
	var found []*unit
	for i := range p.units {
		u := &p.units[i]
		if u.leaving {
			found = append(found, u)
		}
		if p.spec.Removal != nil && u.member && u.c.Installed == HandMade {
			u.reason = "hand-made: it stays while the add-on is removed"
		}
	}
	return found
}

// removalHeld says why nobody at all may leave now.
func (p *planner) removalHeld(leavers int) string {
	switch {
	case leavers == 0 && p.spec.Removal == nil && p.byPlacements() && p.orphans():
		return p.untrusted(p.install) + ": nobody is removed"
	case leavers == 0:
		return ""
	case p.suspended():
		return "suspended: nobody is removed until it is resumed"
	case p.spec.Removal != nil && !p.spec.Removal.Approved && !p.removalLifted():
		return "removal waits for approval: set prune: true on the source, or annotate the rollout with " +
			v1alpha1.ApproveRemovalAnnotation + ": " + p.spec.Removal.Commit
	}
	return ""
}

func (p *planner) removalLifted() bool {
	r := p.spec.Removal
	return r != nil && r.Commit != "" && p.in.ApprovedRemoval == r.Commit
}

// orphans tells whether a cluster of ours is selected by no placement that can be read.
func (p *planner) orphans() bool {
	for i := range p.units {
		u := &p.units[i]
		if u.member && u.c.Installed == Ours && u.placement < 0 {
			return p.untrusted(p.install) != ""
		}
	}
	return false
}

// keepWindow drops the record of the removal once its window is over, or at once if
// none was opened. While a placement is unsettled it stays: the shrink may be real,
// and its grace period goes on.
func (p *planner) keepWindow() {
	if p.removal == nil || p.unsettled() {
		return
	}
	if w := p.removal.WindowStart; w != nil {
		end := w.Add(p.in.RemovalGrace)
		if p.now.Before(end) {
			p.look(end)
			return
		}
	}
	p.removal = nil
}

// unsettled tells whether an install placement exists and is in motion.
func (p *planner) unsettled() bool {
	return slices.ContainsFunc(p.install, func(pl Placement) bool {
		return pl.Existence == Exists && pl.Settlement != Settled
	})
}

func (p *planner) removeWithinBudget(leavers []*unit) {
	r := p.removal
	// A record without a window waits out its grace period. One is begun that way when
	// the status is empty, since what the last window held is lost with it.
	atOnce := r == nil && p.in.Previous.Target != "" || r != nil && r.WindowStart != nil
	if r == nil {
		r = &v1alpha1.RemovalBudget{Since: metav1.NewTime(p.second), Total: p.installed()}
		p.removal = r
	}
	if r.WindowStart != nil && !p.now.Before(r.WindowStart.Add(p.in.RemovalGrace)) {
		r.WindowStart, r.Removed = nil, nil
	}
	counted, pending := parted(leavers, r.Removed)
	p.leave(counted, "leaves: nothing selects it any more")

	budget := max(1, int(r.Total)*removalPercent/100)
	room := max(0, budget-len(r.Removed))
	grace := r.Since.Add(p.in.RemovalGrace)
	if len(pending) > 0 && (len(pending) > room || !atOnce) && p.now.Before(grace) {
		p.look(grace)
		p.guard = fmt.Sprintf("%s to leave, the budget is %d: grace period until %s",
			clusters(len(pending)), budget, clock(grace, p.now))
		p.stay(pending, p.guard)
		return
	}
	going := pending[:min(room, len(pending))]
	if len(going) > 0 {
		p.reserveRemoval(r, going)
		p.moved += len(going)
		p.leave(going, "leaves: nothing selects it any more")
	}
	p.waitForWindow(r, pending[len(going):], budget)
}

// reserveRemoval notes who goes in the current window, which begins anew: whenever one
// looks, no more than the budget went within a grace period.
func (p *planner) reserveRemoval(r *v1alpha1.RemovalBudget, going []*unit) {
	start := metav1.NewTime(p.second)
	r.WindowStart = &start
	removed := slices.Clone(r.Removed)
	for _, u := range going {
		removed = append(removed, u.c.Name)
	}
	slices.Sort(removed)
	r.Removed = removed
}

func (p *planner) waitForWindow(r *v1alpha1.RemovalBudget, waiting []*unit, budget int) {
	if r.WindowStart == nil {
		return
	}
	end := r.WindowStart.Add(p.in.RemovalGrace)
	p.look(end)
	if len(waiting) > 0 {
		p.guard = fmt.Sprintf("%s left to leave, %d per %s: next at %s",
			clusters(len(waiting)), budget, p.in.RemovalGrace, clock(end, p.now))
		p.stay(waiting, p.guard)
	}
}

// installed counts the add-on's ManagedClusterAddOns.
func (p *planner) installed() int32 {
	n := int32(0)
	for i := range p.units {
		if c := p.units[i].c; c.Installed == Ours || c.Installed == HandMade || c.Installed == Deleting {
			n++
		}
	}
	return n
}

// parted splits the leavers into those already counted and the others.
func parted(leavers []*unit, counted []string) (noted, pending []*unit) {
	for _, u := range leavers {
		if _, ok := slices.BinarySearchFunc(counted, u.c.Name, strings.Compare); ok {
			noted = append(noted, u)
		} else {
			pending = append(pending, u)
		}
	}
	return noted, pending
}

func (p *planner) leave(units []*unit, why string) {
	for _, u := range units {
		u.reason = why
		p.actions = append(p.actions, Action{Cluster: u.c.Name, Kind: Remove, Reason: why})
	}
}

func (p *planner) stay(units []*unit, why string) {
	for _, u := range units {
		u.reason = why
	}
}
