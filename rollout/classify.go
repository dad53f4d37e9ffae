package rollout

import (
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
)

// settle derives the state of every member from its entry and what was observed of
// it, and brings the entry up to date. Nothing is taken over from an earlier state:
//
//	its works cannot be written                  Failed      parked, so that no clock runs
//	parked, not reachable                        Parked
//	parked, reachable, at the revision           in flight again, from now
//	parked, reachable, not at it                 no entry: it is admitted like anybody
//	reported failed at the revision              Failed
//	not reachable, within deadline or park time  Lost        keeps its slot
//	not reachable past it                        Parked
//	works not at the revision                    Admitted    TimedOut past the deadline
//	at the revision, not verified                Progressing TimedOut past the deadline
//	verified, soak running                       Soaking     anew, if it was lost meanwhile
//	verified and soaked                          no entry: it runs the revision
//
// Feedback counts only while the works are at the revision of the entry: what was
// reported for other content says nothing about this one.
func (p *planner) settle() {
	p.keepWaves()
	p.unstagedReason = "in no stage: it keeps what it has"
	if why := p.unreadable(); why != "" {
		p.unstagedReason = "in no stage that can be told now: " + why
	}
	for i := range p.units {
		u := &p.units[i]
		if !u.member {
			continue
		}
		u.joins = u.c.Running == "" && p.stable != ""
		u.cover(p)
		if u.entry != nil {
			p.settleEntry(u)
		}
		if u.entry == nil {
			p.settleWithout(u)
		}
		p.unbind(u)
	}
	p.count()
}

// unreadable says why the members of some step cannot be told; "" if all can.
func (p *planner) unreadable() string {
	for _, s := range p.steps() {
		if s.unknown {
			return s.hold
		}
	}
	return ""
}

// count tallies every step.
func (p *planner) count() {
	for _, s := range p.steps() {
		s.count()
	}
}

// at tells whether the cluster's works are what the revision asks for now.
func (p *planner) at(c *Cluster, revision string) bool {
	switch revision {
	case p.target:
		return c.UpToDate
	case p.stable:
		return c.UpToDateStable
	default:
		return c.Running == revision
	}
}

// paceOf is the step whose soak and deadline a cluster has; unstaged ones have none.
func (p *planner) paceOf(u *unit) *step {
	if u.step != nil {
		return u.step
	}
	return &p.nowhere
}

// soakOf is how long the cluster soaks. Content that proved itself in a rollout
// before, the stable one for who starts there, or the target of a revert, waits for
// nothing. Who gets the target after its rollout succeeded soaks like anybody: what
// moves it may be its own configuration, which has proved nothing.
func (p *planner) soakOf(u *unit) time.Duration {
	switch r := u.entry.revision; {
	case r == p.stable && (r != p.target || u.entry.joining):
		return 0
	case r == p.target && p.proven():
		return 0
	}
	return p.paceOf(u).soak
}

// ended tells whether the rollout of the target ended Succeeded before this plan, and
// earned it: content that no cluster was there for has proved nothing.
func (p *planner) ended() bool {
	return p.in.Previous.Target == p.target && p.in.Previous.Phase == v1alpha1.PhaseSucceeded && p.stable == p.target
}

// deadlineOf is when the cluster is past its progress deadline; zero: never. In a
// reservation of a whole step the clock of a cluster starts no sooner than it came.
func (p *planner) deadlineOf(u *unit) time.Time {
	d := p.paceOf(u).deadline
	if d == 0 {
		return time.Time{}
	}
	return u.entry.admittedAt.Add(d)
}

// settleWithout is the state of a member that has no entry.
func (p *planner) settleWithout(u *unit) {
	switch {
	case u.step == nil && p.spec.Removal == nil:
		u.state, u.reason = Unstaged, p.unstagedReason
	case u.c.UpToDate && u.c.Running == p.target:
		u.state, u.reason = Succeeded, u.c.runsTarget()
		if p.missing != "" {
			u.reason = "runs the target, without repair: " + p.missing
		}
	case u.c.UpToDate:
		u.state, u.reason = Unchanged, "the target changes nothing here"
	case !u.c.Reachable:
		u.state, u.reason = Unreachable, u.c.absence("not available: admitted on return")
	default:
		u.state, u.reason = Waiting, "waits to be admitted"
	}
}

// runsTarget is the reason of a cluster that is done. What its works say now is part of
// it: it was verified once, and somebody may have broken it since.
func (c *Cluster) runsTarget() string {
	if c.Health.State == HealthVerified || c.Health.Reason == "" || !c.Reachable {
		return "runs the target"
	}
	return "runs the target; at present: " + bounded(c.Health.Reason)
}

