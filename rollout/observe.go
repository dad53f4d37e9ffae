package rollout

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
	"github.com/addonflow/addonflow/rollout/removal"
)

// recorded visits the clusters that have a record, by name. Clusters that are no longer in the input come last.
func (p *planner) recorded() iter.Seq[*unit] {
	return func(yield func(*unit) bool) {
		for i := range p.units {
			if u := &p.units[i]; u.record != nil && !yield(u) {
				return
			}
		}
		for _, u := range p.absent {
			if !yield(u) {
				return
			}
		}
	}
}

// attach reads the ledger and gives each cluster its record. The error is ErrCorruptLedger.
func (p *planner) attach(l v1alpha1.Ledger) error {
	names, err := Names(l)
	if err != nil {
		return err
	}
	records, err := recordsOf(l, names)
	if err != nil {
		return err
	}
	p.names = names
	if p.removed, err = removal.Decode(l.Removal, names); err != nil {
		return fmt.Errorf("%w: %w", ErrCorruptLedger, err)
	}
	at := p.cursor()
	for i := range records {
		r := &records[i]
		r.Excused = r.failedOtherwise(p.target) // only a revert reads it
		if u := at.find(r.Cluster); u != nil {
			u.record = r
		} else {
			p.absent = append(p.absent, &unit{c: &Cluster{Name: r.Cluster, Gone: true}, record: r})
		}
	}
	return nil
}

// adopt gives records to clusters that run the target and have no record of it, if the target never
// succeeded here. Only an admission can have given them the target, so their record was lost, or an
// older one was restored. If the stored status is empty, every cluster that differs from the stable revision gets a
// record; without a stable revision every cluster that has works. Adopted clusters are in
// flight from now, even above the limit.
func (p *planner) adopt() {
	for i := range p.units {
		u := &p.units[i]
		lost := u.record != nil && u.record.Revision != p.target && u.c.Running == p.target
		if !u.member || u.record != nil && !lost {
			continue
		}
		revision := ""
		switch running := u.c.Running; {
		case running == "" || running == Foreign:
		case running == p.target && !p.in.TargetProven:
			revision = p.target
		case lost:
		case !p.in.Rebuild || p.stable != "" && u.c.UpToDateStable:
		case running == Mixed:
			revision = p.target
		default:
			revision = running
		}
		state := Updating
		if u.c.Health.State == HealthFailed && p.at(u.c, revision) {
			state = Failed // since when is not known
		}
		if revision != "" {
			u.renew(&Record{
				Cluster: u.c.Name, Admitted: p.second, Since: p.second,
				RecordKey: v1alpha1.RecordKey{
					Revision: revision, Stage: u.step.title(), State: state,
					Excused: p.in.Rebuild && revision != p.target, // the rebuilt status has no failures
				},
			})
			p.enter(u)
		}
	}
}

// removalDeclared is why the works of an admitted cluster are not written while the add-on is
// to be removed.
const removalDeclared = "the add-on is to be removed"

// observe updates every record from what was observed, and sets state and reason of each
// cluster.
func (p *planner) observe() {
	p.unstagedReason = "in no stage; it keeps what it runs"
	if why := p.unreadable(); why != "" {
		p.unstagedReason = "in no stage that can be determined now: " + why
	}
	for u := range p.recorded() {
		p.follow(u, firstOf(p.stepsOf(u)))
		p.place(u, p.stepsOf(u)) // it may hold a slot since this turn
	}
	for i := range p.units {
		if u := &p.units[i]; u.member {
			u.state, u.reason = p.stateOf(u)
			if u.departure != "" {
				u.fault, u.reason = u.reason, u.departure
			}
		}
	}
	p.count()
}

// follow updates the record of a cluster of a step from its observation. A second call changes nothing.
func (p *planner) follow(u *unit, s *step) {
	o, pc := p.observation(u), p.pace(u, s)
	moved, why := next(*u.record, o, pc, p.now)
	if moved.State == Done && p.promoted(u.record) {
		p.promotions[u.record.Stage]++
	}
	if moved != *u.record {
		u.record = &moved
	}
	u.reason = why
	if u.record.State == Soaking && pc.endless == "" {
		u.until = u.record.Since.Add(pc.soak)
	}
	p.look(u.record.wakeAt(o, pc))
}

