package rollouttest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// tally is how the clusters of a step stand after the ledger was written.
type tally struct {
	done, unchanged, flying, failed, parked, waiting, left int
	// elsewhere are failures that another stage recorded.
	elsewhere, members int
	// onward were admitted here, are in flight and in another step now.
	onward int
	// inherited are in no step and of a stage that is gone, and neither done nor failed.
	inherited int
	// outdated were done before their own inputs changed, and are not available.
	outdated int
}

// tally counts members by their own record, and clusters that left by the stage of theirs.
func (j *judgement) tally(i int) tally {
	var t tally
	s := j.steps[i]
	for _, name := range s.members {
		a, recorded := j.after[name]
		c := j.clusters[name]
		if j.leaving(name) && !distrusted(j.installPlacements()...) {
			if !recorded || !slotted(a) && (a.State == rollout.Parked || a.Revision != j.target() || !c.UpToDate && !isFailure(a)) {
				continue
			}
		} else {
			t.members++
		}
		target := recorded && a.Revision == j.target()
		stale := target && !c.UpToDate && !slotted(a) // its own inputs changed since
		switch {
		case slotted(a) && j.passedBy(name):
		case slotted(a):
			t.flying++
			j.inherit(&t, name)
		case target && isFailure(a) && !j.again(a):
		case target && a.State == rollout.Done && !stale:
			t.done++
		case target && a.State == rollout.Done && (!c.Reachable || j.held(name)):
			t.parked++
			t.outdated++
		case target && a.State == rollout.Parked && (!stale || !c.Reachable):
			t.parked++
		case !target && c.UpToDate:
			t.unchanged++
		case !c.Reachable || j.held(name):
			t.parked++
		default:
			t.waiting++
		}
		if target && (isFailure(a) || a.Failed) && !j.again(a) && !j.excused(name) {
			t.failed++
			if a.Stage != s.name {
				t.elsewhere++
			}
		}
	}
	for name, a := range j.after {
		if other := j.stepOf(name); other >= 0 && other != i && a.Stage == s.name && a.Revision == j.target() {
			switch {
			case a.State == rollout.Done && j.clusters[name].UpToDate:
				t.done++
			case a.State == rollout.Lost || a.State == rollout.Parked || a.State == rollout.Left:
				t.left++
			case slotted(a):
				t.onward++
			}
			if (isFailure(a) || a.Failed) && !j.again(a) && !j.excused(name) {
				t.failed++
			}
		}
		never := j.member(name) && a.State == rollout.NotWritten && j.again(a)
		if j.stepOf(name) >= 0 || !slices.Contains(j.stagesOf(a), i) || a.Revision != j.target() && !slotted(a) || never {
			continue
		}
		if a.State != rollout.Done && !isFailure(a) {
			j.inherit(&t, name)
		}
		if a.Failed && a.Revision == j.target() && !j.excused(name) {
			t.failed++
			if a.Stage != s.name {
				t.elsewhere++
			}
		}
		undecided := j.member(name) && (j.has(j.clusters[name], a.Revision) || slotted(a))
		switch {
		case a.State == rollout.Done:
			t.done++
		case isFailure(a) && j.excused(name):
		case isFailure(a):
			t.failed++
			if a.Stage != s.name {
				t.elsewhere++
			}
		case undecided && slotted(a):
			t.flying++
		case undecided && a.State == rollout.Parked:
			t.parked++
		default:
			t.left++
		}
	}
	return t
}

// passedBy reports whether a revert does not wait for a member in flight, because it will not move that member:
// otherwise it would wait for the content that it reverts.
func (j *judgement) passedBy(name string) bool {
	leaving := j.leaving(name) && !distrusted(j.installPlacements()...)
	return j.revert() && (leaving || j.held(name) && j.after[name].Revision != j.target())
}

// stagesOf returns the positions of the steps to which a record belongs if no step selects its cluster: the step of
// its stage; without that step, the first of its track; without that track, the first of every track.
func (p *policy) stagesOf(r rollout.Record) []int {
	if i := p.stepNamed(r.Stage); i >= 0 {
		return []int{i}
	}
	var own, first []int
	for i, s := range p.steps {
		track, _, _ := strings.Cut(s.name, "/")
		switch {
		case len(s.before) > 0:
		case inTrack(r.Stage, track):
			own = append(own, i)
			fallthrough
		default:
			first = append(first, i)
		}
	}
	if len(own) > 0 {
		return own
	}
	return first
}

