package rollouttest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// History judges each step of a rollout by everything that was seen and written before it.
// It knows no plan: a step is what the planner saw, the ledger that was written, and the
// actions that this ledger permits. Everything else (what is in flight, failed, proved or
// left) follows from the observations of each cluster since its admission. A record is believed only if a step of
// the history wrote it, if the trace begins with this step, or if the step says that it was not observed.
type History struct {
	ledgers  decoder
	stored   map[string]rollout.Record // the ledger written last
	target   string                    // of the step judged last
	stories  map[string]*story
	believed int // records that no observed step wrote
	// Of removals: the most ManagedClusterAddOns there ever were; since when nothing has
	// selected a cluster of ours; when clusters were removed; clusters that were removed and
	// not selected since.
	installed     int
	away, removed map[string]time.Time
	gone          map[string]bool
}

// Believed is how many records no observed step of the history wrote: those with which it began, which another writer
// stored, or whose admission was not observed.
func (h *History) Believed() int { return h.believed }

// Afresh returns an empty history that does not read again the lists of names that h has read.
func (h *History) Afresh() *History {
	fresh := NewHistory()
	fresh.ledgers.known = h.ledgers.known
	return fresh
}

// NewHistory returns the empty history of one rollout.
func NewHistory() *History {
	return &History{
		stories: map[string]*story{}, away: map[string]time.Time{}, removed: map[string]time.Time{}, gone: map[string]bool{},
	}
}

// judgement is one step before its history.
type judgement struct {
	*policy
	h       *History
	step    Step
	before  map[string]rollout.Record
	stories map[string]*story // with the look of this step
	tallies []tally
	// unseen is an error if the step read a record that no step of the history wrote.
	unseen error
}

// Check returns every rule that the step breaks. Keep adds the step to the history, and Take does both.
func (h *History) Check(s Step) error {
	_, err := h.check(s)
	return err
}

// Take returns every rule that the step breaks, and adds the step to the history.
func (h *History) Take(s Step) error {
	j, err := h.check(s)
	if j != nil {
		h.keep(j)
	}
	return err
}

// Keep adds a step that was stored to the history.
func (h *History) Keep(s Step) {
	if j, err := h.judge(s); err == nil { // otherwise Check has said so
		h.keep(j)
	}
}

// check judges the step. Without a judgement, a ledger cannot be read.
func (h *History) check(s Step) (*judgement, error) {
	j, err := h.judge(s)
	if err != nil {
		return nil, err
	}
	if s.Foreign {
		return j, nil
	}
	broken := []error{j.unseen}
	for _, name := range j.names() {
		if err := j.record(name); err != nil {
			broken = append(broken, j.broken(name, "%s: %w", name, err))
		}
	}
	if s.Input != nil && s.Input.Spec.Removal == nil {
		broken = append(broken, j.slots(), j.order(), j.refilled(), j.written())
	}
	if s.Input != nil {
		broken = append(broken, j.untouched(), j.leavers())
	}
	return j, errors.Join(broken...)
}

func (h *History) keep(j *judgement) {
	s := j.step
	if s.Input != nil {
		h.watchRemovals(j)
		h.target = targetOf(s)
	}
	switch {
	case s.Start && s.Input != nil:
		h.believed += len(j.before)
	case s.Input == nil:
		for name, a := range j.after {
			if b := h.stored[name]; s.Foreign || a.Revision != b.Revision {
				h.believed++
			}
		}
	}
	h.stored, h.stories = j.after, map[string]*story{}
	for name, a := range j.after {
		b, had := j.before[name]
		old := j.stories[name]
		switch {
		case s.Input == nil || !had, a.Revision != b.Revision && !j.admitted(name) && !j.same(b): // adopted
			h.stories[name] = tell(a)
		case j.admitted(name) || slotted(a) && !slotted(b):
			fresh := tell(a)
			fresh.erred = old.erred && !j.admitted(name) || j.retried(name)
			if a.State != rollout.Admitted {
				fresh.looks = []look{j.look(name, a)}
			}
			h.stories[name] = fresh
		default:
			old.looks[len(old.looks)-1].failed = isFailure(a)
			old.erred = a.State != rollout.Done && (old.erred || isFailure(a) && a.State != rollout.NotWritten)
			h.stories[name] = old
		}
	}
}