// carryOver moves a record to the target's revision if the target renders the same works for
// its cluster. State and clocks continue. A Done record keeps its revision, because it proves
// nothing for the target. The record of a joiner keeps its revision while it is in flight.
func (p *planner) carryOver() {
	for i := range p.units {
		u := &p.units[i]
		r := u.record
		joining := r.InFlight() && r.Revision == p.stable
		if r == nil || r.Revision == p.target || joining || r.State == Done || !u.member || !u.c.UpToDate || !p.at(u.c, r.Revision) {
			continue
		}
		carried := *r
		carried.Revision = p.target
		u.record = &carried
	}
}

// relinquish drops the records of clusters that were admitted to reverted or quarantined content and have no works
// of it yet, because these clusters never got the content. A revert keeps the records of clusters that still have
// to move back, because only the records show which clusters these are.
func (p *planner) relinquish() {
	for i := range p.units {
		u := &p.units[i]
		r := u.record
		if r == nil || r.State != Admitted || r.Failed || u.c.Running == r.Revision || u.c.Running == Mixed {
			continue
		}
		if r.Revision == p.target && p.in.Withdrawn || r.Revision != p.target && r.Revision != p.stable && p.revert && !p.strays(u) {
			u.record = nil
		}
	}
}

// stepsOf are the steps in which a record counts. If a step selects the cluster now, the record counts there.
// Otherwise a record that is of the target or in flight counts in the step of its admission. If that step was
// removed, it counts in the first step of its track; if the track was removed, too, in the first step of every track.
func (p *planner) stepsOf(u *unit) []*step {
	r := u.record
	switch {
	case u.step != nil:
		return []*step{u.step}
	case r.Revision != p.target && !r.InFlight():
		return nil
	}
	return p.homes(r.Stage)
}

// homes are the steps in which a record of a stage counts if no step selects its cluster.
func (p *planner) homes(stage string) []*step {
	if s := p.named[stage]; s != nil {
		return []*step{s}
	}
	var first []*step
	for _, t := range p.tracksOf(stage) {
		if s := t.steps[0]; !slices.Contains(first, s) {
			first = append(first, s)
		}
	}
	return first
}

func firstOf(steps []*step) *step {
	if len(steps) == 0 {
		return nil
	}
	return steps[0]
}

// place gives a step to a cluster that no step selects. Until its outcome is known, the cluster is a member of the
// step of its record. After that, it is a former member if its record is of the target. A cluster that failed because
// its works could not be written, and whose works can be written now, is neither, because it never had the target.
func (p *planner) place(u *unit, homes []*step) {
	if u.step != nil && u.member || u.member && u.record.State == NotWritten && p.due(u) {
		return
	}
	for _, home := range homes {
		switch {
		case u.member && u.record.State != Done && !p.due(u):
			if u.step == nil {
				u.step, u.bound = home, true
			}
			home.include(u)
		case u.record.Revision == p.target:
			home.former = append(home.former, u)
		}
	}
}

// observation returns what was observed of a cluster, in the form that next reads.
func (p *planner) observation(u *unit) observation {
	o := observation{
		member: u.member, available: u.c.Reachable, changed: clock.RoundUp(u.c.AvailableChanged, time.Second),
		written: p.at(u.c, u.record.Revision), health: u.c.Health,
		blocked: p.barred(u.c, u.record.Revision), awaits: u.c.Awaits, unwritten: u.c.Unwritten, unwrittenSince: u.c.UnwrittenSince, away: u.c.Away,
	}
	switch {
	case p.spec.Removal != nil:
		o.paused = removalDeclared
	case p.in.Contested != "":
		o.paused = p.in.Contested
	case p.missing != "" && u.record.Revision == p.target:
		o.paused = p.missing
	}
	return o
}

// pace returns the soak, the deadline and the other times that apply to a record, according to its step and its
// content. As long as the stage that admitted the cluster is declared, the soak is at least as long as in that stage:
// otherwise a cluster that moves to another stage would prove content too early. Proven content needs no soak in two
// cases. The first is the stable revision on a cluster that joins. The second is the target of a revert, until the
// revert has ended, and later on a cluster that moves back. If the add-on is to be removed, or the strategy cannot be
// carried out, no soak ends and no deadline runs: a strategy with a wrong group may lack the stage for which the
// clusters soak.
func (p *planner) pace(u *unit, s *step) pace {
	if s == nil || p.unknownGroup != nil {
		s = &p.nowhere
	}
	pc := pace{
		soak: s.soak, deadline: s.deadline, declared: s.declared,
		parkAfter: p.in.ParkAfter, applyErrorAfter: p.in.ApplyErrorAfter,
	}
	if own := p.named[u.record.Stage]; own != nil {
		pc.soak = max(pc.soak, own.soak)
	}
	r := u.record.Revision
	if r == p.stable && r != p.target || r == p.target && (p.revertOpen || p.revert && u.record.Reverted) || p.promoted(u.record) {
		pc.soak = 0
	}
	switch {
	case p.spec.Removal != nil:
		pc.endless = removalDeclared
	case p.unknownGroup != nil:
		pc.endless = heldFor(p.unknownGroup)
	}
	pc.inRevert = p.revertOpen || p.revert && r != p.target
	return pc
}