// inherit counts a cluster that no step selects and whose own stage is gone.
func (j *judgement) inherit(t *tally, name string) {
	if a := j.after[name]; j.stepOf(name) < 0 && a.Revision == j.target() && j.stepNamed(a.Stage) < 0 {
		t.inherited++
	}
}

// waitsForAGoneStage reports whether a step that moves all of its clusters at once waits for clusters of a
// stage that is gone: some of them are undecided or have left, and none has proven the content.
func (j *judgement) waitsForAGoneStage(i int) bool {
	return j.steps[i].atOnce && !j.in.TargetProven && j.tallies[i].done == 0 && j.tallies[i].inherited > 0
}

func isFailure(r rollout.Record) bool {
	return r.State == rollout.Failed || r.State == rollout.TimedOut || r.State == rollout.NotWritten || r.State == rollout.LeftFailed
}

// failures of the target that count against the budget of a step.
func (j *judgement) failures(i int) int {
	n := 0
	for _, k := range j.steps[i].budget {
		n += j.tallies[k].failed
	}
	return n
}

// spent reports whether a gate or the failures of a step end the admissions of its track.
func (j *judgement) spent(i int) bool {
	if j.halts(i) != "" {
		return true
	}
	if s := j.steps[i]; !s.all {
		return j.failures(i) > s.maxFailures
	}
	return j.tallies[i].elsewhere > 0
}

// track lists the steps that come before, with and after a step.
func (j *judgement) track(i int) []int {
	found := append(slices.Clone(j.steps[i].before), i)
	for k, s := range j.steps {
		if slices.Contains(s.before, i) {
			found = append(found, k)
		}
	}
	return found
}

// failed reports whether a step failed: its failures exceed its budget, or clusters failed and no
// other cluster can prove the content.
func (j *judgement) failed(i int) bool {
	t := j.tallies[i]
	return j.spent(i) || t.done == 0 && t.failed > 0 && t.flying+t.waiting+t.onward == 0
}

// complete reports whether the step after this one may start: every cluster is decided, the
// budget holds, and at least one cluster proved the content, where there is any to prove.
func (j *judgement) complete(i int) bool {
	if j.unmeasured(i) || j.halts(i) != "" {
		return false
	}
	s, t := j.steps[i], j.tallies[i]
	open := t.flying + t.waiting
	switch {
	case (s.returning || t.onward > 0) && t.done == 0 && !j.in.TargetProven:
		return false
	case s.unknown, open > 0, !s.all && j.failures(i) > s.maxFailures, s.all && t.failed > 0:
		return false
	case t.members+t.left+t.failed+t.done+t.flying == 0:
		return !s.holdEmpty || j.in.TargetProven || j.in.Stable == "" && !j.runsAnother()
	case j.in.TargetProven && (t.outdated == 0 || j.revertOpen()):
		return t.failed == 0 || t.done+t.unchanged > 0
	}
	return t.done > 0 || t.parked+t.failed == 0 && (t.left == 0 || s.all)
}

// slots: no cluster is admitted beyond the limit of its step. Clusters in flight at any
// content count; clusters that returned or were adopted may bring the count above it.
func (j *judgement) slots() error {
	for i, s := range j.steps {
		flying, atTarget, admitted, again, moved := 0, 0, "", "", ""
		for name, a := range j.after {
			if slotted(a) && j.stepOf(name) < 0 && slices.Contains(j.stagesOf(a), i) {
				flying++ // no step selects it; it keeps its slot
			}
		}
		for _, name := range s.members {
			a := j.after[name]
			if slotted(a) && !j.passedBy(name) {
				flying++
				if a.Revision == j.target() {
					atTarget++
				}
			}
			switch {
			case j.retargeted(name):
				moved = name
			case j.retried(name):
				again = name
			case j.admitted(name):
				admitted = name
			}
		}
		switch {
		case s.all:
		case again != "" && flying > s.limit:
			return j.broken(again, "%s was admitted again in %s with %d in flight of %d", again, s.name, flying, s.limit)
		case admitted != "" && flying > s.limit:
			return j.broken(admitted, "%s was admitted in %s with %d in flight of %d", admitted, s.name, flying, s.limit)
		case moved != "" && !j.revert() && atTarget > s.limit:
			return j.broken(moved, "%s was retargeted in %s with %d of %d at the target", moved, s.name, atTarget, s.limit)
		}
		if admitted != "" {
			if err := j.turn(i, admitted); err != nil {
				return err
			}
		}
		if name := j.beside(s); name != "" && j.failsFirst(s) {
			return j.broken(name, "%s was admitted in %s beside a cluster to which the target cannot be written", name, s.name)
		}
	}
	return nil
}

