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
//	whoever left                         waits out a grace period of its own
//	after it                             leaves, a budget per window
//	came back meanwhile                  stays, and a new grace period is due
//	the commit's removal is approved     all that had left by then, at once
//	a placement is unsettled             nobody; grace periods go on
//	a placement is missing               nobody, however long; they start anew
//
// Who left when, and who was let go in which window, stands in the ledger, so that
// neither a crash nor a shrink right after the first opens the budget anew.
func (p *planner) remove() {
	leavers := p.leavers()
	why := p.removalHeld(len(leavers))
	p.noteDepartures()
	switch {
	case why != "":
		p.guard = why
		p.keepWindow()
		p.stay(leavers, why)
	case len(leavers) == 0:
		p.keepWindow()
	case p.spec.Removal != nil && p.removalLifted():
		p.removal = nil
		p.leave(leavers, "the removal of the add-on is approved for its commit")
	default:
		p.removeWithinBudget(p.lift(leavers))
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
	case leavers == 0 && p.spec.Removal == nil && p.selective() && p.orphans():
		return p.untrusted(p.install) + ": nobody is removed"
	case leavers == 0:
		return ""
	case p.in.Contested != "":
		return bounded(p.in.Contested) + ": nobody is removed"
	case p.suspended():
		return "suspended: nobody is removed until it is resumed"
	case p.spec.Removal != nil && !p.spec.Removal.Approved && !p.removalLifted():
		return "removal waits for approval: set prune: true on the source, or annotate the rollout with " +
			v1alpha1.ApproveRemovalAnnotation + ": " + p.spec.Removal.Commit
	}
	return ""
}

// removalLifted tells whether the approval annotation names the commit in question:
// the one that the add-on left Git with, or the one the fleet runs.
func (p *planner) removalLifted() bool {
	commit := p.removalCommit()
	return commit != "" && p.in.ApprovedRemoval == commit
}

// removalCommit is the commit that an approval is to name.
func (p *planner) removalCommit() string {
	switch {
	case p.spec.Removal != nil:
		return p.spec.Removal.Commit
	case p.spec.Target != nil:
		_, sha, _ := strings.Cut(p.spec.Target.Commit, "sha1:")
		return sha
	}
	return ""
}

// orphans tells whether a cluster of ours is selected by no placement that can be read.
func (p *planner) orphans() bool {
	for i := range p.units {
		u := &p.units[i]
		if u.member && u.c.Installed == Ours && !u.selected() && !p.kept(u) {
			return p.untrusted(p.install) != ""
		}
	}
	return false
}

// keepWindow drops the record of the removal once its window is over, or at once if
// none was opened. While somebody departed is still to leave, it stays, as does an
// approval that was used, for as long as it is given.
func (p *planner) keepWindow() {
	r := p.removal
	if r == nil {
		return
	}
	if w := r.WindowStart; w != nil {
		end := w.Add(p.in.RemovalGrace)
		if p.now.Before(end) {
			p.look(end)
			return
		}
		r.WindowStart, r.Removed, r.Returned = nil, nil, 0
	}
	switch {
	case p.anyDeparted():
	case r.Lifted == nil:
		p.removal = nil
	default:
		r.Total = 0 // counted anew when somebody leaves
	}
}

func (p *planner) removeWithinBudget(leavers []*unit) {
	if len(leavers) == 0 {
		p.keepWindow()
		return
	}
	r := p.begun()
	if r.WindowStart != nil && !p.now.Before(r.WindowStart.Add(p.in.RemovalGrace)) {
		r.WindowStart, r.Removed, r.Returned = nil, nil, 0
	}
	counted, pending := parted(leavers, r.Removed)
	p.leave(counted, p.whyLeaving())

	ripe, waiting := p.ripe(pending)
	budget := max(1, int(r.Total)*removalPercent/100)
	going := ripe[:min(max(0, budget-len(r.Removed)-int(r.Returned)), len(ripe))]
	if len(going) > 0 {
		p.reserveRemoval(r, going)
		p.departing += len(going)
		p.leave(going, p.whyLeaving())
	}
	p.waitForWindow(r, ripe[len(going):], budget)
	p.waitForGrace(waiting)
}

func (p *planner) whyLeaving() string { return "leaves: " + p.whyUnwanted() }

func (p *planner) whyUnwanted() string {
	if p.spec.Removal != nil {
		return "the add-on is to go"
	}
	return "nothing selects it any more"
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
		u.leaveFor(why)
		p.actions = append(p.actions, Action{Cluster: u.c.Name, Kind: Remove, Reason: why})
	}
}

func (p *planner) stay(units []*unit, why string) {
	for _, u := range units {
		u.leaveFor(why)
	}
}

// leaveFor gives the reason why it leaves, or does not yet. Why it failed stays known.
func (u *unit) leaveFor(why string) {
	if u.fault == "" && (u.state == Failed || u.state == TimedOut) {
		u.fault = u.reason
	}
	u.reason = why
}

// cause is why it failed, or is held back, also of one that leaves.
func (u *unit) cause() string {
	if u.fault != "" {
		return u.fault
	}
	return u.reason
}