func (p *planner) settleEntry(u *unit) {
	e := u.entry
	if e.parked && !p.returns(u) {
		return
	}
	at := p.reset(u)
	p.setTarget(u)
	u.deadline = p.deadlineOf(u)
	switch {
	case at && u.c.Health.State == HealthFailed:
		e.verifiedAt = time.Time{}
		u.state, u.reason = Failed, orElse(u.c.Health.Reason, "it reported a failure")
	case e.covered && at && u.c.Health.State == HealthVerified:
		p.finish(u)
	case !u.c.Reachable:
		p.settleLost(u, at)
	case !at:
		p.settleUnwritten(u)
	default:
		p.settleFeedback(u)
	}
}

// reset sets the clocks of a cluster's entry anew where what they measured is no longer so,
// and tells whether its works are at the entry's revision.
func (p *planner) reset(u *unit) (at bool) {
	e := u.entry
	at = p.at(u.c, e.revision)
	if !at && u.c.UpToDate {
		// What it was admitted to was never written, and it has the target already.
		at, e.revision, e.admittedAt, e.verifiedAt = true, p.target, p.second, time.Time{}
	}
	if !at && !e.verifiedAt.IsZero() {
		// Its own inputs changed under the same revision: new content, new clocks.
		e.admittedAt, e.verifiedAt = p.second, time.Time{}
	}
	if p.backSince(u).After(e.verifiedAt) && !e.verifiedAt.IsZero() {
		// Nobody saw it meanwhile, and what was reported is from before: it soaks anew.
		e.verifiedAt = p.backSince(u)
	}
	return at
}

// backSince is since when a cluster is available, as the ledger notes times; zero where it
// is not, or that is not known. A managed cluster writes that time by its own clock: one
// that is still to come says nothing yet.
func (p *planner) backSince(u *unit) time.Time {
	if !u.c.Reachable || u.c.ReachableSince.IsZero() || u.c.ReachableSince.After(p.now) {
		return time.Time{}
	}
	return roundUp(u.c.ReachableSince, time.Second)
}

// returns tells whether a parked cluster is in flight again, from now: because it is back,
// with what it was admitted to. One that was never written to, or that renders to something
// else by now, is admitted like anybody, and its clock begins then.
func (p *planner) returns(u *unit) bool {
	switch e := u.entry; {
	case u.leaving && e.failed:
		p.setTarget(u)
		u.state, u.reason = Failed, failedThenLeft
	case u.c.Blocked != "":
		p.block(u) // wherever it is: vanishing mends no failure
	case !u.c.Reachable:
		p.setTarget(u)
		u.state, u.reason = Parked, u.c.absence("not available since it was admitted: in flight again on return")
		if e.failed {
			u.state, u.reason = Failed, failedThenLeft
		}
	case p.lapsed(u):
		u.entry = nil
	default:
		e.parked, e.failed, e.joining, e.admittedAt, e.verifiedAt = false, false, false, p.second, time.Time{}
		return true
	}
	return false
}

// block is a cluster whose works cannot be written: it has failed, since waiting mends
// nothing. Its entry is parked, because what it was admitted to is not late: no clock runs
// until it can be written.
func (p *planner) block(u *unit) {
	p.setTarget(u)
	u.entry.parked, u.entry.covered, u.entry.verifiedAt = true, false, time.Time{}
	u.state, u.reason, u.deadline = Failed, bounded(u.c.Blocked), time.Time{}
}

// settleUnwritten is the state of a reachable cluster whose works are not at the
// revision.
func (p *planner) settleUnwritten(u *unit) {
	if u.c.Blocked != "" {
		p.block(u)
		return
	}
	switch {
	case p.in.Contested != "": // it may be that nobody may write it
		p.settleMissing(u, "admitted: "+bounded(p.in.Contested))
		return
	case p.missing != "" && u.entry.revision == p.target:
		p.settleMissing(u, "admitted, and not written: "+p.missing)
		return
	}
	why := "admitted, its works are being written"
	if u.c.Awaits != "" {
		why = "admitted: " + bounded(u.c.Awaits)
	}
	p.progressing(u, Admitted, why)
}

// settleMissing is the state of a cluster that was admitted to content that cannot be
// had now, or that may not be written while somebody else owns what is the add-on's. It was
// never written to, so that the content is not what is late: past its deadline it has a new
// one.
func (p *planner) settleMissing(u *unit, why string) {
	u.state, u.reason = Admitted, why
	if u.deadline.IsZero() {
		return
	}
	if !p.now.Before(u.deadline) {
		u.entry.admittedAt = p.second
		u.deadline = p.deadlineOf(u)
	}
	p.look(u.deadline)
}