// beside names a cluster that was admitted to the target in a step, could get it and had not failed before; "": none was.
func (j *judgement) beside(s step) string {
	for _, name := range s.members {
		b, c := j.before[name], j.clusters[name]
		failed := isFailure(b) || b.Failed || slotted(b) || c.Health.State == rollout.HealthFailed
		if j.admitted(name) && !j.joins(name) && !failed && !j.retargeted(name) && j.barred(c, j.target()) == "" {
			return name
		}
	}
	return ""
}

// turn: clusters in flight at other content are retargeted before any cluster is admitted, and failed clusters are
// admitted before others.
func (j *judgement) turn(i int, admitted string) error {
	b, had := j.before[admitted]
	other := (!had || !isFailure(b)) && j.clusters[admitted].Health.State != rollout.HealthFailed
	for _, name := range j.steps[i].members {
		a, c := j.after[name], j.clusters[name]
		if j.admitted(name) || a.Revision == j.target() || !c.Reachable || j.postponed(c) || c.Blocked != "" || c.UpToDate || j.leaving(name) || j.held(name) || j.joins(admitted) || j.holdsBack(j.steps[i], name) {
			continue
		}
		switch {
		case slotted(a) && a.Revision != j.in.Stable:
			return j.broken(name, "%s was admitted in %s before %s, which is in flight, was retargeted", admitted, j.steps[i].name, name)
		case other && isFailure(a) && c.Health.State == rollout.HealthFailed:
			return j.broken(name, "%s was admitted in %s before %s, which failed", admitted, j.steps[i].name, name)
		}
	}
	return nil
}

// joins reports whether a cluster was admitted to the stable revision because it runs nothing.
func (j *judgement) joins(name string) bool {
	return j.clusters[name].Running == "" && j.in.Stable != "" && j.after[name].Revision == j.in.Stable
}

// postponed reports whether no content may reach the cluster, because something it depends on is not
// there. A revert still takes back what the cluster runs.
func (j *judgement) postponed(c rollout.Cluster) bool {
	return c.Waits != "" && !j.movesBack(c.Name)
}

// order: the target is given only in a step whose predecessors are complete,
// whose budget is not spent, and that nothing holds. A revert waits for no predecessor
// where a cluster in flight turns back, a rollback also where a cluster failed.
func (j *judgement) order() error {
	for i, s := range j.steps {
		for _, name := range s.members {
			if c := j.clusters[name]; j.admitted(name) && j.postponed(c) {
				return j.broken(name, "%s was admitted although it %s", name, c.Waits)
			}
			if !j.admitted(name) || j.joins(name) {
				continue
			}
			if j.holdsBack(s, name) {
				return j.broken(name, "%s got the target in %s, which is held", name, s.name)
			}
			if j.retried(name) {
				continue // it failed with the target already
			}
			for _, k := range s.before {
				if !j.complete(k) && (!j.revert() || !j.retargeted(name)) && !j.goesFirst(name) {
					return j.broken(name, "%s got the target in %s while %s is not complete: %+v", name, s.name, j.steps[k].name, j.tallies[k])
				}
			}
			if j.waitsForAGoneStage(i) {
				return j.broken(name, "%s got the target in %s before the clusters of a stage that is gone: %+v", name, s.name, j.tallies[i])
			}
			for _, k := range j.track(i) {
				if j.spent(k) {
					return j.broken(name, "%s got the target in %s with %d failed in %s, %d allowed",
						name, s.name, j.failures(k), j.steps[k].name, j.steps[k].maxFailures)
				}
			}
			if gate := j.shut(i, name); gate != "" {
				return j.broken(name, "%s got the target in %s while gate %s holds it: %+v", name, s.name, gate, j.in.Gates)
			}
		}
	}
	return nil
}

// holdsBack reports whether a step that is held holds the cluster. A first install ignores the placement of
// RollingUpdateWithPlacement, and until some content succeeded, it goes on where nothing runs but the target or
// content that has no proof there: the cluster was moving to it, or failed with it.
func (j *judgement) holdsBack(s step, name string) bool {
	c, r := j.clusters[name], j.after[name]
	switch {
	case !s.held:
		return false
	case !s.sparing || j.in.Stable != "":
		return true
	case c.Running == "" || c.Running == j.target():
		return false
	case j.admitted(name):
		r = j.before[name] // none, if the status was lost
	}
	failed := isFailure(r) && (c.Running == r.Revision || c.Running == rollout.Mixed)
	proved := c.Reachable && c.Health.State == rollout.HealthVerified && (r.Revision == "" || j.has(c, r.Revision))
	return proved || !slotted(r) && !failed && !j.retargeted(name)
}

