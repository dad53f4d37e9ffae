package rollout

import (
	"time"

	"github.com/addonflow/addonflow/rollout/clock"
)

// observation is what was observed of a cluster that has a record.
type observation struct {
	// member of the install set.
	member bool
	// available, and when the availability last changed, by the clock of the managed cluster.
	available bool
	changed   time.Time
	// written: the works of the cluster equal the rendering of the record's revision now.
	written bool
	health  Health
	// blocked says why the works cannot be written at all; "": they can.
	blocked string
	// paused says why the works may not be written now although the content has no error; "": they may be written.
	// Meanwhile no deadline and no park time run.
	paused string
	// awaits says what must happen before the works can be written. away says why the cluster can receive no content
	// although it is available.
	awaits, away string
	// unwritten says why the hub refused the last write of the works; "": it did not. unwrittenSince is since when
	// the hub has refused every write.
	unwritten      string
	unwrittenSince time.Time
}

// pace has the durations that apply to a cluster, from its stage and its content.
type pace struct {
	// soak is the time after the content was verified; 0: none. endless says why no soak ends now; "": soaks end.
	soak    time.Duration
	endless string
	// deadline is how long a cluster may stay in a state that it should leave; 0: without end. declared: the user
	// wrote the deadline.
	deadline time.Duration
	declared bool
	// parkAfter is how long a lost cluster keeps its slot without a declared deadline.
	parkAfter time.Duration
	// applyErrorAfter is how long an apply error of the agent may last after the write, and a refusal of the hub
	// after the admission, before it becomes a failure; 0: it never becomes one.
	applyErrorAfter time.Duration
	// inRevert: a revert still has to move the cluster, or has moved it and has not ended. If the cluster is lost, it
	// keeps no slot.
	inRevert bool
}

// pauseGrain is how often the clock of a state is restarted while writes are paused.
const pauseGrain = time.Minute

// applyErrorSeen is how long the operator must have seen an apply error before the error counts.
const applyErrorSeen = time.Minute

// next updates a record from what was observed. It also returns the reason for the state.
// It is the only place in which an observation changes a record. Feedback counts only while the
// works are what the record's revision asks for.
//
//	state                      observed                                 next
//	Admitted Updating Soaking  a failure is reported                    Failed
//	                           not available                            Lost, or Parked
//	Admitted                   the works are written                    Updating
//	                           the works cannot be written              NotWritten
//	                           the works wait for a whole deadline      NotWritten
//	                           the hub's refusal lasts                  Failed
//	                           the works are refused for a deadline     TimedOut
//	Updating                   the works are not written any more       Admitted
//	                           verified                                 Soaking
//	                           an apply error lasts                     Failed
//	                           not verified for a deadline              TimedOut
//	Soaking                    the works are not written any more       Admitted
//	                           not verified any more                    Updating, or TimedOut
//	                           was not available since                  Soaking, new soak
//	                           verified, and the soak is over           Done
//	                           no feedback for a deadline after it      TimedOut
//	Lost                       a failure is reported                    Failed
//	                           available                                Admitted or Updating
//	                           for a declared deadline or the park time Parked
//	Parked                     a failure is reported                    Failed
//	                           the works cannot be written              NotWritten
//	                           available, the works are written         Updating
//	TimedOut                   a failure is reported                    Failed
//	Failed TimedOut            verified                                 Soaking
//	NotWritten                 available, the works are written         Updating, or Failed
//	LeftFailed                 in the install set again                 Failed
//	Left                       in the set again, the works are written  Updating
//	counts as failed           not in the install set                   LeftFailed
//	other than Done NotWritten not in the install set                   Left
//
// Other observations change no record. In particular a Done cluster stays Done, whatever its
// health; and a cluster that needs an admission (its own inputs changed, or its works were
// never written) keeps its record until it has one.
//
// A cluster that failed and is in flight again counts as failed until it is Done; Record.Failed stores this. If its
// works cannot be written, it is Failed, not NotWritten.
//
// A revert does not count a failure that the cluster had before it (Record.Excused). Once the cluster was verified, a
// failure counts again.
//
// A deadline is how long a cluster may be Updating, or Lost. It starts with the state: a cluster whose works are
// written again, that returns, or that becomes unhealthy in its soak has a whole deadline. While writes are
// paused, it does not run. Record.Admitted is when the cluster took its slot. Once the sum of deadline and soak has
// passed since then, no deadline starts again: a cluster that becomes unhealthy is TimedOut, and one that is not
// available is Parked. Without a deadline, a slot has no end.
func next(r Record, o observation, p pace, now time.Time) (Record, string) {
	for {
		r.Refusal = r.refusal(o)
		state, why := successor(&r, o, p, now)
		if state == r.State {
			r.Reported = r.Reported && awaitsReport(state) && o.health.State == HealthFailed
			return r, why
		}
		second := clock.RoundUp(now, time.Second)
		if state.InFlight() && !r.InFlight() {
			r.Admitted = second                         // it takes a slot again
			r.Reported = o.health.State == HealthFailed // of an earlier admission
		}
		r.Failed = r.failed() && r.State != NotWritten && !failure(state) && state != Done
		r.Excused = r.Excused && !verified(state)
		r.Reverted = r.Reverted && state != Done
		r.State, r.Since, r.Ahead = state, second, time.Time{}
	}
}

