package rollout

import (
	"cmp"
	"slices"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout/clock"
)

// track is a sequence of steps. A step starts when the step before it is complete. The tracks of one plan run in
// parallel.
type track struct {
	steps []*step
	// shared (Progressive): all steps that are not mandatory share one failure budget, and every failure of the track
	// counts against it.
	shared bool
	// prefix of the names of its steps, with a pace per placement.
	prefix string
}

// step is a set of clusters and the pace at which they are moved.
type step struct {
	name    string
	members []*unit
	// former are clusters that got the target in this step and left: no step selects them now, or the add-on is no
	// longer installed on them.
	former []*unit

	// concurrency and tolerance are the declared quantities: how many members may be in flight, and how many may fail.
	// limit and maxFailures are these quantities as numbers of clusters. A limit of 0 holds the step.
	concurrency, tolerance quantity
	limit, maxFailures     int
	// soak and deadline are durations; 0: none. Each starts with the state of a cluster.
	soak, deadline time.Duration
	// declared: the user wrote the deadline; otherwise it is a default.
	declared bool
	// mandatory: a decision group that tolerates no failure.
	mandatory bool
	// all: strategy All. Its failures halt nothing until the last cluster is decided.
	all bool
	// atOnce: the strategy moves every cluster of the step at once (All, decision groups).
	atOnce bool
	// proven: a rollout of the target ended Succeeded here before.
	proven bool
	// revert: clusters that run other content move back to a proven target. revertOpen: that revert has not ended.
	revert, revertOpen bool
	// early: the steps before are not complete. A revert still moves clusters in flight; a rollback also moves
	// clusters that failed.
	early bool

	// hold says why no cluster is moved to the target, even with free slots; "": clusters are moved. Joiners are
	// still installed at the stable revision.
	hold string
	// byStrategy: the strategy itself asks for the hold, so that the rollout may end here.
	byStrategy bool
	// returning: a cluster of the step is about to be a member again. The step is not complete before one of its
	// clusters is Done.
	returning bool
	// unknown: the members cannot be determined now, so the step is never complete.
	unknown bool
	// begun: a cluster of the step was admitted to the target.
	begun bool
	// gates are the gates that the rollout has to pass in the step. gated is the text about the gates that hold
	// clusters of the step although the step could start; shut are all gates that do not let a cluster in. unmeasured
	// is the text about the gate for which the completion waits. "": none. soaked is the end of the last soak so far.
	// remeasured: the wait ends without an action of the user, because the gate in gated is measured again, or gated
	// is about the full ledger.
	gates             []gate
	gated, unmeasured string
	soaked            time.Time
	shut              []*gate
	remeasured        bool
	// emptyHold holds the step while it has neither a member nor a record of the target;
	// "": an empty step is complete.
	emptyHold string

	// tally is counted after the records were updated, and again after the admissions.
	tally tally
}

// tally has counts of the clusters of a step.
type tally struct {
	total     int32 // members; of the leaving ones, only those that are updated
	done      int32 // verified and soaked with the target, former members included
	updated   int32 // members that are done or have nothing to change
	flying    int32 // clusters with a slot
	soaking   int32 // of flying: the soak is running
	lost      int32 // of flying: not available
	failed    int32 // failures of the target, former members included
	again     int32 // of failed: in flight or parked again
	elsewhere int32 // of failed: admitted in another stage
	parked    int32 // set aside: parked, or not admitted because they are not available or held
	outdated  int32 // of parked: Done before their own inputs changed
	waiting   int32 // not admitted yet
	barred    int32 // of waiting: not admitted because of Cluster.Waits
	left      int32 // former members that left before they were done
	inherited int32 // admitted in a stage that was removed: in flight, parked, or left before they were done
	leaving   int32

	until    time.Time // when the last running soak ends
	failures []*unit   // the first few failures
	excused  []*unit   // failed with the target, but do not count against the budget
	away     []*unit   // of parked: Cluster.Away is set
	onward   []*unit   // admitted in the step, in flight, and another step selects them now
	strayed  []*unit   // of left: another step selects them now
	held     []*unit   // of parked: held by their ManagedClusters
	refused  int32     // of flying: the agent could not apply the works, or the hub refuses them
	refuses  *unit     // the first of refused, by name
	bars     *unit     // the first of barred, by name
}

