package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/brief"
)

// admit fills the free slots of every track. A step starts when the one before it is
// complete for the target; failures are counted over all clusters before any slot is
// given, and clusters in flight, at whatever revision, before any is free. The failures of
// one step end the admissions of the whole track, those of the steps before it included.
func (p *planner) admit() {
	if why := p.stopped(); why != "" {
		p.explainAll(why)
		return
	}
	for _, t := range p.tracks {
		halt := t.halt()
		blocked := halt
		for i, s := range t.steps {
			if s.reverting && blocked != "" && halt == "" && s.hold == "" {
				p.retarget(s) // what they are in flight to is what is taken back
			}
			stopped := cmp.Or(blocked, t.halted(i))
			p.admitStep(s, stopped)
			if blocked = stopped; blocked == "" && !t.complete(i) {
				blocked = s.blocks()
			}
		}
	}
}

// halt says why no step of the track admits a further cluster: the failures of one of them.
func (t *track) halt() string {
	for i := range t.steps {
		if t.failed(i) {
			return t.halted(i)
		}
	}
	return ""
}

// blocks says what the steps after an incomplete one wait for.
func (s *step) blocks() string {
	if why := s.holding(); s.empty() && why != "" {
		return why
	}
	return "waits for " + s.name + " to complete"
}

// stopped says why no cluster at all is admitted, joiners included.
func (p *planner) stopped() string {
	switch {
	case p.in.Contested != "":
		return "held: " + bounded(p.in.Contested)
	case p.suspended():
		return "suspended: no cluster is admitted until the rollout is resumed"
	case p.target == "":
		return "there is no revision to roll out yet"
	case p.unknownGroup != nil:
		return heldFor(p.unknownGroup)
	case p.missing != "":
		return p.missing + ": no cluster is admitted"
	}
	return ""
}

// explainAll gives every waiting cluster the one reason.
func (p *planner) explainAll(why string) {
	for i := range p.units {
		if u := &p.units[i]; u.state == Waiting {
			u.reason = why
		}
	}
}

// admitStep fills the free slots of a step, in this order: clusters in flight at other
// content are retargeted in the slots they have; then clusters that failed with what came
// before; the others by name; and joiners, which start at the stable revision and need
// nothing but a slot.
func (p *planner) admitStep(s *step, blocked string) {
	why := cmp.Or(blocked, s.hold)
	free := s.limit - int(s.tally.flying)
	if why == "" {
		p.retarget(s)
		free = p.grantAll(s, p.candidates(s), p.target, free)
	}
	if p.stable != "" {
		free = p.grantAll(s, p.joiners(s), p.stable, free)
	}
	p.explain(s, why, free)
}

// explain tells each cluster that still waits what it waits for: what keeps the step from
// the target; if nothing does, or for a joiner, a free slot.
func (p *planner) explain(s *step, why string, free int) {
	full := fmt.Sprintf("waits for a free slot in %s: %d of %d in flight", s.name, s.limit-free, s.limit)
	for _, u := range s.members {
		switch {
		case u.state != Waiting:
		case why == "" || p.joins(u) && s.limit > 0:
			u.reason = full
		default:
			u.reason = why
		}
	}
}

// halted says why step i and those after it admit no further cluster; "": its clusters do
// not keep them from it.
func (t *track) halted(i int) string {
	s := t.steps[i]
	switch {
	case !t.breached(i) || s.all && s.tally.elsewhere == 0:
		return ""
	case s.abandoned() && t.failures(i) <= s.maxFailures:
		return "halted: in " + s.name + " " + s.abandonedText()
	case s.all:
		return fmt.Sprintf("halted: %d failed before the pace was changed", s.tally.elsewhere)
	default:
		return fmt.Sprintf("halted: %d failed in %s, %d allowed", t.failures(i), s.name, s.maxFailures)
	}
}

