package rollouttest

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/addonflow/addonflow/api/v1alpha1"
	"github.com/addonflow/addonflow/rollout"
)

// Kinds of fates that the oracle acts on.
const (
	fateFailed  = "failed"
	fateFlying  = "flying"
	fateWaiting = "waiting"
	fateDone    = "done"

	fateUnchanged = "unchanged"
	fateParked    = "parked"
)

// Fate is what the oracle says becomes of one cluster.
type Fate struct {
	// Kind is done, unchanged, flying, failed, parked, away, waiting, unstaged or outside.
	Kind string
	// Revision its works are to be at; AdmittedTo, where it is in the ledger, the same.
	Revision string
	// InLedger: it is admitted; Covered: with its whole stage and not by name; Parked:
	// without a slot.
	InLedger, Covered, Parked bool
	VerifiedAt                time.Time
	AdmittedAt                time.Time

	joining, ours bool // ours: its content is the target's
}

// Forecast is what the oracle says of an input.
type Forecast struct {
	// Fates by cluster, after everybody was admitted who may be.
	Fates map[string]Fate
	// Whole are the reservations of whole stages.
	Whole []rollout.Admission
	Phase v1alpha1.Phase
	// Counts over the clusters in question.
	Counts v1alpha1.Counts

	*naive
	// before are the fates before anybody was admitted; admitted is who was already.
	before   map[string]Fate
	admitted map[string]bool
}

// Naive plans by reading the design sentence by sentence, with no thought of speed.
// It does not know who leaves within which budget, which Invariants does, nor a ledger
// that is full.
func Naive(in rollout.Input) (Forecast, error) {
	n, err := newNaive(in)
	if err != nil {
		return Forecast{}, err
	}
	before := n.settled()
	n.unbind(before)
	f := Forecast{naive: n, before: before, Fates: maps.Clone(before), admitted: map[string]bool{}}
	for name := range n.clusters {
		_, _, f.admitted[name] = n.admission(name)
	}
	if !n.stopped() {
		for i := range n.steps {
			n.move(i, f.Fates)
		}
	}
	f.Whole, f.Counts, f.Phase = n.reserved(f.Fates), n.counts(f.Fates), n.phase(f.Fates)
	return f, nil
}

// suspended tells whether the user, or that the add-on is contested, stops everybody.
func (n *naive) suspended() bool {
	return n.in.Spec.Suspend || n.in.Suspended || n.in.Contested != ""
}

// stopped tells whether nobody at all is admitted.
func (n *naive) stopped() bool {
	return n.suspended() || n.target() == "" || n.unknownGroup || n.in.TargetMissing != ""
}

// settled are the fates of all clusters before anybody is admitted.
func (n *naive) settled() map[string]Fate {
	members, fates := n.members(), map[string]Fate{}
	for _, c := range n.in.Clusters {
		switch a, covered, ok := n.admission(c.Name); {
		case !slices.Contains(members, c.Name):
			fates[c.Name] = n.outside(c)
		case ok:
			fates[c.Name] = n.with(c, a, covered)
		default:
			fates[c.Name] = n.without(c)
		}
	}
	return fates
}

// outside is the fate of a cluster that is no member: if it was admitted to the target,
// that stays known, without a slot.
func (n *naive) outside(c rollout.Cluster) Fate {
	if slices.Contains(n.gone, c.Name) {
		return Fate{Kind: "outside", Revision: n.target(), InLedger: true, Parked: true}
	}
	return Fate{Kind: "outside", Revision: c.Running}
}

func (n *naive) target() string {
	if n.in.Spec.Target == nil {
		return ""
	}
	return n.in.Spec.Target.Digest
}

func (n *naive) stepOf(name string) (NaiveStep, bool) {
	for _, s := range n.steps {
		if slices.Contains(s.Members, name) {
			return s, true
		}
	}
	return NaiveStep{}, false
}

// always tells whether the cluster is in a step that is moved as a whole.
func (n *naive) always(name string) bool {
	s, _ := n.stepOf(name)
	return s.Always
}

