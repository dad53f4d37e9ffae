package rollouttest

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

const (
	fateFailed = "failed"
	fateFlying = "flying"
)

// Fate is what the oracle says becomes of one cluster.
type Fate struct {
	// Kind is done, unchanged, flying, failed, parked, away, waiting, unstaged,
	// leaving or outside.
	Kind string
	// Revision its works are to be at; AdmittedTo, where it is in the ledger, the same.
	Revision   string
	InLedger   bool
	VerifiedAt time.Time
	AdmittedAt time.Time

	joining, ours bool // ours: its content is the target's
}

// Naive plans by reading the design sentence by sentence, with no thought of speed.
// It does not know reservations of whole stages, RollingUpdateWithPlacement, the
// rebuild of an empty status, removals or the ledger's limit.
func Naive(in rollout.Input) (map[string]Fate, error) {
	admissions, err := rollout.Admissions(in.Ledger)
	if err != nil {
		return nil, err
	}
	n, fates := newNaive(in), map[string]Fate{}
	members := n.members()
	for _, c := range in.Clusters {
		if !slices.Contains(members, c.Name) {
			fates[c.Name] = Fate{Kind: "outside", Revision: c.Running}
			continue
		}
		fate := n.without(c)
		for _, a := range admissions {
			if a.Cluster == c.Name {
				fate = n.with(c, a)
			}
		}
		fates[c.Name] = fate
	}
	if !in.Spec.Suspend && !in.Suspended {
		for i := range n.steps {
			n.move(i, fates)
		}
	}
	return fates, nil
}

func (n *naive) target() string { return n.in.Spec.Target.Digest }

func (n *naive) stepOf(name string) (NaiveStep, bool) {
	for _, s := range n.steps {
		if slices.Contains(s.Members, name) {
			return s, true
		}
	}
	return NaiveStep{}, false
}

// without is the fate of a cluster that is not in the ledger.
func (n *naive) without(c rollout.Cluster) Fate {
	f := Fate{Revision: c.Running}
	_, staged := n.stepOf(c.Name)
	switch {
	case !staged:
		f.Kind = "unstaged"
	case c.UpToDate && c.Running == n.target():
		f.Kind = "done"
	case c.UpToDate:
		f.Kind = "unchanged"
	case !c.Reachable:
		f.Kind = "away"
	default:
		f.Kind = "waiting"
	}
	return f
}

// with is the fate of a cluster that was admitted.
func (n *naive) with(c rollout.Cluster, a rollout.Admission) Fate {
	f := Fate{
		Kind: fateFlying, Revision: a.Revision, InLedger: true, AdmittedAt: a.AdmittedAt, VerifiedAt: a.VerifiedAt,
		joining: a.Joining, ours: a.Revision == n.target() || c.UpToDate && c.Running == a.Revision,
	}
	if a.Parked && !c.Reachable {
		f.Kind = "parked"
		return f
	}
	if a.Parked && !n.has(c, a.Revision) && !c.UpToDate {
		return n.without(c) // never written to, or changed since: it waits for its turn
	}
	if a.Parked {
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
	switch {
	case has && c.Health.State == rollout.HealthFailed:
		f.Kind, f.VerifiedAt = fateFailed, time.Time{}
	case !c.Reachable:
		n.lost(&f, c)
	default:
		n.heard(&f, c, has)
	}
	return f
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

// heard decides for a cluster that is available and did not report a failure.
func (n *naive) heard(f *Fate, c rollout.Cluster, has bool) {
	step, _ := n.stepOf(c.Name)
	soak := step.Soak
	if f.Revision == n.in.Stable || f.Revision == n.target() && n.in.TargetVerifiedBefore {
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
	if !n.in.Now.Before(until) {
		f.Kind, f.VerifiedAt, f.AdmittedAt = "parked", time.Time{}, time.Time{}
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
		case f.Kind == "done" || f.Kind == "unchanged":
			done++
		case f.Kind == fateFlying:
			flying++
			open++
		case f.Kind == "waiting", f.Kind == fateFailed && !f.ours && n.clusters[name].Reachable:
			open++
		case f.Kind == fateFailed && f.ours:
			failed++
		}
	}
	return done, open, failed, flying
}

func (n *naive) spent(i int, fates map[string]Fate) bool {
	done, open, failed, _ := n.stands(i, fates)
	return n.failures(i, fates) > n.steps[i].MaxFailures || failed > 0 && done == 0 && open == 0
}

func (n *naive) completed(i int, fates map[string]Fate) bool {
	done, open, _, _ := n.stands(i, fates)
	staying := 0
	for _, name := range n.steps[i].Members {
		if !n.leaving(name) {
			staying++
		}
	}
	return !n.steps[i].Unknown && open == 0 && !n.spent(i, fates) && (done > 0 || staying == 0)
}

// move admits whom step i may admit.
func (n *naive) move(i int, fates map[string]Fate) {
	s := n.steps[i]
	open := !s.Held && !n.spent(i, fates)
	for _, j := range s.Before {
		open = open && n.completed(j, fates)
	}
	_, _, _, flying := n.stands(i, fates)
	members := slices.Clone(s.Members)
	sort.Strings(members)
	if open {
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
	case f.Kind != "waiting":
		return ""
	case c.Running == "" && n.in.Stable != "":
		return "joiner"
	case c.Health.State == rollout.HealthFailed:
		return fateFailed
	default:
		return "other"
	}
}

// Agrees compares a plan with the oracle's fates, cluster by cluster.
func Agrees(in rollout.Input, plan rollout.Plan, fates map[string]Fate) error {
	admissions, err := rollout.Admissions(plan.Ledger)
	if err != nil {
		return err
	}
	ledger := map[string]rollout.Admission{}
	for _, a := range admissions {
		ledger[a.Cluster] = a
	}
	for _, c := range in.Clusters {
		want := fates[c.Name]
		got, inLedger := ledger[c.Name]
		why, _ := plan.Why(c.Name)
		if inLedger != want.InLedger {
			return fmt.Errorf("%s: in the ledger: %t, the oracle says %t (%+v, plan %+v)", c.Name, inLedger, want.InLedger, want, why)
		}
		if inLedger && (got.Revision != want.Revision || got.Parked != (want.Kind == "parked") || !got.VerifiedAt.Equal(want.VerifiedAt)) {
			return fmt.Errorf("%s: ledger has %+v, the oracle says %+v (plan %+v)", c.Name, got, want, why)
		}
		if inLedger && !got.Parked && !got.AdmittedAt.Equal(want.AdmittedAt) {
			return fmt.Errorf("%s: admitted at %s, the oracle says %s", c.Name, got.AdmittedAt, want.AdmittedAt)
		}
		if kind := kindOf(why); want.Kind != "outside" && why.State != rollout.Removing && kind != want.Kind {
			return fmt.Errorf("%s: %s (%s), the oracle says %+v", c.Name, why.State, why.Reason, want)
		}
	}
	return nil
}

func kindOf(c rollout.ClusterPlan) string {
	switch {
	case c.State.InFlight():
		return fateFlying
	case c.State == rollout.Failed || c.State == rollout.TimedOut:
		return fateFailed
	case c.State == rollout.Succeeded:
		return "done"
	case c.State == rollout.Unreachable || c.State == rollout.HeldBack:
		return "away"
	}
	return map[rollout.State]string{
		rollout.Unchanged: "unchanged", rollout.Parked: "parked", rollout.Waiting: "waiting", rollout.Unstaged: "unstaged",
	}[c.State]
}