// retarget admits clusters in flight with other content to the target, in the slots they
// have and with new clocks. After clusters returned, more can be in flight than the limit:
// then the first ones within the limit are retargeted, those at the target counted first,
// the others in the order of their admission. A revert retargets all of them: it is the
// way back from what they have.
func (p *planner) retarget(s *step) {
	var flying []*unit
	for _, u := range s.members {
		if u.record.InFlight() && (!s.reverting || u.retargetable()) {
			flying = append(flying, u)
		}
	}
	slices.SortStableFunc(flying, func(a, b *unit) int {
		if atTarget := a.record.Revision == p.target; atTarget != (b.record.Revision == p.target) {
			if atTarget {
				return -1
			}
			return 1
		}
		return a.record.Admitted.Compare(b.record.Admitted)
	})
	if !s.reverting {
		flying = flying[:min(s.limit, len(flying))]
	}
	for _, u := range flying {
		if u.record.Revision != p.target && u.retargetable() && u.c.Reachable && !p.arriving(u) {
			p.grant(u, s, p.target, "was in flight with other content; is moved on to the target")
			p.retargeted++
		}
	}
}

// arriving tells whether the cluster is on its way to the stable revision. It is left to
// arrive for as long as its deadline allows: the target may be what it needs.
func (p *planner) arriving(u *unit) bool {
	if u.record.Revision != p.stable {
		return false
	}
	patience := p.pace(u, u.step).deadline
	if patience == 0 {
		patience = p.in.ParkAfter
	}
	until := u.record.Since.Add(patience)
	p.look(until)
	return p.now.Before(until)
}

// candidates are the clusters that can be admitted to the target, those that failed first.
func (p *planner) candidates(s *step) []*unit {
	var failed, others []*unit
	for _, u := range s.members {
		switch {
		case u.state != Waiting || !u.retargetable() || p.joins(u):
		case u.failedBefore():
			failed = append(failed, u)
		default:
			others = append(others, u)
		}
	}
	return append(failed, others...)
}

// joins tells whether a waiting cluster starts at the stable revision: it runs nothing, and
// neither was late with that revision nor is unable to have it.
func (p *planner) joins(u *unit) bool {
	failed := u.record.failed() && u.record.Revision == p.stable && (u.record.State == TimedOut || !u.c.writable())
	return u.c.Running == "" && p.stable != "" && !failed
}

// joiners run nothing and wait for their first content.
func (p *planner) joiners(s *step) []*unit {
	var found []*unit
	for _, u := range s.members {
		if u.state == Waiting && p.joins(u) && !u.leaving {
			found = append(found, u)
		}
	}
	return found
}

// grantAll admits the first of the clusters to the revision while slots are free, and
// returns how many are left.
func (p *planner) grantAll(s *step, candidates []*unit, revision string, free int) int {
	for _, u := range candidates {
		if free <= 0 {
			break
		}
		free--
		why := "admitted: a slot in " + s.name + " is free"
		if revision != p.target {
			why = "joins at the stable revision"
		}
		p.grant(u, s, revision, why)
		p.admissions = append(p.admissions, u)
		u.admission = len(p.admissions)
	}
	return free
}

// grant gives the cluster a record of the revision. It is the only place in which a
// cluster is admitted.
func (p *planner) grant(u *unit, s *step, revision, why string) {
	u.before = u.record
	u.record = &Record{Cluster: u.c.Name, Revision: revision, Stage: s.name, State: Admitted, Admitted: p.second, Since: p.second}
	u.state, u.reason, u.until = Admitted, why, time.Time{}
	p.look(u.record.wakeAt(p.observation(u), p.pace(u, s)))
}

// abandonedText is "2 left before any was verified and soaked (c1, c2)".
func (s *step) abandonedText() string {
	n := s.missing()
	return fmt.Sprintf("%d left before any was verified and soaked (%s)", n, s.formerNames(n))
}

// formerNames names the first few clusters that left before they were done.
func (s *step) formerNames(n int) string {
	var names []string
	for _, u := range s.former {
		if u.record.State != Done && !u.record.failed() {
			names = append(names, u.c.Name)
		}
	}
	if s.tally.total == 0 {
		for _, u := range s.members {
			if u.state == Parked {
				names = append(names, u.c.Name)
			}
		}
	}
	slices.Sort(names)
	return brief.NamesOf(n, names)
}

// formerDone names the clusters that no step selects any more and that are done.
func (s *step) formerDone() []string {
	var names []string
	for _, u := range s.former {
		if u.record.State == Done {
			names = append(names, u.c.Name)
		}
	}
	slices.Sort(names)
	return names
}
