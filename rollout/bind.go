package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/brief"
)

// An admission to the target binds a cluster to the step it was admitted in, until it is
// verified and has soaked there: whatever selects it now, and whether it is there at
// all. Otherwise bad content that takes its canary offline, which OCM's placements drop
// for its taints, would leave a stage without members, and a stage without members has
// nothing to prove: the next one would start with content that nobody verified, and a
// failure would be forgotten with the cluster that failed.

// failedThenLeft is why a cluster counts as failed that is there no more.
const failedThenLeft = "it failed, and left before that was mended"

// bind gives every cluster that stands in the ledger for the target the step it was
// admitted in. Steps that are reserved as a whole bind nobody: no step waits for them.
func (p *planner) bind() {
	for i := range p.units {
		u := &p.units[i]
		if s := p.boundTo(u); s != nil && s != u.step {
			u.bound, u.home = true, u.step
			u.moveTo(s)
		}
	}
}

// unbind brings a cluster that is done where its placements have it.
func (p *planner) unbind(u *unit) {
	if u.bound && u.entry == nil {
		u.bound = false
		if u.home == nil && u.c.UpToDate {
			u.step.parted = append(u.step.parted, u.c.Name)
		}
		u.moveTo(u.home)
		p.settleWithout(u)
	}
}

// moveTo makes s, or none, the step of the cluster.
func (u *unit) moveTo(s *step) {
	if u.step != nil {
		u.step.members = slices.DeleteFunc(u.step.members, func(m *unit) bool { return m == u })
	}
	if s != nil {
		at, _ := slices.BinarySearchFunc(s.members, u.c.Name, func(m *unit, name string) int { return strings.Compare(m.c.Name, name) })
		s.members = slices.Insert(s.members, at, u)
	}
	u.step = s
}

// boundTo is the step that a member is bound to; nil: none.
func (p *planner) boundTo(u *unit) *step {
	e := u.entry
	if !u.member || e == nil || e.joining || e.revision != p.target || u.step.title() == e.stage || p.lapsed(u) {
		return nil
	}
	switch s := p.stepNamed(e.stage); {
	case s == nil && u.step == nil:
		return p.heir(e)
	case s == nil || s.all:
		return nil
	default:
		return s
	}
}

// lapsed tells whether a parked admission is none any more: the cluster is back, and was
// never written to or renders to something else by now. It is admitted like anybody.
func (p *planner) lapsed(u *unit) bool {
	e := u.entry
	there := u.c.Reachable && u.c.Blocked == "" && (!u.leaving || !e.failed)
	return e.parked && there && !p.at(u.c, e.revision) && !u.c.UpToDate
}

// heir is the step that an admission counts for whose own step the policy has no more:
// the first. To rename a stage proves nothing.
func (p *planner) heir(e *entry) *step {
	for _, s := range p.steps() {
		if !s.all && e.stage != "" {
			return s
		}
	}
	return nil
}

// partStrangers takes the entries from clusters that are in the install set no more. Of
// those that were admitted to the target and not done it stays known, without a slot,
// until the target is another one.
func (p *planner) partStrangers() {
	for i := range p.units {
		if u := &p.units[i]; !u.member && u.entry != nil {
			p.strangers = append(p.strangers, &unit{c: u.c, entry: u.entry})
			u.entry = nil
		}
	}
	slices.SortFunc(p.strangers, func(a, b *unit) int { return strings.Compare(a.c.Name, b.c.Name) })
	for _, u := range p.strangers {
		e := u.entry
		s := p.stepNamed(e.stage)
		if s == nil {
			s = p.heir(e)
		}
		if s == nil || s.all || e.joining || e.revision != p.target {
			continue
		}
		e.failed = e.failed || p.failedBeforeLeaving(u, s)
		e.parked, e.admittedAt, e.verifiedAt = true, time.Time{}, time.Time{}
		u.forTarget, u.state = true, Parked
		if e.failed {
			u.state, u.reason = Failed, failedThenLeft
		}
		p.vanished = append(p.vanished, u)
		if p.needsProof() {
			s.vanished = append(s.vanished, u)
		}
	}
}

// failedBeforeLeaving tells whether a cluster that is seen to have left for the first time
// had failed: by its last word, or because it was past its deadline.
func (p *planner) failedBeforeLeaving(u *unit, s *step) bool {
	e := u.entry
	switch {
	case u.c.Blocked != "":
		return e.parked
	case p.at(u.c, e.revision) && u.c.Health.State == HealthFailed:
		return true
	}
	late := s.deadline > 0 && !p.now.Before(e.admittedAt.Add(s.deadline))
	return late && !e.parked && e.verifiedAt.IsZero()
}

// abandoned tells whether everybody left the step who could have verified the target, or
// is leaving and not available. One that is reserved as a whole proves nothing for others.
func (s *step) abandoned() bool {
	return !s.all && s.left() > 0
}

// left counts those who left, or are leaving and not available, where nobody else in the
// step can prove anything. Where others are in it, one of them that runs the target is the
// proof; until there is one, no more of them are tried than are there: a placement that puts
// another cluster in the place of each that goes would feed it the fleet. A pace that was
// dropped leaves what it admitted to a step with others, of whom none was to try it.
func (s *step) left() int {
	switch c := s.tally; {
	case s.needless: // the target needs no proof of anybody's
	case c.total > 0 && c.changed == 0 && (s.dropped || int(c.vanished) > max(int(c.total), s.maxFailures)):
		return int(c.vanished)
	case c.total == 0 && c.updated+c.flying == 0:
		return int(c.vanished + c.parked)
	}
	return 0
}

// abandonedText is "2 left before anybody was verified and soaked (c1, c2)".
func (s *step) abandonedText() string {
	gone := s.vanished
	if s.tally.total == 0 {
		gone = slices.Concat(gone, s.members)
	}
	n := s.left()
	return fmt.Sprintf("%d left before anybody was verified and soaked (%s)", n, brief.NamesOf(n, firstGone(gone)))
}

// firstGone names the first few of those that left, and had not failed.
func firstGone(units []*unit) []string {
	var names []string
	for _, u := range units {
		if (u.state == Parked || u.failedBefore()) && len(names) < brief.Shown {
			names = append(names, u.c.Name)
		}
	}
	return names
}

// steps are those of every track, in order.
func (p *planner) steps() []*step {
	var all []*step
	for _, t := range p.tracks {
		all = append(all, t.steps...)
	}
	return all
}
