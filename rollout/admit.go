package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/brief"
	"github.com/addonflow/addonflow/api/v1alpha1"
)

// admit fills the free slots of every track. A step starts when the step before it is complete for
// the target. Failures of all clusters are counted before the first admission. Clusters in flight
// take slots whatever their revision. If one step failed, no step of its track admits a cluster,
// not even a step before it.
func (p *planner) admit() {
	if why := p.stopped(); why != "" {
		p.explainAll(why)
		return
	}
	before := len(p.admissions)
	for _, s := range p.steps {
		p.readmit(s)
	}
	if len(p.admissions) > before {
		p.count() // they are in flight, and may be the last hope of the stage of their record
	}
	for _, t := range p.tracks {
		halt := t.halt()
		blocked := halt
		for i, s := range t.steps {
			stopped := cmp.Or(blocked, t.halted(i))
			s.early = s.revert && stopped != "" && halt == "" && s.hold == ""
			p.admitStep(s, stopped)
			if blocked = stopped; blocked == "" && !t.complete(i) {
				blocked = t.blocks(i)
			}
		}
	}
}

// halt says why a failed step ends the admissions of the whole track; "": no step failed.
func (t *track) halt() string {
	for i := range t.steps {
		if t.failed(i) {
			return t.halted(i)
		}
	}
	return ""
}

// blocks says what the steps after step i wait for while step i is incomplete: for step i, and for the gate that
// step i waits for.
func (t *track) blocks(i int) string {
	s := t.steps[i]
	if why := s.holding(); s.empty() && why != "" {
		return why
	}
	text, gate := "waits for "+s.name+" to complete", s.gated
	if t.decided(i) {
		gate = s.unmeasured
	}
	if gate != "" {
		text += ", which " + gate
	}
	return text
}

// stopped says why no cluster is admitted, joiners included; "": clusters can be admitted.
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
	case p.in.Withdrawn:
		return "the content is quarantined or blocked: no cluster is admitted"
	case p.in.Aborted != "":
		return p.in.Aborted + ": no cluster is admitted"
	}
	return ""
}

// waits reports whether the cluster waits for its admission. A leaving cluster waits for its removal instead.
func (u *unit) waits() bool { return u.state == Waiting && !u.leaving }

// explainAll gives every waiting cluster the same reason.
func (p *planner) explainAll(why string) {
	for i := range p.units {
		if u := &p.units[i]; u.waits() {
			u.reason = why
		}
	}
}

// admitStep fills the free slots of a step in this order: clusters in flight with other content, which keep their
// slots; clusters that failed with earlier content; the other clusters, by name; joiners. A joiner starts at the
// stable revision, so it is admitted even if the step is blocked for the target.
func (p *planner) admitStep(s *step, blocked string) {
	why := cmp.Or(blocked, s.hold, s.inherited())
	open := why == "" || blocked == "" && s.byStrategy
	if open || s.early {
		p.askGates(s)
	}
	if open {
		why = cmp.Or(why, s.gated)
	}
	free := s.free()
	if open || s.early {
		before := len(p.admissions) + p.retargeted
		p.retarget(s)
		free = p.grantAll(s, p.candidates(s), p.target, free)
		if len(p.admissions)+p.retargeted > before {
			p.pass(s)
		}
	}
	if p.stable != "" {
		free = p.grantAll(s, p.joiners(s), p.stable, free)
	}
	p.explain(s, open, why, free)
}

// explain sets the reason of each cluster that still waits. why says what blocks the step for the target; "":
// nothing. If open is true, only a gate or the strategy can block the step, and some clusters may be exempt. Three
// kinds of clusters wait only for a free slot: exempt clusters, joiners, and clusters that do not wait for the
// steps before.
func (p *planner) explain(s *step, open bool, why string, free int) {
	full := fmt.Sprintf("waits for a free slot in %s: %d of %d in flight", s.name, s.limit-free, s.limit)
	for _, u := range s.members {
		open, why := open, why
		if s.early && p.leads(u) {
			open, why = true, s.gated
		}
		unblocked := why == "" || open && !p.shutOut(s, u) || p.joins(u) && s.limit > 0
		switch {
		case !u.waits():
		case unblocked && p.postponed(u):
			u.reason = u.c.waitText()
		case unblocked:
			u.reason = full
		default:
			u.reason = why
		}
	}
}

// inherited is the reason of a step whose clusters wait for clusters of a stage that no longer exists; otherwise "".
func (s *step) inherited() string {
	if s.tally.done > 0 || s.proven || !s.atOnce || s.tally.inherited == 0 {
		return ""
	}
	return fmt.Sprintf("waits for %s admitted in a stage that no longer exists", brief.Count(int(s.tally.inherited), "cluster"))
}