// shownFailures is how many failing clusters are named.
const shownFailures = 10

// empty reports whether the step has neither a member nor a record of the target.
func (s *step) empty() bool {
	c := s.tally
	return c.total == 0 && c.flying+c.done+c.failed+c.left == 0 && len(c.onward) == 0
}

// count tallies the clusters of every step by their current states. A cluster that became Done or failed in a step
// counts there even if another step selects it now. While such a cluster is in flight, the step waits for it. If it
// is lost, parked or left meanwhile, it counts there as left: otherwise a placement could replace one canary after
// the other.
func (p *planner) count() {
	for _, s := range p.steps {
		s.begun = false
		t := tally{}
		s.former = slices.DeleteFunc(s.former, func(u *unit) bool { return u.record == nil }) // the ledger has no space for its record
		for _, u := range s.members {
			p.countMember(u, s, &t)
		}
		for _, u := range s.former {
			switch {
			case u.record.State == Done:
				t.done++
			case u.record.failed() && p.excused(u):
				t.excused = append(t.excused, u)
			case u.record.failed():
				t.addFailure(u, s)
			default:
				t.left++
				t.addInherited(p, u)
			}
		}
		s.tally = t
	}
	for u := range p.recorded() {
		r, s := u.record, p.named[u.record.Stage]
		if r.Revision != p.target {
			continue
		}
		if s != nil {
			s.begun = true
		}
		if u.step != nil {
			u.step.begun = true
		}
		switch {
		case s == nil, u.step == nil, u.step == s:
		case r.State == Done && !p.due(u):
			s.tally.done++
		case r.State == Lost || r.State == Parked || r.State == Left:
			s.tally.left++
			s.tally.strayed = append(s.tally.strayed, u)
		case r.InFlight():
			s.tally.onward = append(s.tally.onward, u)
		}
		if s != nil && u.step != nil && u.step != s && r.failed() && !p.due(u) && !p.excused(u) {
			s.tally.addFailure(u, s)
			if !failure(r.State) {
				s.tally.again++
			}
		}
	}
	for _, s := range p.steps {
		p.measure(s)
	}
}

func (p *planner) countMember(u *unit, s *step, t *tally) {
	if u.leaving {
		t.leaving++
		if u.state == Waiting || u.state == Parked || u.state == Held {
			return // the cluster gets no further content
		}
	}
	if !u.leaving || u.state == Done || u.state == Unchanged {
		t.total++
	}
	switch u.state {
	case Done:
		t.done++
		t.updated++
	case Unchanged:
		t.updated++
	case Admitted, Updating, Soaking, Lost:
		switch {
		case !s.revert || u.record.Revision == p.target || p.retargetable(u):
			t.addFlying(u)
		case !u.leaving && u.held && u.record.Revision != p.target:
			t.parked, t.held = t.parked+1, append(t.held, u)
		}
		t.addInherited(p, u)
	case Failed, TimedOut:
	case Parked, Held:
		t.parked++
		t.addInherited(p, u)
		if u.record != nil && u.record.State == Done && u.record.Revision == p.target {
			t.outdated++
		}
		switch {
		case u.state == Held:
			t.held = append(t.held, u)
		case u.c.Away != "":
			t.away = append(t.away, u)
		}
	case Waiting:
		t.waiting++
		if p.postponed(u) {
			t.addBarred(u)
		}
	default: // members of a step have no other state
	}
	failing := u.state == Failed || u.state == TimedOut
	switch failed := u.record.failed() && u.record.Revision == p.target && !p.due(u); {
	case failed && failing && p.excused(u):
		t.excused = append(t.excused, u)
	case failed && !p.excused(u):
		t.addFailure(u, s)
		if !failing {
			t.again++
		}
	}
}

// addInherited counts a cluster with the target that no step selects and whose own step is gone.
func (t *tally) addInherited(p *planner, u *unit) {
	r := u.record
	if (u.step == nil || u.bound) && r != nil && r.Revision == p.target && p.named[r.Stage] == nil {
		t.inherited++
	}
}

// retargetable reports whether a cluster in flight may be moved to other content. A held cluster may only be moved
// again to the target that it is in flight to. A revert does not wait for clusters that it cannot move, because it
// would wait for the content that it replaces.
func (p *planner) retargetable(u *unit) bool {
	return !u.bound && !u.leaving && (!u.held || u.record.Revision == p.target)
}