func (h *History) judge(s Step) (*judgement, error) {
	j := &judgement{h: h, step: s, policy: &policy{}, stories: map[string]*story{}}
	var err error
	if s.Input == nil {
		j.before = h.stored
	} else if j.before, err = h.ledgers.records(s.Input.Ledger); err != nil {
		return nil, fmt.Errorf("the ledger that was read: %w", err)
	}
	if j.after, err = h.ledgers.records(s.Ledger); err != nil {
		return nil, fmt.Errorf("the ledger that was written: %w", err)
	}
	if s.Input == nil {
		return j, nil
	}
	if !s.Start {
		j.unseen = h.foreignTo(j.before, s)
	}
	j.policy = readPolicy(*s.Input, j.before, j.after)
	for name, b := range j.before {
		if j.ordered(v1alpha1.OrderRetry, b) && (isFailure(b) || b.Failed) {
			b.Failed = false // what happened before the order counts no more
			if isFailure(b) {
				b.State, b.Admitted = rollout.Left, second(s.Input.Now)
			}
			j.before[name] = b
		}
		known := h.stories[name]
		if stored, ok := h.stored[name]; known == nil || !ok || stored != b {
			known = tell(b) // it begins here, or the operator's clock was set
		}
		j.stories[name] = known.with(j.look(name, b))
	}
	for i := range j.steps {
		j.tallies = append(j.tallies, j.tally(i))
	}
	return j, nil
}

// foreignTo returns an error if the ledger that a step read has a record that the history does not have. If the
// operator's clock was set, the times of all records were moved by the same step, or those in the future to now. If the
// content becomes the target again, the failures with it do not count again.
func (h *History) foreignTo(read map[string]rollout.Record, s Step) error {
	now, target := s.Input.Now, targetOf(s)
	var step *time.Duration
	for name, b := range read {
		was := h.stored[name]
		again := target != h.target && b.Revision == target && anotherTry(was, b)
		if b.RecordKey != was.RecordKey && !again {
			return fmt.Errorf("it read a record that no step of the history wrote: %+v", b)
		}
		for _, t := range [][2]time.Time{{was.Admitted, b.Admitted}, {was.Since, b.Since}} {
			moved := t[1].Sub(t[0])
			if t[0].After(now) && t[1].Equal(second(now)) {
				continue
			}
			if step == nil {
				step = &moved
			}
			if moved != *step && (step.Abs() <= 2*time.Second || (moved-*step).Abs() > time.Second) {
				return fmt.Errorf("it read other times than those that were stored: %+v instead of %+v", b, was)
			}
		}
	}
	return nil
}

// targetOf is the digest of the content that a step rolls out.
func targetOf(s Step) string {
	if s.Input.Spec.Target == nil {
		return ""
	}
	return s.Input.Spec.Target.Digest
}

// anotherTry reports whether a record differs from a failure only in that the failure does not count: the cluster can be
// admitted again or, in a revert, is excused.
func anotherTry(was, b rollout.Record) bool {
	again, excused := was.RecordKey, was.RecordKey
	again.State, again.Failed, excused.Excused = rollout.Left, false, true
	return (isFailure(was) || was.Failed) && (b.RecordKey == again || b.RecordKey == excused)
}

// same reports whether the record names other content that is the target's for its cluster.
func (j *judgement) same(b rollout.Record) bool {
	c := j.clusters[b.Cluster]
	joining := b.Revision == j.in.Stable && slotted(b)
	return b.State != rollout.Done && b.Revision != j.target() && !joining && j.member(b.Cluster) && c.UpToDate && j.has(c, b.Revision)
}

func (j *judgement) names() []string {
	names := slices.Collect(maps.Keys(j.clusters))
	names = slices.AppendSeq(names, maps.Keys(j.before))
	names = slices.AppendSeq(names, maps.Keys(j.after))
	slices.Sort(names)
	return slices.Compact(names)
}

// known is everything that is known about a cluster, for messages.
func (j *judgement) known(name string) string {
	text := fmt.Sprintf("before %+v, after %+v, cluster %+v", j.before[name], j.after[name], j.clusters[name])
	if s := j.stories[name]; s != nil {
		looks := make([]string, len(s.looks))
		for i, l := range s.looks {
			looks[i] = fmt.Sprintf("[%s member %t up %t has %t %s soak %s deadline %s timed %t]",
				clock(l.at), l.member, l.up, l.has, l.health.State, l.soak, l.deadline, l.timed)
		}
		text += ", looks: " + strings.Join(looks, " ")
	}
	return text
}

func (j *judgement) member(name string) bool { return slices.Contains(j.install, name) }