// due reports whether a cluster with a record waits for an admission. It does if the record is of other content and
// holds no slot, or if the works differ from the record, so that a write would be a move. A failed cluster whose
// works are missing or changed is not due, because readmit admits it again as a failure. It is due if its works could
// not be written before and can be written now.
func (p *planner) due(u *unit) bool {
	r := u.record
	switch {
	case r == nil:
		return true
	case r.InFlight():
		return false
	case r.Revision != p.target:
		return true
	case u.c.UpToDate:
		return false
	case r.State == NotWritten:
		return p.writable(u.c)
	}
	return r.State == Done || r.State == Left || r.State == Parked && !r.Failed && u.c.Reachable
}

// barred says why the works of a revision cannot be written to the cluster; "": they can.
func (p *planner) barred(c *Cluster, revision string) string {
	if c.Blocked == "" && revision == p.target {
		return c.Refused
	}
	return c.Blocked
}

// writable reports whether the target's works can be written now.
func (p *planner) writable(c *Cluster) bool { return p.barred(c, p.target) == "" && c.Awaits == "" }

// stateOf returns the state of a member and the reason.
func (p *planner) stateOf(u *unit) (State, string) {
	r := u.record
	if r != nil && !p.due(u) && (u.step != nil || r.State != Done) {
		if r.State == Done {
			return Done, u.c.runsTarget(p.missing)
		}
		return r.shown(), u.reason
	}
	switch {
	case u.step == nil && p.spec.Removal == nil:
		return Unstaged, p.unstagedReason
	case u.c.UpToDate && u.c.Running == p.target:
		return Unchanged, u.c.runsTarget(p.missing)
	case u.c.UpToDate:
		return Unchanged, "the target changes nothing here"
	case u.held:
		return Held, u.c.heldText(p.now)
	case !u.c.Reachable:
		return Parked, orElse(u.c.Away, "not available; admitted on return")
	}
	return Waiting, "waits to be admitted"
}

// held reports whether its ManagedCluster holds the cluster.
func (c *Cluster) held(now time.Time) bool {
	return c.Held && (c.HeldUntil.IsZero() || now.Before(c.HeldUntil))
}

// heldText says until when the cluster is held, and by what.
func (c *Cluster) heldText(now time.Time) string {
	text := "held"
	if !c.HeldUntil.IsZero() {
		text += " until " + clock.Text(c.HeldUntil, now)
	}
	text += " by annotation " + v1alpha1.HoldUntilAnnotation + " of its ManagedCluster"
	if c.HeldFor != "" {
		text += "; " + c.invalidHold()
	}
	return text
}

// invalidHold says that the value of the annotation cannot be used, and which values can.
func (c *Cluster) invalidHold() string {
	return fmt.Sprintf(`its value %q is neither "true" nor a time such as 2026-01-02T15:04:05Z`, c.HeldFor)
}

// runsTarget is the reason of a Done cluster. It includes the current health, because a cluster can become unhealthy
// after it was verified.
func (c *Cluster) runsTarget(missing string) string {
	switch {
	case missing != "":
		return "runs the target, without repair: " + missing
	case c.Health.State == HealthVerified || c.Health.Reason == "" || !c.Reachable:
		return "runs the target"
	}
	return "runs the target; at present: " + bounded(c.Health.Reason)
}

// failedBefore reports whether a waiting cluster failed with its previous content.
func (u *unit) failedBefore() bool {
	return u.state == Waiting && (u.record.failed() || u.c.Health.State == HealthFailed)
}

// unreadable says why the members of some step cannot be determined; "" if all can.
func (p *planner) unreadable() string {
	for _, s := range p.steps {
		if s.unknown {
			return s.hold
		}
	}
	return ""
}

// at reports whether the cluster's works are what the revision renders now.
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
