package rollouttest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/addonflow/addonflow/rollout"
)

// edges are the changes of state that a record can make without an admission, whatever was
// seen. Several may happen in one step.
func edges(from rollout.State) []rollout.State {
	flying := []rollout.State{
		rollout.Admitted, rollout.Updating, rollout.Soaking, rollout.Done, rollout.Failed, rollout.TimedOut,
		rollout.NotWritten, rollout.Lost, rollout.Parked, rollout.Left, rollout.LeftFailed,
	}
	failed := []rollout.State{rollout.Failed, rollout.Soaking, rollout.Done, rollout.LeftFailed}
	switch from {
	case rollout.Parked, rollout.Left:
		return flying
	case rollout.Failed, rollout.LeftFailed:
		return failed
	case rollout.NotWritten:
		return []rollout.State{rollout.NotWritten, rollout.Updating, rollout.Soaking, rollout.Done, rollout.Failed}
	case rollout.TimedOut:
		return append(failed, rollout.TimedOut)
	case rollout.Done:
		return []rollout.State{rollout.Done}
	default:
		return flying
	}
}

// unobserved judges a step without its input.
func unobserved(b rollout.Record, had bool, a rollout.Record) error {
	if !had || a.State == rollout.Admitted || a.Revision != b.Revision || slices.Contains(edges(b.State), a.State) {
		return nil
	}
	return fmt.Errorf("from %s to %s", b.State, a.State)
}

// may returns an error if nothing in the story permits the state that was written.
func may(b, a rollout.Record, s *story) error {
	l := s.last()
	was := func(states ...rollout.State) bool { return slices.Contains(states, b.State) }
	if !slices.Contains(edges(b.State), a.State) {
		return fmt.Errorf("from %s to %s", b.State, a.State)
	}
	since, run := s.verifiedSince()
	switch a.State {
	case rollout.Admitted:
		return unless(l.member && !l.has, "it is Admitted and has its works, or left")
	case rollout.Updating:
		return unless(l.member && l.has && l.up, "it is Updating without its works")
	case rollout.Soaking:
		return errors.Join(
			unless(run, "it soaks and was not verified"),
			unless(!l.timed || a.Since.Equal(since), fmt.Sprintf("it soaks since %s, and is verified since %s", clock(a.Since), clock(since))))
	case rollout.Done:
		return unless(was(rollout.Done) || s.proved(), "it is Done and was not verified for the whole soak")
	case rollout.Failed:
		refused := s.refusedFor() && (b.State != rollout.Updating && b.State != rollout.Admitted || !l.at.Before(b.Since.Add(l.applyErrors)))
		kept := was(rollout.Failed, rollout.LeftFailed) && l.member
		barred := b.Failed && l.member && !l.has && (l.blocked != "" || s.late(time.Minute) || !l.timed)
		return unless(kept || barred || s.failed(time.Minute) || refused, "it is Failed and never was seen to fail")
	case rollout.NotWritten:
		barred := l.member && !l.has && (l.blocked != "" || s.late(time.Minute) || !l.timed)
		return unless(was(rollout.NotWritten) || barred, "it is NotWritten, and its works can be written")
	case rollout.TimedOut:
		silent := run && l.timed && l.deadline > 0 && !l.at.Before(since.Add(l.soak+l.deadline))
		spent := was(rollout.Soaking) && l.ill() && s.spent()
		late := l.up && (l.has || l.refused) && !l.verified() && (silent || spent || s.late(time.Minute))
		return unless(was(rollout.TimedOut) || late || !l.timed, "it is TimedOut before its deadline")
	case rollout.Lost:
		return unless(l.member && !l.up && !was(rollout.Parked) && (l.has || !was(rollout.Left)), "it is Lost and available")
	case rollout.Parked:
		ended := s.slotEnded(time.Minute) || !l.up && slotted(b) && !was(rollout.Lost) && s.spent()
		return unless(l.member && (was(rollout.Parked) || ended || !l.timed), "it is Parked before its slot ends")
	case rollout.Left:
		return unless(!l.member || was(rollout.Left), "it is Left and in the install set")
	case rollout.LeftFailed:
		return unless(!l.member && (s.erred || s.failed(time.Minute)), "it is LeftFailed and had not failed")
	default:
		return fmt.Errorf("unknown state %q", a.State)
	}
}

// must returns an error if the story demands another state than was written.
func must(b, a rollout.Record, s *story) error {
	l := s.last()
	is := func(states ...rollout.State) bool { return slices.Contains(states, a.State) }
	barred := b.State == rollout.NotWritten
	if s.erred && b.State != rollout.Done && a.State != rollout.Done && !isFailure(a) && !a.Failed {
		return errors.New("it failed, and is not a failure before it is Done")
	}
	switch {
	case b.State == rollout.Done:
		return nil
	case barred && (!l.member || !l.has || !l.up):
		return unless(is(rollout.NotWritten), "its works could not be written, and that is forgotten")
	case !l.member && (s.erred || s.failed(0)):
		return unless(is(rollout.LeftFailed), "a failure is forgotten because its cluster left")
	case !l.member:
		return unless(is(rollout.Left), "it left, and is not Left")
	case b.State == rollout.Left:
		return unless(is(rollout.Left) != l.has, "it has its works again, and holds no slot")
	case isFailure(b) && !barred && !l.verified():
		return unless(is(rollout.Failed, rollout.TimedOut), "a failure is forgotten")
	case s.reports(0):
		return unless(is(rollout.Failed), "a failure is not counted")
	case l.verified() && s.proved() && l.timed:
		return unless(is(rollout.Done), "its soak is over, and it is not Done")
	case l.verified():
		return unless(is(rollout.Soaking, rollout.Done), "it is verified, and does not soak")
	case !l.up && slotted(b) && !l.has && l.blocked != "":
		return nil
	case !l.up && slotted(b) && b.State != rollout.Lost && s.spent():
		return unless(is(rollout.Parked), "it is lost after deadline and soak, and holds its slot")
	case b.State == rollout.Soaking && l.ill() && s.spent():
		return unless(is(rollout.TimedOut), "it lost its health after deadline and soak, and is not TimedOut")
	case !l.up && slotted(b):
		return unless(is(rollout.Parked, rollout.NotWritten) || is(rollout.Lost) && !s.slotEnded(0), "it is not available past its time, and holds its slot")
	case l.up && (b.State == rollout.Parked || barred) && l.has:
		return unless(slotted(a), "its works are written, and it is not in flight")
	case slotted(b) && s.late(0):
		return unless(is(rollout.TimedOut, rollout.Failed) && (l.has || l.refused) || is(rollout.NotWritten) || is(rollout.Failed) && b.Failed, "it is past its deadline, and not TimedOut")
	}
	return nil
}

func unless(ok bool, text string) error {
	if ok {
		return nil
	}
	return errors.New(text)
}

func clock(t time.Time) string { return t.Format("15:04:05") }
