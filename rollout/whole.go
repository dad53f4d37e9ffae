package rollout

import "time"

// Strategy All reserves a step as a whole: the ledger says "everybody of this step",
// not 10,000 names. A member that stands in the ledger by name is not covered by it.

// keepWaves gives the stored reservations to their steps. One whose step is no longer
// moved as a whole, because the policy changed, goes on as names: whoever was written
// to and is not verified is in flight; nobody else was touched.
func (p *planner) keepWaves() {
	for i := range p.stored {
		w := &p.stored[i]
		s := p.stepNamed(w.stage)
		if s != nil && s.all {
			if s.wave == nil || s.wave.at.Before(w.at) {
				s.wave = w
			}
			continue
		}
		for j := range p.units {
			u := &p.units[j]
			if u.member && u.entry == nil && (s == nil || u.step == s) && p.unproven(u, w.revision) {
				u.entry = &entry{revision: w.revision, stage: w.stage, admittedAt: w.at}
			}
		}
	}
}

// unproven tells whether the cluster's works are at the revision and not verified.
func (p *planner) unproven(u *unit, revision string) bool {
	return u.c.Running == revision && p.at(u.c, revision) && u.c.Health.State != HealthVerified
}

func (p *planner) stepNamed(name string) *step {
	for _, s := range p.steps() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// cover gives a cluster without an entry of its own the one its step's reservation
// stands for, if any. Its clock starts when the reservation was made, or when the
// cluster came or came back, if that was later.
//
// A cluster whose works are still not at the target at its deadline was never
// written to, so that the content cannot be what is late: it starts anew, by name.
func (u *unit) cover(p *planner) {
	if u.entry != nil || u.step == nil || u.step.wave == nil {
		return
	}
	w := u.step.wave
	e := &entry{revision: w.revision, stage: w.stage, covered: true}
	e.admittedAt = later(w.at, u.c.JoinedAt)
	if u.c.Reachable {
		e.admittedAt = later(e.admittedAt, u.c.ReachableSince)
	}
	e.admittedAt = roundUp(e.admittedAt, time.Second)
	switch {
	case w.revision != p.target:
		if !p.unproven(u, w.revision) {
			return
		}
	case u.c.UpToDate:
		if u.c.Running != p.target {
			return // nothing changes here, so that it takes no part
		}
	case u.leaving:
		return
	case p.suspended() && e.admittedAt.After(w.at):
		return // it came after the reservation, and nobody new is moved now
	case u.c.Reachable && u.step.deadline > 0 && !p.now.Before(e.admittedAt.Add(u.step.deadline)):
		e.covered, e.admittedAt = false, p.second
	}
	u.entry = e
}

// admitWhole reserves the step for the target.
func (p *planner) admitWhole(s *step) {
	var moving []*unit
	for _, u := range s.members {
		if !u.leaving && u.c.Reachable && !u.forTarget && u.state != Succeeded && u.state != Unchanged {
			moving = append(moving, u)
		}
	}
	if len(moving) == 0 {
		return
	}
	whole := s.wave == nil || s.wave.revision != p.target
	if whole {
		s.nameCovered(moving)
		s.wave = &allWave{revision: p.target, stage: s.name, at: p.second}
	}
	for _, u := range moving {
		e := entry{revision: p.target, stage: s.name, admittedAt: p.second, covered: whole}
		p.retargetTo(u, e, "admitted with everybody")
	}
}

// nameCovered gives names to those that an outgoing reservation covers and that are
// not moving on.
func (s *step) nameCovered(moving []*unit) {
	leaves := make(map[*unit]bool, len(moving))
	for _, u := range moving {
		leaves[u] = true
	}
	for _, u := range s.members {
		if u.entry != nil && u.entry.covered && !leaves[u] {
			u.entry.covered = false
		}
	}
}

// reservations are those of whole steps that still cover somebody, or that somebody who was
// given a name since was admitted with.
func (p *planner) reservations() []allWave {
	var kept []allWave
	for _, t := range p.tracks {
		for _, s := range t.steps {
			if s.wave != nil && s.covers() {
				kept = append(kept, *s.wave)
			}
		}
	}
	return kept
}

func (s *step) covers() bool {
	for _, u := range s.members {
		if u.entry != nil && (u.entry.covered || u.entry.revision == s.wave.revision) {
			return true
		}
	}
	return false
}