func (t *tally) addFlying(u *unit) {
	t.flying++
	if u.state == Lost {
		t.lost++
	}
	if u.state == Soaking {
		t.soaking++
		t.until = clock.Later(t.until, u.until)
	}
	if u.refusal() != "" {
		t.refused++
		if t.refuses == nil || u.c.Name < t.refuses.c.Name {
			t.refuses = u
		}
	}
}

// refusal is why the current works of a cluster in flight are not applied: the agent could not apply them, or the hub
// refused them; "": they are applied, or not reported yet. In other states, an error of the agent is about other
// works or may be old.
func (u *unit) refusal() string {
	if u.state == Updating || u.state == Soaking {
		return bounded(u.c.Health.NotApplied)
	}
	return u.record.Refusal
}

func (t *tally) addBarred(u *unit) {
	t.barred++
	if t.bars == nil || u.c.Name < t.bars.c.Name {
		t.bars = u
	}
}

// excused reports whether a failure of the cluster does not count against the budget, because the cluster had failed
// with other content before it moved back. A cluster that still runs the reverted content is not excused.
func (p *planner) excused(u *unit) bool {
	return p.revert && u.record != nil && u.record.Excused && !p.strays(u)
}

// movesBack reports whether a move of the cluster to the target replaces reverted content. This does not depend on
// whether the rollout has ended, because a cluster that was lost or held can move back after the end.
func (p *planner) movesBack(u *unit) bool {
	return p.revert && u.c.Running != "" && (p.revertOpen || p.strays(u))
}

// strays reports whether the cluster runs other content of AddonFlow than the target.
func (p *planner) strays(u *unit) bool {
	return u.c.Running != "" && u.c.Running != p.target && u.c.Running != Foreign && !u.c.UpToDate
}

func (t *tally) addFailure(u *unit, s *step) {
	t.failed++
	if u.record.Stage != s.name {
		t.elsewhere++
	}
	if len(t.failures) < shownFailures {
		t.failures = append(t.failures, u)
	}
}

// failures counts the failures of the target's content against the budget of step i.
func (t *track) failures(i int) int {
	if !t.shared || t.steps[i].mandatory {
		return int(t.steps[i].tally.failed)
	}
	n := 0
	for _, s := range t.steps {
		n += int(s.tally.failed)
	}
	return n
}

// breached reports whether step i may admit no further cluster: it failed, or its clusters
// left before one of them verified the content.
func (t *track) breached(i int) bool { return t.failed(i) || t.steps[i].abandoned() }

// failed reports whether a gate of step i halts it, whether its failures exceed its budget, or
// whether clusters failed and no other cluster can verify the content. In each case no step of the
// track continues.
//
// A step of strategy All tolerates its own failures until its last cluster is decided. A failure
// that a cluster had in another stage stops it: otherwise a user could restart a failed rollout by
// deleting its pace.
func (t *track) failed(i int) bool {
	s := t.steps[i]
	n, c := t.failures(i), s.tally
	switch {
	case s.failedGate() != nil:
		return true
	case s.all:
		return c.elsewhere > 0 || n > 0 && c.flying == 0 && c.waiting == 0
	}
	proof := c.done
	if s.proven {
		proof += c.updated
	}
	return n > s.maxFailures || c.failed > 0 && proof+c.flying+c.waiting == 0 && len(c.onward) == 0
}

// abandoned reports whether the clusters that could have verified the target left the step. While other clusters are
// in the step, one of them can still verify the target, with one exception: if more clusters left than remain and
// than maxFailures allows, the step is abandoned. Otherwise a placement that replaces each cluster that leaves would
// spread the content over the whole fleet. A step that moves all its clusters at once waits for the clusters of a
// removed stage, such as a decision group that disappeared with its last cluster. If these clusters left, the step is
// abandoned.
func (s *step) abandoned() bool { return s.missing() > 0 }

