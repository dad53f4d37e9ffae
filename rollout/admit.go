package rollout

import (
	"cmp"
	"fmt"
	"time"
)

// grant is a new admission, and what the cluster was before, should the ledger have
// no room for it.
type grant struct {
	u         *unit
	before    *entry
	state     State
	forTarget bool
}

// admit fills the free slots of every track. A step starts when the one before it is
// complete for the target; failures are counted over all clusters before any slot is
// given, and clusters in flight, at whatever revision, before any is free.
func (p *planner) admit() {
	if why := p.stopped(); why != "" {
		p.excuse(why)
		return
	}
	for _, t := range p.tracks {
		blocked, halted := "", false
		for i, s := range t.steps {
			halted = halted || t.halted(i) != ""
			if s.proven && blocked != "" && !halted && s.hold == "" {
				p.retarget(s) // what they are in flight to is what is taken back
			}
			p.admitStep(t, i, blocked)
			if blocked == "" && !t.complete(i) {
				blocked = orElse(t.halted(i), "waits for "+s.name+" to complete")
			}
		}
	}
}

// stopped says why nobody at all is admitted, joiners included.
func (p *planner) stopped() string {
	switch {
	case p.in.Contested != "":
		return "held: " + bounded(p.in.Contested)
	case p.suspended():
		return "suspended: nobody is admitted until it is resumed"
	case p.target == "":
		return "there is no revision to roll out yet"
	case p.unknownGroup != nil:
		return heldFor(p.unknownGroup)
	case p.missing != "":
		return p.missing + ": nobody is admitted"
	}
	return ""
}

// excuse gives every waiting cluster the one reason.
func (p *planner) excuse(why string) {
	for i := range p.units {
		if u := &p.units[i]; u.state == Waiting {
			u.reason = why
		}
	}
}

// admitStep fills the free slots of step i, in this order: clusters in flight at an
// older revision move on, in the slot they have; then those that failed at what came
// before, the others by name, and joiners, which start at the stable revision and
// wait for nothing but a slot.
func (p *planner) admitStep(t *track, i int, blocked string) {
	s := t.steps[i]
	why := cmp.Or(blocked, t.halted(i), s.hold)
	if why == "" && s.all {
		p.admitWhole(s)
		return
	}
	free := s.limit - int(s.tally.flying)
	if why == "" {
		p.retarget(s)
		free = p.grantAll(s, s.candidates(), p.target, free)
	}
	if p.stable != "" {
		free = p.grantAll(s, s.joiners(), p.stable, free)
	}
	s.explain(why, free)
}

// explain tells whoever still waits why: what keeps the step from the target, and where
// nothing does, or it is a joiner, which nothing but a slot keeps, that no slot is free.
func (s *step) explain(why string, free int) {
	full := fmt.Sprintf("waits for a free slot in %s: %d of %d in flight", s.name, s.limit-free, s.limit)
	for _, u := range s.members {
		waits := u.state == Waiting || u.failedBefore() && u.c.Reachable
		switch {
		case !waits:
		case why == "" || u.isJoiner() && s.limit > 0:
			u.reason = full
		default:
			u.reason = why
		}
	}
}

// halted says why step i admits nobody further, if its failures are the reason.
func (t *track) halted(i int) string {
	s := t.steps[i]
	switch {
	case s.all || !t.breached(i):
		return ""
	case t.failures(i) <= s.maxFailures && s.abandoned():
		return "halted: in " + s.name + " " + s.abandonedText()
	default:
		return fmt.Sprintf("halted: %d failed in %s, %d allowed", t.failures(i), s.name, s.maxFailures)
	}
}

// retarget moves clusters in flight at an older revision on to the target: they keep
// the slot, and their clocks start anew with the new content.
func (p *planner) retarget(s *step) {
	for _, u := range s.members {
		if !u.state.InFlight() || u.forTarget || u.leaving || !u.c.Reachable || p.stillJoining(u) {
			continue
		}
		e := entry{revision: p.target, stage: s.name, admittedAt: p.second}
		p.retargetTo(u, e, "was in flight at an older revision, moves on to the target")
	}
}

// stillJoining tells whether the cluster is on its way to the stable revision for the
// first time. It is left to arrive, but not for ever: the target may be what mends it.
func (p *planner) stillJoining(u *unit) bool {
	if !u.entry.joining || u.entry.revision != p.stable {
		return false
	}
	patience := p.paceOf(u).deadline
	if patience == 0 {
		patience = p.in.ParkAfter
	}
	until := u.entry.admittedAt.Add(patience)
	p.look(until)
	return p.now.Before(until)
}

// retargetTo admits a cluster without asking for a slot or for room in the ledger.
func (p *planner) retargetTo(u *unit, e entry, why string) {
	u.entry, u.forTarget = &e, e.revision == p.target
	u.state, u.reason, u.until = Admitted, why, time.Time{}
	u.deadline = p.deadlineOf(u)
	p.look(u.deadline)
	p.moved++
}

// failedBefore tells whether the cluster failed at content that is not the target's.
func (u *unit) failedBefore() bool {
	return u.entry != nil && !u.forTarget && (u.state == Failed || u.state == TimedOut)
}

// candidates are the clusters that can be admitted to the target, the failed first.
func (s *step) candidates() []*unit {
	var failed, others []*unit
	for _, u := range s.members {
		switch {
		case u.leaving || !u.c.Reachable:
		case u.failedBefore():
			failed = append(failed, u)
		case u.state != Waiting || u.isJoiner():
		case u.c.Health.State == HealthFailed:
			failed = append(failed, u)
		default:
			others = append(others, u)
		}
	}
	return append(failed, others...)
}

// joiners run nothing and wait for their first revision.
func (s *step) joiners() []*unit {
	var found []*unit
	for _, u := range s.members {
		if u.state == Waiting && u.isJoiner() && !u.leaving {
			found = append(found, u)
		}
	}
	return found
}

// isJoiner tells whether the cluster starts at the stable revision.
func (u *unit) isJoiner() bool { return u.joins && u.entry == nil }

// grantAll admits the first of the clusters to the revision while slots are free, and
// returns how many are left.
func (p *planner) grantAll(s *step, candidates []*unit, revision string, free int) int {
	for _, u := range candidates {
		if free <= 0 {
			break
		}
		free--
		g := grant{u: u, before: u.entry, state: u.state, forTarget: u.forTarget}
		p.grants = append(p.grants, g)
		u.grant = len(p.grants)
		why := "admitted: a slot in " + s.name + " is free"
		if g.before == nil && u.joins {
			why = "joins at the stable revision"
		}
		e := entry{revision: revision, stage: s.name, admittedAt: p.second, joining: g.before == nil && u.joins}
		p.retargetTo(u, e, why)
		p.moved--
	}
	return free
}