// without is the fate of a cluster that is not in the ledger.
func (n *naive) without(c rollout.Cluster) Fate {
	f := Fate{Revision: c.Running}
	_, staged := n.stepOf(c.Name)
	switch {
	case !staged && n.in.Spec.Removal == nil:
		f.Kind = "unstaged"
	case c.UpToDate && c.Running == n.target():
		f.Kind = fateDone
	case c.UpToDate:
		f.Kind = fateUnchanged
	case !c.Reachable:
		f.Kind = "away"
	default:
		f.Kind = fateWaiting
	}
	return f
}

// with is the fate of a cluster that was admitted.
func (n *naive) with(c rollout.Cluster, a rollout.Admission, covered bool) Fate {
	f := Fate{
		Kind: fateFlying, Revision: a.Revision, InLedger: true, Covered: covered, AdmittedAt: a.AdmittedAt, VerifiedAt: a.VerifiedAt,
		joining: a.Joining, ours: a.Revision == n.target() || c.UpToDate && c.Running == a.Revision,
	}
	if a.Parked {
		if parked, stays := n.parked(f, c, a.Failed); stays {
			return parked
		}
		f.AdmittedAt, f.joining = wholeSecond(n.in.Now), false
	}
	has := n.has(c, a.Revision)
	if !has && c.UpToDate {
		has, f.Revision, f.ours = true, n.target(), true
		f.AdmittedAt, f.VerifiedAt = wholeSecond(n.in.Now), time.Time{}
	}
	if !has && !f.VerifiedAt.IsZero() {
		f.AdmittedAt, f.VerifiedAt = wholeSecond(n.in.Now), time.Time{}
	}
	back := wholeSecond(c.ReachableSince)
	if c.Reachable && !c.ReachableSince.After(n.in.Now) && !f.VerifiedAt.IsZero() && back.After(f.VerifiedAt) {
		f.VerifiedAt = back // the soak is of a cluster that somebody sees
	}
	return n.decide(f, c, has)
}

// parked is the fate of a parked cluster; false: it is in flight again.
func (n *naive) parked(f Fate, c rollout.Cluster, failed bool) (Fate, bool) {
	switch {
	case failed && n.leaving(c.Name), c.Blocked != "", failed && !c.Reachable:
		return f.blocked(), true
	case !c.Reachable:
		f.Kind, f.Parked = fateParked, true
		return f, true
	case !n.has(c, f.Revision) && !c.UpToDate:
		return n.without(c), true // never written to, or changed since: it waits for its turn
	}
	return f, false
}

// decide takes the first that applies of what a cluster in flight can come to.
func (n *naive) decide(f Fate, c rollout.Cluster, has bool) Fate {
	switch {
	case has && c.Health.State == rollout.HealthFailed:
		f.Kind, f.VerifiedAt = fateFailed, time.Time{}
	case f.Covered && has && c.Health.State == rollout.HealthVerified, f.Covered && !has && !c.Reachable:
		f = n.without(c) // All has no soak; and whoever was away was not written to
	case !c.Reachable:
		n.lost(&f, c)
	case !has && c.Blocked != "":
		f = f.blocked()
	case !has && n.unwritten(f):
		n.unwritable(&f, c)
	default:
		n.heard(&f, c, has)
	}
	return f
}

// unwritten tells whether nobody may, or can, write what the cluster was admitted to.
func (n *naive) unwritten(f Fate) bool {
	return n.in.Contested != "" || n.in.TargetMissing != "" && f.Revision == n.target()
}

// has tells whether the cluster's works are what the revision asks for.
func (n *naive) has(c rollout.Cluster, revision string) bool {
	if revision == n.target() {
		return c.UpToDate
	}
	if revision == n.in.Stable {
		return c.UpToDateStable
	}
	return c.Running == revision
}

// blocked is a failure that no waiting mends, and that no clock runs for.
func (f Fate) blocked() Fate {
	f.Kind, f.Parked, f.Covered, f.VerifiedAt = fateFailed, true, false, time.Time{}
	return f
}