// missing counts the clusters by which a step is abandoned; 0: it is not.
func (s *step) missing() int {
	c := s.tally
	flying := int(c.flying) + len(c.onward)
	switch {
	case s.proven || c.done > 0 || s.all && c.inherited == 0:
		return 0
	case s.atOnce && c.inherited > 0 && c.flying > 0:
		return 0
	case s.atOnce && c.inherited > 0:
		return int(c.inherited)
	case c.total == 0 && flying == 0:
		return int(c.left + c.parked)
	case int(c.left) > max(int(c.total)+len(c.onward), s.maxFailures), int(c.waiting+c.parked)+flying == 0:
		return int(c.left)
	}
	return 0
}

// complete reports whether the step after step i may start: step i is decided, and afterwards each of its gates in
// during passed.
func (t *track) complete(i int) bool { return t.decided(i) && t.steps[i].unmeasured == "" }

// decided reports whether step i waits for no more clusters. This is so if every member is Done, failed within the
// budget, parked or held, and at least one is Done. It is also so if the target changes no member, and no cluster
// that another step selects now was admitted here. Proven content needs no Done cluster, unless the inputs of an
// unavailable or held cluster changed after it was Done. A revert does not wait for lost clusters, which are parked
// at once.
func (t *track) decided(i int) bool {
	s := t.steps[i]
	c := s.tally
	switch {
	case s.unknown || c.flying > 0 || c.waiting > 0 || t.breached(i):
		return false
	case (s.returning || len(c.onward) > 0) && c.done == 0 && !s.proven:
		return false
	case s.empty():
		return s.emptyHold == ""
	}
	proven := s.proven && (c.outdated == 0 || s.revertOpen)
	return proven || c.done > 0 || c.parked+c.failed == 0 && (c.left == 0 || s.all)
}

// unverified reports whether a revert skips a step, because no cluster in it can verify the content now: each member is
// parked, held or failed.
func (s *step) unverified() bool {
	c := s.tally
	return s.revert && c.total > 0 && c.done+c.updated+c.flying+c.waiting == 0
}

// Phases of a stage.
const (
	// StageWaiting: the stage before it is not complete, or no cluster was admitted yet. Or a revert skips the
	// stage, because none of its clusters can be moved now.
	StageWaiting = "Waiting"
	// StageProgressing: a cluster was admitted to the target, and clusters are in flight. A repair and a joiner at the
	// stable revision start no stage.
	StageProgressing = "Progressing"
	// StageSoaking: every cluster in flight is verified and soaks, or every soak is over and a
	// gate measures the stage.
	StageSoaking = "Soaking"
	// StageComplete: every cluster is verified and soaked, failed within the budget, parked or held. The phase stays
	// after the end of the rollout, while clusters that joined, or whose works or inputs changed, catch up.
	StageComplete = "Complete"
	// StageFailed: the failures exceed the budget, a gate halts the stage, or clusters failed in a revert and no
	// cluster verified it.
	StageFailed = "Failed"
	// StageHeld: something other than the stage before it holds it.
	StageHeld = "Held"
	// StageNothingToDo: the target changes nothing for its clusters.
	StageNothingToDo = "NothingToDo"
)

// phase returns the phase of step i.
func (t *track) phase(i int) string {
	s := t.steps[i]
	c := s.tally
	switch {
	case t.breached(i), t.complete(i) && s.unverified() && c.failed+int32(len(c.excused)) > 0: //nolint:gosec // at most as many as there are clusters
		return StageFailed
	case t.complete(i) && s.unverified():
		return StageWaiting
	case t.complete(i) && c.done+c.failed+c.parked == 0 && len(c.excused) == 0:
		return StageNothingToDo
	case t.complete(i):
		return StageComplete
	case s.begun && c.flying > 0 && c.flying == c.soaking, t.decided(i):
		return StageSoaking
	case s.begun && int(c.flying)+len(c.onward) > 0:
		return StageProgressing
	case s.holding() != "":
		return StageHeld
	default:
		return StageWaiting
	}
}

// holding says what holds the step, besides the steps before it; "": nothing holds it.
func (s *step) holding() string {
	if s.hold == "" && s.empty() {
		return s.emptyHold
	}
	return cmp.Or(s.hold, s.gated)
}

func (p *planner) stageStatuses() []v1alpha1.StageStatus {
	var all []v1alpha1.StageStatus
	listed := map[*step]bool{}
	for _, t := range p.tracks {
		for i, s := range t.steps {
			if !listed[s] {
				listed[s], all = true, append(all, p.stageStatus(t, i, s))
			}
		}
	}
	return all
}
