package rollout

import (
	"time"

	"github.com/addonflow/addonflow/rollout/clock"
)

// observation is what was observed of a cluster that has a record.
type observation struct {
	// member of the install set.
	member bool
	// available, and when that last changed by the clock of the managed cluster.
	available bool
	changed   time.Time
	// written: its works are what the record's revision asks for now.
	written bool
	health  Health
	// blocked says why its works cannot be written at all; "" if they can.
	blocked string
	// paused says why its works may not be written now although nothing is wrong with the
	// content; "" if they may. No deadline runs meanwhile.
	paused string
	// awaits says what must pass before its works are written; away, why the cluster cannot
	// be given anything although it is available. Both only explain.
	awaits, away string
}

// pace is what the stage of a cluster and the content say about its clocks.
type pace struct {
	// soak after the content was verified; 0: none.
	soak time.Duration
	// deadline after the admission; 0: none. declared: the user wrote it.
	deadline time.Duration
	declared bool
	// parkAfter is how long a lost cluster keeps its slot without a declared deadline.
	parkAfter time.Duration
	// applyErrorAfter is how long after the write an apply error becomes a failure; 0: never.
	applyErrorAfter time.Duration
	// takenBack: a revert takes the record's content back. A lost cluster holds no slot for it.
	takenBack bool
}

// pauseGrain is how often the deadline of a cluster starts anew while its works may not be
// written.
const pauseGrain = time.Minute

// applyErrorSeen is how long an apply error must have been seen before it counts.
const applyErrorSeen = time.Minute

// next moves a record on to what was observed, and says why the cluster is where it is.
// It is the only place in which a record changes without an admission. Feedback counts
// only while the works are what the record's revision asks for.
//
//	state                      observed                                 next
//	Admitted Updating Soaking  a failure is reported                    Failed
//	                           the works cannot be written              Failed
//	                           not available                            Lost
//	Admitted                   the works are written                    Updating
//	                           past the deadline                        TimedOut
//	Updating                   the works are not written any more       Admitted
//	                           verified                                 Soaking
//	                           an apply error lasts                     Failed
//	                           past the deadline                        TimedOut
//	Soaking                    the works are not written any more       Admitted, new deadline
//	                           not verified any more                    Updating
//	                           was not available since                  Soaking, new soak
//	                           verified, and the soak is over           Done
//	                           silent for a deadline after the soak     TimedOut
//	Lost                       a failure is reported                    Failed
//	                           available                                Admitted or Updating
//	                           past the deadline or the park time       Parked
//	Parked                     a failure is reported                    Failed
//	                           the works cannot be written              Failed
//	                           available, the works are written         Updating, new deadline
//	TimedOut                   a failure is reported                    Failed
//	Failed TimedOut            verified                                 Soaking
//	LeftFailed                 in the install set again                 Failed
//	Left                       again, and the works are written         Updating, new deadline
//	Failed TimedOut            not in the install set                   LeftFailed
//	other than Done            not in the install set                   Left
//
// Nothing else changes a record. In particular a Done cluster stays Done, whatever its
// health; and a cluster that needs an admission (its own inputs changed, or its works were
// never written) keeps its record until it has one.
func next(r Record, o observation, p pace, now time.Time) (Record, string) {
	for {
		state, why := successor(&r, o, p, now)
		if state == r.State {
			return r, why
		}
		second := clock.RoundUp(now, time.Second)
		if state == Updating && (r.State == Parked || r.State == Left) || state == Admitted && r.State == Soaking {
			r.Admitted = second
		}
		r.State, r.Since = state, second
	}
}