// setTarget notes whether the entry's content is the target's for this cluster.
func (p *planner) setTarget(u *unit) {
	r := u.entry.revision
	u.forTarget = r == p.target || u.c.UpToDate && u.c.Running == r
}

// settleFeedback is the state of a reachable cluster whose works are at the revision.
func (p *planner) settleFeedback(u *unit) {
	e := u.entry
	switch u.c.Health.State {
	case HealthVerified:
		p.soak(u)
	case HealthUnknown:
		if e.verifiedAt.IsZero() {
			p.progressing(u, Progressing, orElse(u.c.Health.Reason, "no feedback yet"))
			return
		}
		p.soakUnseen(u)
	case HealthProgressing, HealthFailed:
		e.verifiedAt = time.Time{} // health was lost: the soak starts over once it is back
		p.progressing(u, Progressing, orElse(u.c.Health.Reason, "not verified yet"))
	}
}

// progressing puts the cluster into the state, or TimedOut past its deadline.
func (p *planner) progressing(u *unit, state State, why string) {
	u.state, u.reason = state, why
	if u.deadline.IsZero() {
		return
	}
	if p.now.Before(u.deadline) {
		p.look(u.deadline)
		return
	}
	u.state, u.reason = TimedOut, "past its progress deadline: "+why
}

// soak notes a verified cluster, and lets go of it once it has soaked.
func (p *planner) soak(u *unit) {
	soak := p.soakOf(u)
	if soak == 0 {
		p.finish(u)
		return
	}
	if u.entry.verifiedAt.IsZero() {
		u.entry.verifiedAt = p.second
	}
	u.until = u.entry.verifiedAt.Add(soak)
	if !p.now.Before(u.until) {
		p.finish(u)
		return
	}
	p.look(u.until)
	u.state, u.reason = Soaking, p.words.soakingUntil(u.until, p.now)
}

// soakUnseen is a verified cluster without current feedback: its soak is neither
// over nor lost, until it has been silent for a deadline longer than the soak.
func (p *planner) soakUnseen(u *unit) {
	u.until = u.entry.verifiedAt.Add(p.soakOf(u))
	if d := p.paceOf(u).deadline; d > 0 {
		u.deadline = u.until.Add(d)
	} else {
		u.deadline = time.Time{}
	}
	p.progressing(u, Soaking, "verified, waits for current feedback")
}

// settleLost is the state of a cluster that is not available. One that was silent past
// its deadline before it was lost stays timed out: vanishing mends no failure.
func (p *planner) settleLost(u *unit, at bool) {
	e := u.entry
	if e.covered && !at {
		u.entry = nil // never written to: it is admitted on return
		return
	}
	if late := !u.deadline.IsZero() && !u.c.LostSince.Before(u.deadline); late && e.verifiedAt.IsZero() {
		u.state, u.reason = TimedOut, "past its progress deadline when it was lost"
		return
	}
	until := p.keepsSlotUntil(u)
	if p.now.Before(until) {
		p.look(until)
		u.state, u.reason = Lost, u.c.absence(p.words.keepsSlot(until, p.now))
		return
	}
	e.parked, e.covered, e.verifiedAt = true, false, time.Time{}
	u.state, u.reason = Parked, u.c.absence("not available since it was admitted: in flight again on return")
}

// keepsSlotUntil is the progress deadline, and without one ParkAfter from when the
// cluster was lost. A verified one had met its deadline, so that being lost after it
// costs the slot no sooner than ParkAfter either. With what is taken back it keeps none:
// others wait for the slot to turn back in.
func (p *planner) keepsSlotUntil(u *unit) time.Time {
	park := later(u.entry.admittedAt, u.c.LostSince).Add(p.in.ParkAfter)
	switch {
	case p.proven() && !u.forTarget:
		return u.c.LostSince
	case u.deadline.IsZero():
		return park
	case u.entry.verifiedAt.IsZero():
		return u.deadline
	default:
		return later(u.deadline, park)
	}
}

// finish lets go of a cluster that did what its entry asked for.
func (p *planner) finish(u *unit) {
	u.entry, u.forTarget = nil, false
	u.until, u.deadline = time.Time{}, time.Time{}
}

// absence is why the cluster is away, else the text for one that is not available.
func (c *Cluster) absence(otherwise string) string { return orElse(c.Away, otherwise) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return bounded(text)
}