// look is what this step saw of a cluster with a record.
func (j *judgement) look(name string, r rollout.Record) look {
	c := j.clusters[name]
	revision := r.Revision
	if j.same(r) {
		revision = j.target()
	}
	l := look{
		at: j.in.Now, member: j.member(name), up: c.Reachable, has: j.has(c, revision), health: c.Health,
		changed: second(c.AvailableChanged), blocked: j.barred(c, revision), awaits: c.Awaits != "", refused: c.Unwritten != "" || r.Refusal != "", refusedSince: c.UnwrittenSince,
		paused: j.in.Contested != "" || j.in.Spec.Removal != nil || j.in.TargetMissing != "" && revision == j.target(),
		park:   j.in.ParkAfter, applyErrors: j.in.ApplyErrorAfter,
		inRevert: j.revertOpen() || j.revert() && revision != j.target(),
	}
	at := j.stepOf(name)
	if at < 0 && (revision == j.target() || slotted(r)) {
		if at = -1; len(j.stagesOf(r)) > 0 {
			at = j.stagesOf(r)[0]
		}
	}
	if at >= 0 && j.in.LedgerLimit == 0 {
		s := j.steps[at]
		l.timed, l.soak, l.deadline, l.declared = true, s.soak, s.deadline, s.declared
	}
	if own := j.stepNamed(r.Stage); own >= 0 { // it proves the content for the stage that it was admitted in
		l.soak = max(l.soak, j.steps[own].soak)
	}
	if r.State == rollout.Soaking && j.ordered(v1alpha1.OrderPromote, r) {
		l.soak = 0
	}
	if revision == j.target() && (j.revertOpen() || j.revert() && r.Reverted) || revision == j.in.Stable && revision != j.target() {
		l.soak = 0
	}
	if j.unknownGroup { // it is not known which stage proves the content
		l.soak, l.deadline, l.declared = forever, 0, false
	}
	return l
}

// forever is longer than any rollout.
const forever = 100 * 365 * 24 * time.Hour

// ordered reports whether a user gave an order that is about the record.
func (j *judgement) ordered(verb v1alpha1.OrderVerb, r rollout.Record) bool {
	return r.Revision == j.target() && slices.ContainsFunc(j.in.Orders, func(o rollout.Order) bool {
		all := len(o.Clusters) == 0 && (verb == v1alpha1.OrderRetry || o.Stage == r.Stage)
		return o.Verb == verb && (all || slices.Contains(o.Clusters, r.Cluster))
	})
}

// admitted reports whether the step admits the cluster: it reserves a slot for content that
// the cluster held no slot for.
func (j *judgement) admitted(name string) bool {
	b, had := j.before[name]
	a, has := j.after[name]
	if !has || a.State != rollout.Admitted {
		return false
	}
	if !had {
		return !j.rebuilt(a) && !j.adoptable(a)
	}
	if b.Revision != j.target() && j.adoptable(a) {
		return false // the record was older than the works
	}
	return !slotted(b) || a.Revision != b.Revision && !j.same(b)
}

// adoptable reports whether the record names content that its cluster runs and that never
// succeeded here.
func (j *judgement) adoptable(a rollout.Record) bool {
	return a.Revision == j.target() && j.clusters[a.Cluster].Running == a.Revision && !j.in.TargetProven
}

// rebuilt reports whether a record without a predecessor can come from an empty status. Such a record names
// what the cluster runs. It may name the target if the works are up to date or mixed.
func (j *judgement) rebuilt(a rollout.Record) bool {
	c := j.clusters[a.Cluster]
	return j.in.Rebuild && (c.Running == a.Revision || a.Revision == j.target() && c.Running != "" && (c.UpToDate || c.Running == rollout.Mixed))
}

// retargeted reports whether the step admits a cluster that held a slot for other content, or
// that returned with it and would hold one.
func (j *judgement) retargeted(name string) bool {
	b, c := j.before[name], j.clusters[name]
	returned := (b.State == rollout.Parked || b.State == rollout.Left || b.State == rollout.NotWritten) && c.Reachable && j.has(c, b.Revision)
	returned = returned || isFailure(b) && j.stories[name].last().verified()
	_, had := j.before[name]
	if !had && j.in.Rebuild {
		return j.admitted(name) && c.Running != "" && c.Running != rollout.Foreign && (j.in.Stable == "" || !c.UpToDateStable)
	}
	return j.admitted(name) && b.Revision != j.target() && (slotted(b) || returned)
}