// refilled: no slot stays free while a cluster that may have it waits. Only beside a cluster that is admitted although its
// works cannot be written, no other cluster is admitted: that one fails first.
func (j *judgement) refilled() error {
	if j.stopped() || j.step.Refused != "" || j.in.LedgerLimit != 0 {
		return nil
	}
	for i, s := range j.steps {
		t := j.tallies[i]
		left := t.done == 0 && t.left > 0
		if left || j.failsFirst(s) || j.waitsForAGoneStage(i) || t.flying >= s.limit || slices.ContainsFunc(j.track(i), j.failed) {
			continue
		}
		later := slices.ContainsFunc(s.before, func(k int) bool { return !j.complete(k) })
		for _, name := range s.members {
			if j.waits(name) && !j.holdsBack(s, name) && j.shut(i, name) == "" && (!later || j.mustGoFirst(name)) {
				return j.broken(name, "%s waits in %s with %d in flight of %d", name, s.name, t.flying, s.limit)
			}
		}
	}
	return nil
}

// failsFirst reports whether a cluster of the step was admitted although the works of the target cannot be written. A
// revert does not wait for it.
func (j *judgement) failsFirst(s step) bool {
	return !j.revert() && slices.ContainsFunc(s.members, func(name string) bool {
		return j.admitted(name) && j.after[name].Revision == j.target() && j.barred(j.clusters[name], j.target()) != ""
	})
}

// goesFirst reports whether a rollback moves the cluster before the stages before its own are complete: the cluster
// failed at some time with the content that it leaves.
func (j *judgement) goesFirst(name string) bool {
	b, c, s := j.before[name], j.clusters[name], j.stories[name]
	failed := j.in.Rebuild || c.Health.State == rollout.HealthFailed || b.Excused
	if s != nil && b.Revision != j.target() {
		failed = failed || s.erred || s.failed(time.Minute) || s.late(time.Minute) || s.refusedFor() || s.spent()
	}
	return j.in.RollingBack && j.movesBack(name) && failed
}

// mustGoFirst reports whether that is beyond doubt: the ledger still says so, or the cluster reports it now.
func (j *judgement) mustGoFirst(name string) bool {
	a := j.after[name]
	failed := a.Revision != j.target() && isFailure(a) && a.State != rollout.NotWritten
	return j.in.RollingBack && j.movesBack(name) && (failed || j.clusters[name].Health.State == rollout.HealthFailed)
}

// excused reports whether a failure of the cluster is older than the revert that moved the cluster.
func (j *judgement) excused(name string) bool {
	return j.revert() && j.after[name].Excused && !j.strays(name)
}

// waits reports whether a cluster could be given the target and holds no slot.
func (j *judgement) waits(name string) bool {
	a, recorded := j.after[name]
	c := j.clusters[name]
	settled := recorded && a.Revision == j.target() && isFailure(a) && !j.again(a)
	able := c.Reachable && c.Blocked == "" && c.Refused == "" && c.Awaits == "" && !c.UpToDate && c.Installed != rollout.Deleting && !j.held(name) && !j.postponed(c)
	return able && !slotted(a) && !settled && !j.leaving(name) && c.Running != rollout.Foreign
}

// written: the works of every cluster that was admitted are written, now or after a
// crash.
func (j *judgement) written() error {
	for name, a := range j.after {
		c := j.clusters[name]
		paused := j.in.Contested != "" || (j.in.TargetMissing != "" || j.in.Withdrawn) && a.Revision == j.target()
		if a.State != rollout.Admitted || j.has(c, a.Revision) || paused || !c.Reachable || c.Awaits != "" || j.barred(c, a.Revision) != "" || j.leaving(name) || c.Installed == rollout.Deleting {
			continue
		}
		if !slices.ContainsFunc(j.step.Actions, func(x rollout.Action) bool { return x.Cluster == name && x.Kind == rollout.Move }) {
			return j.broken(name, "%s is admitted and its works are not written", name)
		}
	}
	return nil
}