// unwritable is admitted to content that cannot be had: the content is not what is late.
func (n *naive) unwritable(f *Fate, c rollout.Cluster) {
	step, _ := n.stepOf(c.Name)
	if step.Deadline > 0 && !n.in.Now.Before(f.AdmittedAt.Add(step.Deadline)) {
		f.AdmittedAt = wholeSecond(n.in.Now)
	}
}

// heard decides for a cluster that is available and did not report a failure.
func (n *naive) heard(f *Fate, c rollout.Cluster, has bool) {
	step, _ := n.stepOf(c.Name)
	soak := step.Soak
	if n.proven(f.Revision, f.joining) {
		soak = 0
	}
	late := f.AdmittedAt.Add(step.Deadline)
	switch {
	case has && c.Health.State == rollout.HealthVerified:
		if f.VerifiedAt.IsZero() {
			f.VerifiedAt = wholeSecond(n.in.Now)
		}
		if soak == 0 || !n.in.Now.Before(f.VerifiedAt.Add(soak)) {
			*f = n.without(c)
		}
		return
	case has && c.Health.State == rollout.HealthUnknown && !f.VerifiedAt.IsZero():
		late = f.VerifiedAt.Add(soak + step.Deadline)
	default:
		f.VerifiedAt = time.Time{}
	}
	if step.Deadline > 0 && !n.in.Now.Before(late) {
		f.Kind = fateFailed
	}
}

// lost decides between lost, parked and timed out before it was lost.
func (n *naive) lost(f *Fate, c rollout.Cluster) {
	step, _ := n.stepOf(c.Name)
	deadline := f.AdmittedAt.Add(step.Deadline)
	from := f.AdmittedAt
	if c.LostSince.After(from) {
		from = c.LostSince
	}
	until := from.Add(n.in.ParkAfter)
	if step.Deadline > 0 && f.VerifiedAt.IsZero() {
		if !c.LostSince.Before(deadline) {
			f.Kind = fateFailed
			return
		}
		until = deadline
	} else if step.Deadline > 0 && deadline.After(until) {
		until = deadline
	}
	if n.provenTarget() && !f.ours {
		until = c.LostSince
	}
	if !n.in.Now.Before(until) {
		f.Kind, f.Parked, f.Covered, f.VerifiedAt, f.AdmittedAt = fateParked, true, false, time.Time{}, time.Time{}
	}
}

func wholeSecond(t time.Time) time.Time {
	for t.Nanosecond() != 0 {
		t = t.Add(time.Nanosecond * time.Duration(1e9-t.Nanosecond()))
	}
	return t
}

// failures of the target's content that count against a step.
func (n *naive) failures(i int, fates map[string]Fate) int {
	count := 0
	for _, j := range n.steps[i].Budget {
		for _, name := range n.steps[j].Members {
			if f := fates[name]; f.Kind == fateFailed && f.ours {
				count++
			}
		}
		count += n.steps[j].failedVanished()
	}
	return count
}

// stands sums up the members of a step: those done, those that keep it open, and
// those that failed at the target.
func (n *naive) stands(i int, fates map[string]Fate) (done, open, failed, flying int) {
	for _, name := range n.steps[i].Members {
		f := fates[name]
		if n.leaving(name) && !f.InLedger {
			continue
		}
		switch {
		case f.Kind == fateDone || f.Kind == fateUnchanged:
			done++
		case f.Kind == fateFlying:
			flying++
			open++
		case f.Kind == fateWaiting, f.Kind == fateFailed && !f.ours && n.clusters[name].Reachable:
			open++
		case f.Kind == fateFailed && f.ours:
			failed++
		}
	}
	return done, open, failed + n.steps[i].failedVanished(), flying
}

func (n *naive) spent(i int, fates map[string]Fate) bool {
	done, open, failed, _ := n.stands(i, fates)
	if n.steps[i].Always {
		return failed > 0 && open == 0
	}
	return n.failures(i, fates) > n.steps[i].MaxFailures || failed > 0 && done == 0 && open == 0 || n.abandoned(i, fates)
}