// halted says why step i and the steps after it admit no further cluster; "": step i does
// not halt them.
func (t *track) halted(i int) string {
	s := t.steps[i]
	switch {
	case !t.breached(i) || s.all && s.tally.elsewhere == 0 && !s.abandoned():
		return ""
	case t.failures(i) <= s.maxFailures && s.failedGate() != nil:
		return "halted in " + s.name + ": " + s.failedGate().failText()
	case s.abandoned() && t.failures(i) <= s.maxFailures:
		return "halted: in " + s.name + " " + s.abandonedText()
	case s.all:
		return fmt.Sprintf("halted: %s failed before the pace was changed", brief.Count(int(s.tally.elsewhere), "cluster"))
	case t.failures(i) <= s.maxFailures:
		return fmt.Sprintf("halted: %s failed in %s, where no cluster is verified", brief.Count(t.failures(i), "cluster"), s.name)
	default:
		return fmt.Sprintf("halted: %s failed in %s, %d allowed", brief.Count(t.failures(i), "cluster"), s.name, s.maxFailures)
	}
}

// retarget admits clusters in flight with other content to the target. They keep their slots; deadline and soak start
// again.
func (p *planner) retarget(s *step) {
	for _, u := range p.turning(s) {
		p.grant(u, s, p.target, "was in flight with other content; moves to the target")
		p.retargeted++
	}
}