// untouched: works are written only in the install set, at what the record names.
func (j *judgement) untouched() error {
	for _, x := range j.step.Actions {
		a, recorded := j.after[x.Cluster]
		c := j.clusters[x.Cluster]
		switch {
		case x.Kind == rollout.Remove:
		case !j.member(x.Cluster):
			return j.broken(x.Cluster, "%s is outside the install set and gets %s", x.Cluster, x.Kind)
		case x.Kind == rollout.Install && (j.in.Suspended || j.in.Spec.Suspend || j.in.Contested != ""):
			return fmt.Errorf("%s is installed while suspended", x.Cluster)
		case x.Kind == rollout.Install && c.Installed != rollout.NotInstalled && c.Installed != "":
			return fmt.Errorf("%s is installed already", x.Cluster)
		case x.Kind == rollout.Move && (!recorded || !slotted(a) && a.Refusal == ""):
			return j.broken(x.Cluster, "%s gets %s and was not admitted", x.Cluster, x.Revision)
		case x.Kind == rollout.Move && a.Revision != x.Revision:
			return j.broken(x.Cluster, "%s was admitted to %s and gets %s", x.Cluster, a.Revision, x.Revision)
		}
	}
	return nil
}

// watchRemovals keeps track of which clusters left the install set, as stored steps saw it.
// While the decisions of a placement are changing, it notes no cluster as leaving, but may note
// one as returning.
func (h *History) watchRemovals(j *judgement) {
	h.installed = max(h.installed, j.installedNow())
	for name, c := range j.clusters {
		since, before := h.away[name]
		if j.wanted(name) {
			delete(h.gone, name)
		}
		switch {
		case c.Installed != rollout.Ours || j.wanted(name) || j.in.Spec.Removal != nil:
			delete(h.away, name)
		case j.leaving(name) && j.trusted() && (!before || since.After(j.in.Now)):
			h.away[name] = j.in.Now
		}
	}
	for _, x := range j.step.Actions {
		if at, ok := h.removed[x.Cluster]; x.Kind == rollout.Remove && (!ok || !j.in.Now.Before(at.Add(j.in.RemovalGrace))) {
			h.removed[x.Cluster], h.gone[x.Cluster] = j.in.Now, true
		}
	}
}

func (j *judgement) installedNow() int {
	n := 0
	for _, c := range j.clusters {
		if c.Installed != rollout.NotInstalled && c.Installed != "" {
			n++
		}
	}
	return n
}

// trusted reports whether what the install placements select can be relied upon, or the user
// approved what they say.
func (j *judgement) trusted() bool { return !distrusted(j.installPlacements()...) || j.approved() }

// approved reports whether the annotation names the commit in question.
func (j *judgement) approved() bool {
	word := j.in.ApprovedRemoval
	if j.in.Spec.Removal != nil {
		return word != "" && word == j.in.Spec.Removal.Commit
	}
	return word != "" && j.in.Spec.Target != nil && strings.HasSuffix(j.in.Spec.Target.Commit, "@sha1:"+word)
}

// leavers: AddonFlow removes only add-ons that it installed, only from clusters that nothing has selected for a grace
// period, and at most the budget per grace period. An approval lifts the last two limits.
func (j *judgement) leavers() error {
	recent, fresh := 0, false
	for name, at := range j.h.removed {
		if j.in.Now.Before(at.Add(j.in.RemovalGrace)) && !j.removes(name) && j.clusters[name].Unremoved == "" {
			recent++
		}
	}
	for _, x := range j.step.Actions {
		if x.Kind != rollout.Remove {
			continue
		}
		since, away := j.h.away[x.Cluster]
		waited := j.h.gone[x.Cluster] || away && !j.in.Now.Before(since.Add(j.in.RemovalGrace))
		declared := j.in.Spec.Removal == nil
		switch {
		case j.clusters[x.Cluster].Installed != rollout.Ours:
			return fmt.Errorf("%s is removed and is not ours", x.Cluster)
		case declared && (!j.leaving(x.Cluster) || !j.trusted()):
			return fmt.Errorf("%s is removed although something selects it, or may", x.Cluster)
		case declared && !waited && !j.approved():
			return fmt.Errorf("%s is removed before nothing selected it for %s", x.Cluster, j.in.RemovalGrace)
		}
		at, again := j.h.removed[x.Cluster]
		fresh = fresh || !again || !j.in.Now.Before(at.Add(j.in.RemovalGrace))
		recent++
	}
	if budget := max(1, max(j.h.installed, j.installedNow())*5/100); fresh && !j.approved() && recent > budget {
		return fmt.Errorf("%d removed within %s, %d allowed", recent, j.in.RemovalGrace, budget)
	}
	return nil
}

func (j *judgement) removes(name string) bool {
	return slices.ContainsFunc(j.step.Actions, func(x rollout.Action) bool { return x.Kind == rollout.Remove && x.Cluster == name })
}

// broken is a rule that the step breaks for a cluster, with everything known of it.
func (j *judgement) broken(name, format string, args ...any) error {
	return fmt.Errorf(format+" (%s)", append(args, j.known(name))...)
}
