package rollouttest

import (
	"slices"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// look is the observation of a cluster with a record in one run of the planner, and its pace at that time.
type look struct {
	at time.Time
	// member of the install set; up: available; has: its works are what its record asks for.
	member, up, has bool
	health          rollout.Health
	changed         time.Time // of Available, by the managed cluster's clock
	blocked         string
	awaits          bool // something must pass before its works can be written
	refused         bool // the hub refused the last write of its works
	refusedSince    time.Time
	// paused: the operator may not write its works, although nothing is wrong with them.
	paused bool
	// failed: with this look the cluster was recorded as failed, or timed out.
	failed bool

	// timed: the pace is known. The rest is the pace.
	timed             bool
	soak, deadline    time.Duration
	declared          bool
	park, applyErrors time.Duration
	// inRevert: a revert moves the cluster, or has moved it.
	inRevert bool
}

// verified reports whether the look saw the content verified.
func (l look) verified() bool {
	return l.member && l.up && l.has && l.health.State == rollout.HealthVerified
}

// refuted reports whether the look ends a time in which the content was verified.
func (l look) refuted() bool {
	bad := l.health.State == rollout.HealthProgressing || l.health.State == rollout.HealthFailed
	return !l.member || !l.up || !l.has || l.failed || bad
}

// ill reports whether the look saw that the content is not verified any more.
func (l look) ill() bool {
	return l.member && l.up && l.has && l.health.State == rollout.HealthProgressing
}

// reports reports whether the last look saw the agent report a failure that counts. What it reported before the
// cluster took its slot is of an earlier admission, and counts again if it lasts while the cluster is available.
func (s *story) reports(slack time.Duration) bool {
	l := s.last()
	if !l.has || l.health.State != rollout.HealthFailed {
		return false
	}
	since, ok := s.since(slack, func(_ int, k look) bool { return k.up && k.has })
	lasts := ok && l.applyErrors > 0 && !l.at.Before(since.Add(l.applyErrors))
	return lasts || !s.stale && !l.badBefore(s.taken)
}

// badBefore reports whether the failure that the look saw was seen before.
func (l look) badBefore(t time.Time) bool {
	first := l.health.BadSince
	return l.health.State == rollout.HealthFailed && !first.IsZero() && second(first).Before(t)
}

// story is everything that was seen of a cluster since it was admitted to what it has.
type story struct {
	looks []look
	// taken is when it took its slot. erred: it failed with the content, and was not Done since.
	taken time.Time
	erred bool
	// stale: every look since it took its slot saw the failure of an earlier admission.
	stale bool
}

// tell starts a story with the word of a record that no step of the history wrote.
func tell(r rollout.Record) *story {
	l := look{at: r.Since, member: true, up: true, has: true, changed: r.Ahead}
	switch r.State {
	case rollout.Soaking, rollout.Done:
		l.health.State = rollout.HealthVerified
	case rollout.Failed, rollout.LeftFailed, rollout.TimedOut:
		l.health.State = rollout.HealthFailed
	case rollout.Lost, rollout.Parked:
		l.up = false
	case rollout.Left:
		l.member = false
	case rollout.Admitted, rollout.NotWritten:
		l.has = false
	default: // Updating: the works are written
	}
	return &story{looks: []look{l}, taken: r.Admitted, stale: r.Reported, erred: r.Failed || isFailure(r) && r.State != rollout.NotWritten}
}

func (s *story) last() look { return s.looks[len(s.looks)-1] }

// with is the story with one look more.
func (s *story) with(l look) *story {
	return &story{looks: append(slices.Clip(s.looks), l), taken: s.taken, erred: s.erred, stale: s.stale && l.health.State == rollout.HealthFailed}
}

// verifiedSince is the start of the unbroken time up to the last look in which the content
// was verified. A look without current feedback neither starts nor ends it. A change of
// Available after the start, by the managed cluster's clock, starts it again, once.
func (s *story) verifiedSince() (since time.Time, ok bool) {
	from := 0
	for i, l := range s.looks {
		if l.refuted() {
			from = i + 1
		}
	}
	var counted time.Time
	for _, l := range s.looks[from:] {
		again := ok && l.changed.After(since) && !l.changed.Equal(counted)
		if again || !ok && l.verified() {
			since, counted, ok = second(l.at), l.changed, true
		}
	}
	return since, ok
}

// proved reports whether the last look completes the soak.
func (s *story) proved() bool {
	since, ok := s.verifiedSince()
	l := s.last()
	return ok && l.verified() && (l.soak == 0 || !l.at.Before(since.Add(l.soak)))
}

// since is the start of the unbroken time, up to the last look, in which every look had the
// property. A look while writes were paused starts it again; slack is by how much earlier the
// operator may have noted that.
func (s *story) since(slack time.Duration, so func(int, look) bool) (since time.Time, ok bool) {
	for i, l := range slices.Backward(s.looks) {
		if !so(i, l) {
			break
		}
		if since, ok = second(l.at), true; l.paused {
			return since.Add(-slack), true
		}
	}
	return since, ok
}

// spent reports whether the cluster has held its slot for deadline and soak together.
func (s *story) spent() bool {
	l := s.last()
	return l.timed && l.deadline > 0 && !l.paused && !l.at.Before(s.taken.Add(l.soak+l.deadline))
}

// late reports whether the cluster has had its works for a deadline without verifying them, or
// has waited for a deadline for what must pass before they are written, or for the hub to
// accept them.
func (s *story) late(slack time.Duration) bool {
	l := s.last()
	proven := s.verifiedAt()
	if proven[len(proven)-1] || !l.timed || l.paused || l.deadline == 0 || !l.has && !l.awaits && !l.refused {
		return false
	}
	since, ok := s.since(slack, func(i int, k look) bool { return k.member && k.up && k.has == l.has && !proven[i] })
	return ok && !l.at.Before(since.Add(l.deadline))
}

// verifiedAt has for each look whether it is in an unbroken time in which the content was verified.
func (s *story) verifiedAt() []bool {
	proven, is := make([]bool, len(s.looks)), false
	for i, l := range s.looks {
		is = l.verified() || is && !l.refuted()
		proven[i] = is
	}
	return proven
}

// failed reports whether the content failed at one of the looks, and no look since saw it
// verified.
func (s *story) failed(slack time.Duration) bool {
	for i, l := range slices.Backward(s.looks) {
		earlier := *s
		earlier.looks = s.looks[:i+1]
		switch {
		case l.verified():
			return false
		case earlier.reports(slack):
			return true
		}
	}
	return false
}

// refusedFor reports whether the agent has failed to apply the works, or the hub has refused them, for
// long enough.
func (s *story) refusedFor() bool {
	l := s.last()
	seen := l.refusedSince
	if l.has && l.health.NotApplied != "" {
		seen = l.health.BadSince
	}
	return l.applyErrors > 0 && !seen.IsZero() && !l.at.Before(seen.Add(time.Minute))
}

// slotEnded reports whether a cluster that is not available has lost its slot.
func (s *story) slotEnded(slack time.Duration) bool {
	since, away := s.since(slack, func(_ int, k look) bool { return k.member && !k.up })
	l, keeps := s.last(), s.last().park
	if l.deadline > 0 && (l.declared || l.deadline < keeps) {
		keeps = l.deadline
	}
	return away && l.timed && (l.inRevert || !l.paused && !l.at.Before(since.Add(keeps)))
}

// second is the time rounded up to a second, as a ledger stores it.
func second(t time.Time) time.Time {
	if n := t.Nanosecond(); n > 0 {
		return t.Add(time.Duration(1e9 - n)).UTC()
	}
	return t.UTC()
}