// turning are the clusters that retarget admits. When parked clusters return, more clusters can be in flight than the
// limit. Then only clusters within the limit are retargeted: clusters at the target count first, the others in the
// order of their admission. A revert retargets all clusters in flight, because it replaces the content to which they
// were admitted.
func (p *planner) turning(s *step) []*unit {
	var flying []*unit
	for _, u := range s.members {
		if u.record.InFlight() && (!s.revert || p.retargetable(u)) {
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
	if !s.revert {
		flying = flying[:min(s.limit, len(flying))]
	}
	return slices.DeleteFunc(flying, func(u *unit) bool {
		return u.record.Revision == p.target || p.postponed(u) || !p.retargetable(u) || !u.c.Reachable || p.arriving(u) || p.shutOut(s, u)
	})
}

// arriving reports whether the cluster stays in flight to the stable revision. It stays if it joined after the target
// was set, or if the works of the target cannot be written to it, but not longer than its deadline. After the
// deadline it is retargeted, because the target may work where the stable revision does not. A cluster that took its
// slot before the target was set, as in a revert, is retargeted like any other.
func (p *planner) arriving(u *unit) bool {
	if u.record.Revision != p.stable || u.record.Admitted.Before(p.in.TargetSince) && p.barred(u.c, p.target) == "" {
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

// readmit admits clusters that failed with the target and whose works differ from it now, because their own inputs
// changed or the works were deleted. They already count as failed, so neither the budget nor earlier steps hold them.
func (p *planner) readmit(s *step) {
	var found []*unit
	if s.hold != "" && !s.byStrategy {
		return
	}
	for _, u := range s.members {
		r := u.record
		if r.failed() && !p.shutOut(s, u) && !p.writes(u) && r.Revision == p.target && !p.due(u) && !u.c.UpToDate &&
			!u.held && !p.postponed(u) && p.retargetable(u) && u.c.Reachable && p.writable(u.c) {
			found = append(found, u)
		}
	}
	if len(found) == 0 || slices.ContainsFunc(s.gates, func(g gate) bool { return !p.askGate(s, &g) }) {
		return
	}
	p.grantAll(s, found, p.target, s.free())
}

// free is how many slots of the step are free. It is negative if more clusters are in flight than the limit allows.
func (s *step) free() int { return s.limit - int(s.tally.flying) }

// candidates are the clusters that can be admitted to the target, failed clusters first. While the steps before are
// not complete, only clusters that lead a rollback are candidates. A cluster that got the target before and whose
// works were deleted is a candidate too: if it joined at the stable revision, its record would be lost, and with it
// the proof of the target or the place in the canary. A cluster to which the target cannot be written fails for
// certain. While the step has such a cluster, the only candidates are such clusters and clusters that failed
// before. In a revert, the other clusters do not wait for it.
func (p *planner) candidates(s *step) []*unit {
	var failed, barred, others []*unit
	known := false // true: a cluster of the step fails for certain
	for _, u := range s.members {
		certain := !s.revert && p.barred(u.c, p.target) != ""
		switch {
		case u.state != Waiting || !p.retargetable(u) || p.joins(u) && !u.got(p.target) || p.postponed(u) || p.shutOut(s, u), s.early && !p.leads(u):
			known = known || certain && u.state == Admitted && u.record.Revision == p.target
		case u.failedBefore():
			known, failed = known || certain, append(failed, u)
		case certain:
			known, barred = true, append(barred, u)
		default:
			others = append(others, u)
		}
	}
	if known {
		return append(failed, barred...)
	}
	return append(failed, others...)
}

// leads reports whether a cluster does not wait for the steps before its own: the operator moves the cluster back from
// the content with which it failed.
func (p *planner) leads(u *unit) bool {
	failed := u.record.failedOtherwise(p.target) || u.c.Health.State == HealthFailed
	return p.in.RollingBack && failed && p.movesBack(u)
}

// joins reports whether a waiting cluster starts at the stable revision, because it runs nothing.
// It does not join if it timed out with the stable revision, or failed with it and its works
// cannot be written.
func (p *planner) joins(u *unit) bool {
	failed := u.record.failed() && u.record.Revision == p.stable &&
		(u.record.State == TimedOut || u.record.Refusal != "" || u.c.Blocked != "" || u.c.Awaits != "")
	return u.c.Running == "" && p.stable != "" && !failed
}

// got reports whether the revision is the last content that the cluster got. A cluster to which the content could
// not be written did not get it.
func (u *unit) got(revision string) bool {
	return u.record != nil && u.record.Revision == revision && u.record.State != NotWritten
}

// postponed reports whether the cluster is not admitted because of Cluster.Waits. A cluster that moves back in a revert
// does not wait.
func (p *planner) postponed(u *unit) bool { return u.c.Waits != "" && !p.movesBack(u) }

// waitText is Waits as a reason of the cluster.
func (c *Cluster) waitText() string { return bounded(c.Waits) }

// joiners are the waiting clusters that start at the stable revision.
func (p *planner) joiners(s *step) []*unit {
	var found []*unit
	for _, u := range s.members {
		if u.waits() && p.joins(u) && !p.postponed(u) {
			found = append(found, u)
		}
	}
	return found
}

// grantAll admits the candidates to the revision in their order while slots are free. It
// returns the number of slots that remain.
func (p *planner) grantAll(s *step, candidates []*unit, revision string, free int) int {
	for _, u := range candidates {
		if free <= 0 {
			break
		}
		free--
		why := "admitted: a slot in " + s.name + " is free"
		switch {
		case revision != p.target:
			why = "joins at the stable revision"
		case u.state != Waiting:
			why = "failed before; its works are written again"
		case u.record != nil && u.record.State == Done && u.got(revision):
			why = "its works or its configuration changed after it was done; they are written again"
		}
		p.grant(u, s, revision, why)
		p.enter(u)
	}
	return free
}

// enter notes that the record of the cluster needs space in the ledger.
func (p *planner) enter(u *unit) {
	p.admissions = append(p.admissions, u)
	u.admission = len(p.admissions)
}

// renew gives the cluster a record that the ledger does not have yet.
func (u *unit) renew(r *Record) {
	if u.admission == 0 {
		u.before = u.record
	}
	u.record = r
}

// grant gives the cluster a record of the revision. Only grant admits clusters. If the cluster had failed with that
// revision, it still counts as failed, in the stage in which it failed.
func (p *planner) grant(u *unit, s *step, revision, why string) {
	b := u.record
	u.renew(&Record{Cluster: u.c.Name, RecordKey: v1alpha1.RecordKey{Revision: revision, Stage: s.name, State: Admitted}, Admitted: p.second, Since: p.second})
	if b.failed() && b.Revision == revision && b.State != NotWritten {
		u.record.Failed, u.record.Stage = true, b.Stage
	}
	u.record.Reverted = revision == p.target && p.movesBack(u)
	u.record.Excused = revision == p.target && p.revert && b.failedOtherwise(p.target)
	u.state, u.reason, u.until = Admitted, why, time.Time{}
	if p.barred(u.c, revision) != "" {
		p.look(p.second.Add(time.Second)) // the cluster fails at the next turn, although no write is observed
	}
	p.look(u.record.wakeAt(p.observation(u), p.pace(u, s)))
}

// abandonedText is "2 clusters left, none verified and soaked (c1, c2)".
func (s *step) abandonedText() string {
	n := s.missing()
	return fmt.Sprintf("%s left, none verified and soaked (%s)", brief.Count(n, "cluster"), s.formerNames(n))
}

// formerNames names the first few of n clusters that left before they were Done.
func (s *step) formerNames(n int) string {
	names := namesOf(s.tally.strayed)
	for _, u := range s.former {
		if u.record.State != Done && !u.record.failed() {
			names = append(names, u.c.Name)
		}
	}
	if s.atOnce || s.tally.total == 0 {
		for _, u := range s.members {
			if (u.state == Parked || u.state == Held) && (u.bound || s.tally.total == 0) {
				names = append(names, u.c.Name)
			}
		}
	}
	slices.Sort(names)
	return brief.NamesOf(n, names)
}

// formerDone names the Done clusters that no step selects any more.
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