// successor is one step of next: it returns the next state, or the same state if no observation changes it. It
// restarts the clock of a state that is paused or whose soak was interrupted.
func successor(r *Record, o observation, p pace, now time.Time) (State, string) {
	if !o.member {
		return departed(r, r.failing(o, p, now))
	}
	failed := r.failing(o, p, now)
	verified := o.written && o.available && o.health.State == HealthVerified
	if r.pauses(o) && !now.Before(r.Since.Add(pauseGrain)) {
		r.Since = clock.RoundUp(now, time.Second)
	}
	if r.State == Soaking && o.changed.After(r.Since) && !o.changed.Equal(r.Ahead) {
		r.Since = clock.RoundUp(now, time.Second)
		if r.Ahead = o.changed; !o.changed.After(r.Since) {
			r.Ahead = time.Time{}
		}
	}
	deadline := r.deadline(o, p)
	late := !deadline.IsZero() && !now.Before(deadline)
	reported := orElse(o.health.Reason, "it reported a failure")
	lost, ill, barred := Lost, Updating, NotWritten
	if o.paused == "" && p.deadline > 0 && !now.Before(r.Admitted.Add(p.deadline).Add(p.soak)) {
		lost, ill = Parked, TimedOut
	}
	if r.Failed {
		barred = Failed
	}

	switch r.State {
	case Admitted:
		switch {
		case o.written:
			return Updating, ""
		case o.blocked != "":
			return barred, ""
		case !o.available:
			return lost, ""
		case o.paused != "":
			return Admitted, "admitted: " + bounded(o.paused)
		case o.awaits != "" && late:
			return barred, ""
		case o.awaits != "":
			return Admitted, "admitted: " + bounded(o.awaits)
		case applyErrorLasts(r, o, p, now):
			return Failed, ""
		case late:
			return TimedOut, ""
		case r.Refusal != "":
			return Admitted, "admitted; " + r.Refusal
		}
		return Admitted, "admitted; its works are being written"

	case Updating:
		switch {
		case failed:
			return Failed, reported
		case !o.written:
			return Admitted, ""
		case !o.available:
			return lost, ""
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
			return lost, ""
		case o.health.State == HealthProgressing:
			return ill, ""
		case verified && p.endless != "":
			return Soaking, "soaking; " + p.endless
		case verified && (p.soak == 0 || !now.Before(end)):
			return Done, ""
		case verified:
			return Soaking, "soaking until " + clock.Text(end, now)
		case late:
			return TimedOut, ""
		}
		return Soaking, "verified; waits for current feedback"

	case Lost:
		switch {
		case failed:
			return Failed, reported
		case o.available && !o.written:
			return Admitted, ""
		case o.available:
			return Updating, ""
		case p.inRevert, late:
			return Parked, ""
		}
		if o.paused != "" {
			return Lost, "not available; " + bounded(o.paused)
		}
		return Lost, orElse(o.away, "not available; keeps its slot until "+clock.Text(deadline, now))

	case Parked:
		switch {
		case failed:
			return Failed, reported
		case !o.written && o.blocked != "":
			return barred, ""
		case o.available && o.written:
			return Updating, ""
		}
		return Parked, orElse(o.away, "not available since it was admitted; in flight again on return")

	case NotWritten:
		switch {
		case o.available && failed:
			return Failed, reported
		case o.available && o.written:
			return Updating, ""
		}
		return NotWritten, orElse(o.blocked, orElse(o.awaits, "its works could not be written"))

	case Failed, TimedOut:
		switch {
		case verified:
			return Soaking, ""
		case failed:
			return Failed, reported
		case r.State == TimedOut:
			return TimedOut, "past its progress deadline: " + orElse(r.Refusal, orElse(o.health.Reason, "no feedback"))
		case !o.written && o.blocked != "":
			return Failed, bounded(o.blocked)
		case r.Refusal != "":
			return Failed, r.Refusal
		case o.health.NotApplied != "":
			return Failed, "not applied: " + bounded(o.health.NotApplied)
		case o.written && o.health.State == HealthFailed: // an earlier admission failed in the same way
			return Failed, reported
		}
		return Failed, "it failed; " + orElse(o.health.Reason, "no feedback since")

	case LeftFailed:
		return Failed, ""
	case Left:
		if o.written {
			return Updating, ""
		}
		return Left, "left before it was verified and soaked; needs a new admission"

	default: // Done: no observation changes it
		return r.State, ""
	}
}