func (n *naive) completed(i int, fates map[string]Fate) bool {
	done, open, _, _ := n.stands(i, fates)
	if n.provenTarget() {
		return !n.steps[i].Unknown && open == n.lostIn(i, fates) && !n.spent(i, fates)
	}
	return !n.steps[i].Unknown && open == 0 && !n.spent(i, fates) && (done > 0 || n.staying(i) == 0 && !n.abandoned(i, fates))
}

// provenTarget tells whether the target is gone back to: it waits for nobody.
func (n *naive) provenTarget() bool { return n.in.TargetVerifiedBefore && !n.ended() }

// lostIn counts those of a step who are in flight and not available.
func (n *naive) lostIn(i int, fates map[string]Fate) int {
	count := 0
	for _, name := range n.steps[i].Members {
		if fates[name].Kind == fateFlying && !n.clusters[name].Reachable {
			count++
		}
	}
	return count
}

// anySpent tells whether one of the steps has no budget left.
func (n *naive) anySpent(steps []int, fates map[string]Fate) bool {
	return slices.ContainsFunc(steps, func(j int) bool { return n.spent(j, fates) })
}

// move admits whom step i may admit.
func (n *naive) move(i int, fates map[string]Fate) {
	s := n.steps[i]
	open := !s.Held && (s.Always || !n.spent(i, fates))
	for _, j := range s.Before {
		open = open && n.completed(j, fates)
	}
	_, _, _, flying := n.stands(i, fates)
	members := slices.Clone(s.Members)
	sort.Strings(members)
	if open && s.Always {
		n.moveWhole(i, fates)
		return
	}
	if open || n.provenTarget() && !s.Held && !n.anySpent(append(slices.Clone(s.Before), i), fates) {
		n.moveOn(s, members, fates)
	}
	n.fill(members, fates, s.Limit-flying, open)
}

// moveOn retargets whoever is in flight at older content.
func (n *naive) moveOn(s NaiveStep, members []string, fates map[string]Fate) {
	for _, name := range members {
		f := fates[name]
		elsewhere := f.Kind == fateFlying && !f.ours && !n.leaving(name) && n.clusters[name].Reachable
		if elsewhere && !n.arriving(s, f) {
			fates[name] = n.admitted(n.target(), false)
		}
	}
}

// fill gives the free slots, class by class; joiners get theirs whether or not the step
// is open for the target.
func (n *naive) fill(members []string, fates map[string]Fate, free int, open bool) {
	for _, class := range []string{fateFailed, "other", "joiner"} {
		for _, name := range members {
			joins := class == "joiner"
			if free <= 0 || n.class(name, fates[name]) != class || !joins && !open {
				continue
			}
			revision := n.target()
			if joins {
				revision = n.in.Stable
			}
			fates[name] = n.admitted(revision, joins)
			free--
		}
	}
}

// admitted is the fate of a cluster that is admitted now.
func (n *naive) admitted(revision string, joining bool) Fate {
	return Fate{
		Kind: fateFlying, Revision: revision, InLedger: true, AdmittedAt: wholeSecond(n.in.Now),
		joining: joining, ours: revision == n.target(),
	}
}

// arriving tells whether a joiner is still given time to get to the stable revision.
func (n *naive) arriving(s NaiveStep, f Fate) bool {
	patience := s.Deadline
	if patience == 0 {
		patience = n.in.ParkAfter
	}
	return f.joining && f.Revision == n.in.Stable && n.in.Now.Before(f.AdmittedAt.Add(patience))
}

// class is in which turn a cluster is admitted; "" for never.
func (n *naive) class(name string, f Fate) string {
	c := n.clusters[name]
	switch {
	case n.leaving(name) || !c.Reachable:
		return ""
	case f.Kind == fateFailed && !f.ours:
		return fateFailed
	case f.Kind != fateWaiting:
		return ""
	case c.Running == "" && n.in.Stable != "":
		return "joiner"
	case c.Health.State == rollout.HealthFailed:
		return fateFailed
	default:
		return "other"
	}
}