// successor is one step of next: the state that follows from what was observed, or the
// same state. The clocks that run on within a state are moved here.
func successor(r *Record, o observation, p pace, now time.Time) (State, string) {
	if !o.member {
		return departed(r, o)
	}
	failed := o.written && o.health.State == HealthFailed
	verified := o.written && o.available && o.health.State == HealthVerified
	deadline := r.deadline(p)
	late := !deadline.IsZero() && !now.Before(deadline)
	reported := orElse(o.health.Reason, "it reported a failure")

	switch r.State {
	case Admitted:
		switch {
		case o.written:
			return Updating, ""
		case o.blocked != "":
			return Failed, bounded(o.blocked)
		case !o.available:
			return Lost, ""
		case o.paused != "":
			if !now.Before(r.Admitted.Add(pauseGrain)) {
				r.Admitted = clock.RoundUp(now, time.Second)
			}
			return Admitted, "admitted: " + bounded(o.paused)
		case late:
			return TimedOut, ""
		case o.awaits != "":
			return Admitted, "admitted: " + bounded(o.awaits)
		}
		return Admitted, "admitted; its works are being written"

	case Updating:
		switch {
		case failed:
			return Failed, reported
		case !o.written:
			return Admitted, ""
		case !o.available:
			return Lost, ""
		case verified:
			return Soaking, ""
		case applyErrorLasts(r, o, p, now):
			return Failed, ""
		case late:
			return TimedOut, ""
		case o.health.State == HealthUnknown:
			return Updating, orElse(o.health.Reason, "no feedback yet")
		}
		return Updating, orElse(o.health.Reason, "not verified yet")

	case Soaking:
		end := r.Since.Add(p.soak)
		switch {
		case failed:
			return Failed, reported
		case !o.written:
			return Admitted, ""
		case !o.available:
			return Lost, ""
		case o.health.State == HealthProgressing:
			return Updating, ""
		case earlier(o.changed, now).After(r.Since):
			r.Since = clock.RoundUp(now, time.Second)
			end = r.Since.Add(p.soak)
		}
		switch {
		case verified && (p.soak == 0 || !now.Before(end)):
			return Done, ""
		case verified && p.soak >= untilRestored:
			return Soaking, "soaking; " + removalDeclared
		case verified:
			return Soaking, "soaking until " + clock.Text(end, now)
		case p.deadline > 0 && !now.Before(end.Add(p.deadline)):
			return TimedOut, ""
		}
		return Soaking, "verified; waits for current feedback"

	case Lost:
		until := r.keepsSlotUntil(p)
		switch {
		case failed:
			return Failed, reported
		case o.available && !o.written:
			return Admitted, ""
		case p.takenBack && !o.available, !now.Before(until):
			return Parked, "" // back now, it is in flight again, with a new deadline
		case o.available:
			return Updating, ""
		}
		return Lost, orElse(o.away, "not available; keeps its slot until "+clock.Text(until, now))

	case Parked:
		switch {
		case failed:
			return Failed, reported
		case !o.written && o.blocked != "":
			return Failed, bounded(o.blocked)
		case o.available && o.written:
			return Updating, ""
		}
		return Parked, orElse(o.away, "not available since it was admitted; in flight again on return")

	case Failed, TimedOut:
		switch {
		case verified:
			return Soaking, ""
		case failed:
			return Failed, reported
		case r.State == TimedOut:
			return TimedOut, "past its progress deadline: " + orElse(o.health.Reason, "no feedback")
		case !o.written && o.blocked != "":
			return Failed, bounded(o.blocked)
		case o.health.NotApplied != "":
			return Failed, "not applied: " + bounded(o.health.NotApplied)
		}
		return Failed, "it failed; " + orElse(o.health.Reason, "no feedback since")

	case LeftFailed:
		return Failed, ""
	case Left:
		if o.written {
			return Updating, ""
		}
		return Left, "left before it was verified and soaked; needs a new admission"

	default: // Done: nothing that is observed changes it
		return r.State, ""
	}
}

// departed is the state of a record whose cluster is not in the install set.
func departed(r *Record, o observation) (State, string) {
	switch {
	case r.State == Done:
		return Done, "verified and soaked before it left"
	case r.failed() || o.written && o.health.State == HealthFailed:
		return LeftFailed, failedThenLeft
	}
	return Left, "left before it was verified and soaked"
}

// failedThenLeft is why a cluster counts as a failure although it left.
const failedThenLeft = "it failed before it left"

// applyErrorLasts tells whether the agent has not been able to apply the works for so long
// that waiting will not help.
func applyErrorLasts(r *Record, o observation, p pace, now time.Time) bool {
	seen := o.health.NotAppliedSince
	return o.health.NotApplied != "" && p.applyErrorAfter > 0 && !seen.IsZero() &&
		!now.Before(seen.Add(applyErrorSeen)) && !now.Before(r.Since.Add(p.applyErrorAfter))
}

// deadline of a record; zero: none.
func (r *Record) deadline(p pace) time.Time {
	if p.deadline == 0 {
		return time.Time{}
	}
	return r.Admitted.Add(p.deadline)
}

// keepsSlotUntil is how long a lost cluster keeps its slot: until its declared deadline;
// otherwise until the earlier of its default deadline and the park time.
func (r *Record) keepsSlotUntil(p pace) time.Time {
	deadline, park := r.deadline(p), r.Since.Add(p.parkAfter)
	switch {
	case deadline.IsZero():
		return park
	case p.declared:
		return deadline
	}
	return earlier(deadline, park)
}

// wakeAt is the next time at which next moves the record by the clock alone; zero: never.
func (r *Record) wakeAt(o observation, p pace) time.Time {
	switch r.State {
	case Admitted:
		if o.paused != "" {
			return r.Admitted.Add(pauseGrain)
		}
		return r.deadline(p)
	case Updating:
		wake := r.deadline(p)
		if o.health.NotApplied != "" && p.applyErrorAfter > 0 {
			fails := later(r.Since.Add(p.applyErrorAfter), o.health.NotAppliedSince.Add(applyErrorSeen))
			if wake.IsZero() || fails.Before(wake) {
				wake = fails
			}
		}
		return wake
	case Soaking:
		end := r.Since.Add(p.soak)
		if o.health.State != HealthVerified {
			if p.deadline == 0 {
				return time.Time{}
			}
			end = end.Add(p.deadline)
		}
		return end
	case Lost:
		return r.keepsSlotUntil(p)
	default:
		return time.Time{}
	}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
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