// departed is the state of a record whose cluster is not in the install set.
func departed(r *Record, failed bool) (State, string) {
	switch {
	case r.State == Done:
		return Done, "verified and soaked before it left"
	case r.State == NotWritten:
		return NotWritten, failedThenLeft
	case r.failed() || failed:
		return LeftFailed, failedThenLeft
	}
	return Left, "left before it was verified and soaked"
}

// failedThenLeft is why a cluster counts as a failure although it left.
const failedThenLeft = "it failed before it left"

// failing reports whether the cluster reports a failure that counts. A failure that it reported before it took its
// slot belongs to an earlier admission. Such a failure counts only if it lasts for applyErrorAfter while the
// cluster is available, because a cluster that fails again reports the same failure. The record stores that the
// failure is older (Record.Reported): after a restart or a step of its clock, the operator does not know since
// when the cluster has reported the failure.
func (r *Record) failing(o observation, p pace, now time.Time) bool {
	before := r.Reported || o.health.seenBefore(r.Admitted)
	lasts := r.State == Updating && o.available && p.applyErrorAfter > 0 && !now.Before(r.Since.Add(p.applyErrorAfter))
	return o.written && o.health.State == HealthFailed && (!before || lasts)
}

// seenBefore reports whether the operator first saw the failure before t, which is a time of a record.
func (h Health) seenBefore(t time.Time) bool {
	return !h.BadSince.IsZero() && clock.RoundUp(h.BadSince, time.Second).Before(t)
}

// refusal is why the hub refused the last write of the works of the record. It stays until the works are written,
// because a new process has not tried to write them yet.
func (r *Record) refusal(o observation) string {
	switch {
	case o.written || r.State != Admitted && r.State != Failed && r.State != TimedOut:
		return ""
	case o.unwritten != "":
		return bounded(o.unwritten)
	}
	return r.Refusal
}

// applyError returns since when the agent has failed to apply the works, or the hub has refused them. ok is false if
// neither is the case.
func (r *Record) applyError(o observation) (seen time.Time, ok bool) {
	switch {
	case r.State == Updating && o.health.NotApplied != "":
		return o.health.BadSince, true
	case r.State == Admitted && o.unwritten != "":
		return o.unwrittenSince, true
	}
	return time.Time{}, false
}

// applyErrorLasts reports whether the apply error is old enough to count as a failure.
func applyErrorLasts(r *Record, o observation, p pace, now time.Time) bool {
	seen, ok := r.applyError(o)
	return ok && p.applyErrorAfter > 0 && !seen.IsZero() &&
		!now.Before(seen.Add(applyErrorSeen)) && !now.Before(r.Since.Add(p.applyErrorAfter))
}

// deadline is the end of the time that the cluster may stay in its state; zero: no end.
// A lost cluster keeps its slot for its declared deadline. Without a declared deadline it
// keeps the slot for the shorter of the default deadline and the park time. An admitted
// cluster has a deadline only while its works wait for something or are refused.
func (r *Record) deadline(o observation, p pace) time.Time {
	switch limit := p.deadline; {
	case o.paused != "" || !r.InFlight() || r.State == Admitted && o.awaits == "" && r.Refusal == "":
		return time.Time{}
	case r.State == Lost && (limit == 0 || !p.declared && p.parkAfter < limit):
		return r.Since.Add(p.parkAfter)
	case limit == 0:
		return time.Time{}
	case r.State == Soaking:
		return r.Since.Add(p.soak).Add(limit) // their sum may be longer than a Duration
	default:
		return r.Since.Add(limit)
	}
}

// pauses reports whether the clock of the record's state stands still because writes are
// paused. A soak continues: the cluster has its works.
func (r *Record) pauses(o observation) bool {
	return o.paused != "" && r.InFlight() && r.State != Soaking
}

// wakeAt is the next time at which next moves the record by the clock alone; zero: never.
func (r *Record) wakeAt(o observation, p pace) time.Time {
	switch {
	case r.pauses(o):
		return r.Since.Add(pauseGrain)
	case r.State == Soaking && o.health.State == HealthVerified && p.endless == "":
		return r.Since.Add(p.soak)
	}
	wake := r.deadline(o, p)
	seen, ok := r.applyError(o)
	if r.State == Updating && o.health.State == HealthFailed { // reported before this admission
		seen, ok = o.health.BadSince, true
	}
	if ok && p.applyErrorAfter > 0 {
		wake = clock.First(wake, clock.Later(r.Since.Add(p.applyErrorAfter), seen.Add(applyErrorSeen)))
	}
	return wake
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return bounded(text)
}