// retried reports whether the step admits a cluster again that failed with the target and needs
// other works by now. It is a failure all the time.
func (j *judgement) retried(name string) bool {
	b := j.before[name]
	failed := (isFailure(b) || b.Failed) && b.State != rollout.NotWritten
	return j.admitted(name) && failed && !slotted(b) && b.Revision == j.after[name].Revision && b.Revision == j.target()
}

// barred says why the works of a revision cannot be written.
func (j *judgement) barred(c rollout.Cluster, revision string) string {
	if c.Blocked == "" && revision == j.target() {
		return c.Refused
	}
	return c.Blocked
}

// record judges what became of one record.
func (j *judgement) record(name string) error {
	b, had := j.before[name]
	a, has := j.after[name]
	switch {
	case !had && !has:
		return j.unadopted(name)
	case !has:
		return j.dropped(b)
	case j.step.Input == nil:
		return unobserved(b, had, a)
	case had && a.Revision != j.target() && j.same(b) && j.policyRead():
		return errors.New("the target renders the same, and the record names other content")
	case had && a == b && !slotted(a) && a.Revision != j.target() && j.in.Ended && j.finished() && (!j.revert() || !j.strays(name)):
		return errors.New("a record of other content stays after success")
	case j.excusesWrongly(name) != nil:
		return j.excusesWrongly(name)
	case a.Reverted && (!had || !b.Reverted) && !j.admitted(name):
		return errors.New("moved back without an admission")
	case j.admitted(name):
		return j.admission(name, a)
	case !had, b.Revision != j.target() && j.adoptable(a) && !j.same(b):
		return j.adopted(name, a)
	case a.Revision != b.Revision && (a.Revision != j.target() || !j.same(b)):
		return fmt.Errorf("the record names %s instead of %s without an admission", a.Revision, b.Revision)
	case a.Stage != b.Stage:
		return fmt.Errorf("the record names stage %q instead of %q without an admission", a.Stage, b.Stage)
	case j.in.Spec.Removal != nil:
		return nil
	}
	s := j.stories[name]
	kept, taken := notes(a, b.Admitted), !slotted(b) && a.State != b.State && notes(a, second(s.last().at))
	if j.in.LedgerLimit == 0 && !taken && (!kept || slotted(a) && !slotted(b)) {
		return fmt.Errorf("it notes %s as the time of its slot, before %s", a.Admitted, b.Admitted)
	}
	if l := s.last(); a.Reported && !b.Reported && (!taken || l.health.State != rollout.HealthFailed) {
		return errors.New("a new failure counts as that of an earlier admission")
	}
	return errors.Join(may(b, a, s), must(b, a, s))
}

// unadopted: a cluster without a record whose works name content that never succeeded
// gets a record.
func (j *judgement) unadopted(name string) error {
	c := j.clusters[name]
	if j.step.Input == nil || !j.member(name) || j.in.LedgerLimit != 0 || j.stepOf(name) < 0 {
		return nil
	}
	if !j.in.TargetProven && j.in.Stable != j.target() && c.Running == j.target() && j.target() != "" {
		return fmt.Errorf("it runs content that never succeeded, and holds no slot")
	}
	return nil
}

// adopted: a record without an admission names what the cluster runs, unproven, from now.
func (j *judgement) adopted(name string, a rollout.Record) error {
	switch {
	case !j.adoptable(a) && !j.rebuilt(a):
		return errors.New("a record without an admission")
	case j.in.LedgerLimit == 0 && !notes(a, second(j.in.Now)):
		return fmt.Errorf("adopted from %s", a.Admitted)
	}
	if a.State == rollout.Admitted && j.in.Rebuild {
		return nil // it was in flight with other content, and is retargeted with the same plan
	}
	return may(rollout.Record{RecordKey: v1alpha1.RecordKey{State: rollout.Updating}}, a, (&story{}).with(j.look(name, a)))
}

// unused reports whether content is taken back before it was written to the cluster of a record.
func (j *judgement) unused(b rollout.Record, c rollout.Cluster) bool {
	return b.State == rollout.Admitted && !b.Failed && c.Running != b.Revision && c.Running != rollout.Mixed &&
		(j.in.Withdrawn && b.Revision == j.target() || j.revert() && b.Revision != j.target() && b.Revision != j.in.Stable)
}

// dropped checks the removal of a record. Records of other content are removed when the rollout
// ends Succeeded. After that, records of clusters that do not exist are removed. A record of an admission
// that is taken back unused is removed as well. Nothing else
// removes a record.
func (j *judgement) dropped(b rollout.Record) error {
	if j.step.Input == nil {
		return nil // whether the rollout ended was not observed
	}
	c, exists := j.clusters[b.Cluster]
	if j.unused(b, c) {
		return nil
	}
	if !j.in.Ended && !j.finished() {
		return errors.New("the record is dropped before the rollout ended Succeeded")
	}
	if (b.Revision == j.target() || j.same(b)) && exists && !c.Gone {
		return errors.New("the record of the target is dropped")
	}
	if j.revert() && j.strays(b.Cluster) && j.member(b.Cluster) {
		return errors.New("the record of a cluster that is still to go back is dropped")
	}
	return nil
}

// excusesWrongly returns an error if the record excuses a new failure, or does not excuse a failure
// that is older than the revert. A failure is old if the cluster failed with other content.
func (j *judgement) excusesWrongly(name string) error {
	a, b := j.after[name], j.before[name]
	s := j.stories[name]
	if s == nil { // an empty status
		return unless(!a.Excused || j.in.Rebuild, "excused without a record")
	}
	failed := isFailure(b) && b.State != rollout.NotWritten || b.Failed
	verified := s.last().verified() || b.State == rollout.Soaking || b.State == rollout.Done
	now := s.failed(time.Minute) || s.late(time.Minute) || s.refusedFor() || s.spent()
	old := b.Excused || b.Revision != j.target() && (failed || now)
	if a.Excused && !old {
		return errors.New("a new failure is excused")
	}
	still := isFailure(a) || a.State == rollout.Admitted
	back := j.revert() && a.Revision == j.target()
	forgotten := !back && (j.admitted(name) || a.Revision != j.target() && a.Revision != b.Revision)
	return unless(a.Excused || verified || forgotten || !still || !b.Excused && (b.Revision == j.target() || !failed), "an old failure is not excused")
}

// policyRead reports whether the policy and the ledger could be read: otherwise no record changes.
func (j *judgement) policyRead() bool { return j.step.Refused == "" }

// finished reports whether every step is complete.
func (j *judgement) finished() bool {
	for i := range j.steps {
		if !j.complete(i) {
			return false
		}
	}
	return j.in.Spec.Removal == nil
}

// admission: only an available member of a step that something selects is
// admitted, with new clocks, while nothing holds the whole rollout.
func (j *judgement) admission(name string, a rollout.Record) error {
	c, at := j.clusters[name], j.stepOf(name)
	switch {
	case j.stopped():
		return errors.New("admitted while nothing may be admitted")
	case !c.Reachable:
		return errors.New("admitted while not available")
	case j.held(name):
		return errors.New("admitted while its ManagedCluster holds it")
	case !j.member(name) || j.leaving(name) && !distrusted(j.installPlacements()...):
		return errors.New("admitted outside the install set")
	case at < 0:
		return errors.New("admitted in no stage")
	case j.retried(name) && (a.Stage != j.before[name].Stage || !a.Failed):
		return errors.New("a failure that is admitted again is forgotten")
	case a.Stage != j.steps[at].name && !j.retried(name):
		return fmt.Errorf("admitted in stage %q, which is not its stage", a.Stage)
	case a.Revision != j.target() && (a.Revision != j.in.Stable || c.Running != ""):
		return fmt.Errorf("admitted to %s, which is not the target", a.Revision)
	case j.in.LedgerLimit == 0 && (!a.Admitted.Equal(second(j.in.Now)) || !a.Since.Equal(a.Admitted)):
		return fmt.Errorf("admitted with old clocks: %s, %s", a.Admitted, a.Since)
	case a.Reverted != (a.Revision == j.target() && j.movesBack(name)):
		return fmt.Errorf("moved back: %t", a.Reverted)
	case j.has(c, a.Revision) && !j.retargeted(name):
		return errors.New("admitted to what it has")
	}
	return nil
}

// stopped reports whether no cluster at all may be admitted.
func (j *judgement) stopped() bool {
	in := j.in
	held := in.Spec.Suspend || in.Suspended || in.Contested != "" || in.TargetMissing != "" || in.Aborted != "" || in.Withdrawn
	return held || j.target() == "" || j.unknownGroup || in.Spec.Removal != nil
}

// notes reports whether the record notes the time of its admission: to the second, and in a
// state without a slot, where no clock runs, to the minute.
func notes(a rollout.Record, admitted time.Time) bool {
	later := a.Admitted.Sub(admitted)
	return later == 0 || !slotted(a) && later > 0 && later < time.Minute
}
